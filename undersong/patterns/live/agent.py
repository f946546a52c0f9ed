"""One timeline live: every rule on it, and the findings that stand so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Finding, Row
from undersong.patterns.findings import Balance, finding_of
from undersong.patterns.live.facts import PredicateIndex
from undersong.patterns.live.plan import RowPlan
from undersong.patterns.live.reader import MaskReader
from undersong.patterns.live.track import EmittedMatch, SequenceState
from undersong.patterns.live.view import Scope, TimelineState
from undersong.patterns.rules import PatternRule


class Setup:
    """The rules made ready, once for all agents; ``steps`` bounds the work of a rule on one stretch of a sequence."""

    def __init__(self, rules: Sequence[PatternRule], steps: int) -> None:
        self.steps = steps
        self.scopes: dict[str | None, Scope] = {}
        self.plans: list[RowPlan] = []
        facts = PredicateIndex()
        for index, rule in enumerate(rules):
            where = None if rule.where is None else str(rule.file.where)
            scope = self.scopes.setdefault(where, Scope(rule.where))
            plan = RowPlan(index, rule, scope.slots, facts)
            scope.add(plan)
            self.plans.append(plan)
        self.reader = MaskReader(self.plans, facts)


class CurrentFinding(NamedTuple):
    """A finding, the number of its rule, and the place of its first row in its sequence."""

    rule: int
    start: int
    finding: Finding


class AgentState:
    """The live state of one timeline.

    ``findings`` are what stands, by id; ``balance`` is that of the rows up to then, and of all rows after ``end``.
    """

    def __init__(self, setup: Setup, name: str, untimed: str | None) -> None:
        self.setup, self.name, self.untimed = setup, name, untimed
        self.views = [TimelineState(scope, name, untimed) for scope in setup.scopes.values()]
        self.balance = Balance()
        self.findings: dict[str, CurrentFinding] = {}
        self.ended = False

    def copy(self) -> AgentState:
        """The same state, to go on by itself."""
        other = AgentState(self.setup, self.name, self.untimed)
        other.views = [view.copy() for view in self.views]
        other.balance.tallies = self.balance.tallies.copy()
        other.findings, other.ended = self.findings.copy(), self.ended
        return other

    def take(self, row: Row, time: int | None) -> list[CurrentFinding]:
        """The next row of the timeline; what it made stand."""
        read = row.state == "scored"
        if read:
            self.balance.add(row)
        masks = self.setup.reader.masks(row) if read else []
        emitted: list[EmittedMatch] = []
        for view in self.views:
            if view.scope.takes(row):
                emitted += view.take(row, time, masks, self.setup.steps)
        return self._accept(emitted) if emitted else []

    def end(self) -> None:
        """No row follows: what is open is decided, and every finding gets the balance of all rows."""
        self.ended = True
        self._accept(each for view in self.views for each in view.end())
        means = self.balance.means()
        for name, standing in self.findings.items():
            finding = msgspec.structs.replace(standing.finding, balance=means)
            self.findings[name] = standing._replace(finding=finding)

    def sequences(self, rule: int) -> list[SequenceState]:
        """The sequences of a rule that have a read row."""
        return [track for view in self.views for track in view.sequences(self.setup.plans[rule])]

    def _accept(self, emitted: Iterable[EmittedMatch]) -> list[CurrentFinding]:
        """Of two matches with one id (the rows before the first named one differ) the later stands, as in batch."""
        means, accepted = self.balance.means(), []
        for plan, start, match in emitted:
            standing = CurrentFinding(plan.index, start, finding_of(plan.rule, match, means))
            earlier = self.findings.get(standing.finding.finding_id)
            if earlier is None or earlier.start <= start:
                self.findings[standing.finding.finding_id] = standing
                accepted.append(standing)
        return accepted
