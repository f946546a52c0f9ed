"""What patterns find while rows come: one live engine, each agent's history read from the store when it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from undersong.histories.sweep import unfinished
from undersong.models import Emerging, Finding, Row, RuleOutcome
from undersong.patterns import PatternRule
from undersong.patterns.live import Live
from undersong.stores import Store

ROWS = 200_000  # rows that the engine holds before it begins anew with those that are needed
_ADDED = {
    "quotes": (),
    "outcome": None,
    "why": None,
    "chance": None,
    "q": None,
    "stability": None,
    "shuffles": None,
    "replicas": None,
}


class Found(NamedTuple):
    """Findings that are new or other than the kept ones, and the ids of kept ones that no longer stand."""

    found: tuple[Finding, ...] = ()
    gone: tuple[str, ...] = ()


class Agents:
    """The agents of a store as one judge reads them."""

    def __init__(self, store: Store, rules: Sequence[PatternRule], judge: str, judge_hash: str) -> None:
        self._store, self._rules = store, tuple(rules)
        self._judge, self._judge_hash = judge, judge_hash
        self._ids = frozenset(rule.id for rule in rules)
        self._live = Live(self._rules)
        self.forget()

    def forget(self) -> None:
        """Hold nothing: all is read from the store again."""
        self._live.clear()
        self._marks: dict[str, int] = {}
        self._untimed: dict[str, set[str]] = {}  # the conversations of each agent: those without times stand alone
        self._held = 0
        self._kept: dict[str, dict[str, Finding]] = {}  # the findings of each agent as the store has them

    def load(self, marks: Mapping[str, int]) -> None:
        """See that the engine holds these agents as they are at these marks."""
        changed = any(agent in self._marks and self._marks[agent] != mark for agent, mark in marks.items())
        if changed or self._held > ROWS:  # where somebody else wrote, rows may be gone, too
            self.forget()
        for agent, mark in marks.items():
            if agent not in self._marks:
                self._extend(self._store.history(agent, self._judge_hash))
                self._marks[agent] = mark
                self._kept[agent] = {each.finding_id: each for each in self._store.findings(agent) if self._own(each)}

    def feed(self, rows: Sequence[Row], agents: Iterable[str]) -> Found:
        """Take rows; what has changed for these agents since the store has it."""
        told = self._extend(rows)
        return self._compare({*agents, *told}, final=False)

    def finish(self, agents: Iterable[str]) -> Found:
        """No row follows for now: what is open is decided."""
        self._live.finish()
        return self._compare(agents, final=True)

    def settle(self, found: Iterable[Finding], gone: Iterable[str], marks: Mapping[str, int]) -> None:
        """The store has these findings and marks now."""
        dropped = set(gone)
        for own in self._kept.values():
            for name in dropped & own.keys():
                del own[name]
        for finding in found:
            self._kept.setdefault(finding.agent, {})[finding.finding_id] = finding
        self._marks |= marks

    def aimed(self, agents: Iterable[str], conversation: str) -> Iterator[Finding]:
        """The kept findings of these agents that have a target and stand on a conversation."""
        for agent in agents:
            kept = self._kept.get(agent, {}).values()
            yield from (each for each in kept if each.target is not None and conversation in each.conversations)

    def emerging(self, agent: str) -> tuple[Emerging, ...]:
        """Sequences of an agent that are on their way, as the store has its rows."""
        rows = self._store.history(agent, self._judge_hash)
        return tuple(unfinished(self._rules, rows, self._kept.get(agent, {}).values()))

    def outcomes(self) -> tuple[RuleOutcome, ...]:
        """What became of every rule."""
        return tuple(self._live.outcomes())

    def _extend(self, rows: Sequence[Row]) -> set[str]:
        """Take rows; whose findings that told or took back, by agents that are held."""
        for row in rows:
            self._untimed.setdefault(row.agent, set()).add(row.conversation)
        self._held += len(rows)
        return {finding.agent for finding in self._live.extend(rows).found if finding.agent in self._marks}

    def _own(self, finding: Finding) -> bool:
        """Whether a kept finding is one that this engine would tell: by one of its rules, from rows of its judge."""
        return finding.pattern in self._ids and set(finding.judges) <= {self._judge}

    def _compare(self, agents: Iterable[str], *, final: bool) -> Found:
        """What stands beside what is kept; a rule that cannot speak yet takes nothing back."""
        silent = self._live.silent()
        found: list[Finding] = []
        gone: list[str] = []
        for agent in sorted(agents):
            kept, now = self._kept.setdefault(agent, {}), self._standing(agent)
            gone += [name for name, each in kept.items() if name not in now and each.pattern not in silent]
            found += [each for name, each in now.items() if name not in kept or not _same(kept[name], each, final)]
        return Found(tuple(found), tuple(sorted(gone)))

    def _standing(self, agent: str) -> dict[str, Finding]:
        found = dict(self._live.standing((agent, None)))
        for conversation in self._untimed.get(agent, ()):
            found |= self._live.standing((agent, conversation))
        return found


def _same(kept: Finding, now: Finding, final: bool) -> bool:
    """Whether the kept finding says the same; what a sweep or the texts added to it is not compared."""
    added = _ADDED if final else _ADDED | {"balance": now.balance}
    return msgspec.structs.replace(kept, **added) == now
