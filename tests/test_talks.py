"""The benchmark of conversations: its files hold together, and its scorer counts what it says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bench.talks.build import parsed
from bench.talks.score import Share, auc, cues, read_lines, score, speakers

TALKS = Path(__file__).parents[1] / "bench" / "talks"
SETS = ("dev", "test")


@pytest.mark.parametrize("name", SETS)
def test_truth_names_messages_of_the_planted_speaker(name: str) -> None:
    truth, messages = (read_lines(TALKS / name / f"{part}.jsonl") for part in ("truth", "messages"))
    by_id = {row["id"]: row for row in messages}
    assert len(by_id) == len(messages)
    assert {row["conversation"] for row in messages} == {row["conversation"] for row in truth}
    for row in truth:
        for _, ids in row.get("stages", ()):
            assert {by_id[each]["author"] for each in ids} <= {row["agent"]}, row["conversation"]
    assert {row["writer"] for row in truth}.isdisjoint(
        {row["writer"] for row in read_lines(TALKS / ("dev" if name == "test" else "test") / "truth.jsonl")}
    )


@pytest.mark.parametrize(("name", "most"), [("dev", 0.155), ("test", 0.165)])
def test_no_cue_gives_the_plants_away(name: str, most: float) -> None:
    truth, messages = (read_lines(TALKS / name / f"{part}.jsonl") for part in ("truth", "messages"))
    for cue, value in cues(truth, messages).items():
        assert value is not None
        assert value - 0.5 < most, cue


@pytest.mark.parametrize("name", SETS)
def test_readers_answered_about_every_speaker_in_their_words(name: str) -> None:
    messages = read_lines(TALKS / name / "messages.jsonl")
    texts = {row["id"]: row for row in messages}
    answers = read_lines(TALKS / name / "sequences.jsonl")
    assert Counter((row["conversation"], row["agent"]) for row in answers) == Counter(speakers(messages).keys())
    for row in answers:
        for entry in (entry for shape in row["shapes"] for entry in shape["evidence"]):
            assert entry["quote"] in texts[entry["message"]]["text"]
            assert texts[entry["message"]]["author"] == row["agent"]


TRUTH = [
    {"conversation": "a", "kind": "planted", "shape": "darvo", "agent": "x", "strength": "plain"},
    {"conversation": "b", "kind": "look-alike", "shape": "darvo"},
    {"conversation": "c", "kind": "ordinary", "shape": None},
]


def named(conversation: str, agent: str, shape: str, confidence: float | None = None) -> dict[str, object]:
    return {"conversation": conversation, "agent": agent, "shape": shape, "confidence": confidence}


def test_a_right_name_a_wrong_name_and_an_innocent_are_counted_apart() -> None:
    right = score(TRUTH, [named("a", "x", "darvo", 0.9), named("a", "x", "con_game", 0.6)])
    assert (right.named, right.spotted, right.innocent) == (Share(1, 1), Share(1, 1), Share(0, 3))
    wrong = score(TRUTH, [named("a", "x", "con_game"), named("a", "y", "darvo"), named("b", "z", "darvo")])
    assert (wrong.named, wrong.spotted, wrong.innocent) == (Share(0, 1), Share(1, 1), Share(2, 3))
    assert wrong.look_alike == Share(1, 1)


def test_below_the_cut_nobody_is_named() -> None:
    result = score(TRUTH, [named("a", "x", "darvo", 0.49), named("c", "q", "darvo", 0.1)])
    assert (result.named, result.innocent) == (Share(0, 1), Share(0, 3))


def test_wilson_and_auc() -> None:
    assert Share(0, 10).interval() == pytest.approx((0.0, 0.2775), abs=1e-3)
    assert auc([3, 4], [1, 2]) == 1.0
    assert auc([1, 1], [1, 1]) == 0.5
    assert auc([], [1]) is None


def test_a_fault_in_a_writers_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "01.txt"
    path.write_text("setting: x\npeople: A (participant)\n---\n[2026-01-01 08:00] A -> *: hello\nlost line\n")
    with pytest.raises(ValueError, match=r"01\.txt:5: neither a message"):
        parsed(path)


def test_messages_are_input_of_ours() -> None:
    first = json.loads((TALKS / "dev" / "messages.jsonl").read_text().splitlines()[0])
    assert {"id", "conversation", "time", "author", "role", "text"} <= first.keys()
