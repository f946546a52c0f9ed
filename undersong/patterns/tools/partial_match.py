"""Partial matches: how far a rule gets from a row, and what it waits for there, every way at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from undersong.models import Emerging, Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.row_pattern import (
    ACCEPT,
    ANY,
    AT_END,
    AT_START,
    ROW,
    Program,
    successors,
)
from undersong.patterns.reference.partitions import Partition, partitions, timelines
from undersong.patterns.reference.search import filtered, local_mask, prepared
from undersong.patterns.vectorized.rule_plan import plan
from undersong.rows.corpus_scales import absolute_rows

STARTS = 2_000  # attempts that are compared; beyond it an explanation would only be slow


class MatchAttempt(NamedTuple):
    """A try from row ``start``: per row it took, the variables it waited for there, in the order of their names."""

    start: int
    waiting: tuple[tuple[str, ...], ...]
    wanted: tuple[str, ...]

    @property
    def end(self) -> int:
        """One past the last row that it took."""
        return self.start + len(self.waiting)


def furthest(program: Program, names: Sequence[str], masks: Sequence[int], ends: Sequence[int]) -> MatchAttempt | None:
    """The attempt that took the most rows (of equals the first); None where no row can begin a match."""
    best: MatchAttempt | None = None
    for start in range(min(len(masks), STARTS)):
        attempt = _attempt(program, names, masks, start, ends[start])
        if attempt.waiting and (best is None or len(attempt.waiting) > len(best.waiting)):
            best = attempt
    return best


def _attempt(program: Program, names: Sequence[str], masks: Sequence[int], start: int, end: int) -> MatchAttempt:
    places = row_instructions(program, [0], start, len(masks))
    waiting = []
    row = start
    while row < end:
        taken = [place + 1 for place in places if _takes(program, place, masks[row])]
        if not taken:
            break
        waiting.append(_wanted(program, names, places))
        row += 1
        places = row_instructions(program, taken, row, len(masks))
    return MatchAttempt(start, tuple(waiting), _wanted(program, names, places))


def _takes(program: Program, place: int, mask: int) -> bool:
    operation, wanted, _ = program.instructions[place]
    return operation == ROW and (not wanted or bool(mask & wanted))


def row_instructions(program: Program, places: Iterable[int], row: int, rows: int) -> list[int]:
    """The places that take a row or accept, from these places without taking a row."""
    seen: set[int] = set()
    row_places: list[int] = []
    open_places = list(places)
    while open_places:
        place = open_places.pop()
        if place in seen:
            continue
        seen.add(place)
        if program.instructions[place][0] in (ROW, ACCEPT):
            row_places.append(place)
        else:
            open_places += _following(program, place, row, rows)
    return sorted(row_places)


def _following(program: Program, place: int, row: int, rows: int) -> tuple[int, ...]:
    operation = program.instructions[place][0]
    if (operation == AT_START and row > 0) or (operation == AT_END and row < rows):
        return ()
    return successors(program, place)


def _wanted(program: Program, names: Sequence[str], places: Iterable[int]) -> tuple[str, ...]:
    masks = {program.instructions[place][1] for place in places if program.instructions[place][0] == ROW}
    wanted = [name for i, name in enumerate(names) if any(mask >> i & 1 for mask in masks)]
    return (*wanted, ANY) if 0 in masks else tuple(wanted)


FEWEST = 3  # stages: of two, the first alone is no warning
LONGEST = 200  # rows before the last one in which a sequence may have begun


class _PartialBinding(NamedTuple):
    """One way into a pattern: the variables that it has bound, as bits, the rows it bound, and to which variables."""

    seen: int
    rows: tuple[int, ...]
    variables: tuple[int, ...] = ()


def _steps(rule: PatternRule) -> dict[int, int]:
    """What every match binds: each stage once, and of fewer than three stages as many rows as each takes at least."""
    if len(rule.required) >= FEWEST:
        return dict.fromkeys(rule.required, 1)
    least = {mask.bit_length() - 1: number for mask, number in plan(rule).requirements.needs if mask.bit_count() == 1}
    return {index: least.get(index, 1) for index in rule.required}


def emerging(rules: Iterable[PatternRule], rows: Iterable[Row]) -> tuple[Emerging, ...]:
    """The open sequences of these rows, at most one per rule and partition, in the order of the rules and agents.

    A sequence is open where every row up to the last one fits, and nothing bounds it yet. It counts only past the
    middle: with more than half of the stages that every match has. Of a rule with two stages the messages count that
    each takes at least; where these are fewer than three, or a single stage is all, there is no middle.
    """
    all_timelines = timelines(absolute_rows(rows))
    return tuple(
        open_sequence
        for rule in rules
        if len(rule.required) > 1 and sum(_steps(rule).values()) >= FEWEST
        for timeline in all_timelines
        for partition in partitions(filtered(rule, timeline), rule.file.partition_by)
        if partition.rows and (open_sequence := _open(rule, partition)) is not None
    )


def _open(rule: PatternRule, partition: Partition) -> Emerging | None:
    local = [local_mask(rule, entry.row) for entry in partition.rows]
    if not reduce(or_, local, 0) & sum(1 << index for index in rule.required):
        return None
    _, masks, ends = prepared(rule, partition, local, {})
    last = len(masks)
    ways = [
        way
        for start in range(max(0, last - LONGEST), last)
        if masks[start] and ends[start] == last
        for way in _ways(rule.program, masks, start)
        if _warns(rule, partition, way)
    ]
    if not ways:
        return None
    return _emerging_record(rule, partition, max(ways, key=lambda way: (_count(rule, way), way.rows[0], len(way.rows))))


def _ways(program: Program, masks: Sequence[int], start: int) -> Iterator[_PartialBinding]:
    """Every way that takes all rows from ``start`` on without having come to the end of the pattern."""
    ways = {place: _PartialBinding(0, ()) for place in row_instructions(program, [0], start, len(masks))}
    for row in range(start, len(masks)):
        taken: dict[int, _PartialBinding] = {}
        for place, way in ways.items():
            operation, wanted, variable = program.instructions[place]
            if operation != ROW or (wanted and not masks[row] & wanted):
                continue
            grown = way
            if variable >= 0:
                grown = _PartialBinding(way.seen | (1 << variable), (*way.rows, row), (*way.variables, variable))
            for following in row_instructions(program, [place + 1], row + 1, len(masks)):
                taken[following] = max(
                    taken.get(following, grown), grown, key=lambda candidate: candidate.seen.bit_count()
                )
        ways = taken
    if not any(program.instructions[place][0] == ACCEPT for place in ways):
        yield from ways.values()


def _warns(rule: PatternRule, partition: Partition, way: _PartialBinding) -> bool:
    directed = partition.target is None or any(partition.rows[row].row.target is not None for row in way.rows)
    whole = sum(_steps(rule).values())
    return directed and whole < 2 * _count(rule, way) < 2 * whole


def _count(rule: PatternRule, way: _PartialBinding) -> int:
    return sum(min(number, way.variables.count(index)) for index, number in _steps(rule).items())


def _emerging_record(rule: PatternRule, partition: Partition, way: _PartialBinding) -> Emerging:
    bound = [partition.rows[row] for row in way.rows]
    return Emerging(
        pattern=rule.pattern,
        title=rule.file.title,
        level=rule.file.level,
        agent=partition.timeline.agent,
        target=partition.target,
        seen=tuple(rule.names[i] for i in sorted(rule.required) if way.seen >> i & 1),
        missing=tuple(rule.names[i] for i in sorted(rule.required) if not way.seen >> i & 1),
        message_ids=tuple(entry.row.id for entry in bound),
        message_conversations=tuple(entry.row.conversation for entry in bound),
        start=bound[0].row.time,
        last=bound[-1].row.time,
    )
