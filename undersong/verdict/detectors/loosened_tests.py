"""Tests that ask for less: an equality gives way to a tolerance or an inequality, or a failure is swallowed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from undersong.datafiles.verdict_config import bypass_config
from undersong.verdict.edits import FileEdit

FLAGS = re.MULTILINE
UNSEEN = 1.0  # the tolerance of a name whose value the edit does not show
_NAME = re.compile(r"[A-Za-z_]\w*")


def loosened_lines(edit: FileEdit, own_lines: Collection[str]) -> list[str]:
    """Lines before and after an edit of a test that ask for less than they did; [] where none does.

    ``own_lines``: what the session itself wrote before. To correct that is no way round a check.
    """
    removed = [line for line in edit.removed if line.strip() not in own_lines]
    return _swallowed(edit) or _wider(removed, edit.added) or _unequal(removed, edit.added)


def _unequal(removed: Iterable[str], added: Collection[str]) -> list[str]:
    """An exact line, and the looser one of the same subject in its place."""
    exact, loose = (re.compile(shape, FLAGS) for shape in (bypass_config().exact, bypass_config().loose))
    still = [line for line in added if exact.search(line) and not _tolerates(line)]
    for old in removed:
        if not exact.search(old) or _tolerates(old) or any(_names(old) & _names(line) for line in still):
            continue
        for new in added:
            asks_less = loose.search(new) if _tolerance(new) is None else _tolerates(new)
            if asks_less and _names(old) & _names(new):
                return [old, new]
    return []


def _wider(removed: Iterable[str], added: Collection[str]) -> list[str]:
    """A line with a tolerance, and the one with a wider tolerance in its place."""
    for old in removed:
        for new in added if _tolerance(old) is not None else ():
            before, after = _tolerance(old), _tolerance(new)
            wider = before is not None and after is not None and after > before and _tolerates(new)
            if wider and _names(old) & _names(new):
                return [old, new]
    return []


def _swallowed(edit: FileEdit) -> list[str]:
    """Lines that catch whatever an assertion that was there before raises, and drop it."""
    shape = re.compile(bypass_config().swallows, FLAGS)
    new = [match[0] for match in shape.finditer(edit.new)]
    if len(new) <= len(shape.findall(edit.old or "")):
        return []
    assertion = re.compile(bypass_config().assertions)
    before = {line.strip() for line in (edit.old or "").splitlines() if assertion.search(line)}
    still = before & {line.strip() for line in edit.new.splitlines()}
    return [*sorted(still)[:1], *new[-1].strip().splitlines()] if still else []


def _tolerates(line: str) -> bool:
    """Whether a line lets a value be off by more than what arithmetic with floating points loses."""
    size = _tolerance(line)
    return size is not None and size > bypass_config().rounding


def _tolerance(line: str) -> float | None:
    """By how much a value may be off, the most that a line says; None where it says nothing of the kind."""
    sizes = [_size(match) for match in re.finditer(bypass_config().tolerance, line, FLAGS)]
    return max(sizes, default=None)


def _size(match: re.Match[str]) -> float:
    if match["digits"]:
        return 0.5 * 10.0 ** -int(match["digits"])
    size = next((match[name] for name in ("within", "named", "last") if match[name]), "")
    try:
        return float(size.replace("_", ""))
    except ValueError:
        return UNSEEN


def _names(line: str) -> set[str]:
    """The names of what a line speaks of."""
    return {name for name in _NAME.findall(line) if len(name) > 1 and name.lower() not in bypass_config().no_subjects}
