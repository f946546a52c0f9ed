"""Answers that somebody put into the folder of a ``file:`` judge: they go before what an earlier run kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import JudgeError
from undersong.judges.limits import FAILED, AnswerLedger
from undersong.judges.llm.answering import AnswerSteps, RefusedError
from undersong.judges.llm.client import LARGEST_STORED, KeyedRequest, Stored, answered_entry, unanswered_entry
from undersong.judges.llm.providers.file import FileAnswers, FileBackend, WrittenAnswer
from undersong.judges.llm.response import UnusableError, answer_object

MOST_NAMED = 20  # problems that one run names
MOST_SHOWN = 40  # characters of a wrong value
FEW = 12  # allowed values that are listed one by one
TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "null": (type(None),),
}  # fmt: skip
TYPES_NAMED = {
    "object": "an object", "array": "a list", "string": "a text", "integer": "a whole number", "null": "null",
}  # fmt: skip


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


def answer_problems(value: Any, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Each problem in a sentence with its place, such as ``traits.virtue is 7: one of 0, 1, 2, 3, 4 is asked for``.

    Keys that nobody asks for are passed over, unless one that is asked for is missing.
    """
    if "anyOf" in schema:
        choices = [list(answer_problems(value, choice, place)) for choice in schema["anyOf"]]
        if all(choices):
            yield f"{_named(place)} is {_shown(value)}: {_asked_for(schema)} is asked for"
    elif not _is_a(value, schema):
        yield f"{_named(place)} is {_shown(value)}: {_asked_for(schema)} is asked for"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{_named(place)} is {_shown(value)}: {_enum_remedy(value, schema['enum'])}"
    elif isinstance(value, dict):
        yield from _keys(value, schema, place)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from answer_problems(item, schema["items"], f"{place}[{number}]")


def _keys(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties: Mapping[str, Any] = schema["properties"]
    foreign = [key for key in value if key not in properties]
    for key, part in properties.items():
        where = f"{place}.{key}".lstrip(".")
        if key in value:
            yield from answer_problems(value[key], part, where)
        elif key in schema["required"]:
            near = [name for name in foreign if did_you_mean(name, [key]).startswith("did you mean")]
            yield f"{where} is missing" + (f"; is it what stands under {_shown(near[0])}?" if near else "")


def _is_a(value: Any, schema: Mapping[str, Any]) -> bool:
    return isinstance(value, TYPES[schema["type"]]) and not isinstance(value, bool)


def _named(place: str) -> str:
    return place or "the answer"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _asked_for(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(map(_asked_for, schema["anyOf"]))
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum'][:FEW]))}"
    return TYPES_NAMED[schema["type"]]


def _enum_remedy(value: Any, allowed: list[Any]) -> str:
    if isinstance(value, str) and (len(allowed) > FEW or isinstance(allowed[0], str)):
        remedy = did_you_mean(value, [str(each) for each in allowed])
        return remedy if len(allowed) <= FEW or remedy.startswith("did you mean") else "the schema lists what it may be"
    return f"one of {', '.join(map(str, allowed))} is asked for"
