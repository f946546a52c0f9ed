"""Evaluation by a judge: questions about routed messages, with stored answers reused, and what failed of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import NamedTuple, Protocol, get_args

import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import counted, text_hash
from undersong.errors import JudgeError, UndersongError
from undersong.judges.context import EarlierMessages
from undersong.judges.llm.refusals import same_kind
from undersong.judges.protocol import EvaluationHistory, Judge, JudgeAbortedError, Question, asked
from undersong.models import (
    TRAITS,
    Conversation,
    Evaluation,
    Message,
    Problem,
    Record,
    Route,
    Row,
    Scan,
    State,
    ThreadScan,
    applicable_scores,
)
from undersong.models.waiting import WAITING, waiting_folder

_STATES, _TRAITS = frozenset(get_args(State)), frozenset(TRAITS)
REUSABLE_STATES = frozenset({"scored", "refused"})  # a judge said this; what failed or was left unread is asked again
IN_A_ROW = 3  # questions over which a judge raises, one after the other, until it is taken to be down
LONGEST = 300  # characters of what a judge raised that are told
SHOWN = 5  # kinds of failures that are named, the most frequent first
REASON_CHARACTERS = 200  # of one of them
PREFIXES = ("the judge did not answer: ", "the judge's answer cannot be used: ", "no usable answer: ")
UNUSABLE = "the judge's answer cannot be used: "
FORGET = "`undersong judge forget --failed` has those asked again whose answers could not be used"
AGAIN = "the same command asks again"
HistoryLookup = Callable[[Message], EvaluationHistory]


class RoutedThread(Record, frozen=True, kw_only=True):
    """A conversation with its scans and routes, aligned with its messages."""

    conversation: Conversation
    scans: tuple[Scan, ...]
    thread: ThreadScan
    routes: tuple[Route, ...]


class Ledger(Protocol):
    """A store of answers."""

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]: ...

    def put_answers(self, answers: Sequence[tuple[str, Evaluation]]) -> None: ...


class Answers(NamedTuple):
    """The evaluations of some threads, each aligned with its messages; ``asked`` counts those asked just now.

    ``failure`` is set where the judge failed as a whole: what it had answered before is there all the same.
    """

    evaluations: tuple[tuple[Evaluation, ...], ...]
    asked: int = 0
    failure: JudgeError | None = None


def evaluate(
    threads: Sequence[RoutedThread],
    judge: Judge,
    ledger: Ledger,
    *,
    read_all: bool = False,
    histories: HistoryLookup | None = None,
    failed: JudgeError | None = None,
) -> Answers:
    """One Evaluation per message: read now, read before, or unread with the reason.

    Everything is read with ``read_all``, else what is routed; so an answer kept from a run that read more is used only
    where this one reads. New answers are kept in the ledger in one transaction before they are used. A judge that has
    ``failed`` is not asked again; what is kept of it is used.
    """
    questions = [questions_of(thread, read_all=read_all, histories=histories) for thread in threads]
    reusable = [
        still_valid(each, ledger.answers(thread.conversation.id, judge.hash))
        for thread, each in zip(threads, questions, strict=True)
    ]
    open_ones = [
        (place, question)
        for place, each in enumerate(questions)
        for question in each
        if question.message.id not in reusable[place]
    ]
    new, failure = ask(judge, [question for _, question in open_ones], failed)
    pairs = [(where, answer) for where, answer in zip(open_ones, new, strict=True) if answer is not None]
    if pairs:
        ledger.put_answers([(question.message.conversation, answer) for (_, question), answer in pairs])
    for (place, _), answer in pairs:
        reusable[place][answer.message_id] = answer
    routed = [{question.message.id for question in each} for each in questions]
    evaluations = tuple(
        tuple(
            answers.get(message.id) or unread(message, judge, failure if message.id in wanted else None)
            for message in thread.conversation.messages
        )
        for thread, answers, wanted in zip(threads, reusable, routed, strict=True)
    )
    return Answers(evaluations, len(pairs), failure)


def not_scored(threads: Sequence[RoutedThread], judge: Judge, why: str) -> Answers:
    """Every message unread for the same reason: the judge is not asked about messages."""
    return Answers(
        tuple(
            tuple(msgspec.structs.replace(unread(each, judge), reason=why) for each in thread.conversation.messages)
            for thread in threads
        )
    )


def unread(message: Message, judge: Judge, failure: JudgeError | None = None) -> Evaluation:
    """The state of a message that the router left out, or that a judge that failed did not come to."""
    reason = "not routed: no flag or signal asks for it within the budget, and not in the audit sample"
    return Evaluation(
        message_id=message.id,
        state="unread",
        judge=judge.name,
        judge_hash=judge.hash,
        message_hash=text_hash(message.text),
        width="none",
        reason=reason if failure is None else f"the judge failed: {failure}",
    )


def questions_of(thread: RoutedThread, *, read_all: bool, histories: HistoryLookup | None = None) -> list[Question]:
    """The questions about what is read of a thread, in order, each with the context of its tier."""
    earlier = EarlierMessages(thread.conversation.messages)
    return [
        question_of(thread, place, histories, earlier)
        for place, route in enumerate(thread.routes)
        if read_all or route.depth != "skip"
    ]


def question_of(
    thread: RoutedThread, place: int, histories: HistoryLookup | None, earlier: EarlierMessages
) -> Question:
    """The question about one message of a thread, with the context of its tier."""
    messages, route = thread.conversation.messages, thread.routes[place]
    places = earlier.prior_places(place, route.width)
    wide = route.width == "thread_and_history"
    return Question(
        message=messages[place],
        scan=thread.scans[place],
        route=route,
        prior=tuple(messages[at] for at in places),
        prior_scans=tuple(thread.scans[at] for at in places),
        cut=place - len(places) if wide else 0,
        tools=tuple(messages[at] for at in earlier.tool_places(place, places)),
        history=(histories(messages[place]) if histories else EvaluationHistory()) if wide else None,
    )


def still_valid(questions: Sequence[Question], stored: dict[str, Evaluation]) -> dict[str, Evaluation]:
    """Stored answers that still hold: the same judge read the same text in the same context.

    A judge that reads nothing but the message has no context to compare.
    """
    if not stored:
        return {}
    valid = {}
    for question in questions:
        answer = stored.get(question.message.id)
        if answer is not None and _holds(answer, question):
            valid[question.message.id] = answer
    return valid


def _holds(answer: Evaluation, question: Question) -> bool:
    if answer.state not in REUSABLE_STATES or answer.message_hash != text_hash(question.message.text):
        return False
    if answer.reading is not None and any(each.state not in REUSABLE_STATES for each in answer.reading.panel):
        return False  # of a panel the one that did not answer is asked again, the other's answer lies in the ledger
    return not answer.context_hash or answer.context_hash == question.context_hash


def ask(
    judge: Judge, questions: Sequence[Question], failed: JudgeError | None = None
) -> tuple[Sequence[Evaluation | None], JudgeError | None]:
    """The judge's answers, aligned with the questions, None for those it did not reach; and why it did not."""
    return ([None] * len(questions), failed) if failed is not None else asked(judge, questions, _answered)


