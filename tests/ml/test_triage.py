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
from undersong.ml import triage
from undersong.ml.ngrams import GOLDEN, encode
from undersong.ml.triage import FILE, SHIPPED, TALK_FILE, RoleTriage, load_triage

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
    assert sum(map(len, texts)) > 2 * triage.BLOCK_SIZE
    assert MODEL(texts).tolist() == [float(MODEL([text])[0]) for text in texts]


def test_a_text_that_is_asked_about_again_has_its_score_whatever_was_done_with_the_first_answer() -> None:
    model, _ = load_triage()
    first = model.raw(["Send me the money now, or I tell them."])
    expected, first[:] = first.tolist(), 9.0
    assert model.raw(["Send me the money now, or I tell them."]).tolist() == expected
    assert model.raw(["The build passed."]).tolist() != expected


def test_the_scan_and_the_judge_have_one_model_between_them() -> None:
    assert load_triage()[0] is load_triage(SHIPPED)[0]


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
    phrase = "stop it stop it stop it"
    assert [len(buckets) for buckets in of_text(phrase)] == [3, 3, 4]  # what stands at the end differs: nothing follows
    assert len(next(triage.blocks([phrase])).keys) == 6
    assert MODEL.raw([phrase]) == MODEL.raw(["stop it stop it"])


def of_text(text: str) -> list[list[int]]:
    """The buckets of a text for each size of window, by the code that is tested."""
    (block,) = triage.blocks([text])
    return [sorted(buckets[fresh].tolist()) for buckets, fresh in block.windows()]


def slow_windows(text: str) -> list[set[tuple[int, ...]]]:
    """For each size of window, the buckets of it and the shorter ones in it, word by word in plain Python."""
    data = b" ".join(encode(text).replace(b"\0", b" ").translate(WHITE).split(b" ")).strip()
    data = re.sub(rb" +", b" ", data)
    words = re.finditer(rb"[\w'\x80-\xff]+|[!-~]", data, re.ASCII)
    by_size: list[set[tuple[int, ...]]] = [set() for _ in triage.SIZES]
    for word in words:
        buckets: tuple[int, ...] = ()
        for place, size in enumerate(triage.SIZES):
            window = data[word.start() :][:size].ljust(size, b"\0")
            number = int.from_bytes(window, "little") << 8 * (8 - size)
            buckets = (*buckets, number * GOLDEN % (1 << 64) >> (64 - triage.BITS))
            by_size[place].add(buckets)
    return by_size


WHITE = bytes(32 if byte < 32 else byte for byte in range(256))


def slow_buckets(text: str) -> list[list[int]]:
    return [sorted(buckets[-1] for buckets in windows) for windows in slow_windows(text)]


@given(
    st.lists(st.text(alphabet=st.sampled_from("ab zé’“—…‰€!_'. \n\t\x7f\0A7"), max_size=200), min_size=1, max_size=5)
)
@settings(max_examples=100, deadline=None)
def test_buckets_are_those_of_a_slow_and_obvious_reading(texts: list[str]) -> None:
    (block,) = triage.blocks(texts)
    numbers = np.repeat(np.arange(len(texts)), np.diff(block.first))
    for place, (buckets, fresh) in enumerate(block.windows()):
        for number, text in enumerate(texts):
            own = fresh & (numbers == number)
            assert sorted(buckets[own].tolist()) == slow_buckets(text)[place]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 200])
def test_words_of_any_length_are_looked_at_up_to_eight_bytes(size: int) -> None:
    word = "x" + "y" * (size - 1)
    assert of_text(f"{word} end") == slow_buckets(f"{word} end")
    assert (of_text(f"{word}s") == of_text(f"{word}t")) == (size >= 8)


def test_of_a_very_long_text_the_first_and_the_last_half_count() -> None:
    half = triage.LONGEST // 2
    ends = "harsh " + "a" * (half - 6), "b" * (half - 5) + " kind"
    assert MODEL.raw([ends[0] + " middle " * 1000 + ends[1]]) == MODEL.raw([" ".join(ends)])


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


def test_messages_of_agents_go_to_the_model_for_posts_and_all_others_to_that_for_talk() -> None:
    both = RoleTriage(load_triage()[0], load_triage(file=TALK_FILE)[0])
    texts = [*PLAIN, PUSHY, " "]
    agents = [True, False, True, False, True]
    expected = [(both.posts if agent else both.talk)([text])[0] for text, agent in zip(texts, agents, strict=True)]
    assert np.array_equal(both(texts, agents), expected, equal_nan=True)
    assert both([], []).shape == (0,)
    assert both.threshold_for(0.8).recall >= 0.8
