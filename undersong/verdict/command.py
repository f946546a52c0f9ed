"""What a shell command does: checks the code, only looks, or changes something that nobody can compare."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from functools import cache
from typing import Any

from undersong.models import ToolCall
from undersong.verdict.words import outcomes_book

LOOKED = 20_000  # characters of a command that are read
_HEREDOC = re.compile(r"<<-?[ ]*['\"]?(\w+)")
_TOLD = re.compile(r"(?:-m|--message|--body|--title)[ =](?:\"(?:[^\"\\]|\\.)*\"|'[^']*')")
SPEAKS = ("git", "gh")  # their arguments name programs and do not run them


def command_of(call: ToolCall) -> str:
    """The command line of a call, "" where it is no call of a shell."""
    given = decoded(call.input) or call.input if isinstance(call.input, str) else call.input
    if isinstance(given, dict):
        given = next((given[key] for key in ("command", "cmd", "script") if key in given), None)
        if given is None:
            return ""
    elif call.name not in outcomes_book().shell_tools:
        return ""
    if isinstance(given, list):
        return " ".join(each for each in given if isinstance(each, str))
    return given if isinstance(given, str) else ""


def commands(command: str) -> list[list[str]]:
    """The words of each command of a line, without what only wraps it, without texts that it hands on."""
    wrappers = outcomes_book().wrappers
    found = []
    for part in re.split(r"&&|\|\||[;|\n]", _TOLD.sub("", _without_heredocs(command[:LOOKED]))):
        words = part.split()
        while words and (words[0] in wrappers or "=" in words[0] or words[0].startswith("-")):
            words = words[2:] if words[0] == "cd" else words[1:]
        if words:
            found.append(words)
    return found


def is_check(command: str) -> bool:
    """Whether any command of a line checks the code: a test, a build, a program that is run."""
    return any(
        _checks().search(" ".join(words)) for words in commands(command) if words[0] not in SPEAKS and not looks(words)
    )


def looks(words: list[str]) -> bool:
    """Whether a command only shows what is there."""
    book = outcomes_book()
    if words[0] == "git":
        return len(words) > 1 and words[1] in book.reading_git
    if words[0] == "sed" and "-i" in words:
        return False
    return words[0] in book.reading_commands and ">" not in words


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
    kept, skipped = [], -1
    for number, line in enumerate(lines):
        if number <= skipped:
            continue
        kept.append(line)
        found = _HEREDOC.search(line)
        if found:
            ends = places.get(found[1], [])
            skipped = next(iter(ends[bisect_right(ends, number) :][:1]), -1)
    return "\n".join(kept)


@cache
def _checks() -> re.Pattern[str]:
    return re.compile(outcomes_book().checks)