def _answered(judge: Judge, questions: Sequence[Question]) -> Sequence[Evaluation | None]:
    """One answer each; where a judge that somebody else wrote raises over several questions, each is put alone."""
    try:
        return _ask_together(judge, questions)
    except _RaisedError as error:
        if len(questions) == 1:
            raise
        return _one_by_one(judge, questions, error)


def _one_by_one(judge: Judge, questions: Sequence[Question], first: JudgeError) -> Sequence[Evaluation | None]:
    """Those over which the judge raises again have failed; where it raises ``IN_A_ROW`` times, or over all, it is down.

    Then BrokenOffError has the answers before.
    """
    answers: list[Evaluation | None] = []
    raised = 0
    for question in questions:
        try:
            answers += _ask_together(judge, (question,))
            raised = 0
        except _RaisedError as error:
            answers.append(_failed(question, judge, error.what))
            raised += 1
        if raised == min(IN_A_ROW, len(questions)):
            earlier = answers[:-raised]
            raise JudgeAbortedError(first, [*earlier, *[None] * (len(questions) - len(earlier))])
    return answers


class _RaisedError(JudgeError):
    """A judge raised what is no error of ours."""


def _ask_together(judge: Judge, questions: Sequence[Question]) -> Sequence[Evaluation | None]:
    with raised_by(judge, "let evaluate return an Evaluation with the state failed for what it cannot score"):
        return _one_each(judge.evaluate(questions), questions, judge)


@contextmanager
def raised_by(judge: Judge, remedy: str) -> Iterator[None]:
    """Whatever the code of a judge raises is a JudgeError: no message may be lost by it."""
    try:
        yield
    except UndersongError:
        raise
    except Exception as error:
        what = f"it raised {type(error).__name__}{f': {error}' if str(error) else ''}"[:LONGEST]
        raise _RaisedError(what, where=judge.name, remedy=remedy) from error


