"""One timeline live: every rule on it, and the findings that stand so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Finding, Row, RuleOutcome
from undersong.patterns.findings import Balance, finding_of, order
from undersong.patterns.incremental.predicate_index import PredicateIndex
from undersong.patterns.incremental.reader import MaskReader
from undersong.patterns.incremental.row_log import RowKey, RowLog, TimelineChange, TimelineKey
from undersong.patterns.incremental.row_plan import RowPlan
from undersong.patterns.incremental.sequence_state import EmittedMatch, SequenceState
from undersong.patterns.incremental.timeline_state import Scope, TimelineState
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.inputs import NEVER_MISSING, available_inputs, gives, lacking
from undersong.patterns.reference.matcher import STEPS
from undersong.patterns.significance.confidence import with_confidence
from undersong.rows.corpus_scales import absolute_rows


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


APART = 256  # rows between two marks of a timeline: what a row that is a little late replays at most twice


class Changes(NamedTuple):
    """What rows did: findings that are new or no longer what they were, and the ids of those that fell.

    A finding in ``findings`` takes the place of an earlier one with its id.
    """

    findings: tuple[Finding, ...]
    retracted: tuple[str, ...]


class LiveTimeline:
    """A timeline: its live state, the last row that it has seen, and the findings that were reported.

    ``marks`` are copies of the state after some rows, so that a row that is a little late need not replay them all.
    """

    __slots__ = ("agent", "last", "marks", "reported", "since")

    def __init__(self, agent: AgentState) -> None:
        self.agent = agent
        self.last: RowKey | None = None
        self.marks: list[tuple[RowKey, AgentState]] = []
        self.since = 0
        self.reported: dict[str, Finding] = {}

    def feed(self, rows: Iterable[tuple[RowKey, Row, int | None]]) -> list[CurrentFinding]:
        """Take rows in order; what they made stand."""
        fresh: list[CurrentFinding] = []
        for key, row, time in rows:
            fresh += self.agent.take(row, time)
            self.last, self.since = key, self.since + 1
            if self.since == APART:
                self.marks, self.since = [*self.marks[-1:], (key, self.agent.copy())], 0
        return fresh

    def rewind(self, before: RowKey, empty: AgentState) -> None:
        """Go back to the last mark before a row, or to the ``empty`` state."""
        self.marks = [(key, agent) for key, agent in self.marks if key < before]
        self.last, self.agent = (self.marks[-1][0], self.marks[-1][1].copy()) if self.marks else (None, empty)
        self.since = 0


class LiveDetector:
    """Rules over rows that come one at a time; after ``finish`` its findings are those of ``detect`` on the same rows.

    A match is told once no later row of its sequence can change it. A row that is not the last of its agent's
    timeline, or that repeats an id, replays that timeline. ``given_by`` names what the judge fills, as in ``detect``.
    The findings of a rule are held back until each of its inputs has been seen in some read row. ``steps`` bounds the
    work on a stretch of a sequence on which a rule always has an open match; where a rule reaches it, it gives up.
    """

    def __init__(
        self, rules: Sequence[PatternRule], *, given_by: Collection[str] | None = None, steps: int = STEPS
    ) -> None:
        self.rules = tuple(rules)
        self.given_by = given_by
        self.setup = Setup(self.rules, steps)
        self._wanted = frozenset[str]().union(*(rule.needs for rule in self.rules)) - NEVER_MISSING
        self.clear()

    def clear(self) -> None:
        """Forget all rows and reported findings, as at the beginning; the rules are not compiled again."""
        self.archive = RowLog()
        self.timelines: dict[TimelineKey, LiveTimeline] = {}
        self._has = NEVER_MISSING
        self._read = self._ranked = 0
        self._active = self._active_rules()

    def observe(self, row: Row) -> Changes:
        """Take one row."""
        return self.extend((row,))

    def extend(self, rows: Iterable[Row]) -> Changes:
        """Take several rows at once, in any order; a timeline is replayed at most once."""
        changes: dict[TimelineKey, list[TimelineChange]] = {}
        lost: set[str] = set()
        for row in absolute_rows(rows):
            lost |= self._count(row)
            for change in self.archive.put(row):
                changes.setdefault(change.line, []).append(change)
        if lost:
            self._recount(lost)
        active = self._active if (self._has, self._read > 0) == self._inputs_seen else self._active_rules()
        findings: list[Finding] = []
        retracted: list[str] = []
        again, self._active = active != self._active, active
        for line, changed in changes.items():
            fresh = self._advance(line, changed)
            if not again:
                self._report(line, fresh, findings, retracted)
        for line in (
            self.timelines if again else ()
        ):  # other rules speak now: what they hold back is told, or taken back
            self._report(line, None, findings, retracted)
        self.archive.clear_fresh()
        return _changes(findings, retracted)

    def finish(self) -> Changes:
        """No row follows: what is open is decided, and findings get the balance of all their agent's rows."""
        findings: list[Finding] = []
        for line, thread in self.timelines.items():
            if not thread.agent.ended:
                thread.agent.end()
                self._report(line, None, findings, [], final=True)
        return _changes(findings, [])

    def findings(self) -> tuple[Finding, ...]:
        """The current findings, by agent, target, time and rule."""
        return _ordered(finding for thread in self.timelines.values() for finding in thread.reported.values())

    def outcomes(self) -> tuple[RuleOutcome, ...]:
        """The outcome of every rule so far."""
        return tuple(self._outcome(index, rule) for index, rule in enumerate(self.rules))

    def current(self, line: TimelineKey) -> dict[str, Finding]:
        """The current findings of a timeline, by id."""
        thread = self.timelines.get(line)
        return thread.reported if thread is not None else {}

    def weighed(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Some of the current findings with their confidence, as the rows of their agents so far give it."""
        wanted = tuple(findings)
        agents = {finding.agent for finding in wanted}
        lines = [line for line in self.archive.timelines if line[0] in agents]
        standing = {finding.finding_id: finding for line in lines for finding in self.current(line).values()}
        standing |= {finding.finding_id: finding for finding in wanted}
        rows = [row for line in lines for row, _ in self.archive.rows(line)]
        weighed = {each.finding_id: each for each in with_confidence(tuple(standing.values()), rows, self.rules)}
        return tuple(weighed[finding.finding_id] for finding in wanted)

    def inactive(self) -> frozenset[str]:
        """The hashes of the rules without findings so far because an input of theirs was not seen."""
        return frozenset(rule.hash for index, rule in enumerate(self.rules) if index not in self._active)

    def _advance(self, line: TimelineKey, changes: list[TimelineChange]) -> list[CurrentFinding] | None:
        """Feed a timeline what is new; None where it had to be replayed."""
        thread = self.timelines.get(line)
        if thread is None:
            thread = self.timelines[line] = LiveTimeline(AgentState(self.setup, *line))
        touched = sorted({change.key for change in changes})
        late = thread.last is not None and touched[0] <= thread.last
        if late or thread.agent.ended or any(change.removed for change in changes):
            thread.rewind(touched[0], AgentState(self.setup, *line))
            thread.feed(self.archive.since(line, thread.last))
            return None
        return thread.feed((key, *self.archive.row(key)) for key in touched)

    def _report(
        self,
        line: TimelineKey,
        fresh: list[CurrentFinding] | None,
        findings: list[Finding],
        retracted: list[str],
        *,
        final: bool = False,
    ) -> None:
        """Compare what stands with what was told; ``fresh`` is what is new where nothing else can have changed."""
        thread = self.timelines[line]
        standing = thread.agent.findings.values() if fresh is None else fresh
        now = {each.finding.finding_id: each.finding for each in standing if each.rule in self._active}
        if fresh is None:
            gone = [name for name in thread.reported if name not in now]
            retracted += gone
            for name in gone:
                del thread.reported[name]
        for name, finding in now.items():
            before = thread.reported.get(name)
            if before is None or not _same(before, finding, final=final):
                thread.reported[name] = finding
                findings.append(finding)

    def _count(self, row: Row) -> set[str]:
        """Take note of what a row gives; returns the inputs that the row it replaces gave and it does not."""
        if row.branch is not None:
            return set()
        before = self.archive.get(row.conversation, row.id)
        if row.state == "scored":
            self._read += 1
            self._ranked += row.scale == "rank"
            self._has |= {name for name in self._wanted - self._has if gives(row, name)}
        if before is None or before.state != "scored":
            return set()
        self._read -= 1
        self._ranked -= before.scale == "rank"
        return {
            name for name in self._wanted if gives(before, name) and not (row.state == "scored" and gives(row, name))
        }

    def _recount(self, names: set[str]) -> None:
        rows = (row for line in self.archive.timelines for row, _ in self.archive.rows(line) if row.state == "scored")
        self._has = (self._has - names) | available_inputs(rows, names)

    def _active_rules(self) -> frozenset[int]:
        """The rules that have their inputs."""
        self._inputs_seen = self._has, self._read > 0
        return frozenset(index for index in range(len(self.rules)) if not self._lacking(index))

    def _lacking(self, index: int) -> str:
        return lacking(self.rules[index], self._has, self.given_by, any_read=self._read > 0, ranks=self._ranked > 0)

    def _outcome(self, index: int, rule: PatternRule) -> RuleOutcome:
        reason = self._lacking(index)
        if reason:
            return RuleOutcome(
                pattern=rule.id,
                rule_hash=rule.hash,
                status="not_applicable",
                reason=reason,
                variant_of=rule.file.variant_of,
            )
        sequences = [each for thread in self.timelines.values() for each in thread.agent.sequences(index)]
        given_up = [track.place.agent for track in sequences if index in track.gave_up]
        names = ", ".join(sorted(set(given_up))[:3])
        return RuleOutcome(
            pattern=rule.id,
            rule_hash=rule.hash,
            status="gave_up" if given_up else "ran",
            partitions=len(sequences),
            findings=sum(
                f.rule_hash == rule.hash for thread in self.timelines.values() for f in thread.reported.values()
            ),
            variant_of=rule.file.variant_of,
            reason=f"gave up in {len(given_up)} of {len(sequences)} partitions (agents: {names}) at {self.setup.steps} "
            "steps; what follows there is not known"
            if given_up
            else "",
        )


def _changes(findings: list[Finding], retracted: list[str]) -> Changes:
    again = {finding.finding_id for finding in findings}
    return Changes(_ordered(findings), tuple(sorted(set(retracted) - again)))


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: (order(finding), finding.conversations, finding.message_ids)))


def _same(before: Finding, after: Finding, *, final: bool) -> bool:
    """Whether a finding says what it said; the balance, which every row moves, counts only at the end."""
    return before == (after if final else msgspec.structs.replace(after, balance=before.balance))
