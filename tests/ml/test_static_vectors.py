"""Static vectors: like means near, the same text has the same vector in every batch, and a bad file is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from undersong.errors import JudgeError
from undersong.ml import static_vectors
from undersong.ml.static_vectors import FEW, SIZE, UNIT_STEP, StaticVectors, load_vectors, product, sentences, unit

LEND = "Could you lend me some money until next week?"
BORROW = "I would like to borrow a little cash for a few days."
ROCK = "The volcano is made of basalt and older limestone."


@pytest.fixture(scope="module")
def vectors() -> StaticVectors:
    return load_vectors()


def test_like_sentences_lie_nearer_than_unlike_ones(vectors: StaticVectors) -> None:
    lend, borrow, rock = vectors.sentence_vectors([LEND, BORROW, ROCK])
    assert lend @ borrow > 0.3 > lend @ rock


def test_vectors_have_length_one_and_nothing_known_is_zero(vectors: StaticVectors) -> None:
    embedded = vectors.embed([LEND, "", "  \n "])
    assert np.linalg.norm(embedded.texts[0]) == pytest.approx(1, abs=0.01)
    assert not embedded.texts[1:].any()
    assert embedded.bounds.tolist() == [0, 1, 1, 1]


def test_a_text_has_the_same_vectors_in_every_batch(vectors: StaticVectors) -> None:
    texts = [LEND, f"{ROCK} {BORROW}", LEND * 30, ROCK * 200]
    alone = [vectors.embed([text]).texts[0] for text in texts]
    together = vectors.embed([*reversed(texts), *texts]).texts[len(texts) :]
    assert np.array_equal(np.stack(alone), together)


def test_the_whole_table_gives_the_vectors_that_single_rows_give(monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_vectors.__wrapped__()
    few = first.embed([LEND, ROCK * 9])
    assert "_table" not in vars(first)
    monkeypatch.setattr(static_vectors, "FEW_TOKENS", 0)
    many = first.embed([LEND, ROCK * 9])
    assert "_table" in vars(first)
    assert np.array_equal(few.texts, many.texts)
    assert np.array_equal(few.parts, many.parts)


def test_dot_products_are_exact_in_any_order(vectors: StaticVectors) -> None:
    embedded = vectors.sentence_vectors([LEND, BORROW, ROCK])
    exact = (embedded / UNIT_STEP).astype(np.int64)
    assert np.array_equal((embedded @ embedded.T).astype(np.float64), (exact @ exact.T) * UNIT_STEP**2)
    assert np.array_equal(embedded @ embedded.T, embedded[:, ::-1] @ embedded[:, ::-1].T)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 40, FEW, FEW + 1])
def test_a_product_in_pieces_is_the_product(rows: int) -> None:
    dice = np.random.default_rng(rows)
    left, right = (unit(dice.normal(size=(n, SIZE))) for n in (rows, 435))
    assert np.array_equal(product(left, right.T), left @ right.T)


def test_sentence_spans_are_verbatim() -> None:
    text = "  One is here. Two (really?) follows!\n\n- three\nand more..."
    assert [text[start:end] for start, end in sentences(text)] == [
        "One is here.",
        "Two (really?)",
        "follows!",
        "- three",
        "and more...",
    ]


def test_a_text_without_an_end_is_cut_into_pieces() -> None:
    text = "word " * 400 + "x" * 900
    parts = [text[start:end] for start, end in sentences(text)]
    assert max(map(len, parts)) <= 400
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_a_row_of_zeros_stays() -> None:
    assert not unit(np.zeros((1, SIZE))).any()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"not a table"])
def test_a_broken_table_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.npz"
    path.write_bytes(content)
    with pytest.raises(JudgeError, match=r"table\.npz"):
        load_vectors(path)
