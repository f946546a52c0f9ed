"""One timeline live: its rows at hand, which rules new rows can change, and what the rules find so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Finding, Row
from undersong.patterns.findings import Balance, finding_of
from undersong.patterns.live.columns import GrowingColumns
from undersong.patterns.live.end_filter import EndConditions, MatchEndFilter, RowMasks
from undersong.patterns.live.indicators import GrowingIndicators
from undersong.patterns.live.row_log import RowKey, TimelineKey
from undersong.patterns.reference.partitions import Entry, Timeline
from undersong.patterns.reference.search import Match
from undersong.patterns.set_indicators import Place, SetIndicators, Sets, with_indicators, with_origin
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.vector_logic import Masks
from undersong.rows.binary import from_microseconds


class LiveFinding(NamedTuple):
    """A finding, and the last event time at which it is open; ``ended``: settled by ``end``, and the same since."""

    finding: Finding
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
        self.columns, self._marked = GrowingColumns(self._codes), GrowingColumns(self._codes)
        self._places: dict[Place, int] = {}
        self._filter = MatchEndFilter(self._conditions)
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

    def append(self, rows: Iterable[tuple[RowKey, Row, int | None]], source: RowSource, first: int) -> Sequence[Entry]:
        """Take the next rows in order, those of ``source`` from its ``first`` on; ``due`` is to be asked about them."""
        fresh: list[Entry] = []
        for key, row, time in rows:
            fresh.append(Entry(row, time, len(self.entries) + len(fresh)))
            self.last = key
        self.columns.append(fresh, source, first)
        for entry in fresh:
            self._places[entry.row.conversation, entry.row.id] = entry.place
            if entry.read:
                self.balance.add(entry.row)
        return fresh

    def due(self, masks: RowMasks) -> set[int]:
        """The numbers of the rules whose findings the rows just taken can change; ``masks`` are theirs.

        Of a rule that asks for what findings set this holds as long as these set the same.
        """
        return self._filter.append(self.columns, masks)

    def bits(self, number: int) -> Masks:
        """Of each row the bits of the variables of a rule that it fits on its own, without what findings set."""
        return self._filter.bits(number)

    def take(self, number: int, matches: Iterable[Match], toward: Collection[str] | None = None) -> None:
        """These are the matches of a rule now; of two with one id the later one stands, as in a batch run.

        Those of other sequences than the ones ``toward`` some targets stay as they are.
        """
        rule, means, before = self._rules[number], self.balance.means(), self.findings[number]
        findings: dict[str, LiveFinding] = {}
        if toward is not None:
            findings = {name: each for name, each in before.items() if each.finding.target not in toward}
            matches = (match for match in matches if match.partition.target in toward)
        for match in matches:
            finding = with_origin(finding_of(rule, match, means), rule, self.indicators)
            ended = _stays_ended(before.get(finding.finding_id), finding)
            findings[finding.finding_id] = LiveFinding(finding, match.open_through, ended)
        self.findings[number] = findings

    def end(self, *, settle: bool) -> None:
        """No row follows for now: every finding gets the balance of all rows; with ``settle`` nothing is open.

        What is settled so stays settled until rows change it.
        """
        means = self.balance.means()
        for own in self.findings:
            for name, (finding, through, _) in own.items():
                own[name] = LiveFinding(msgspec.structs.replace(finding, balance=means), through, settle)

    def current(self, active: Iterable[int]) -> dict[str, Finding]:
        """The findings of some rules by id, each open or settled as the last row says."""
        return {name: self._with_status(number, name) for number in active for name in self.findings[number]}

    def _with_status(self, number: int, name: str) -> Finding:
        finding, through, ended = self.findings[number][name]
        status = "open" if self.latest <= through and not ended else "settled"
        if finding.status != status:
            finding = msgspec.structs.replace(finding, status=status)
            self.findings[number][name] = LiveFinding(finding, through, ended)
        return finding


def _stays_ended(before: LiveFinding | None, finding: Finding) -> bool:
    """Whether a finding that ``end`` settled is the same now, but for what every row moves."""
    if before is None or not before.ended:
        return False
    same = msgspec.structs.replace(finding, status=before.finding.status, balance=before.finding.balance)
    return same == before.finding
