"""Outcomes of tool calls: which calls failed and which checks passed, as programs report it."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from functools import cache
from typing import Any, Literal, NamedTuple

from undersong.datafiles.verdict_config import outcomes_config
from undersong.models import Message, ToolCall, ToolResult

OutcomeState = Literal["failed", "passed", "unknown"]
CallFamily = Literal["check", "edit", "call", "look"]
START = 400  # characters at the start of a result where a refusal stands
HTTP_ERRORS = range(400, 600)
LINE = 300  # characters of a line that are quoted
_WORD = re.compile(r"[A-Za-z]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
GENERIC = frozenset({
    "tool", "function", "user", "environment", "observation", "shell", "bash", "terminal", "output", "result", "system",
})  # fmt: skip


class ToolOutcome(NamedTuple):
    """What came of one call: ``key`` names what was tried, ``words`` what the call is about, ``inputs`` its values.

    ``words`` is empty where the source does not name the tool. ``start:end`` of the message's text is the line that
    says so.
    """

    message: Message
    state: OutcomeState
    family: CallFamily
    key: str
    words: frozenset[str]
    inputs: frozenset[str]
    start: int
    end: int
    call: str | None = None


@cache
def outcome_pattern(name: Literal["failed_check", "broke", "refused", "refusing", "passed_check"]) -> re.Pattern[str]:
    """Any of the shipped patterns of one kind."""
    # a pattern that heeds no case says so at its start; inside an alternation the flag needs a group
    alternatives: tuple[str, ...] = getattr(outcomes_config(), name)
    parts = [f"(?i:{each[4:]})" if each.startswith("(?i)") else each for each in alternatives]
    return re.compile("|".join(parts), re.MULTILINE)


def outcome(message: Message, result: ToolResult, call: ToolCall, offset: int) -> ToolOutcome:
    """What came of one call, with the line of ``message`` that says so."""
    family, key = _family(call, result)
    state, line = _state(result, family, bool(command_of(call)))
    start, end = _place(message.text, line, offset, len(result.text))
    return ToolOutcome(
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


def pasted(message: Message) -> ToolOutcome | None:
    """The failing check that a user pasted, None where the words of no runner stand in the message."""
    match = outcome_pattern("failed_check").search(message.text) or _traceback(message.text)
    if match is None:
        return None
    start, end = match.start(), min(match.end(), match.start() + LINE)
    return ToolOutcome(message, "failed", "check", "check", frozenset(), frozenset(), start, end)


def _traceback(text: str) -> re.Match[str] | None:
    return outcome_pattern("broke").search(text) if "Traceback (most recent call last)" in text else None


def _family(call: ToolCall, result: ToolResult) -> tuple[CallFamily, str]:
    """The kind of call, and what it tried: the file of an edit, the command of a shell, the name of a tool."""
    config, name = outcomes_config(), call.name
    command = command_of(call)
    if name in config.edit_tools:
        return "edit", f"edit {_path(call.input)}"
    if command:
        words = commands(command)
        if is_check(command):
            return "check", "check"
        if all(looks(each) for each in words):
            return "look", "look"
        return "call", " ".join(next((each for each in words if not looks(each)), [name])[:2])
    parts = _words(name)
    if name.lower() in config.check_tools:
        return "check", "check"
    first = next(iter(_WORD.findall(_CAMEL.sub(" ", name))), "").lower()
    if first in config.readers or name.lower() in config.readers:
        return "look", "look"
    if (parts <= GENERIC or name in config.shell_tools) and _is_of_check(result.text):
        return "check", "check"
    return "call", name


def _is_of_check(text: str) -> bool:
    """Whether an output is that of a check, where nobody says which command was run."""
    if outcome_pattern("failed_check").search(text) or outcome_pattern("passed_check").search(text):
        return True
    return outcome_pattern("broke").search(text) is not None and bool(_exit_code(None, text))


def _state(result: ToolResult, family: CallFamily, command: bool) -> tuple[OutcomeState, str]:
    """Whether it failed, and the line that says so ("" where a flag says so)."""
    text = result.text
    shown = text if len(text) <= 2 * LOOKED else f"{text[:LOOKED]}\n{text[-LOOKED:]}"
    answer = decoded(shown)
    inner = _inner(answer) if isinstance(answer, dict) else shown
    if family == "look":
        return ("failed", "") if result.is_error else ("unknown", "")
    match = outcome_pattern("failed_check").search(inner)
    if match and family in ("check", "call"):
        return "failed", match[0]
    code = _exit_code(answer, shown)
    success = _reported_success(answer) if isinstance(answer, dict) else None
    if result.is_error or (code is not None and code != 0) or success is False:
        return "failed", _reason(inner, answer)
    if code == 0 or success is True:
        return "passed", ""
    if family == "check":
        passed = outcome_pattern("passed_check").search(inner)
        if passed:
            return "passed", passed[0]
        broke = outcome_pattern("broke").search(inner) if result.is_error is None else None
        return ("failed", broke[0]) if broke else ("unknown", "")
    refused = None if command and result.is_error is False else _refused(inner, result.is_error)
    if refused:
        return "failed", refused[0]
    return ("passed" if result.is_error is False else "unknown"), ""


def _refused(inner: str, is_error: bool | None) -> re.Match[str] | None:
    """A refusal at the start of a result; clients flag what their own tools say, seldom what a service answers."""
    start = inner[:START].strip()
    strict = outcome_pattern("refused").search(start) or outcome_pattern("broke").match(start)
    return strict if strict or is_error is False else outcome_pattern("refusing").search(start)


def _exit_code(answer: Any, text: str) -> int | None:
    if isinstance(answer, dict):
        holders = [answer, *(each for each in answer.values() if isinstance(each, dict))]
        for holder in holders:
            code = next((holder[key] for key in ("exit_code", "exitCode", "returncode") if key in holder), None)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
        return None
    matches = list(_exit_codes().finditer(text, 0, START)) or list(_exit_codes().finditer(text[-START:]))
    return int(matches[-1][1]) if matches else None


def _reported_success(answer: dict[str, Any]) -> bool | None:
    """What an answer object says of itself: False where it is an error, True where it is a success."""
    config = outcomes_config()
    verdict: bool | None = None
    for name, value in answer.items():
        key = name.lower()
        if key in config.error_keys and value not in (None, "", 0, False, [], {}, "null", "None"):
            return False
        if key in config.verdict_keys and isinstance(value, bool):
            if value is not config.verdict_keys[key]:
                return False
            verdict = True
        if key in config.status_keys:
            bad = value in HTTP_ERRORS if isinstance(value, int) and not isinstance(value, bool) else None
            word = value.lower().replace(" ", "_") if isinstance(value, str) else ""
            if bad or word in config.bad_status:
                return False
    return verdict


def _reason(inner: str, answer: Any) -> str:
    """The line that tells why, as far as there is one."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name.lower() in outcomes_config().error_keys and isinstance(value, str):
                return value
    match = (
        outcome_pattern("broke").search(inner)
        or outcome_pattern("refused").search(inner)
        or outcome_pattern("refusing").search(inner)
    )
    return match[0] if match else ""


