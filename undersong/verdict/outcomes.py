"""What tools answered: which calls failed, which checks passed, as programs report it."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Literal, NamedTuple

from undersong.models import Message, ToolCall, ToolResult
from undersong.verdict.command import LOOKED, command_of, commands, decoded, is_check, looks
from undersong.verdict.words import outcomes_book

State = Literal["failed", "passed", "unknown"]
Family = Literal["check", "edit", "call", "look"]
START = 400  # characters at the start of a result where a refusal stands
HTTP_ERRORS = range(400, 600)
LINE = 300  # characters of a line that are quoted
_WORD = re.compile(r"[A-Za-z]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


GENERIC = frozenset(
    {
        "tool",
        "function",
        "user",
        "environment",
        "observation",
        "shell",
        "bash",
        "terminal",
        "output",
        "result",
        "system",
    }
)


class Outcome(NamedTuple):
    """What came of one call: ``key`` names what was tried, ``words`` what the call is about, ``inputs`` its values.

    ``words`` is empty where the source does not name the tool. ``start:end`` of the message's text is the line that
    says so.
    """

    message: Message
    state: State
    family: Family
    key: str
    words: frozenset[str]
    inputs: frozenset[str]
    start: int
    end: int
    call: str | None = None


class Rules(NamedTuple):
    """The patterns of ``outcomes.yaml``, compiled."""

    failed_check: re.Pattern[str]
    broke: re.Pattern[str]
    refused: re.Pattern[str]
    refusing: re.Pattern[str]
    exit_code: re.Pattern[str]
    passed_check: re.Pattern[str]


@cache
def rules() -> Rules:
    """The shipped patterns."""
    book = outcomes_book()

    def lines(patterns: tuple[str, ...]) -> re.Pattern[str]:
        # a pattern that heeds no case says so at its start; inside an alternation the flag needs a group
        parts = [f"(?i:{each[4:]})" if each.startswith("(?i)") else each for each in patterns]
        return re.compile("|".join(parts), re.MULTILINE)

    return Rules(
        failed_check=lines(book.failed_check),
        broke=lines(book.broke),
        refused=lines(book.refused),
        refusing=lines(book.refusing),
        exit_code=re.compile(book.exit_code),
        passed_check=lines(book.passed_check),
    )


def outcome(message: Message, result: ToolResult, call: ToolCall, offset: int) -> Outcome:
    """What came of one call, with the line of ``message`` that says so."""
    family, key = _family(call, result)
    state, line = _state(result, family, bool(command_of(call)))
    start, end = _place(message.text, line, offset, len(result.text))
    return Outcome(
        message=message,
        state=state,
        family=family,
        key=key,
        words=_words(f"{call.name} {command_of(call)}" if family != "edit" else f"edit {call.name}") - GENERIC,
        inputs=_words(_text_of(call.input)),
        start=start,
        end=end,
        call=call.id,
    )


def pasted(message: Message) -> Outcome | None:
    """The failing check that a user pasted, None where the words of no runner stand in the message."""
    found = rules().failed_check.search(message.text) or _traceback(message.text)
    if found is None:
        return None
    start, end = found.start(), min(found.end(), found.start() + LINE)
    return Outcome(message, "failed", "check", "check", frozenset(), frozenset(), start, end)


def _traceback(text: str) -> re.Match[str] | None:
    return rules().broke.search(text) if "Traceback (most recent call last)" in text else None


def _family(call: ToolCall, result: ToolResult) -> tuple[Family, str]:
    """The kind of call, and what it tried: the file of an edit, the command of a shell, the name of a tool."""
    book, name = outcomes_book(), call.name
    command = command_of(call)
    if name in book.edit_tools:
        return "edit", f"edit {_path(call.input)}"
    if command:
        words = commands(command)
        if is_check(command):
            return "check", "check"
        if all(looks(each) for each in words):
            return "look", "look"
        return "call", " ".join(next((each for each in words if not looks(each)), [name])[:2])
    parts = _words(name)
    if name.lower() in book.check_tools:
        return "check", "check"
    first = next(iter(_WORD.findall(_CAMEL.sub(" ", name))), "").lower()
    if first in book.readers or name.lower() in book.readers:
        return "look", "look"
    if (parts <= GENERIC or name in book.shell_tools) and _is_of_check(result.text):
        return "check", "check"
    return "call", name


def _is_of_check(text: str) -> bool:
    """Whether an output is that of a check, where nobody says which command was run."""
    if rules().failed_check.search(text) or rules().passed_check.search(text):
        return True
    return rules().broke.search(text) is not None and bool(_exit_code(None, text))


def _state(result: ToolResult, family: Family, command: bool) -> tuple[State, str]:
    """Whether it failed, and the line that says so ("" where a flag says so)."""
    text = result.text
    shown = text if len(text) <= 2 * LOOKED else f"{text[:LOOKED]}\n{text[-LOOKED:]}"
    given = decoded(shown)
    inner = _inner(given) if isinstance(given, dict) else shown
    if family == "look":
        return ("failed", "") if result.is_error else ("unknown", "")
    found = rules().failed_check.search(inner)
    if found and family in ("check", "call"):
        return "failed", found[0]
    code = _exit_code(given, shown)
    said = _said(given) if isinstance(given, dict) else None
    if result.is_error or (code is not None and code != 0) or said is False:
        return "failed", _reason(inner, given)
    if code == 0 or said is True:
        return "passed", ""
    if family == "check":
        passed = rules().passed_check.search(inner)
        if passed:
            return "passed", passed[0]
        broke = rules().broke.search(inner) if result.is_error is None else None
        return ("failed", broke[0]) if broke else ("unknown", "")
    refused = None if command and result.is_error is False else _refused(inner, result.is_error)
    if refused:
        return "failed", refused[0]
    return ("passed" if result.is_error is False else "unknown"), ""


def _refused(inner: str, is_error: bool | None) -> re.Match[str] | None:
    """A refusal at the start of a result; clients flag what their own tools say, seldom what a service answers."""
    start = inner[:START].strip()
    strict = rules().refused.search(start) or rules().broke.match(start)
    return strict if strict or is_error is False else rules().refusing.search(start)


def _exit_code(given: Any, text: str) -> int | None:
    if isinstance(given, dict):
        holders = [given, *(each for each in given.values() if isinstance(each, dict))]
        for each in holders:
            code = next((each[key] for key in ("exit_code", "exitCode", "returncode") if key in each), None)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
        return None
    found = list(rules().exit_code.finditer(text, 0, START)) or list(rules().exit_code.finditer(text[-START:]))
    return int(found[-1][1]) if found else None


def _said(given: dict[str, Any]) -> bool | None:
    """What an answer object says of itself: False where it is an error, True where it is a success."""
    book = outcomes_book()
    verdict: bool | None = None
    for name, value in given.items():
        key = name.lower()
        if key in book.error_keys and value not in (None, "", 0, False, [], {}, "null", "None"):
            return False
        if key in book.verdict_keys and isinstance(value, bool):
            if value is not book.verdict_keys[key]:
                return False
            verdict = True
        if key in book.status_keys:
            bad = value in HTTP_ERRORS if isinstance(value, int) and not isinstance(value, bool) else None
            word = value.lower().replace(" ", "_") if isinstance(value, str) else ""
            if bad or word in book.bad_status:
                return False
    return verdict


def _reason(inner: str, given: Any) -> str:
    """The line that tells why, as far as there is one."""
    if isinstance(given, dict):
        for name, value in given.items():
            if name.lower() in outcomes_book().error_keys and isinstance(value, str):
                return value
    found = rules().broke.search(inner) or rules().refused.search(inner) or rules().refusing.search(inner)
    return found[0] if found else ""


def _inner(given: dict[str, Any]) -> str:
    """The texts in an answer object, each on lines of its own."""
    parts = [each for value in given.values() for each in ([value] if isinstance(value, str) else [])]
    parts += [
        each for value in given.values() if isinstance(value, dict) for each in value.values() if isinstance(each, str)
    ]
    return "\n".join(parts)


def _place(text: str, line: str, offset: int, length: int) -> tuple[int, int]:
    """Where the line stands in the message, or else where the result begins."""
    first = line.strip().split("\n")[0][:LINE] if line else ""
    at = text.find(first, offset, offset + length) if first else -1
    if at >= 0:
        return at, at + len(first)
    return offset, min(offset + length, offset + LINE)


def _path(given: Any) -> str:
    given = decoded(given) if isinstance(given, str) else given
    if not isinstance(given, dict):
        return ""
    return next((given[key] for key in outcomes_book().paths if isinstance(given.get(key), str)), "")


def _text_of(given: Any) -> str:
    if isinstance(given, str):
        return given[:LOOKED]
    return json.dumps(given, ensure_ascii=False, default=str)[:LOOKED] if given is not None else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(_CAMEL.sub(" ", text)))
