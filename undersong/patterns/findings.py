"""A match → the finding that says so; the same for batch and live."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from undersong.core.text import counted
from undersong.models import DIMENSIONS, Finding, Row
from undersong.models.row import DownstreamRow
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import dimension
from undersong.patterns.language.row_pattern import ANY
from undersong.patterns.language.windows import EMPTY, RunningMoments
from undersong.patterns.reference.search import Match
from undersong.rows.binary import from_microseconds

ID_LENGTH = 32  # hex digits of SHA-256 that a finding id keeps: 128 bits


def finding_of(rule: PatternRule, match: Match, balance: Mapping[str, float]) -> Finding:
    """The finding of a match; ``balance`` is the agent's mean per dimension."""
    named = match.named
    rows = [entry.row for _, entry in named]
    measures = {name: float(value) for name, value in match.measures.items() if isinstance(value, int | float)}
    strength = min(1.0, max(0.0, measures.get("strength", 0.0)))
    conversations = tuple([row.conversation for row in rows])
    return Finding(
        finding_id=finding_id(rule, match),
        pattern=rule.pattern,
        title=rule.file.title,
        level=rule.file.level,
        rule_hash=rule.hash,
        agent=match.partition.timeline.agent,
        target=match.partition.target or _addressed(rows),
        message_ids=tuple([row.id for row in rows]),
        message_conversations=conversations,
        gap_ids=tuple([entry.row.id for name, entry in match.stages if name == ANY]),
        unread_ids=match.unread_ids,
        stages=tuple([(name, entry.row.id) for name, entry in named]),
        start=from_microseconds(named[0][1].time),
        end=from_microseconds(named[-1][1].time),
        strength=strength,
        measures=measures | {"strength": strength},
        conversations=tuple(dict.fromkeys(conversations)),
        balance=dict(balance),
        judges=tuple(sorted({row.judge for row in rows if row.judge})),
        notes=_notes(rule, match, rows),
        status="open" if match.partition.timeline.latest <= match.open_through else "settled",
    )


def _addressed(rows: Iterable[Row]) -> str | None:
    """The one to whom all directed messages of a match are; None where there are none, or several are addressed."""
    targets = {row.target for row in rows} - {None}
    return targets.pop() if len(targets) == 1 else None


def finding_id(rule: PatternRule, match: Match) -> str:
    """A hash of rule, partition and first message: a finding has the same id in every run, also when it grows."""
    first = next(entry.row for name, entry in match.stages if name != ANY)
    key = [rule.hash, match.partition.key(rule.file.partition_by), (first.conversation, first.id)]
    return hashlib.sha256(msgspec.json.encode(key, order="sorted")).hexdigest()[:ID_LENGTH]


def order(finding: Finding) -> tuple[str, str, str, str]:
    """Within equal keys findings stay as they were found: by rule, conversation and place."""
    start = finding.start.isoformat() if finding.start else ""
    return finding.agent, finding.target or "", start, finding.pattern


class Balance:
    """The mean of each dimension over read rows, exact: the order in which they come does not matter."""

    __slots__ = ("tallies",)

    def __init__(self, read: Iterable[Row] = ()) -> None:
        self.tallies: dict[str, RunningMoments] = {}
        for row in read:
            self.add(row)

    def add(self, row: Row) -> None:
        """Take a read row; a dimension of which a trait is unknown is left out."""
        for name in DIMENSIONS:
            value = dimension(row, name)
            if value is not None:
                self.tallies[name] = self.tallies.get(name, EMPTY).plus(value)

    def means(self) -> dict[str, float]:
        """The mean per dimension of which anything is known."""
        means = {name: self.tallies[name].result("mean") for name in DIMENSIONS if name in self.tallies}
        return {name: mean for name, mean in means.items() if mean is not None}


def _notes(rule: PatternRule, match: Match, rows: Sequence[Row]) -> tuple[str, ...]:
    notes = []
    if rule.within is not None and not match.partition.timeline.timed:
        notes.append(f"the messages have no times: whether they lie within {rule.file.within} could not be checked")
    unknown = sum(row.observed == "unknown" for row in rows) if "tier" in rule.needs else 0
    if unknown:
        notes.append(
            f"whether the agent knew that it was watched is unknown for {unknown} of {len(rows)} messages; "
            "the tier stands in for it, and a contrast of tiers may be nothing but routing"
        )
    passed = [row for row in rows if isinstance(row, DownstreamRow)]
    if passed:
        others = {each.passed_to for each in passed} - {None}
        toward = counted(len(others), "other agent") if others else "everybody"
        notes.append(f"{counted(len(passed), 'message')} by the agent that was addressed, who passed it on to {toward}")
    if not isinstance(match.measures.get("strength"), int | float):
        notes.append("the strength could not be computed: a score that it needs is missing")
    return tuple(notes)
