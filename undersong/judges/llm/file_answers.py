"""Answers that somebody put into the folder of a ``file:`` judge: they go before what an earlier run kept of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from undersong.errors import JudgeError
from undersong.judges.limits import FAILED, AnswerLedger
from undersong.judges.llm.answer_lint import answer_problems
from undersong.judges.llm.answering import AnswerSteps, RefusedError
from undersong.judges.llm.client import LARGEST_STORED, KeyedRequest, Stored, answered_entry, unanswered_entry
from undersong.judges.llm.providers.file import FileAnswers, FileBackend, WrittenAnswer
from undersong.judges.llm.response import UnusableError, answer_object

MOST_NAMED = 20  # problems that one run names


def take_written(questions: Iterable[AnswerSteps[Any]], ledger: AnswerLedger) -> None:
    """Keep the answers that the folders of the asked judges hold, in place of those kept before that differ.

    Raises JudgeError with file and line of every answer that cannot be used, after the others were kept.
    """
    problems: list[str] = []
    folders: dict[int, FileAnswers] = {}
    for steps in questions:
        first = steps.make_request("")
        backend = first.model_client.backend
        if not isinstance(backend, FileBackend):
            continue
        folder = folders.setdefault(id(backend), backend.written_answers())
        written = folder.answer_to(first.request)
        if written is None:
            continue
        wrong = list(_problems(steps, first, written))
        problems += [f"{written.where}: {each}" for each in wrong]
        if not wrong:
            _keep(first, written, ledger)
    if problems:
        _refuse(problems)


def _keep(question: KeyedRequest, written: WrittenAnswer, ledger: AnswerLedger) -> None:
    body = written.body[:LARGEST_STORED]
    stored: Stored = ledger.paid([question.key]).get(question.key, {})
    if question.attempt in stored and stored[question.attempt].body == body:
        return
    ledger.forget([(question.key, number) for number in stored if number <= FAILED])
    entry = answered_entry(unanswered_entry(question), question.model_client, body, question.asked, batch=True)
    ledger.keep([entry])


def _problems(steps: AnswerSteps[Any], question: KeyedRequest, written: WrittenAnswer) -> Iterable[str]:
    text = question.model_client.parse(written.body).text
    try:
        value = answer_object(text)
    except UnusableError as error:
        return [f"{error}; write one JSON object of the form in the question's schema"]
    wrong = list(answer_problems(value, question.request.schema))
    if wrong:
        return wrong
    try:
        steps.use(text)
    except (UnusableError, RefusedError) as error:
        return [str(error)]
    return []


def _refuse(problems: list[str]) -> None:
    where, _, first = problems[0].partition(": ")
    others = "".join(f"\n  {each}" for each in problems[1:MOST_NAMED])
    more = f"\n  and {len(problems) - MOST_NAMED:,} more" if len(problems) > MOST_NAMED else ""
    raise JudgeError(
        f"cannot be used: {first}{others}{more}",
        where=where,
        remedy="correct these lines and run the same command again",
    )
