"""One timeline live: every rule on it, and the findings that stand so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Finding, Row
from undersong.patterns.findings import Balance, finding_of
from undersong.patterns.live.facts import Facts
from undersong.patterns.live.plan import Plan
from undersong.patterns.live.reader import Reader
from undersong.patterns.live.track import Emitted, Track
from undersong.patterns.live.view import Scope, View
from undersong.patterns.rules import PatternRule


class Setup:
    """The rules made ready, once for all agents; ``steps`` bounds the work of a rule on one stretch of a sequence."""

    def __init__(self, rules: Sequence[PatternRule], steps: int) -> None:
        self.steps = steps
        self.scopes: dict[str | None, Scope] = {}
        self.plans: list[Plan] = []
        facts = Facts()
        for index, rule in enumerate(rules):
            where = None if rule.where is None else str(rule.file.where)
            scope = self.scopes.setdefault(where, Scope(rule.where))
            plan = Plan(index, rule, scope.slots, facts)
            scope.add(plan)
            self.plans.append(plan)
        self.reader = Reader(self.plans, facts)


class Standing(NamedTuple):
    """A finding, the number of its rule, and the place of its first row in its sequence."""

    rule: int
    start: int
    finding: Finding


class Agent:
    """The live state of one timeline.

    ``findings`` are what stands, by id; ``balance`` is that of the rows up to then, and of all rows after ``end``.
    """

    def __init__(self, setup: Setup, name: str, untimed: str | None) -> None:
        self.setup, self.name, self.untimed = setup, name, untimed
        self.views = [View(scope, name, untimed) for scope in setup.scopes.values()]
        self.balance = Balance()
        self.findings: dict[str, Standing] = {}
        self.ended = False

    def copy(self) -> Agent:
        """The same state, to go on by itself."""
        other = Agent(self.setup, self.name, self.untimed)
        other.views = [view.copy() for view in self.views]
        other.balance.tallies = self.balance.tallies.copy()
        other.findings, other.ended = self.findings.copy(), self.ended
        return other

    def take(self, row: Row, time: int | None) -> list[Standing]:
        """The next row of the timeline; what it made stand."""
        read = row.state == "scored"
        if read:
            self.balance.add(row)
        masks = self.setup.reader.masks(row) if read else []
        emitted: list[Emitted] = []
        for view in self.views:
            if view.scope.takes(row):
                emitted += view.take(row, time, masks, self.setup.steps)
        return self._keep(emitted) if emitted else []

    def end(self) -> None:
        """No row follows: what is open is decided, and every finding gets the balance of all rows."""
        self.ended = True
        self._keep(each for view in self.views for each in view.end())
        means = self.balance.means()
        for name, standing in self.findings.items():
            finding = msgspec.structs.replace(standing.finding, balance=means)
            self.findings[name] = standing._replace(finding=finding)

    def sequences(self, rule: int) -> list[Track]:
        """The sequences of a rule that have a read row."""
        return [track for view in self.views for track in view.sequences(self.setup.plans[rule])]

    def _keep(self, emitted: Iterable[Emitted]) -> list[Standing]:
        """Of two matches with one id (the rows before the first named one differ) the later stands, as in batch."""
        means, kept = self.balance.means(), []
        for plan, start, match in emitted:
            standing = Standing(plan.index, start, finding_of(plan.rule, match, means))
            known = self.findings.get(standing.finding.finding_id)
            if known is None or known.start <= start:
                self.findings[standing.finding.finding_id] = standing
                kept.append(standing)
        return kept