def _one_each(
    answers: Sequence[Evaluation | None], questions: Sequence[Question], judge: Judge
) -> Sequence[Evaluation | None]:
    if len(answers) != len(questions):
        what = f"{len(answers)} answers to {counted(len(questions), 'question')}"
        raise JudgeError(what, where=judge.name, remedy="give one answer for each question, in order")
    return [
        answer if answer is None or not (wrong := _wrong(answer, question)) else _failed(question, judge, wrong)
        for question, answer in zip(questions, answers, strict=True)
    ]


def _failed(question: Question, judge: Judge, wrong: str) -> Evaluation:
    reason = f"the judge's answer could not be used: {wrong}"
    return msgspec.structs.replace(unread(question.message, judge), state="failed", reason=reason)


def _wrong(answer: object, question: Question) -> str:
    """What is wrong with an answer of a judge that somebody else wrote; a store could not keep it, or not read it."""
    if not isinstance(answer, Evaluation):
        return f"it is a {type(answer).__name__}, not an Evaluation"
    if answer.message_id != question.message.id:
        return f"it names message {answer.message_id}"
    if answer.state not in _STATES:
        return f"its state is {answer.state}"
    traits, signals = answer.traits or {}, answer.signals
    try:
        scores = applicable_scores(traits).values()
        if not (traits.keys() <= _TRAITS and all(0 <= score <= 1 for score in scores)):
            return "its traits are not among the twelve, with scores from 0 to 1, or None where one does not apply"
        if not isfinite(sum(signals.values())):
            return "a signal is no number"
    except (TypeError, AttributeError):
        return "its traits or signals are no numbers by name"
    return ""


class FailureTally:
    """Counts the questions that a judge answered, refused or failed, and why they failed."""

    def __init__(self) -> None:
        self.questions = self.failed = 0
        self._unusable = 0
        self._kinds: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._waiting: Counter[str] = Counter()

    def add(self, state: str, reason: str | None) -> None:
        """Count a question by its state; what was left unread was not asked."""
        if state == "unread":
            if (folder := waiting_folder(reason)) is not None:
                self._waiting[folder] += 1
            return
        self.questions += 1
        if state != "failed":
            return
        self.failed += 1
        words = reason or "no reason given"
        self._unusable += words.startswith(UNUSABLE) and "cut off" not in words
        kind = same_kind(_plain(words))
        self._kinds[kind] += 1
        self._first.setdefault(kind, _plain(words))

    def waiting(self) -> dict[str, dict[str, int]]:
        """``waiting``: folder → questions that wait in it for an answer; nothing where none does."""
        return {WAITING: dict(sorted(self._waiting.items()))} if self._waiting else {}

    def problem(self, max_failed: float) -> Problem | None:
        """One line about the failures: a failure of the judge where they are more than a share, else a note."""
        if not self.failed:
            return None
        shown = sorted(self._kinds.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
        listed = [f"{count:,} × {one_line(self._first[kind], REASON_CHARACTERS)}" for kind, count in shown]
        rest = self.failed - sum(count for _, count in shown)
        listed += [f"{rest:,} × something else"] if rest else []
        what = f"{self.failed:,} of {counted(self.questions, 'question')} failed: {', '.join(listed)}"
        remedies = [AGAIN] if self._unusable < self.failed else []
        remedies += [FORGET] if self._unusable else []
        loud = self.failed > max_failed * self.questions
        return Problem(what=what, where="judge", remedy="; ".join(remedies), kind="judge" if loud else "note")


def judge_problems(failure: JudgeError | None, tally: FailureTally, max_failed: float) -> tuple[Problem, ...]:
    """The failure of the judge as a whole, and the questions that failed."""
    problems = [tally.problem(max_failed)]
    if failure is not None:
        problems.insert(
            0, Problem(what=failure.what, where=failure.where or "judge", remedy=failure.remedy, kind="judge")
        )
    return tuple(each for each in problems if each is not None)


def answered_by(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Models that answered, by their own account, where another one was asked → messages; nothing where none did."""
    readings = (row.reading for row in rows if row.reading is not None)
    others = Counter(each.model for reading in readings for each in (reading.panel or (reading,)) if each.model)
    return {"answered_by": {str(name): count for name, count in sorted(others.items())}} if others else {}


def _plain(reason: str) -> str:
    """A reason without what every reason of its kind begins with."""
    for prefix in PREFIXES:
        reason = reason.removeprefix(prefix)
    return reason
