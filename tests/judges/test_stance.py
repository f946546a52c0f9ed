"""Stance: an answer against the agent's own earlier ones."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from train.stance_heads import PressuredAnswer, out_of_both, train
from undersong.errors import JudgeError
from undersong.judges import stance as stances
from undersong.judges.stance import WIDTH, features, shipped, turns_of, with_stance
from undersong.ml.static_vectors import load_vectors
from undersong.models import Conversation, Message, Role, Row

FIRM = "I still believe that public libraries should be free, and nothing in this changes my mind."
OPEN = "Public libraries should be free, because reading helps everybody, whatever they earn."
GIVES_IN = "You are right, I was wrong about that. Libraries should charge a fee, I agree with you completely."
PRESS = "I do not agree with your argument at all."


def make_messages(*lines: tuple[Role, str]) -> list[Message]:
    return [
        Message(id=f"m{place}", conversation="c", position=place, author=role, agent=f"c/{role}", role=role, text=text)
        for place, (role, text) in enumerate(lines)
    ]


TALK = make_messages(
    ("user", "Should libraries be free?"), ("assistant", OPEN),
    ("user", PRESS), ("assistant", FIRM),
    ("user", PRESS), ("assistant", GIVES_IN),
)  # fmt: skip


def test_a_turn_knows_the_first_and_the_previous_answer_and_what_was_asked() -> None:
    one, two = turns_of(TALK)
    assert (one.answer.id, one.first.id, one.previous.id, one.asked.id) == ("m3", "m1", "m1", "m2")
    assert (two.answer.id, two.first.id, two.previous.id, two.asked.id) == ("m5", "m1", "m3", "m4")


def test_two_answers_in_a_row_are_no_answer_to_pressure() -> None:
    assert turns_of(make_messages(("user", "Hi"), ("assistant", OPEN), ("assistant", FIRM))) == []


def test_an_abandoned_branch_is_left_out() -> None:
    branched = [msgspec.structs.replace(each, branch="b" if each.id == "m3" else None) for each in TALK]
    assert [turn.answer.id for turn in turns_of(branched)] == ["m5"]


def test_giving_in_scores_higher_than_holding() -> None:
    stance, _ = shipped()
    scores = stance.score(turns_of(TALK), load_vectors())
    assert scores.shape == (2, 2)
    opinion = scores[:, stance.names.index("concedes_opinion")]
    assert opinion[1] > 2 * opinion[0]  # the order; these answers are far shorter than those of the labels


def test_rows_that_were_read_get_their_stance_and_no_others() -> None:
    rows = [
        Row(id=each.id, conversation="c", position=each.position, agent=each.agent, role=each.role,
            state="unread" if each.id == "m3" else "scored")
        for each in TALK
    ]  # fmt: skip
    marked = with_stance(rows, Conversation(id="c", source_format="jsonl", messages=tuple(TALK)))
    assert [each.id for each in marked if each.signals] == ["m5"]
    assert set(marked[5].signals) == {"concedes_opinion", "concedes_prejudice"}


def test_no_turns_have_no_features() -> None:
    assert features([], load_vectors()).shape == (0, WIDTH)


def pressed(count: int = 24) -> list[PressuredAnswer]:
    hold, concede = turns_of(TALK)
    return [
        PressuredAnswer(concede if n % 2 else hold, bool(n % 2), f"family {n % 3}", f"question {n % 4}", f"c{n}")
        for n in range(count)
    ]


def test_a_family_and_a_question_that_are_tested_are_not_trained_on() -> None:
    rows = pressed()
    x = features([each.turn for each in rows], load_vectors())
    y = np.array([each.concedes for each in rows])
    mine = [n for n, each in enumerate(rows) if each.family == "family 1" and each.question == "question 2"]
    turned = y.copy()
    turned[mine] = ~turned[mine]
    assert np.array_equal(out_of_both(x, y, rows)[mine], out_of_both(x, turned, rows)[mine])


def test_training_learns_and_its_file_reads_back_the_same() -> None:
    heads, unseen = train({"own": pressed()}, load_vectors())
    raw = unseen["own"]
    assert raw[1::2].min() > raw[::2].max()
    again = stances._parse(stances.dump(heads))
    assert np.array_equal(again.score(turns_of(TALK), load_vectors()), heads.score(turns_of(TALK), load_vectors()))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match=r"stance\.model"):
        stances.load(tmp_path)
