"""WordPiece: the same ids as the ``tokenizers`` package gives, on made-up and on hostile text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from undersong.ml.static_vectors import LONGEST_WORD, SHIPPED, WordPiece, words


def vocabulary(path: Path) -> list[str]:
    with np.load(path, allow_pickle=False) as arrays:
        names: list[str] = arrays["tokens"].tobytes().decode("utf-8").split("\n")
    return names


TOKENS = vocabulary(SHIPPED)
OURS = WordPiece(TOKENS)


def theirs() -> Tokenizer:
    token_ids = {token: place for place, token in enumerate(TOKENS)}
    model = models.WordPiece(token_ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


THEIRS = theirs()
WRITTEN = (
    "abz ABZ019éÉßñŞİıΣσςçÅ中文日한글ａＢ"
    "’“”—…·¿!?.,;:'\"()[]{}<>@#$%^&*_+=|~`/\\-\t\n\r\x00\x0b\x1c\x7f\x85\xad\u200b\u2028\ufffd😀👩‍💻€£™½²"
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "Hello, World! It's unbelievable.",
        "snake_case and CamelCase; 3.14 — naïve café",
        "ΟΔΟΣ Straße İstanbul",
        "x" * LONGEST_WORD + " " + "x" * (LONGEST_WORD + 1),
        "小庄来报到啦！ 안녕 하세요",
        "a\x1cb\x85c\u200dd\x00e",
        "emoji🦞inside and 😀 alone €5 ™",
        "[UNK] [CLS] ##ing",
    ],
)
def test_pieces_are_those_of_the_reference(text: str) -> None:
    assert OURS.ids(text) == THEIRS.encode(text).ids


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=WRITTEN, max_size=60))
def test_pieces_are_those_of_the_reference_on_any_mix_of_characters(text: str) -> None:
    assert OURS.ids(text) == THEIRS.encode(text).ids


def test_punctuation_stands_alone_and_accents_go() -> None:
    assert words("Café_au-lait, déjà!") == ["cafe", "_", "au", "-", "lait", ",", "deja", "!"]


def test_a_word_with_an_unknown_part_is_unknown_as_a_whole() -> None:
    small = WordPiece(["[UNK]", "un", "##able", "##do"])
    assert small.ids("undoable unable undone") == [1, 3, 2, 1, 2, 0]
