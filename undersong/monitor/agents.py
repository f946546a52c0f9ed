"""Incremental pattern detection over agents: one live engine, histories read from the store when needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Emerging, Finding, Row, RuleOutcome
from undersong.patterns.catalog import other_ways
from undersong.patterns.incremental.live import LiveDetector
from undersong.patterns.language.compile import PatternRule
from undersong.pipeline.history_sweep import unfinished
from undersong.stores.protocol import Store

ROWS = 200_000  # rows that the engine holds before it begins anew with those that are needed
_COMPUTED_LATER = ("outcome", "why", "chance", "q", "stability", "shuffles", "replicas", "confidence")
_ADDED = {"quotes": (), **dict.fromkeys(_COMPUTED_LATER)}  # by a sweep or from the texts


class FindingChanges(NamedTuple):
    """Findings that are new or other than the stored ones, and the ids of stored ones that no longer hold."""

    findings: tuple[Finding, ...] = ()
    retracted: tuple[str, ...] = ()


class AgentTracker:
    """The agents of a store as one judge reads them."""

    def __init__(self, store: Store, rules: Sequence[PatternRule], judge: str, judge_hash: str) -> None:
        self._store, self._rules = store, tuple(rules)
        self._judge, self._judge_hash = judge, judge_hash
        self._ids, self._others = frozenset(rule.pattern for rule in rules), other_ways(rules)
        self._live = LiveDetector(self._rules)
        self.clear()

    def clear(self) -> None:
        """Hold nothing: all is read from the store again."""
        self._live.clear()
        self._versions: dict[str, int] = {}
        self._untimed: dict[str, set[str]] = {}  # the conversations of each agent: those without times stand alone
        self._row_count = 0
        self._stored: dict[str, dict[str, Finding]] = {}  # the findings of each agent as the store has them

    def load(self, versions: Mapping[str, int]) -> None:
        """Bring the engine to these versions of the agents."""
        changed = any(agent in self._versions and self._versions[agent] != mark for agent, mark in versions.items())
        if changed or self._row_count > ROWS:  # where somebody else wrote, rows may be gone, too
            self.clear()
        for agent, version in versions.items():
            if agent not in self._versions:
                self._extend(self._store.history(agent, self._judge_hash))
                self._versions[agent] = version
                self._stored[agent] = {each.finding_id: each for each in self._store.findings(agent) if self._own(each)}

    def feed(self, rows: Sequence[Row], agents: Iterable[str]) -> FindingChanges:
        """Take rows; what has changed for these agents since the store has it."""
        changed = self._extend(rows)
        return self._compare({*agents, *changed}, final=False)

    def finish(self, agents: Iterable[str]) -> FindingChanges:
        """No row follows for now: what is open is decided."""
        self._live.finish()
        return self._compare(agents, final=True)

    def mark_saved(self, findings: Iterable[Finding], retracted: Iterable[str], versions: Mapping[str, int]) -> None:
        """Take over that the store has these findings and versions now."""
        dropped = set(retracted)
        for own in self._stored.values():
            for name in dropped & own.keys():
                del own[name]
        for finding in findings:
            self._stored.setdefault(finding.agent, {})[finding.finding_id] = finding
        self._versions |= versions

    def findings_toward(self, agents: Iterable[str], conversation: str) -> Iterator[Finding]:
        """The stored findings of these agents that have a target and cite a conversation."""
        for agent in agents:
            stored = self._stored.get(agent, {}).values()
            yield from (each for each in stored if each.target is not None and conversation in each.conversations)

    def emerging(self, agent: str) -> tuple[Emerging, ...]:
        """Sequences of an agent that are on their way, as the store has its rows."""
        rows = self._store.history(agent, self._judge_hash)
        return tuple(unfinished(self._rules, rows, self._stored.get(agent, {}).values()))

    def outcomes(self) -> tuple[RuleOutcome, ...]:
        """What became of every rule."""
        return tuple(self._live.outcomes())

    def _extend(self, rows: Sequence[Row]) -> set[str]:
        """Take rows; the loaded agents whose findings changed by them."""
        for row in rows:
            self._untimed.setdefault(row.agent, set()).add(row.conversation)
        self._row_count += len(rows)
        return {finding.agent for finding in self._live.extend(rows).findings if finding.agent in self._versions}

    def _own(self, finding: Finding) -> bool:
        """Whether a stored finding is one of this engine: by one of its rules, from rows of its judge."""
        own = finding.pattern in self._ids and finding.rule_hash not in self._others
        return own and set(finding.judges) <= {self._judge}

    def _compare(self, agents: Iterable[str], *, final: bool) -> FindingChanges:
        """The current findings against the stored ones; a rule that is inactive yet retracts nothing."""
        inactive = self._live.inactive()
        findings: list[Finding] = []
        retracted: list[str] = []
        for agent in sorted(agents):
            stored, now = self._stored.setdefault(agent, {}), self._current(agent)
            retracted += [name for name, each in stored.items() if name not in now and each.rule_hash not in inactive]
            changed = {name for name, each in now.items() if name not in stored or not _same(stored[name], each, final)}
            if final or changed:
                now = {each.finding_id: each for each in self._live.weighed(now.values())}
            findings += [
                each
                for name, each in now.items()
                if name in changed or (final and each.confidence != stored[name].confidence)
            ]
        return FindingChanges(tuple(findings), tuple(sorted(retracted)))

    def _current(self, agent: str) -> dict[str, Finding]:
        current = dict(self._live.current((agent, None)))
        for conversation in self._untimed.get(agent, ()):
            current |= self._live.current((agent, conversation))
        return current


def _same(stored: Finding, now: Finding, final: bool) -> bool:
    """Whether the stored finding is the same; what a sweep or the texts added is not compared."""
    added = _ADDED if final else _ADDED | {"balance": now.balance}
    return msgspec.structs.replace(stored, **added) == now
