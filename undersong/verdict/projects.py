"""Which project a check ran in and a change was made in, where one session works in several."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from undersong.verdict.tool_outcomes import ToolOutcome

_CD = re.compile(r"\s*cd[ ]+(?:--[ ]+)?(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s;&|'\"]+))[ ]*(?:&&|;|\n)")
_PLAIN = re.compile(r"[\w./ @+-]+")


def folder_of(command: str) -> str:
    """The folder that a command line goes to first, in lower case; "" where it stays, or nobody can say."""
    match = _CD.match(command)
    path = (match[1] or match[2] or match[3]).rstrip("/").lower() if match else ""
    return path.removeprefix("./") if _PLAIN.fullmatch(path) and ".." not in path and path not in (".", "-") else ""


def place_of(outcome: ToolOutcome) -> str:
    """The file that an edit changed, else the folder that a command went to, in lower case; "" where unknown."""
    return outcome.path.lower().removeprefix("./") if outcome.path else folder_of(outcome.command)


def roots_of(outcomes: Iterable[ToolOutcome]) -> frozenset[str]:
    """The folders that the commands of a session go to."""
    return frozenset(folder for outcome in outcomes if (folder := folder_of(outcome.command)))


def are_apart(one: str, other: str, roots: Collection[str]) -> bool:
    """Whether two places belong to different folders that the session works in; unknown ones may belong to any."""
    if not one or not other or one.startswith("/") != other.startswith("/"):
        return False
    if _is_within(one, other) or _is_within(other, one):
        return False
    holders = [
        any(_is_within(place, root) and not _is_within(away, root) for root in roots)
        for place, away in ((one, other), (other, one))
    ]
    return all(holders)


def named_roots(words: str, roots: Iterable[str]) -> frozenset[str]:
    """The folders whose last name stands in some words as a word of its own, or as the start of a path."""
    lower = words.lower()
    return frozenset(
        root for root in roots if re.search(rf"(?<![\w.-]){re.escape(root.rsplit('/', 1)[-1])}(?![\w-])", lower)
    )


def _is_within(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder}/")
