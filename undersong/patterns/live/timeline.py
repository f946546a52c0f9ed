"""One timeline live: its rows at hand, which rules new rows can change, and what the rules find so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.models import Finding, Row
from undersong.patterns.findings import Balance, finding_of
from undersong.patterns.live.candidates import CandidateMatch, search_from, selected, updated
from undersong.patterns.live.columns import GrowingColumns
from undersong.patterns.live.end_filter import EndConditions, MatchEndFilter, RowMasks
from undersong.patterns.live.row_log import RowKey, TimelineKey
from undersong.patterns.reference.partitions import Entry, Timeline
from undersong.patterns.reference.search import Match
from undersong.patterns.set_indicators import Place, SetIndicators, Sets, set_on, with_indicators, with_origin
from undersong.patterns.vectorized.exact_sum import F
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.vector_logic import Masks
from undersong.rows.binary import from_microseconds

_Set = tuple[Place, str, str]  # a place, an indicator, and the pattern of a finding that sets it there


class LiveFinding(NamedTuple):
    """A finding of a match, and the last event time at which it is open.

    ``ended``: settled by ``end``, and the same since.
    """

    finding: Finding
    match: Match
    open_through: int
    ended: bool = False


class LiveTimeline:
    """The rows of a timeline and its findings, by rule and id."""

    def __init__(self, key: TimelineKey, conditions: EndConditions, codes: dict[str, int]) -> None:
        self.key, self._conditions, self._codes = key, conditions, codes
        self._rules = rules = conditions.rules
        self.findings: list[dict[str, LiveFinding]] = [{} for _ in rules]
        self.reported: dict[str, Finding] = {}
        self._indicators = GrowingIndicators()
        self.clear()

    def clear(self) -> None:
        """Forget the rows; the findings stay until the rules are run again."""
        self.last: RowKey | None = None
        self.totals = self._conditions.sums.nothing
        self.columns = GrowingColumns(self._codes, self.totals.shape[1])
        self._marked = GrowingColumns(self._codes)
        self._places: dict[Place, int] = {}
        self._filter = MatchEndFilter(self._conditions)
        self._candidates: list[list[CandidateMatch]] = [[] for _ in self._rules]
        self._begins: dict[int, int] = {}
        self.balance = Balance()

    @property
    def latest(self) -> int:
        """The time of the last row; 0 without times."""
        return (self.entries[-1].time or 0) if self.entries else 0

    @property
    def indicators(self) -> SetIndicators:
        """What findings set on the rows, for the rules that ask for it."""
        return self._indicators.by_place

    @property
    def entries(self) -> list[Entry]:
        """The rows, in order."""
        return self.columns.entries

    def dated(self) -> Iterator[Row]:
        """The rows with the times at which they count, which the log keeps apart."""
        return (msgspec.structs.replace(entry.row, time=from_microseconds(entry.time)) for entry in self.entries)

    def seen(self, *, marked: bool) -> GrowingColumns:
        """The rows for a search; ``marked``: with the indicators that findings set."""
        return self._with_indicators() if marked and self.indicators else self.columns

    def timeline(self, *, marked: bool) -> Timeline:
        """The rows, as ``seen`` gives them, for the reference."""
        return Timeline(*self.key, self.seen(marked=marked).entries, self.latest)

    def set_indicators(self, numbers: Iterable[int], sets: Sets) -> set[str] | None:
        """Bring up to date what findings of some rules set; the indicators of which rows have others now.

        None: it may be any indicator, since of such a row nothing was known before a finding set something on it.
        """
        changed = self._indicators.take(self.current(numbers), sets)
        places = [self._places[place] for place in changed if place in self._places]
        self._marked.truncate(min(places, default=len(self._marked.entries)))
        if any(self.entries[place].row.indicators is None for place in places):
            return None
        return set[str]().union(*changed.values())

    def _with_indicators(self) -> GrowingColumns:
        """The rows with the indicators that findings set; made anew from the first on which these are others."""
        marked = self._marked
        fresh = self.entries[len(marked.entries) :]
        rows = with_indicators((entry.row for entry in fresh), self.indicators)
        pairs = zip(fresh, rows, strict=True)
        marked.append([entry if row is entry.row else msgspec.structs.replace(entry, row=row) for entry, row in pairs])
        return marked

    def append(
        self, rows: Iterable[tuple[RowKey, Row, int | None]], source: RowSource, first: int, sums: F, totals: F
    ) -> Sequence[Entry]:
        """Take the next rows in order, those of ``source`` from its ``first`` on; ``due`` is to be asked about them.

        ``sums`` are those over the agent's rows at each of them, ``totals`` those of all with them.
        """
        fresh: list[Entry] = []
        for key, row, time in rows:
            fresh.append(Entry(row, time, len(self.entries) + len(fresh)))
            self.last = key
        self.columns.append(fresh, source, first)
        self.columns.sums.append(sums)
        self.totals = totals
        for entry in fresh:
            self._places[entry.row.conversation, entry.row.id] = entry.place
            if entry.read:
                self.balance.add(entry.row)
        return fresh

    def due(self, masks: RowMasks) -> Set[int]:
        """The numbers of the rules whose findings the rows just taken can change; ``masks`` are theirs.

        Of a rule that asks for what findings set this holds as long as these set the same.
        """
        begins = self._filter.append(self.columns, masks)
        self._begins = {
            number: search_from(self._rules[number], self._candidates[number], first)
            for number, first in begins.items()
        }
        return self._begins.keys()

    def begin(self, number: int) -> int:
        """The place before which no match of a rule begins that the rows just taken can change."""
        return self._begins.get(number, 0)

    def bits(self, number: int) -> Masks:
        """Of each row the bits of the variables of a rule that it fits on its own, without what findings set.

        None of the rows before a match can be another one.
        """
        bits, first = self._filter.bits(number), self.begin(number)
        return np.concatenate([np.zeros(first, dtype=bits.dtype), bits[first:]]) if first else bits

    def narrowed(self, number: int) -> bool:
        """Whether these bits say what sums over the agent's rows before each row rule out, too."""
        return self._filter.narrowed(number)

    def take(
        self, number: int, matches: Iterable[Match], toward: Collection[str] | None = None, first: int = 0
    ) -> None:
        """These are the matches of a rule now, from ``first`` on; it keeps the strongest itself.

        Those of other sequences than the ones ``toward`` some targets stay as they are. Of two with one id the later
        one stands, as in a batch run.
        """
        rule, means, before = self._rules[number], self.balance.means(), self.findings[number]
        candidates = self._candidates[number] = updated(self._candidates[number], matches, first, toward)
        earlier = {id(each.match): each for each in before.values()}
        findings: dict[str, LiveFinding] = {}
        for match, through in selected(rule, candidates):
            same = earlier.get(id(match))
            if same is not None:
                findings[same.finding.finding_id] = same._replace(open_through=through)
                continue
            match_now = match._replace(open_through=through)
            finding = with_origin(finding_of(rule, match_now, means), rule, self.indicators)
            ended = _stays_ended(before.get(finding.finding_id), finding)
            findings[finding.finding_id] = LiveFinding(finding, match, through, ended)
        self.findings[number] = findings

    def end(self, *, settle: bool) -> None:
        """No row follows for now: every finding gets the balance of all rows; with ``settle`` nothing is open.

        What is settled so stays settled until rows change it.
        """
        means = self.balance.means()
        for own in self.findings:
            for name, live in own.items():
                own[name] = live._replace(finding=msgspec.structs.replace(live.finding, balance=means), ended=settle)

    def current(self, active: Iterable[int]) -> dict[str, Finding]:
        """The findings of some rules by id, each open or settled as the last row says."""
        return {name: self._with_status(number, name) for number in active for name in self.findings[number]}

    def _with_status(self, number: int, name: str) -> Finding:
        live = self.findings[number][name]
        status = "open" if self.latest <= live.open_through and not live.ended else "settled"
        if live.finding.status != status:
            live = live._replace(finding=msgspec.structs.replace(live.finding, status=status))
            self.findings[number][name] = live
        return live.finding


