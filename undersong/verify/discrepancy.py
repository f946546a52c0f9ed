"""What verify says: one thing that no longer agrees, or why a step could not be done again."""

from __future__ import annotations

from undersong.models import Record


class Discrepancy(Record, frozen=True, kw_only=True):
    """One thing that no longer agrees: what, where, and both values where there are two."""

    what: str
    where: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        sides = (("expected", self.expected), ("found", self.found))
        values = ", ".join(f"{name} {value}" for name, value in sides if value)
        return f"{self.where}: {self.what}{f' ({values})' if values else ''}"


class NotPossibleError(Exception):
    """A step cannot be done again here, for a reason that is no disagreement."""
