"""Files that a session writes only to look at something, and removes again: they are no change of the work."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from undersong.verdict.shell import changes_code, shell_parts
from undersong.verdict.transcript import PlacedOutcome

_WRITTEN = re.compile(r">>?[ ]*['\"]?([\w./-]+\.\w+)['\"]?[ ]*<<")


def without_scratch_files(outcomes: Iterable[PlacedOutcome]) -> list[PlacedOutcome]:
    """The outcomes; a command that writes new files alone, all of which its request removes again, changes nothing."""
    placed_outcomes = list(outcomes)
    removed = [
        (placed.turn.run, place, _removed(placed.outcome.command)) for place, placed in enumerate(placed_outcomes)
    ]
    removed = [entry for entry in removed if entry[2]]
    if not removed:
        return placed_outcomes
    result, seen = list[PlacedOutcome](), list[str]()
    for place, placed in enumerate(placed_outcomes):
        outcome = placed.outcome
        names = _written(outcome.command) if outcome.changes or outcome.changes_after else frozenset[str]()
        gone = [own for run, later, own in removed if run == placed.turn.run and later > place]
        new = not any(name in text for name in names for text in seen)
        if names and new and names <= frozenset().union(*gone):
            placed = placed._replace(outcome=outcome._replace(changes=False, changes_after=False))
        seen += [outcome.command, outcome.path]
        result.append(placed)
    return result


def _removed(command: str) -> frozenset[str]:
    """The names of the files that a command removes."""
    if "rm " not in command:
        return frozenset()
    words = (word for part in shell_parts(command) if part.words[:1] == ["rm"] for word in part.words[1:])
    return frozenset(PurePosixPath(word).name for word in words if not word.startswith("-"))


def _written(command: str) -> frozenset[str]:
    """The names of the files that a command writes from its own text; none where it changes anything else."""
    names = frozenset(PurePosixPath(match[1]).name for match in _WRITTEN.finditer(command))
    changes = names and any(changes_code(part.words) for part in shell_parts(command))
    return frozenset() if changes else names