def _stays_ended(before: LiveFinding | None, finding: Finding) -> bool:
    """Whether a finding that ``end`` settled is the same now, but for what every row moves."""
    if before is None or not before.ended:
        return False
    same = msgspec.structs.replace(finding, status=before.finding.status, balance=before.finding.balance)
    return same == before.finding


class GrowingIndicators:
    """``by_place`` is what ``set_by`` gives of the findings taken; most rows change few of it."""

    def __init__(self) -> None:
        self.by_place: dict[Place, Mapping[str, frozenset[str]]] = {}
        self._same: dict[frozenset[tuple[str, frozenset[str]]], Mapping[str, frozenset[str]]] = {}  # most places' are
        self._findings: dict[str, Finding] = {}
        self._counts = Counter[_Set]()

    def take(self, current: Mapping[str, Finding], sets: Sets) -> dict[Place, set[str]]:
        """These are the findings now, by id; the indicators that are set otherwise than before, by place."""
        counts = Counter[_Set]()
        for name in self._findings.keys() | current.keys():
            before, now = self._findings.get(name), current.get(name)
            if before is not now:
                first = _in_common(before, now)
                counts.update(_set_by(now, sets, first))
                counts.subtract(_set_by(before, sets, first))
        self._findings = dict(current)
        changed: dict[Place, set[str]] = {}
        for setting, count in counts.items():
            if count and self._add(setting, count):
                changed.setdefault(setting[0], set()).add(setting[1])
        return changed

    def _add(self, setting: _Set, count: int) -> bool:
        """Whether an indicator is set at a place by another pattern than before, or by one less."""
        before = self._counts[setting]
        self._counts[setting] = before + count
        if bool(before) == bool(before + count):
            return False
        place, indicator, pattern = setting
        here = dict(self.by_place.pop(place, {}))
        patterns = here.pop(indicator, frozenset()) ^ {pattern}
        if patterns:
            here[indicator] = patterns
        if not self._counts[setting]:
            del self._counts[setting]
        if here:
            self.by_place[place] = self._same.setdefault(frozenset(here.items()), here)
        return True


def _in_common(before: Finding | None, now: Finding | None) -> int:
    """How many of their first messages two findings with one id have in common, at the same stages."""
    if before is None or now is None:
        return 0
    ours, theirs = ([*zip(each.stages, each.message_conversations, strict=True)] for each in (before, now))
    size = min(len(ours), len(theirs))
    if ours[:size] == theirs[:size]:
        return size
    return next(place for place in range(size) if ours[place] != theirs[place])


def _set_by(finding: Finding | None, sets: Sets, first: int) -> Iterable[_Set]:
    if finding is None:
        return ()
    return [(place, indicator, finding.pattern) for place, indicator in set_on(finding, sets, first)]
