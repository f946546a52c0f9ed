"""Rules over rows that come one at a time or together: the findings of a batch run over the rows so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import TypeAlias

import msgspec
import numpy as np

from undersong.models import Finding, Row, RuleOutcome
from undersong.patterns.detect import detect, indicators_named
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Window
from undersong.patterns.language.fields import DOWNSTREAM
from undersong.patterns.language.inputs import NEVER_MISSING, available_inputs, gives, lacking
from undersong.patterns.live.candidates import every_match
from undersong.patterns.live.changes import LATE, REFUSED, Changes, changes_between, joined, ordered
from undersong.patterns.live.columns import changed_sequences, joined_from, joined_table
from undersong.patterns.live.end_filter import EndConditions
from undersong.patterns.live.row_log import RowKey, RowLog, TimelineChange, TimelineKey
from undersong.patterns.live.senders import Senders
from undersong.patterns.live.timeline import LiveTimeline
from undersong.patterns.reference.downstream import addressed_by, reads_others, sequence_after
from undersong.patterns.reference.matcher import STEPS
from undersong.patterns.reference.search import Match
from undersong.patterns.set_indicators import asked_of_findings, not_set, sets_of, shapes_for
from undersong.patterns.significance.confidence import with_confidence
from undersong.patterns.vectorized.earlier import EarlierResults
from undersong.patterns.vectorized.layout import RowTable
from undersong.patterns.vectorized.path_cache import PathCache
from undersong.patterns.vectorized.row_source import RowSource, TimelineSearch
from undersong.patterns.vectorized.vector_logic import Masks, Vectors
from undersong.rows.corpus_scales import absolute_rows

Toward: TypeAlias = Mapping[TimelineKey, Collection[str] | None]  # the targets of the sequences that changed; None: all
FEW = 100  # rows up to which the reference is quicker than arrays


class LiveDetector:
    """Rules over rows that come one at a time; after every row its findings are those of ``detect`` on the rows so far.

    New rows re-run the rules that they can change over the history of their agent, rules over several agents over those
    of the agents who addressed it. One of these that also asks for what findings set is not applicable. ``given_by``
    names what the judge fills, as in ``detect``: a rule has no findings until each of its inputs has been seen in some
    read row. ``steps`` bounds the work of a rule on one sequence. Up to ``few`` rows are left to the reference.
    """

    def __init__(
        self,
        rules: Sequence[PatternRule],
        *,
        given_by: Collection[str] | None = None,
        steps: int = STEPS,
        few: int = FEW,
    ) -> None:
        self.rules = tuple(rules)
        self.given_by, self.steps, self.few = given_by, steps, few
        self._rules = (*self.rules, *shapes_for(self.rules))  # the latter run unreported
        self._searched = tuple(map(every_match, self._rules))
        self._asking = frozenset(number for number, rule in enumerate(self._rules) if asked_of_findings(rule))
        self._by_target = frozenset(
            number for number, rule in enumerate(self._rules) if "target" in rule.file.partition_by
        )
        self._setting = frozenset(number for number, rule in enumerate(self._rules) if rule.file.sets)
        self._sets = sets_of(self._rules)
        over_several = {number for number, rule in enumerate(self._rules) if reads_others(rule)}
        self._several, self._beyond = frozenset(over_several - self._asking), frozenset(over_several & self._asking)
        self._wanted = frozenset[str]().union(*(rule.needs for rule in self._rules)) - NEVER_MISSING - {DOWNSTREAM}
        self._conditions = EndConditions(self._rules)
        self._numbers = {rule.hash: number for number, rule in enumerate(self._rules)}
        self.clear()

    def clear(self) -> None:
        """Forget all rows and reported findings, as at the beginning."""
        self.archive = RowLog()
        self.timelines: dict[TimelineKey, LiveTimeline] = {}
        self._codes: dict[str, int] = {}
        self._source = RowSource((), self._codes)  # of the rows that came last; timelines read them from it
        self._paths = PathCache()
        self._senders = {number: Senders(self._rules[number]) for number in self._several}
        self._has = NEVER_MISSING | {DOWNSTREAM}
        self._named: frozenset[str] = frozenset()
        self._read = self._ranked = 0
        self._active = self._active_rules()

    def observe(self, row: Row) -> Changes:
        """Take one row."""
        return self.extend((row,))

    def extend(self, rows: Iterable[Row]) -> Changes:
        """Take several rows at once, in any order: a rule is run once over all the agents that they change."""
        changes: dict[TimelineKey, list[TimelineChange]] = {}
        lost: set[str] = set()
        for row in absolute_rows(rows):
            lost |= self._count(row)
            for change in self.archive.put(row):
                changes.setdefault(change.line, []).append(change)
        if lost:
            self._recount(lost)
        late = {line for line, changed in changes.items() if self._is_late(line, changed)}
        taken = {line: self._taken(line, changed, late=line in late) for line, changed in changes.items()}
        due = self._advance(taken)
        self.archive.clear_fresh()
        due |= dict.fromkeys(late, frozenset(range(len(self._rules))))
        self._add_senders(due, {line: [change.key[0] for change in changed] for line, changed in changes.items()})
        toward = {line: _targets(row for _, row, _ in own) for line, own in taken.items() if line not in late}
        self._run({line: numbers - self._asking for line, numbers in due.items()}, toward)
        before, self._active = self._active, self._active_rules()
        if self._active != before:  # other rules speak now
            due = {line: due.get(line, frozenset()) | self._setting for line in self.timelines}
        self._run({line: self._due_by_findings(line, numbers) for line, numbers in due.items()}, {})
        late |= due.keys() - changes.keys() if late else set()  # rules over several agents run on those, too
        return joined([self._report(self.timelines[line], late=line in late) for line in due])

    def _due_by_findings(self, line: TimelineKey, due: Set[int]) -> Set[int]:
        """The rules to run on a timeline of those that ask for what findings set: where these set other things."""
        asked = due & self._asking
        if due.isdisjoint(self._setting):
            return asked
        changed = self.timelines[line].set_indicators(self._active & self._setting, self._sets)
        if changed is None:
            return self._asking
        return asked | {
            number for number in self._asking if not changed.isdisjoint(asked_of_findings(self._rules[number]))
        }

    def finish(self, *, settle: bool = True) -> Changes:
        """No row follows for now: every finding has the balance of all its agent's rows, and is settled.

        Without ``settle`` what a later row could change stays open, as in a batch run.
        """
        for timeline in self.timelines.values():
            timeline.end(settle=settle)
        return joined([self._report(timeline, late=False, final=True) for timeline in self.timelines.values()])

    def findings(self) -> tuple[Finding, ...]:
        """The current findings, by agent, target, time and rule."""
        return ordered(each for timeline in self.timelines.values() for each in timeline.reported.values())

    def outcomes(self) -> tuple[RuleOutcome, ...]:
        """The outcome of every rule on the rows so far; runs all of them once."""
        rows = (row for timeline in self.timelines.values() for row in timeline.dated())
        here = [rule for number, rule in enumerate(self.rules) if number not in self._beyond]
        outcomes = {each.rule_hash: each for each in detect(rows, here, gives=self.given_by, steps=self.steps).outcomes}
        outcomes |= {
            self.rules[number].hash: self._not_here(number) for number in self._beyond if number < len(self.rules)
        }
        return tuple(outcomes[rule.hash] for rule in self.rules)

    def _not_here(self, index: int) -> RuleOutcome:
        rule, reason = self.rules[index], self._lacking(index)
        variant = rule.file.variant_of
        return RuleOutcome(
            pattern=rule.id, rule_hash=rule.hash, status="not_applicable", reason=reason, variant_of=variant
        )

    def current(self, line: TimelineKey) -> dict[str, Finding]:
        """The current findings of a timeline, by id."""
        timeline = self.timelines.get(line)
        return timeline.reported if timeline is not None else {}

    def weighed(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Some of the current findings with their confidence, as the rows of their agents so far give it."""
        wanted = tuple(findings)
        lines = self._lines({finding.agent for finding in wanted})
        current = {finding.finding_id: finding for line in lines for finding in line.reported.values()}
        current |= {finding.finding_id: finding for finding in wanted}
        rows = [entry.row for line in lines for entry in line.entries]
        weighed = {each.finding_id: each for each in with_confidence(tuple(current.values()), rows, self.rules)}
        return tuple(weighed[finding.finding_id] for finding in wanted)

    def rows(self, agents: Collection[str]) -> list[Row]:
        """The rows of some agents so far."""
        return [entry.row for line in self._lines(agents) for entry in line.entries]

    def _lines(self, agents: Collection[str]) -> list[LiveTimeline]:
        return [timeline for line, timeline in self.timelines.items() if line[0] in agents]

    def inactive(self) -> frozenset[str]:
        """The hashes of the rules without findings so far because an input of theirs was not seen."""
        return frozenset(rule.hash for index, rule in enumerate(self.rules) if index not in self._active)

    def _is_late(self, line: TimelineKey, changes: Sequence[TimelineChange]) -> bool:
        """Whether rows came between those of a timeline, or left it."""
        timeline = self.timelines.get(line)
        before = timeline is not None and timeline.last is not None and min(changes).key <= timeline.last
        return before or any(change.removed for change in changes)

    def _taken(
        self, line: TimelineKey, changes: Sequence[TimelineChange], *, late: bool
    ) -> Sequence[tuple[RowKey, Row, int | None]]:
        """The rows that a timeline is to take: what is new, after late rows all of it."""
        timeline = self.timelines.get(line)
        if timeline is None:
            timeline = self.timelines[line] = LiveTimeline(line, self._conditions, self._codes)
        if late:
            timeline.clear()
            for senders in self._senders.values():
                senders.forget(line)
            return [*self.archive.since(line, None)]
        return [(key, *self.archive.row(key)) for key in sorted({change.key for change in changes})]

    def _advance(
        self, taken: Mapping[TimelineKey, Sequence[tuple[RowKey, Row, int | None]]]
    ) -> dict[TimelineKey, Set[int]]:
        """Let each timeline take rows; the rules to run on it. What rows say alone is asked of all at once."""
        if not taken:
            return {}
        rows = [row for own in taken.values() for _, row, _ in own]
        self._source = RowSource(rows, self._codes)
        vectors, table = Vectors(self._source), _table_of(self._source, taken.values())
        before = [self.timelines[line].totals for line in taken]
        sums = self._conditions.sums.take(rows, vectors, table.bounds, before)
        table.windows = lambda window: sums.values[self._conditions.sums.numbers[window]]
        masks = self._conditions.masks(rows, table, vectors, sums)
        due: dict[TimelineKey, Set[int]] = {}
        first = 0
        for number, (line, own) in enumerate(taken.items()):
            last, timeline = first + len(own), self.timelines[line]
            here = sums.values[:, first:last], sums.totals[:, :, number]
            entries = timeline.append(own, self._source, first, *here)
            for senders in self._senders.values():
                senders.append(line, entries)
            due[line] = timeline.due(masks.part(first, last)) - self._several
            first = last
        return due

    def _add_senders(self, due: dict[TimelineKey, Set[int]], moved: Mapping[TimelineKey, Sequence[int]]) -> None:
        """Make rules over several agents due on the timelines whose sequences changed; ``moved``: when rows came."""
        for number, senders in self._senders.items():
            for line in senders.due(moved):
                due[line] = due.get(line, frozenset()) | {number}

    def linked(self, agents: Iterable[str]) -> set[str]:
        """Whom these agents address, or by whom they are, so that a rule over several agents binds rows of both."""
        linked = set[str]()
        for agent in agents:
            for senders in self._senders.values():
                linked |= senders.addressed((agent, None)) | {line[0] for line in senders.senders(agent)}
        return linked

    def addressed_by(self, rows: Sequence[Row]) -> set[str]:
        """Whom rows that are not there yet address so."""
        return set[str]().union(*(addressed_by(self._rules[number], rows) for number in self._several))

    def _run(self, due: Mapping[TimelineKey, Set[int]], toward: Toward) -> None:
        """Run each rule over the timelines on which it is due; rules that are due on the same ones share arrays.

        ``toward``: where only sequences towards some targets have changed, rules by target search no others.
        """
        lines: dict[int, list[TimelineKey]] = {}
        for line, numbers in due.items():
            for number in numbers - self._several - self._beyond:
                lines.setdefault(number, []).append(line)
            for number in numbers & self._several:
                self._run_over_several(line, number)
        together: dict[tuple[TimelineKey, ...], list[int]] = {}
        for number, own in sorted(lines.items()):
            together.setdefault(tuple(own), []).append(number)
        for own_lines, rules in together.items():
            self._run_together({line: self.timelines[line] for line in own_lines}, rules, toward)

    def _run_together(
        self, timelines: Mapping[TimelineKey, LiveTimeline], numbers: Sequence[int], toward: Toward
    ) -> None:
        search = self._search(timelines, numbers, toward)
        for number in numbers:
            matches: dict[TimelineKey, list[Match]] = {line: [] for line in timelines}
            for match in search.search(self._searched[number]).matches:
                key = match.partition.timeline
                matches[key.agent, key.conversation].append(match)
            for line, timeline in timelines.items():
                targets = toward.get(line) if number in self._by_target else None
                timeline.take(number, matches[line], targets, timeline.begin(number))

    def _run_over_several(self, line: TimelineKey, number: int) -> None:
        """Run a rule over an agent's rows and those of the agents whom it addressed."""
        rule, own, senders = self._searched[number], self.timelines[line], self._senders[number]
        lines = {agent: (agent, None) for agent in senders.addressed(line)}
        others = {
            agent: self.timelines[of].timeline(marked=False) for agent, of in lines.items() if of in self.timelines
        }
        here = others and line[1] is None
        sequence = sequence_after(rule, own.timeline(marked=False), senders.openings(line), others) if here else None
        matches = () if sequence is None else TimelineSearch([sequence], steps=self.steps).search(rule).matches
        own.take(number, matches)

    def _search(
        self, timelines: Mapping[TimelineKey, LiveTimeline], numbers: Sequence[int], toward: Toward
    ) -> TimelineSearch:
        marked = not self._asking.isdisjoint(numbers)
        columns = [timeline.seen(marked=marked) for timeline in timelines.values()]
        whole = [timeline.timeline(marked=marked) for timeline in timelines.values()]
        if sum(len(seen.entries) for seen in columns) <= self.few:
            return TimelineSearch(whole, steps=self.steps, few=self.few)

        lines = [*timelines.values()]
        narrowed = not marked and all(each.narrowed(number) for number in numbers for each in lines)
        cut = narrowed and all(map(self._conditions.cut, numbers))
        firsts = [min(map(each.begin, numbers)) if cut else 0 for each in lines]

        def bits(rule: PatternRule) -> Masks:
            number = self._numbers[rule.hash]
            return joined_from([each.bits(number) for each in lines], firsts)

        targets = [toward.get(line) for line in timelines]
        changed = partial(changed_sequences, columns, targets, firsts)
        earlier = EarlierResults(self._paths, None if marked else bits, changed, narrowed, firsts)
        sums = (lambda _window: None) if marked else partial(self._summed, lines)
        table = joined_table(columns, [each.timed for each in whole], firsts, sums)
        return TimelineSearch(whole, steps=self.steps, table=table, earlier=earlier)

    def _summed(self, timelines: Sequence[LiveTimeline], window: Window) -> int | None:
        """The number of a window among the sums of some timelines; None where these do not hold it."""
        number = self._conditions.sums.numbers.get(window)
        return None if number is None or any(np.isnan(each.totals[0, number]) for each in timelines) else number

    def _report(self, timeline: LiveTimeline, *, late: bool, final: bool = False) -> Changes:
        """Compare what holds with what was reported."""
        now = timeline.current(number for number in self._active if number < len(self.rules))
        same = partial(_is_same, final=final)
        changes = changes_between(timeline.reported, now, same, partial(self._why, late=late))
        for name in changes.removed:
            timeline.reported.pop(name, None)
        timeline.reported |= {finding.finding_id: finding for finding in changes.findings}
        return changes

    def _why(self, gone: Finding, *, late: bool) -> str:
        """Why a finding is retracted."""
        index = next(number for number, rule in enumerate(self.rules) if rule.hash == gone.rule_hash)
        return self._lacking(index) or (LATE if late else REFUSED)

    def _count(self, row: Row) -> set[str]:
        """Take note of what a row gives; returns the inputs that the row it replaces gave and it does not."""
        if row.branch is not None:
            return set()
        before = self.archive.get(row.conversation, row.id)
        if row.state == "scored":
            self._read += 1
            self._ranked += row.scale == "rank"
            self._has |= {name for name in self._wanted - self._has if gives(row, name)}
        self._named |= indicators_named((row,))
        if before is None or before.state != "scored":
            return set()
        self._read -= 1
        self._ranked -= before.scale == "rank"
        now = row if row.state == "scored" else None
        return {name for name in self._wanted if gives(before, name) and not (now and gives(now, name))} | (
            indicators_named((before,)) - indicators_named((row,))
        )

    def _recount(self, names: set[str]) -> None:
        rows = list(self._all_rows())
        self._named = indicators_named(rows)
        self._has = (self._has - names) | available_inputs((row for row in rows if row.state == "scored"), names)

    def _all_rows(self) -> Iterable[Row]:
        return (row for line in self.archive.timelines for row, _ in self.archive.rows(line))

    def _active_rules(self) -> frozenset[int]:
        """The rules that have their inputs."""
        first = {index for index in range(len(self._rules)) if index not in self._asking and not self._lacking(index)}
        self._set_here = self._named.union(*(self._rules[index].file.sets for index in first))
        return frozenset(first | {index for index in self._asking if not self._lacking(index)})

    def _lacking(self, index: int) -> str:
        rule = self._rules[index]
        has = self._has - {DOWNSTREAM} if index in self._beyond else self._has
        reason = lacking(rule, has, self.given_by, any_read=self._read > 0, ranks=self._ranked > 0)
        return reason or (not_set(rule, self._set_here) if index in self._asking else "")


def _table_of(source: RowSource, taken: Iterable[Sequence[tuple[RowKey, Row, int | None]]]) -> RowTable:
    """The rows that timelines take together."""
    taken = [*taken]
    times = [time for own in taken for _, _, time in own]
    return RowTable(
        source,
        None,
        np.concatenate([[0], np.cumsum([len(own) for own in taken])]).astype(np.int64),
        np.array([time or 0 for time in times], dtype=np.int64),
        np.array([bool(own) and own[0][2] is not None for own in taken], dtype=np.bool_),
        np.array([row.state == "scored" for own in taken for _, row, _ in own], dtype=np.bool_),
    )


def _targets(rows: Iterable[Row]) -> frozenset[str] | None:
    """The targets of rows, whose sequences alone they change; None where a row is of all sequences."""
    targets = {row.target for row in rows}
    return None if None in targets else frozenset(target for target in targets if target is not None)


def _is_same(before: Finding, after: Finding, *, final: bool) -> bool:
    """Whether a finding says what it said; the balance, which every row moves, counts only at the end."""
    return before == (after if final else msgspec.structs.replace(after, balance=before.balance))
