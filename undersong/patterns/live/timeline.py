"""One timeline live: its rows at hand, which rules new rows can change, and what the rules find so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Finding, Row
from undersong.patterns.findings import Balance, finding_of
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.live.columns import GrowingColumns
from undersong.patterns.live.end_filter import MatchEndFilter
from undersong.patterns.live.row_log import RowKey, TimelineKey
from undersong.patterns.reference.partitions import Entry, Timeline
from undersong.patterns.reference.search import Match
from undersong.patterns.set_indicators import Place, SetIndicators, with_indicators, with_origin
from undersong.rows.binary import from_microseconds


class LiveFinding(NamedTuple):
    """A finding, and the last event time at which it is open; ``ended``: settled by ``end``, and the same since."""

    finding: Finding
    open_through: int
    ended: bool = False


class LiveTimeline:
    """The rows of a timeline and its findings, by rule and id.

    ``indicators`` are what findings set on the rows, for the rules that ask for it.
    """

    def __init__(self, key: TimelineKey, rules: Sequence[PatternRule], codes: dict[str, int]) -> None:
        self.key, self._rules, self._codes = key, rules, codes
        self.findings: list[dict[str, LiveFinding]] = [{} for _ in rules]
        self.reported: dict[str, Finding] = {}
        self.indicators: SetIndicators = {}
        self.clear()

    def clear(self) -> None:
        """Forget the rows; the findings stay until the rules are run again."""
        self.last: RowKey | None = None
        self.columns, self._marked = GrowingColumns(self._codes), GrowingColumns(self._codes)
        self._marked_by: SetIndicators = {}
        self._places: dict[Place, int] = {}
        self._filters = [MatchEndFilter(rule) for rule in self._rules]
        self.balance = Balance()

    @property
    def latest(self) -> int:
        """The time of the last row; 0 without times."""
        return (self.entries[-1].time or 0) if self.entries else 0

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

    def _with_indicators(self) -> GrowingColumns:
        """The rows with the indicators that findings set; made anew from the first on which these are others."""
        before, now, marked = self._marked_by, self.indicators, self._marked
        changed = (self._places[place] for place in {*before, *now} if before.get(place) != now.get(place))
        marked.truncate(min(changed, default=len(marked.entries)))
        fresh = self.entries[len(marked.entries) :]
        rows = with_indicators((entry.row for entry in fresh), now)
        pairs = zip(fresh, rows, strict=True)
        marked.append([entry if row is entry.row else msgspec.structs.replace(entry, row=row) for entry, row in pairs])
        self._marked_by = now
        return marked

    def append(self, rows: Iterable[tuple[RowKey, Row, int | None]]) -> Sequence[Row]:
        """Take the next rows in order, and give them; ``due`` is to be asked about them."""
        fresh: list[Entry] = []
        for key, row, time in rows:
            fresh.append(Entry(row, time, len(self.entries) + len(fresh)))
            self.last = key
        self.columns.append(fresh)
        for entry in fresh:
            self._places[entry.row.conversation, entry.row.id] = entry.place
            if entry.read:
                self.balance.add(entry.row)
        return [entry.row for entry in fresh]

    def due(self, masks: Iterable[Sequence[int]]) -> set[int]:
        """The numbers of the rules whose findings the rows just taken can change; ``masks`` are theirs, rule by rule.

        Of a rule that asks for what findings set this holds as long as these set the same.
        """
        own = enumerate(zip(self._filters, masks, strict=True))
        return {number for number, (ends, of_rows) in own if ends.append(self.entries, of_rows)}

    def take(self, number: int, matches: Iterable[Match]) -> None:
        """These are the matches of a rule now; of two with one id the later one stands, as in a batch run."""
        rule, means = self._rules[number], self.balance.means()
        findings: dict[str, LiveFinding] = {}
        for match in matches:
            finding = with_origin(finding_of(rule, match, means), rule, self.indicators)
            ended = _stays_ended(self.findings[number].get(finding.finding_id), finding)
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
