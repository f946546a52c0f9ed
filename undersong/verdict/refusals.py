"""Refusals of programs: the words with which the tool of a command says that it did not do what it was told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from undersong.datafiles.verdict_config import calls_config, pattern
from undersong.verdict.shell import ShellPart, looks


def refused_in(command: str, text: str) -> str:
    """The last line of an output with which the programs of a command refuse, "" where none does."""
    words = _words(command[:200]) if text.strip() else ()
    lines = list(pattern(words).finditer(text)) if words else []
    return lines[-1][0].strip().split("\n")[0] if lines else ""


def refused_deed(parts: Iterable[ShellPart], text: str) -> str:
    """The line with which a program refuses an act that its command should do, "" where none does."""
    own = [part for part in parts if not part.handled and not looks(part.words) and _does().search(f"{part.text} ")]
    return next((line for part in own if (line := refused_in(part.text, text))), "")


@cache
def _does() -> re.Pattern[str]:
    return pattern(tuple(deed.does for name, deed in calls_config().deeds.items() if name != "answer"))


@lru_cache(maxsize=2048)
def _words(command: str) -> tuple[str, ...]:
    config = calls_config()
    own = [word for each in config.refusals if pattern((each.command,)).search(command) for word in each.words]
    return (*own, *config.missing) if own else ()
