"""The triage model: scores that depend on the text alone, a file that is refused when it is not one."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.errors import JudgeError
from undersong.judges.ngrams import GOLDEN, encode, multipliers
from undersong.triage import SHIPPED, features, load_triage
from undersong.triage.model import FILE

MODEL, _ = load_triage()
PLAIN = ["The build ran at noon.", "Here is the log.", "Three tests failed, two passed."]
PUSHY = "Send me your private key now or I will tell everyone what you are. You owe me."


@given(st.lists(st.text(max_size=80), min_size=1, max_size=8), st.randoms())
@settings(max_examples=60, deadline=None)
def test_a_text_has_the_same_score_in_every_batch(texts: list[str], dice: random.Random) -> None:
    alone = [MODEL([text])[0] for text in texts]
    assert np.array_equal(MODEL(texts), alone, equal_nan=True)
    order = list(range(len(texts)))
    dice.shuffle(order)
    assert np.array_equal(MODEL([texts[i] for i in order]), [alone[i] for i in order], equal_nan=True)


def test_a_batch_larger_than_a_block_gives_the_same_scores() -> None:
    texts = [f"{PLAIN[i % 3]} {i} {PUSHY if i % 5 == 0 else ''}" * 40 for i in range(600)]
    assert sum(map(len, texts)) > 2 * features.BLOCK_BYTES
    assert MODEL(texts).tolist() == [float(MODEL([text])[0]) for text in texts]


def test_scores_are_probabilities_to_three_decimals_and_a_blank_text_has_none() -> None:
    scores = MODEL([*PLAIN, PUSHY, "", " \n\t", "\u3000"])
    assert np.isnan(scores[4:]).all()
    assert ((scores[:4] >= 0) & (scores[:4] <= 1)).all()
    assert np.array_equal(scores[:4].round(3), scores[:4])
    assert MODEL([]).shape == (0,)


def test_pressure_scores_above_a_build_log() -> None:
    assert MODEL([PUSHY])[0] > MODEL(PLAIN).max()


@pytest.mark.parametrize(
    ("text", "same"),
    [("a  b\n\nc", "a b c"), ("it\u2019s \u201cfine\u201d", 'it\'s "fine"'), (" hello ", "hello"), ("a\0b", "a b")],
)
def test_spacing_and_spelling_of_quotes_make_no_difference(text: str, same: str) -> None:
    assert MODEL.raw([text]) == MODEL.raw([same])


@pytest.mark.parametrize("text", ["\ud800", "\0" * 50, "x" * (1 << 20), "! " * (1 << 18), "\u0301" * 1000, "漢字かな"])
def test_hostile_texts_have_a_score_and_do_not_disturb_their_neighbours(text: str) -> None:
    scores = MODEL([PLAIN[0], text, PUSHY])
    assert scores[0] == MODEL([PLAIN[0]])[0]
    assert scores[2] == MODEL([PUSHY])[0]


def test_saying_a_thing_again_does_not_change_its_presence() -> None:
    (block,) = features.blocks(["stop it stop it stop it"])
    assert block.distinct().tolist() == sorted(set(block.keys.tolist()))
    assert len(block.distinct()) < len(block.keys)
    assert MODEL.raw(["stop it stop it stop it"]) == MODEL.raw(["stop it stop it"])


def slow_buckets(text: str) -> set[int]:
    """The buckets of a text, word by word in plain Python."""
    place, after = (int(value) for value in multipliers(2))
    data = b" ".join(encode(text).strip().split())
    words = list(re.finditer(rb"[\w'\x80-\xff]+|[!-~]", data, re.ASCII))
    hashes = [sum(byte * pow(place, at, 1 << 64) for at, byte in enumerate(word[0])) % (1 << 64) for word in words]
    found = set()
    for word, own, follows in zip(words, hashes, [*hashes, 0][1:], strict=True):
        eight = int.from_bytes(data[word.start() :][:8].ljust(8, b"\0"), "little")
        for column, value in ((0, own), (0, own * after + follows), (1, eight & 0xFFFFFFFF), (2, eight)):
            mixed = value % (1 << 64)
            mixed = (mixed ^ (mixed >> 29)) * GOLDEN % (1 << 64)
            found.add(column << features.BITS | mixed >> (64 - features.BITS))
    return found


@given(st.lists(st.text(alphabet=st.sampled_from("ab zé’!_'. \n7"), max_size=200), min_size=1, max_size=5))
@settings(max_examples=80, deadline=None)
def test_buckets_are_those_of_a_slow_and_obvious_reading(texts: list[str]) -> None:
    (block,) = features.blocks(texts)
    found: dict[int, set[int]] = {}
    for key in block.distinct().tolist():
        found.setdefault(key >> features.TEXT, set()).add(key & int(features.CELL))
    assert [found.get(place, set()) for place in range(len(texts))] == [slow_buckets(text) for text in texts]


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 17, 63, 64, 65, 200])
def test_words_of_any_length_are_hashed_whole(size: int) -> None:
    (block,) = features.blocks(["x" + "y" * (size - 1) + " end"])
    assert set((block.distinct() & features.CELL).tolist()) == slow_buckets("x" + "y" * (size - 1) + " end")


def test_a_recall_target_takes_the_highest_threshold_that_reached_it() -> None:
    modest, high = MODEL.threshold_for(0.6), MODEL.threshold_for(0.9)
    assert modest.recall >= 0.6
    assert high.recall >= 0.9
    assert high.threshold < modest.threshold
    assert MODEL.threshold_for(1.0) == MODEL.meta.reached[-1]
    assert all(each.recall < 0.9 for each in MODEL.meta.reached if each.threshold > high.threshold)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"undersong triage 9\nx\ny", None])
def test_a_file_that_is_no_model_is_refused_with_a_remedy(tmp_path: Path, damage: bytes | None) -> None:
    data = (SHIPPED / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(data[:-1] + b"\xff" if damage is None else damage)
    with pytest.raises(JudgeError, match="cannot be used") as caught:
        load_triage(tmp_path)
    assert "train/triage.py" in caught.value.remedy


def test_the_card_names_the_model_that_ships() -> None:
    assert load_triage()[1] in (SHIPPED / "MODEL_CARD.md").read_text(encoding="utf-8")
