"""Command lines of shell calls: which commands they run, which of them check the code, whose exit code is seen."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from undersong.datafiles.verdict_config import outcomes_config
from undersong.models import ToolCall

LOOKED = 20_000  # characters of a command that are read
SPEAKS = ("git", "gh", "echo", "printf")  # their arguments name programs and do not run them
CheckKind = Literal["tests", "build", "lint", "types", "run"]
_HEREDOC = re.compile(r"<<-?[ ]*['\"]?(\w+)")
_TEXT_ARGUMENT = re.compile(r"(?:-m|--message|--body|--title)[ =](?:\"(?:[^\"\\]|\\.)*\"|'[^']*')")
_TOKEN = re.compile(
    r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|&&|\|\||\|&?|[;\n]|[^'\"\\&|;\n]+|.", re.DOTALL
)  # quoted text, an operator, or anything else
_OPERATORS = frozenset({"&&", "||", "|", "|&", ";", "\n"})
_CHAIN = frozenset({";", "\n"})  # what follows runs whatever came before
_GIVES_UP = re.compile(r"^[({ ]*(?:exit|return|false)\b|\bexit[ ]+[1-9]")
_SET = re.compile(r"\bset[ ]+-\w*e|\bset[ ]+-o[ ]+errexit")
_FILTER = re.compile(r"(?:e|f)?grep((?:[ ]+-[a-zA-Z]+)*)[ ]+(.+)", re.DOTALL)
_FAILING = re.compile(r"fail", re.IGNORECASE)  # the word with which runners name what failed
_INLINE = re.compile(
    r"(?:python3?|node|ruby|perl|deno|bun)[ ]+(?:-c|-e|eval|-m[ ]+json\.tool)\b"
)  # a script in the line
_IMAGE = re.compile(r"(?:docker|podman)[ ](?:buildx[ ]|compose[ ])?build\b")
_PIPEFAIL = re.compile(r"\bset[ ]+-\w*o[ ]+pipefail|\bset[ ]+-o[ ]+pipefail")


class ShellPart(NamedTuple):
    """One command of a line: its words without wrappers, and whether the exit code of the line can be another's.

    ``handled``: an ``||`` follows, so that its failure is dealt with in the line itself. ``text`` has the wrappers.
    ``fed_to``: the command that reads its output through a pipe, "" where none does.
    """

    words: list[str]
    text: str
    masked: bool = False
    handled: bool = False
    fed_to: str = ""

    @property
    def lets_failures_through(self) -> bool:
        """Whether a filter behind a pipe hides what passes and shows what fails, so that silence means success."""
        match = _FILTER.match(self.fed_to)
        if match is None:
            return False
        inverted = any(option.startswith("-") and "v" in option for option in match[1].split())
        return bool(_FAILING.search(match[2])) is not inverted


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


@lru_cache(maxsize=4096)
def shell_parts(command: str) -> tuple[ShellPart, ...]:
    """The commands of a line in order; quoted text and fed texts hold none."""
    bare = _TEXT_ARGUMENT.sub("", _without_heredocs(command[:LOOKED]))
    texts, operators = _split(bare)
    strict, pipefail = _SET.search(bare) is not None, _PIPEFAIL.search(bare) is not None
    parts = []
    for number, text in enumerate(texts):
        words = _unwrapped(text)
        if words:
            after = _after(texts, operators, number)
            masked, handled = _hidden(after, strict=strict, pipefail=pipefail)
            fed_to = after[0][1].strip() if after and after[0][0] in ("|", "|&") else ""
            if number and operators[number - 1] in ("|", "|&") and _INLINE.match(" ".join(words)):
                words = ["cat"]  # it only shows what it is fed
            parts.append(ShellPart(words, text.strip(), masked, handled, fed_to))
    return tuple(parts)


def commands(command: str) -> list[list[str]]:
    """The words of each command of a line, without what only wraps it, without texts that it hands on."""
    return [part.words for part in shell_parts(command)]


def check_kind(words: list[str]) -> CheckKind | None:
    """What a command checks: tests, the build, style, or that a program runs; None where it checks nothing."""
    if words[0] in SPEAKS or looks(words):
        return None
    line = " ".join(words)
    for kind, shape in _check_kinds():
        if shape.search(line):
            return "run" if kind == "tests" and re.search(outcomes_config().runs_no_tests, line) else kind
    return "run" if _checks().search(line) else None


def also_checked(words: list[str]) -> frozenset[CheckKind]:
    """What a check that passes has checked besides its own kind: a test of a compiled language has built it."""
    line = " ".join(words)
    return frozenset(kind for kind, shape in _also_checks() if shape.search(line)) if check_kind(words) else frozenset()


def toolchains(text: str) -> frozenset[str]:
    """The languages of the checks that a text names: a command, a claim, what a compiler prints."""
    return frozenset(name for name, shape in _toolchains() if shape.search(text))


def is_check(command: str) -> bool:
    """Whether any command of a line checks the code: a test, a build, a program that is run."""
    return any(check_kind(part.words) for part in shell_parts(command))


def shows_remote(command: str) -> bool:
    """Whether a line only shows what a server for builds says of what was pushed."""
    running = [part.words for part in shell_parts(command) if not looks(part.words)]
    return bool(running) and all(_remote().search(" ".join(words)) for words in running)


def is_part(words: list[str]) -> bool:
    """Whether a test command runs only some of the tests."""
    return _part().search(" ".join(words)) is not None


def looks(words: list[str]) -> bool:
    """Whether a command only shows what is there."""
    config = outcomes_config()
    if words[0] == "git":
        return len(words) > 1 and words[1] in config.reading_git
    if words[0] == "sed" and any(word.startswith("-i") for word in words):
        return False
    return words[0] in config.reading_commands and ">" not in words and ">>" not in words


def changes_code(words: list[str]) -> bool:
    """Whether a command changes files that a check would see."""
    return _changing().search(" ".join(words)) is not None


def changes_unseen(call: ToolCall) -> bool:
    """Whether a shell command may change files in a way that nobody can compare."""
    command = command_of(call)
    if is_check(command) and "<<" not in command and " -c " not in command:
        return False
    return any(not looks(words) and not _records(words) for words in commands(command))


def _records(words: list[str]) -> bool:
    """Whether a command only hands on what is there: it adds, commits or pushes it."""
    return words[:1] == ["git"] and words[1:2] in (["add"], ["commit"], ["push"], ["tag"])


def decoded(text: str) -> Any:
    """The value of a text that is JSON, None where it is none."""
    bare = text.strip()
    if not bare.startswith(("{", '"')):
        return None
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return None


def _split(line: str) -> tuple[list[str], list[str]]:
    """The commands of a line and the operators after them."""
    texts, operators = [""], list[str]()
    for token in _TOKEN.findall(line):
        if token in _OPERATORS:
            operators.append(token)
            texts.append("")
        else:
            texts[-1] += token
    return texts, operators


def _unwrapped(text: str) -> list[str]:
    wrappers, words = outcomes_config().wrappers, text.split()
    while (
        words
        and not _IMAGE.match(" ".join(words[:3]))
        and (words[0] in wrappers or re.match(r"^\w+=", words[0]) or words[0][0] in "-({!")
    ):
        words = words[2:] if words[0] == "cd" else words[1:]
    return words


def _after(texts: list[str], operators: list[str], number: int) -> list[tuple[str, str]]:
    """Each operator after a command with the command behind it, empty ones left out."""
    return [(operators[place], texts[place + 1]) for place in range(number, len(operators)) if texts[place + 1].strip()]


def _hidden(after: list[tuple[str, str]], *, strict: bool, pipefail: bool) -> tuple[bool, bool]:
    """Whether the exit code of the line may be another command's, and whether the line handles a failure itself."""
    piped = bool(after) and after[0][0].startswith("|") and after[0][0] != "||" and not pipefail
    chained = not strict and any(operator in _CHAIN for operator, _ in after)
    handled = any(operator == "||" and not _GIVES_UP.search(text.strip()) for operator, text in after)
    return piped or chained or handled, handled


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
def _check_kinds() -> tuple[tuple[CheckKind, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(shape)) for kind, shape in outcomes_config().check_kinds.items())


@cache
def _also_checks() -> tuple[tuple[CheckKind, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(shape)) for kind, shape in outcomes_config().also_checks.items())


@cache
def _toolchains() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(shape, re.MULTILINE)) for name, shape in outcomes_config().toolchains.items())


@cache
def _part() -> re.Pattern[str]:
    return re.compile(outcomes_config().part_of_tests)


@cache
def _remote() -> re.Pattern[str]:
    return re.compile(outcomes_config().remote_checks)


@cache
def _changing() -> re.Pattern[str]:
    return re.compile(outcomes_config().changing)
