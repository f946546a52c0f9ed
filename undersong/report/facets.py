"""What a page can be filtered by: agents and kinds, each with a number, and the five levels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from undersong.models import LEVELS
from undersong.report.text import own_name

MOST = 300  # names that a menu offers; further ones share the last entry
REST = "all others"
FLAG = "flag"
MOMENTS = {  # the kind of a moment and its name in the menu
    "smoking_gun": "smoking gun", "distress": "distress code", "protective": "protective moment",
    "conduct": "noted turn", "candidate": "candidate",
}  # fmt: skip
DEDUCTION_LEVEL = "high"  # points taken stand beside findings of this level


@dataclass(frozen=True)
class Facet:
    """The values of one element: numbers of agents and kinds, and the number of its level, None without one."""

    agents: tuple[int, ...] = ()
    kinds: tuple[int, ...] = ()
    level: int | None = None


class Facets:
    """Numbers for the names that occur, in the order of their first appearance."""

    def __init__(self) -> None:
        self._agents: dict[str, int] = {}
        self._kinds: dict[str, int] = {}

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents by number."""
        return tuple(self._agents)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds by number."""
        return tuple(self._kinds)

    def of(
        self, agents: Iterable[str] = (), kinds: Iterable[str] = (), level: str | None = None, conversation: str = ""
    ) -> Facet:
        """The facet of one element; agents are named as inside ``conversation``."""
        return Facet(
            tuple(dict.fromkeys(_number(self._agents, own_name(agent, conversation)) for agent in agents)),
            tuple(dict.fromkeys(_number(self._kinds, kind) for kind in kinds)),
            LEVELS.index(level) if level in LEVELS else None,
        )


def _number(numbers: dict[str, int], name: str) -> int:
    if name not in numbers and len(numbers) >= MOST - 1:
        name = REST
    return numbers.setdefault(name, len(numbers))
