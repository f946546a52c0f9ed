"""Sequences over agents: an agent's rows, and what those whom it addressed said next to others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from undersong.models import Row
from undersong.models.row import DownstreamRow
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import DOWNSTREAM
from undersong.patterns.reference.partitions import Entry, Timeline
from undersong.patterns.reference.search import local_mask

NEXT = 20  # rows that an addressed agent is followed for after each row that a stage binds: a bound, not a measurement


def reads_others(rule: PatternRule) -> bool:
    """Whether a rule binds rows of the agents that an earlier stage addressed."""
    return DOWNSTREAM in rule.needs


def sequences_for(rule: PatternRule, timelines: Sequence[Timeline]) -> Sequence[Timeline]:
    """The timelines that a rule runs over: as they are, or with the rows of the agents that were addressed.

    A row of an agent that fits a variable and is directed at another agent opens ``NEXT`` rows of that one, within the
    rule's ``within``; rows that it addressed back to the first are left out. Agents with no such row, and conversations
    without times, have no sequence: without times nobody knows who came first.
    """
    if not reads_others(rule):
        return timelines
    by_agent = {each.agent: each for each in timelines if each.timed}
    joined = (sequence_of(rule, each, by_agent) for each in by_agent.values())
    return tuple(each for each in joined if each is not None)


def addressed_by(rule: PatternRule, rows: Iterable[Row]) -> set[str]:
    """Who is addressed by rows that fit a variable of the rule."""
    return {row.target for row in rows if row.target is not None and row.state == "scored" and local_mask(rule, row)}


def sequence_of(rule: PatternRule, timeline: Timeline, by_agent: Mapping[str, Timeline]) -> Timeline | None:
    """The agent's rows with those that follow downstream, in order; None where nobody was addressed so."""
    openings = [
        entry for entry in timeline.entries if entry.row.target in by_agent and opens(rule, timeline.agent, entry)
    ]
    return sequence_after(rule, timeline, openings, by_agent)


def opens(rule: PatternRule, agent: str, entry: Entry) -> bool:
    """Whether those whom a row of this agent addresses are followed after it: it is theirs, and fits a variable."""
    target = entry.row.target
    return target is not None and target != agent and entry.read and local_mask(rule, entry.row) != 0


def sequence_after(
    rule: PatternRule, timeline: Timeline, openings: Iterable[Entry], by_agent: Mapping[str, Timeline]
) -> Timeline | None:
    """What ``sequence_of`` gives, where the rows of the agent that open others' are known."""
    added = {
        (entry.row.conversation, entry.row.id): _downstream(entry, other.agent)
        for opening in openings
        if opening.row.target is not None and (other := by_agent.get(opening.row.target)) is not None
        for entry in _following(rule, opening, other)
        if entry.row.target != timeline.agent
    }
    if not added:
        return None
    entries = sorted((*timeline.entries, *added.values()), key=_order)
    return timeline._replace(
        entries=tuple(msgspec.structs.replace(entry, place=place) for place, entry in enumerate(entries))
    )


def _following(rule: PatternRule, opening: Entry, other: Timeline) -> Iterator[Entry]:
    """What the other agent said next, as far as the bounds reach."""
    times = [entry.time or 0 for entry in other.entries]
    first = bisect_right(times, opening.time or 0)
    for entry in other.entries[first : first + NEXT]:
        if rule.within is None or (entry.time or 0) - (opening.time or 0) <= rule.within:
            yield entry


def _downstream(entry: Entry, author: str) -> Entry:
    fields = {name: getattr(entry.row, name) for name in Row.__struct_fields__}
    passed_to = fields.pop("target")
    return msgspec.structs.replace(entry, row=DownstreamRow(**fields, target=author, passed_to=passed_to))


def _order(entry: Entry) -> tuple[int, int, str, str]:
    return entry.time or 0, entry.row.position, entry.row.id, entry.row.conversation
