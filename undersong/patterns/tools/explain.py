"""Explanation of a rule, row by row: symbols, what it waited for, and why it matched or where it stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from undersong.core.sanitize import one_line
from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Field, parse, walk
from undersong.patterns.language.fields import DOWNSTREAM, Context, row_leaf
from undersong.patterns.language.inputs import available_inputs, lacking
from undersong.patterns.language.logic import Evaluate, Value
from undersong.patterns.language.rulefile import written
from undersong.patterns.language.values import MatchRows
from undersong.patterns.reference.downstream import reads_others, sequences_for
from undersong.patterns.reference.matcher import STEPS, BacktrackingMatcher, GaveUp, MatchPath, find_all
from undersong.patterns.reference.partitions import Partition, partitions, timelines
from undersong.patterns.reference.search import (
    Match,
    bind,
    directed,
    filtered,
    local_mask,
    match_of,
    prepared,
    strongest,
)
from undersong.patterns.tools.partial_match import MatchAttempt, furthest
from undersong.rows.binary import from_microseconds
from undersong.rows.corpus_scales import absolute_rows

_REFUSED = 3  # refused ways through the pattern that are shown


class RuleTrial(NamedTuple):
    """A partition under a rule: symbols and limits per row, the matches, the ways refused and why."""

    rule: PatternRule
    partition: Partition
    contexts: list[Context]
    masks: list[int]
    ends: list[int]
    matches: list[tuple[MatchPath, Match]]
    refused: list[tuple[MatchPath, str]]
    gave_up: bool


def explain(
    rule: PatternRule, rows: Iterable[Row], *, agent: str | None = None, target: str | None = None
) -> Iterator[str]:
    """Lines of text for every sequence of the rows (of one agent, towards one target where given).

    Ranks are no levels: they are shown as unknown, as `detect` takes them. Control characters of
    names and ids are made visible. Pure: no clock, no colour.
    """
    given_rows = list(rows)
    shown, rows = False, absolute_rows(given_rows)
    if why := _lacking(rule, rows, ranks=any(row.scale == "rank" for row in given_rows)):
        yield f"{rule.id}: not applicable: {why}"
    for timeline in sequences_for(rule, timelines(rows)):
        if agent is not None and timeline.agent != agent:
            continue
        for partition in partitions(filtered(rule, timeline), rule.file.partition_by):
            if partition.rows and target in (None, partition.target):
                shown = True
                yield from _lines(_try(rule, partition))
    if not shown:
        yield "no read row of this agent and target"


def _lacking(rule: PatternRule, rows: Iterable[Row], *, ranks: bool) -> str:
    """Why the rule does not apply to these rows, as `detect` reports it; "" where it can or nothing was read."""
    read = [row for row in rows if row.state == "scored"]
    has = available_inputs(read, rule.needs) | ({DOWNSTREAM} if reads_others(rule) else set())
    return lacking(rule, has, None, any_read=True, ranks=ranks) if read else ""


def _try(rule: PatternRule, partition: Partition) -> RuleTrial:
    masks = [local_mask(rule, entry.row) for entry in partition.rows]
    tried = RuleTrial(rule, partition, *prepared(rule, partition, masks, {}), [], [], False)
    try:
        find_all(BacktrackingMatcher(rule.program, tried.masks, tried.ends), rule.skip, lambda path: _keep(tried, path))
    except GaveUp:
        tried = tried._replace(gave_up=True)
    if rule.file.keep == "strongest":
        numbers = strongest(tried.matches)
        weaker = [
            (path, "a stronger match overlaps it")
            for number, (path, _) in enumerate(tried.matches)
            if number not in numbers
        ]
        matches = [tried.matches[number] for number in numbers]
        return tried._replace(matches=matches, refused=tried.refused + weaker)
    return tried


def _keep(tried: RuleTrial, path: MatchPath) -> bool:
    """Note a way through the pattern as a match or as refused."""
    match = match_of(tried.rule, tried.partition, path, tried.contexts)
    if match is None:
        tried.refused.append((path, _refusal(tried, bind(tried.rule, path, tried.contexts))))
    else:
        tried.matches.append((path, match))
    return match is not None


def _refusal(tried: RuleTrial, bound: MatchRows) -> str:
    """Why a way through the pattern is no match."""
    if not directed(tried.partition, bound):
        return "no message in it is directed at the target"
    for text, holds in zip(tried.rule.file.having, tried.rule.having, strict=True):
        value = holds(bound)
        if value is not True:
            return f"having {written(text)} is {_shown(value)} ({_numbers(bound.measures.items())})"
    return ""


def _lines(tried: RuleTrial) -> Iterator[str]:
    partition = tried.partition
    to = "" if partition.target is None else f" to {one_line(partition.target)}"
    where = "" if not partition.conversation else f" in {one_line(partition.conversation)}"
    unread = sum(len(holes) for holes in partition.holes)
    whose = f"{one_line(partition.timeline.agent)}{to}{where}"
    yield f"{tried.rule.id}: {whose}, {len(partition.rows)} rows, {unread} unread"
    attempt = None
    if not tried.matches:
        attempt = furthest(tried.rule.program, tried.rule.names, tried.masks, tried.ends)
    yield from _row_lines(tried, attempt)
    for path, match in tried.matches:
        ends = f"{_row_id(tried, path.start)} to {_row_id(tried, path.end - 1)}"
        yield f"  matched: {ends} ({_numbers(match.measures.items())})"
    if not tried.matches and not tried.refused:
        yield f"  stopped: {_stop(tried, attempt)}"
    for path, why in tried.refused[:_REFUSED]:
        yield f"  refused: {_row_id(tried, path.start)} to {_row_id(tried, path.end - 1)}: {why}"
    if len(tried.refused) > _REFUSED:
        yield f"  refused: {len(tried.refused) - _REFUSED} more"
    if tried.gave_up:
        yield f"  gave up after {STEPS} steps; what follows is not known"


def _row_lines(tried: RuleTrial, attempt: MatchAttempt | None) -> Iterator[str]:
    names = tried.rule.names
    bound = {path.start + i: index for path, _ in tried.matches for i, index in enumerate(path.bindings)}
    fields = _mentioned(tried.rule)
    for i, (entry, context) in enumerate(zip(tried.partition.rows, tried.contexts, strict=True)):
        for hole in tried.partition.holes[i]:
            yield f"    {one_line(hole)}  unread"
        symbols = " ".join(name for k, name in enumerate(names) if tried.masks[i] >> k & 1) or "-"
        parts = [
            one_line(entry.row.id),
            _time(entry.time),
            "public" if entry.row.target is None else "",
            f"[{symbols}]",
        ]
        parts.append(_numbers((name, read(context)) for name, read in fields))
        yield "    " + "  ".join(part for part in (*parts, _mark(i, bound, names, attempt)) if part)


def _mark(i: int, bound: dict[int, int], names: tuple[str, ...], attempt: MatchAttempt | None) -> str:
    if i in bound:
        return "= passed over" if bound[i] < 0 else f"= {names[bound[i]]}"
    if attempt is not None and attempt.start <= i < attempt.end:
        return f"> waiting for {' or '.join(attempt.waiting[i - attempt.start])}"
    return ""


def _stop(tried: RuleTrial, attempt: MatchAttempt | None) -> str:
    if attempt is None:
        return "no row can begin a match"
    wanted = " or ".join(attempt.wanted) or "the end of the rows"
    came = f"the try that came furthest took {_row_id(tried, attempt.start)} to {_row_id(tried, attempt.end - 1)}"
    if attempt.end >= len(tried.partition.rows):
        return f"{came} and waited for {wanted} when the rows ended"
    following = _row_id(tried, attempt.end)
    if attempt.end >= tried.ends[attempt.start]:
        return f"{came} and waited for {wanted}; {following} is beyond {_bound(tried, attempt)}"
    return f"{came} and waited for {wanted}; {following} is none of them"


def _bound(tried: RuleTrial, attempt: MatchAttempt) -> str:
    """Which limit the row after a try is beyond."""
    rule, holes = tried.rule, len(tried.partition.holes[attempt.end])
    met = []
    if rule.until is not None and rule.until(tried.contexts[attempt.end]) is True:
        met.append("until")
    if rule.file.max_unread is not None and holes > rule.file.max_unread:
        met.append(f"max_unread ({holes} unread before it)")
    return " and ".join(met) or f"within {rule.file.within}"


def _mentioned(rule: PatternRule) -> list[tuple[str, Evaluate]]:
    """The numbers that the conditions mention, by name, with how to read each."""
    names: dict[str, None] = {}
    for text in rule.file.define.values():
        fields = [part.name for part in walk(parse(written(text))) if isinstance(part, Field)]
        names |= dict.fromkeys(reversed(fields))
    return [(name, row_leaf(Field(name))) for name in names]


def _row_id(tried: RuleTrial, index: int) -> str:
    return one_line(tried.partition.rows[index].row.id)


def _numbers(values: Iterable[tuple[str, Value]]) -> str:
    return " ".join(f"{name} {_shown(value)}" for name, value in values)


def _shown(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return "unknown" if value is None else str(value).lower()
    return one_line(value) if isinstance(value, str) else f"{value:.3g}"


def _time(microseconds: int | None) -> str:
    time = from_microseconds(microseconds)
    return "" if time is None else time.isoformat(timespec="minutes").removesuffix("+00:00") + "Z"
