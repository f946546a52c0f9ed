"""What a shell command does: checks the code, only looks, or changes something that nobody can compare."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from functools import cache
from typing import Any

from undersong.models import ToolCall
from undersong.verdict.words import outcomes_config

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
