"""Outcomes of tool calls: which calls failed and which checks passed, as programs report it."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Literal, NamedTuple

from undersong.datafiles.verdict_config import calls_config, outcomes_config, pattern
from undersong.models import Message, ToolCall, ToolResult
from undersong.verdict.any_of import AnyOf
from undersong.verdict.refusals import refused_deed
from undersong.verdict.shell import (
    LOOKED,
    CheckKind,
    ShellPart,
    also_checked,
    changes_code,
    check_kind,
    command_of,
    commands,
    decoded,
    is_check,
    is_part,
    looks,
    shell_parts,
    shows_remote,
)

OutcomeState = Literal["failed", "passed", "unknown"]
CallFamily = Literal["check", "remote", "edit", "call", "look"]
OutcomePattern = Literal[
    "failed_check",
    "failed_call",
    "broke",
    "refused",
    "refusing",
    "passed_check",
    "not_run",
    "nothing_ran",
    "cut_short",
    "errs",
]
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
    says so. Of a check, ``kinds`` are what it checked, by its command and by what it reports, ``failed_kinds`` and
    ``passed_kinds`` those of which it says so; ``part``: only some of the tests; ``masked``: the exit code is another
    command's. ``changes``: a command or an edit that
    changed the code, before its own checks; ``changes_after``: behind them. ``started``: False where a check was not
    run, by what its program or its shell says.
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
    kinds: frozenset[CheckKind] = frozenset()
    failed_kinds: frozenset[CheckKind] = frozenset()
    passed_kinds: frozenset[CheckKind] = frozenset()
    part: bool = False
    masked: bool = False
    changes: bool = False
    changes_after: bool = False
    command: str = ""
    path: str = ""
    tool: str = ""
    text: str = ""
    started: bool = True


@cache
def outcome_pattern(name: OutcomePattern) -> AnyOf:
    """Any of the shipped patterns of one kind."""
    return AnyOf(f"outcomes-{name}", getattr(outcomes_config(), name))


def outcome(message: Message, result: ToolResult, call: ToolCall, offset: int) -> ToolOutcome:
    """What came of one call, with the line of ``message`` that says so."""
    family, key = _family(call, result)
    command = command_of(call)
    parts = shell_parts(command) if command else ()
    masked = _masked(parts, family)
    answer = decoded(result.text)
    inner = _inner(answer) if isinstance(answer, dict) else result.text
    refused_to_start = _not_started(parts, inner, masked or result.is_error is not False) if family == "check" else ""
    state, line = _state(result, family, bool(command), masked=masked, handled=any(part.handled for part in parts))
    if refused_to_start:
        state, line = "unknown", refused_to_start
    exit_seen = result.is_error is False and not any(part.masked for part in parts)
    if family == "call" and state != "failed" and not exit_seen and (refused := refused_deed(parts, inner)):
        state, line = (
            ("unknown", "") if pattern((outcomes_config().mended_call,)).search(inner) else ("failed", refused)
        )
    silent = not refused_to_start and (not line or any(part.lets_failures_through for part in parts))
    if state == "unknown" and family == "check" and silent and _is_filtered_clean(parts, result):
        state = "passed"
    start, end = _place(message.text, line, offset, len(result.text))
    before, after = (False, False) if _scratch().search(command) else _changes(parts)
    path = (_path(call.input) or _written_path(result.text)) if family == "edit" else ""
    kinds = CheckedKinds()
    if family in ("check", "remote"):
        kinds = _checked_kinds(parts, call, inner, state)
    elif family == "call" and state == "failed" and any(_has_hooks(part) for part in parts):
        failed = _hooks_failed(inner)
        kinds = CheckedKinds(failed, failed)
    return ToolOutcome(
        message=message,
        state=state,
        family=family,
        key=key,
        words=_words(f"{call.name} {command}" if family != "edit" else f"edit {call.name}") - GENERIC,
        inputs=_words(_text_of(call.input)),
        start=start,
        end=end,
        call=call.id,
        kinds=kinds.all,
        failed_kinds=kinds.failed,
        passed_kinds=kinds.passed,
        part=_is_part(parts),
        masked=masked,
        changes=before or (family == "edit" and state != "failed" and not _is_document(path)),
        changes_after=after,
        command=command,
        path=path,
        tool=call.name,
        text=inner,
        started=not refused_to_start,
    )


def _is_part(parts: tuple[ShellPart, ...]) -> bool:
    """Whether each run of tests of a line is one of some tests only."""
    runs = [is_part(part.words) for part in parts if check_kind(part.words) == "tests"]
    return bool(runs) and all(runs)


def _not_started(parts: tuple[ShellPart, ...], inner: str, open_to_failure: bool) -> str:
    """The line that says that a check was not run: a person stopped it, or it could not start; "" where none does."""
    if stopped := outcome_pattern("not_run").search(inner[:START]):
        return stopped[0]
    if not open_to_failure:
        return ""
    config, runners = calls_config(), {check_kind(part.words) for part in parts} - {None, "run"}
    shapes = (*config.missing, *config.misused) if runners or not parts else config.missing
    line = pattern(shapes).search(inner)
    if line is None:
        return ""
    rest = pattern((*shapes, config.echoes)).sub("", inner)
    ran = outcome_pattern("failed_check").search(rest) or outcome_pattern("passed_check").search(rest)
    return "" if ran else line[0]


def _masked(parts: tuple[ShellPart, ...], family: CallFamily) -> bool:
    """Whether the exit code of a line can be that of a command which only looks, or which stands behind a check."""
    if family == "check":
        return any(part.masked for part in parts if check_kind(part.words))
    return bool(parts) and looks(parts[-1].words) and any(part.masked for part in parts if not looks(part.words))


def _is_filtered_clean(parts: tuple[ShellPart, ...], result: ToolResult) -> bool:
    """Whether each test of a line goes through a filter that shows what fails, and what is shown is no error."""
    tests = [part for part in parts if check_kind(part.words) == "tests"]
    if not tests or not all(part.lets_failures_through or not part.masked for part in tests):
        return False
    return result.is_error is not True and outcome_pattern("errs").search(result.text) is None


def _changes(parts: tuple[ShellPart, ...]) -> tuple[bool, bool]:
    """Whether a line changes code before its last check, and whether it does behind it."""
    last = max((place for place, part in enumerate(parts) if check_kind(part.words)), default=len(parts))
    changing = [place for place, part in enumerate(parts) if changes_code(part.words) or _is_written(part.text)]
    return any(place < last for place in changing), any(place > last for place in changing)


def _is_written(text: str) -> bool:
    """Whether a command writes a file of code by redirection."""
    match = _REDIRECTED.search(text)
    return match is not None and not _is_document(match[1]) and not match[1].startswith(("/dev/", "/tmp/", "&"))


def _is_document(path: str) -> bool:
    return path.lower().endswith(outcomes_config().documents)


class CheckedKinds(NamedTuple):
    """What a check checked, and of which of it the output says that it failed or passed."""

    all: frozenset[CheckKind] = frozenset()
    failed: frozenset[CheckKind] = frozenset()
    passed: frozenset[CheckKind] = frozenset()


_SERVED: frozenset[CheckKind] = frozenset({"tests", "build", "lint"})  # what a server for builds checks


def _checked_kinds(parts: tuple[ShellPart, ...], call: ToolCall, inner: str, state: OutcomeState) -> CheckedKinds:
    """By its commands, and by the failures and successes that it reports."""
    own = frozenset(kind for part in parts if (kind := check_kind(part.words)))
    besides = frozenset[CheckKind]().union(*(also_checked(part.words) for part in parts))
    if not parts and call.name.lower() in outcomes_config().check_tools:
        own |= frozenset(outcomes_config().kinds_of_tools.get(call.name.lower(), ("tests",)))
    own = own or (_SERVED if shows_remote(command_of(call)) else own)
    passed = _spoken("passed_check", inner)
    if state == "passed":
        return CheckedKinds((own or passed) | besides, passed=(own or passed) | besides)
    if state != "failed":
        return CheckedKinds(own | besides)
    failed = _spoken("failed_check", inner)
    if not failed & own:  # the flag says so, or the words are those of something that the command runs
        failed |= (own - passed) or own
    typed = frozenset(check_kind(part.words) for part in parts if "types" in also_checked(part.words))
    others = (check_kind(part.words) for part in parts if "types" not in also_checked(part.words))
    compiled = bool(typed) and "build" in failed and "build" not in others  # a test that does not even compile
    if failed & typed - {"tests"} or compiled or (not parts and failed & {"build", "lint"}):
        failed |= {"types"}
    return CheckedKinds(own | failed, failed, (passed & own) - failed)


def _has_hooks(part: ShellPart) -> bool:
    return pattern((outcomes_config().with_hooks,)).search(" ".join(part.words)) is not None


def _hooks_failed(text: str) -> frozenset[CheckKind]:
    """What the hooks of a commit or the steps of a script checked that failed, by the words of runners and of hooks."""
    hooks = [match[0] for match in outcome_pattern("failed_call").finditer(text)]
    hooks = [line for line in hooks if not line.lstrip().startswith(("!", "error:", "fatal:", "remote:"))]
    shapes = outcomes_config().hook_kinds.items()
    named = frozenset(kind for kind, shape in shapes if any(pattern((shape,)).search(line) for line in hooks))
    return named | _spoken("failed_check", text) or frozenset({"lint"} if hooks else ())


def _spoken(name: OutcomePattern, text: str) -> frozenset[CheckKind]:
    """The kinds of check that the lines of a kind speak of."""
    lines = "\n".join(match[0] for match in outcome_pattern(name).finditer(text))
    return frozenset(kind for kind, shape in _spoken_kinds() if lines and shape.search(lines))


def pasted(message: Message) -> ToolOutcome | None:
    """The failing check that a user pasted, None where the words of no runner stand in the message."""
    match = outcome_pattern("failed_check").search(message.text) or _traceback(message.text)
    if match is None:
        return None
    start, end = match.start(), min(match.end(), match.start() + LINE)
    return ToolOutcome(message, "failed", "check", "check", frozenset(), frozenset(), start, end, text=message.text)


def _traceback(text: str) -> re.Match[str] | None:
    return outcome_pattern("broke").search(text) if "Traceback (most recent call last)" in text else None


def _family(call: ToolCall, result: ToolResult) -> tuple[CallFamily, str]:
    """The kind of call, and what it tried: the file of an edit, the command of a shell, the name of a tool."""
    config, name = outcomes_config(), call.name
    command = command_of(call)
    if name in config.edit_tools and _verb(call.input) in config.viewing:
        return "look", "look"
    if name in config.edit_tools:
        return "edit", f"edit {_path(call.input)}"
    if command:
        words = commands(command)
        if is_check(command):
            return "check", "check"
        if all(looks(each) for each in words):
            return "look", "look"
        if shows_remote(command):
            return "remote", "remote"
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


def _state(
    result: ToolResult, family: CallFamily, command: bool, *, masked: bool, handled: bool
) -> tuple[OutcomeState, str]:
    """Whether it failed, and the line that says so ("" where a flag says so)."""
    text = result.text
    answer = decoded(text)
    inner = _inner(answer) if isinstance(answer, dict) else text
    if family == "look":
        return ("failed", "") if result.is_error else ("unknown", "")
    if family == "remote":
        return _state_of_remote(inner)
    match = outcome_pattern("failed_check").search(inner)
    if match and family in ("check", "call"):
        return "failed", match[0]
    if family == "check" and (nothing := _says_nothing(inner)):
        return "unknown", nothing[0]
    if family == "call" and (refused := _refused_whatever(inner)):
        return "failed", refused
    code = _exit_code(answer, text)
    success = _reported_success(answer) if isinstance(answer, dict) else None
    if not masked and (result.is_error or (code is not None and code != 0) or success is False):
        return "failed", _reason(inner, answer)
    if not masked and (code == 0 or success is True):
        return "passed", ""
    if family == "check":
        return _state_of_check(result, inner, command=command, masked=masked)
    silent = handled or (masked and command) or (command and result.is_error is False)
    return _state_of_call(result, inner, family, speaks=not silent)


def _says_nothing(inner: str) -> re.Match[str] | None:
    """The line of a run of tests that was stopped, or in which none was run; its exit code says nothing of the code."""
    stopped = outcome_pattern("cut_short").search(inner)
    if stopped or outcome_pattern("passed_check").search(inner):
        return stopped
    return outcome_pattern("nothing_ran").search(inner)


def _refused_whatever(inner: str) -> str:
    """The last line with which a program says that it failed, "" where a later try came right."""
    refused = list(outcome_pattern("failed_call").finditer(inner))
    mended = pattern((outcomes_config().mended_call,))
    return refused[-1][0] if refused and not mended.search(inner, refused[-1].end()) else ""


def _state_of_remote(inner: str) -> tuple[OutcomeState, str]:
    """What a server for builds says of what was pushed; the exit code is that of the command that shows it."""
    if failed := outcome_pattern("failed_check").search(inner):
        return "failed", failed[0]
    passed = outcome_pattern("passed_check").search(inner)
    return ("passed", passed[0]) if passed else ("unknown", "")


def _state_of_call(result: ToolResult, inner: str, family: CallFamily, *, speaks: bool) -> tuple[OutcomeState, str]:
    """A call or an edit without a code of its own: by a refusal; ``speaks``: what a command prints can be one."""
    if family == "edit":
        refused = _refused(_first_line(inner), result.is_error)
    else:
        refused = _refused(inner, result.is_error) if speaks else None
    if refused:
        return "failed", refused[0]
    return ("passed" if result.is_error is False else "unknown"), ""


def _state_of_check(result: ToolResult, inner: str, *, command: bool, masked: bool) -> tuple[OutcomeState, str]:
    """A check whose exit code is not written out, or not its own: by the flag of its command, or what it prints."""
    passed = outcome_pattern("passed_check").search(inner)
    if passed or (command and not masked and result.is_error is False):
        return "passed", passed[0] if passed else ""
    broke = outcome_pattern("broke").search(inner) if result.is_error is None or (masked and result.is_error) else None
    return ("failed", broke[0]) if broke else ("unknown", "")


def _first_line(text: str) -> str:
    """The first line with words; what an editor prints below it is the content of a file."""
    return next((line for line in text[:START].split("\n") if line.strip()), "")


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


def _written_path(text: str) -> str:
    """The file that an editor's answer names."""
    match = re.search(outcomes_config().written_path, text[:START])
    return match[1] if match else ""


def _path(arguments: Any) -> str:
    arguments = decoded(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(arguments, dict):
        return ""
    return next((arguments[key] for key in outcomes_config().paths if isinstance(arguments.get(key), str)), "")


def _verb(arguments: Any) -> str:
    """What an editor with several commands is told to do, "" where it has one."""
    arguments = decoded(arguments) if isinstance(arguments, str) else arguments
    verb = arguments.get("command") if isinstance(arguments, dict) else None
    return verb if isinstance(verb, str) else ""


def _text_of(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments[:LOOKED]
    return json.dumps(arguments, ensure_ascii=False, default=str)[:LOOKED] if arguments is not None else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(_CAMEL.sub(" ", text)))


_REDIRECTED = re.compile(r"(?<![0-9&])>>?[ ]*['\"]?([^\s'\"|;&]+)")


@cache
def _spoken_kinds() -> tuple[tuple[CheckKind, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(shape, re.MULTILINE)) for kind, shape in outcomes_config().spoken_kinds.items())


@cache
def _scratch() -> re.Pattern[str]:
    return re.compile(outcomes_config().scratch)


@cache
def _exit_codes() -> re.Pattern[str]:
    return re.compile(outcomes_config().exit_code)