def _inner(answer: dict[str, Any]) -> str:
    """The texts in an answer object, each on lines of its own."""
    parts = [each for value in answer.values() for each in ([value] if isinstance(value, str) else [])]
    parts += [
        each for value in answer.values() if isinstance(value, dict) for each in value.values() if isinstance(each, str)
    ]
    return "\n".join(parts)


def _place(text: str, line: str, offset: int, length: int) -> tuple[int, int]:
    """Where the line stands in the message, or else where the result begins."""
    first = line.strip().split("\n")[0][:LINE] if line else ""
    at = text.find(first, offset, offset + length) if first else -1
    if at >= 0:
        return at, at + len(first)
    return offset, min(offset + length, offset + LINE)


def _path(arguments: Any) -> str:
    arguments = decoded(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(arguments, dict):
        return ""
    return next((arguments[key] for key in outcomes_config().paths if isinstance(arguments.get(key), str)), "")


def _text_of(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments[:LOOKED]
    return json.dumps(arguments, ensure_ascii=False, default=str)[:LOOKED] if arguments is not None else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(_CAMEL.sub(" ", text)))


LOOKED = 20_000  # characters of a command that are read
_HEREDOC = re.compile(r"<<-?[ ]*['\"]?(\w+)")
_TEXT_ARGUMENT = re.compile(r"(?:-m|--message|--body|--title)[ =](?:\"(?:[^\"\\]|\\.)*\"|'[^']*')")
SPEAKS = ("git", "gh")  # their arguments name programs and do not run them


def command_of(call: ToolCall) -> str:
    """The command line of a call, "" where it is no call of a shell."""
    value = decoded(call.input) or call.input if isinstance(call.input, str) else call.input
    if isinstance(value, dict):
        value = next((value[key] for key in ("command", "cmd", "script") if key in value), None)
        if value is None:
            return ""
    elif call.name not in outcomes_config().shell_tools:
        return ""
    if isinstance(value, list):
        return " ".join(each for each in value if isinstance(each, str))
    return value if isinstance(value, str) else ""


def commands(command: str) -> list[list[str]]:
    """The words of each command of a line, without what only wraps it, without texts that it hands on."""
    wrappers = outcomes_config().wrappers
    word_lists = []
    for part in re.split(r"&&|\|\||[;|\n]", _TEXT_ARGUMENT.sub("", _without_heredocs(command[:LOOKED]))):
        words = part.split()
        while words and (words[0] in wrappers or "=" in words[0] or words[0].startswith("-")):
            words = words[2:] if words[0] == "cd" else words[1:]
        if words:
            word_lists.append(words)
    return word_lists


def is_check(command: str) -> bool:
    """Whether any command of a line checks the code: a test, a build, a program that is run."""
    return any(
        _checks().search(" ".join(words)) for words in commands(command) if words[0] not in SPEAKS and not looks(words)
    )


def looks(words: list[str]) -> bool:
    """Whether a command only shows what is there."""
    config = outcomes_config()
    if words[0] == "git":
        return len(words) > 1 and words[1] in config.reading_git
    if words[0] == "sed" and "-i" in words:
        return False
    return words[0] in config.reading_commands and ">" not in words


def changes_unseen(call: ToolCall) -> bool:
    """Whether a shell command may change files in a way that nobody can compare."""
    command = command_of(call)
    if is_check(command) and "<<" not in command and " -c " not in command:
        return False
    return any(not looks(words) for words in commands(command))


def decoded(text: str) -> Any:
    """The value of a text that is JSON, None where it is none."""
    bare = text.strip()
    if not bare.startswith(("{", '"')):
        return None
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return None


def _without_heredocs(command: str) -> str:
    """The lines of a command without the texts that it feeds to a program; a text without an end is kept."""
    lines = command.split("\n")
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(number)
    remaining, skipped = [], -1
    for number, line in enumerate(lines):
        if number <= skipped:
            continue
        remaining.append(line)
        heredoc = _HEREDOC.search(line)
        if heredoc:
            ends = places.get(heredoc[1], [])
            skipped = next(iter(ends[bisect_right(ends, number) :][:1]), -1)
    return "\n".join(remaining)


@cache
def _checks() -> re.Pattern[str]:
    return re.compile(outcomes_config().checks)


@cache
def _exit_codes() -> re.Pattern[str]:
    return re.compile(outcomes_config().exit_code)
