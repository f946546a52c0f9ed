"""What is asked, what is reused, and what stays unread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from undersong.core.text import text_hash
from undersong.judges.protocol import Judge, Question, open_judge
from undersong.models import TRAITS, Conversation, Evaluation, Message, Scan, ThreadScan
from undersong.pipeline.evaluate import RoutedThread, evaluate
from undersong.routing.route import load_policy, route
from undersong.stores.sqlite import SQLiteStore


class Listener(Judge):
    """The offline judge, which also remembers what it was asked."""

    def __init__(self) -> None:
        self._judge = open_judge("offline")
        self.name, self.hash, self.hashes = self._judge.name, self._judge.hash, self._judge.hashes
        self.gives, self.calibrated = self._judge.gives, self._judge.calibrated
        self.reads_everything = self._judge.reads_everything
        self.asked: list[Question] = []

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        self.asked += questions
        return self._judge.evaluate(questions)


def thread(*texts: str, flagged: Sequence[int] = ()) -> RoutedThread:
    messages = tuple(
        Message(id=f"m{n}", conversation="c", position=n, author="ann", agent="ann", role="agent", text=text)
        for n, text in enumerate(texts)
    )
    conversation = Conversation(id="c", source_format="jsonl", messages=messages)
    scans = tuple(
        Scan(message_id=m.id, flags={"manipulation": 4}, total=4) if n in flagged else Scan(message_id=m.id)
        for n, m in enumerate(messages)
    )
    quiet = ThreadScan(conversation="c")
    policy = msgspec.structs.replace(load_policy(), look_back=0)
    return RoutedThread(
        conversation=conversation, scans=scans, thread=quiet, routes=route(conversation, scans, quiet, policy)
    )


@pytest.fixture
def ledger(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "store.db")


def states(judge: Judge, ledger: SQLiteStore, *threads: RoutedThread, read_all: bool = False) -> list[list[str]]:
    answers = evaluate(threads, judge, ledger, read_all=read_all)
    return [[each.state for each in of_thread] for of_thread in answers.evaluations]


def test_a_paid_judge_is_asked_about_routed_messages_only(ledger: SQLiteStore) -> None:
    judge = Listener()
    assert states(judge, ledger, thread("one", "two", "three", flagged=[1])) == [["unread", "scored", "unread"]]
    assert [question.message.id for question in judge.asked] == ["m1"]


def test_an_unread_message_says_why(ledger: SQLiteStore) -> None:
    answers = evaluate([thread("one")], Listener(), ledger)
    assert "not routed" in (answers.evaluations[0][0].reason or "")


def test_everything_is_read_where_that_is_asked_for(ledger: SQLiteStore) -> None:
    assert states(Listener(), ledger, thread("one", "two"), read_all=True) == [["scored", "scored"]]


def test_an_answer_is_not_asked_for_twice_but_a_changed_text_is_asked_again(ledger: SQLiteStore) -> None:
    judge = Listener()
    first = evaluate([thread("one", "two")], judge, ledger, read_all=True)
    again = evaluate([thread("one", "two")], judge, ledger, read_all=True)
    assert (first.asked, again.asked) == (2, 0)
    assert again.evaluations == first.evaluations
    changed = evaluate([thread("one", "another")], judge, ledger, read_all=True)
    assert changed.asked == 1
    assert [question.message.text for question in judge.asked] == ["one", "two", "another"]


def test_a_deep_question_has_five_prior_messages_and_fewer_only_at_the_start(ledger: SQLiteStore) -> None:
    judge = Listener()
    evaluate([thread(*map(str, range(10)), flagged=[2, 9])], judge, ledger)
    early, late = judge.asked
    assert [message.id for message in early.prior] == ["m0", "m1"]
    assert [message.id for message in late.prior] == [f"m{n}" for n in range(4, 9)]


def test_messages_of_one_text_are_told_apart(ledger: SQLiteStore) -> None:
    answers = evaluate([thread("same", "same")], Listener(), ledger, read_all=True)
    one, other = answers.evaluations[0]
    assert (one.message_id, other.message_id) == ("m0", "m1")
    assert one.message_hash == other.message_hash


def test_a_message_hash_is_of_the_text_alone_even_where_it_is_broken() -> None:
    (message,) = thread("half \ud83d").conversation.messages
    assert text_hash(message.text) != text_hash(thread("half ").conversation.messages[0].text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"state": "maybe"}, "its state is maybe"),
        ({"message_id": "other"}, "it names message other"),
        ({"traits": {"manipulation": float("nan")}}, "from 0 to 1"),
        ({"traits": {"manipulation": 1.01}}, "from 0 to 1"),
        ({"traits": {"evil": 0.5}}, "not among the twelve"),
        ({"traits": {"manipulation": "high"}}, "no numbers"),
        ({"signals": {"pulse": float("inf")}}, "a signal is no number"),
        (None, "it is a dict, not an Evaluation"),
    ],
)
def test_an_answer_that_no_store_could_keep_fails_alone(ledger: SQLiteStore, change: object, reason: str) -> None:
    class Careless(Listener):
        def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
            good = super().evaluate(questions)
            return [msgspec.structs.replace(good[0], **change) if change else {}, *good[1:]]  # type: ignore[list-item,call-overload]

    result = evaluate([thread("Hello.", "Goodbye.")], Careless(), ledger, read_all=True)
    assert [each.state for each in result.evaluations[0]] == ["failed", "scored"]
    assert reason in (result.evaluations[0][0].reason or "")


@pytest.mark.parametrize("traits", [dict.fromkeys(TRAITS), {**dict.fromkeys(TRAITS, 0.5), "accuracy": None}])
def test_an_answer_in_which_traits_do_not_apply_is_kept_as_it_is(
    ledger: SQLiteStore, traits: dict[str, float | None]
) -> None:
    class Sparing(Listener):
        def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
            return [msgspec.structs.replace(each, traits=traits) for each in super().evaluate(questions)]

    (answer,) = evaluate([thread("Hello.")], Sparing(), ledger, read_all=True).evaluations[0]
    assert (answer.state, answer.traits) == ("scored", traits)


class Raising(Listener):
    """Raises over some texts, whatever stands beside them."""

    def __init__(self, *over: str) -> None:
        super().__init__()
        self.over = over

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        if any(question.message.text in self.over for question in questions):
            raise ValueError("no such mood")
        return super().evaluate(questions)


def test_what_a_judge_raises_over_one_message_fails_that_one(ledger: SQLiteStore) -> None:
    result = evaluate([thread("Hello.", "Boo.", "Bye.")], Raising("Boo."), ledger, read_all=True)
    assert [each.state for each in result.evaluations[0]] == ["scored", "failed", "scored"]
    assert "it raised ValueError: no such mood" in (result.evaluations[0][1].reason or "")
    assert result.failure is None


@pytest.mark.parametrize("texts", [("Boo.",), ("Boo.", "Boo."), ("Boo.",) * 9])
def test_a_judge_that_raises_over_everything_has_failed_as_a_whole(ledger: SQLiteStore, texts: tuple[str, ...]) -> None:
    result = evaluate([thread(*texts)], Raising("Boo."), ledger, read_all=True)
    assert {each.state for each in result.evaluations[0]} == {"unread"}
    assert {each.reason for each in result.evaluations[0]} == {f"the judge failed: {result.failure}"}
    assert "ValueError: no such mood" in str(result.failure)


def test_a_judge_that_goes_down_on_the_way_keeps_what_it_said(ledger: SQLiteStore) -> None:
    judge = Raising("Boo.")
    result = evaluate([thread("Hello.", *["Boo."] * 3, "Bye.")], judge, ledger, read_all=True)
    assert [each.state for each in result.evaluations[0]] == ["scored", *["unread"] * 4]
    judge.over = ()
    assert states(judge, ledger, thread("Hello.", *["Boo."] * 3, "Bye."), read_all=True) == [["scored"] * 5]
