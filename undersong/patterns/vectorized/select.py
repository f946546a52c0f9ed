"""Match selection: ``having``, ``after_match`` and ``keep`` over all matches at once, and their measures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from undersong.patterns.language.row_pattern import Skip
from undersong.patterns.reference.search import ALWAYS_OPEN, NEVER_OPEN, open_times
from undersong.patterns.vectorized.aggregates import MatchVectors, Measured, chosen, joined, measured
from undersong.patterns.vectorized.environments import FrameVectors, RuleVectors
from undersong.patterns.vectorized.exact_sum import F, I, counts
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.layout import MatchPaths, compact, picked, ranges, some
from undersong.patterns.vectorized.layout import joined as joined_paths
from undersong.patterns.vectorized.sequence_windows import SequenceColumns
from undersong.patterns.vectorized.strategies import FixedLengthStrategy, MatchStrategy, SearchInput
from undersong.patterns.vectorized.vector_logic import B

_FIRST_WAVE, _GROWTH = 16, 4  # starts per run that are tried together before it is known where the search goes on
_FEW = 4  # how many times more rows than its own a match may be measured on
_SPANS = 1 << 26  # rows that the starts of a wave may look at


class SelectedMatches(NamedTuple):
    """The selected matches: the run of each, their paths with starts as rows of the frame, and their measures.

    ``open_through`` are the last event times at which they are open, as in ``search.Match``.
    """

    runs: I
    paths: MatchPaths
    measures: Measured
    open_through: I


class _Wave(NamedTuple):
    """Matches of some starts, as in ``SelectedMatches``."""

    runs: I
    paths: MatchPaths
    measures: Measured


class Selection:
    """The context of match selection: the search input, the rule's expressions and its strategy."""

    def __init__(
        self,
        search_input: SearchInput,
        vectors: RuleVectors,
        sequence_columns: SequenceColumns,
        strategy: MatchStrategy,
    ) -> None:
        self.search_input, self.vectors = search_input, vectors
        self.sequence_columns, self.strategy = sequence_columns, strategy

    @cached_property
    def rows(self) -> FrameVectors:
        """Expressions over all rows of the frame, worked out once."""
        return FrameVectors(self.vectors, self.search_input.frame.rows, None, self.sequence_columns)


def select_matches(selection: Selection) -> SelectedMatches | None:
    """The matches that stand; None where there is none."""
    if isinstance(selection.strategy, FixedLengthStrategy):
        selection.strategy.screen(selection.rows)
    parts = [found for found in _waves(selection) if len(found.runs)]
    if not parts:
        return None
    measures = joined([part.measures for part in parts])
    runs, paths = np.concatenate([part.runs for part in parts]), joined_paths([part.paths for part in parts])
    matches = SelectedMatches(runs, paths, measures, _open_through(selection.search_input, runs, paths))
    if selection.search_input.plan.rule.file.keep == "strongest":
        size = len(selection.search_input.masks)
        matches = _only(matches, strongest(matches.paths, matches.runs, matches.measures["strength"], size))
    return matches


def _open_through(search_input: SearchInput, runs: I, paths: MatchPaths) -> I:
    """The last event time at which each match is open (see ``OpenTimes``)."""
    times, frame = open_times(search_input.plan.rule), search_input.frame
    through = np.full(len(runs), ALWAYS_OPEN)
    if times.within is not None:
        anchors = _last_overlapping(paths) if times.by_overlap else paths.starts
        timed = search_input.table.timed[frame.timelines[runs]]
        through[timed] = search_input.limits.times[anchors[timed]] + times.within
    if times.full is not None:
        through[paths.sizes == times.full] = NEVER_OPEN
    return through


def _last_overlapping(paths: MatchPaths) -> I:
    """For each match the last row of all that overlap it, in turn."""
    order = np.argsort(paths.starts, kind="stable")
    starts, until = paths.starts[order], np.maximum.accumulate((paths.starts + paths.sizes)[order])
    first = np.flatnonzero(np.append(True, starts[1:] >= until[:-1]))
    last = np.append(first[1:], len(order)) - 1
    anchors = np.empty(len(order), dtype=np.int64)
    anchors[order] = np.repeat(until[last] - 1, last - first + 1)
    return anchors


def _waves(selection: Selection) -> Iterator[_Wave]:
    """Matches wave by wave: a wave tries some starts of each run, whatever came of others."""
    strategy = selection.strategy
    following = np.zeros(len(selection.search_input.frame.targets), dtype=np.int64)
    left, size = np.arange(len(strategy.starts)), _FIRST_WAVE
    plan = selection.search_input.plan
    independent = plan.rule.skip.to == "next" or plan.requirements.fixed  # then it costs little to try them all
    while len(left):
        spans = strategy.spans(left)
        if independent and int(spans.sum()) <= _SPANS:
            yield _wave(selection, left, following)
            return
        taken = np.ones(len(left), dtype=np.bool_) if independent else _first(strategy.runs[left], size)
        spent = np.cumsum(np.where(taken, spans, 0))
        taken &= (spent <= _SPANS) | (spent == spent[np.argmax(taken)])
        tried, left = left[taken], left[~taken]
        yield _wave(selection, tried, following)
        left = left[strategy.starts[left] >= following[strategy.runs[left]]]
        size *= _GROWTH


def _first(runs: I, size: int) -> B:
    """The first so many of each run."""
    return np.asarray(np.arange(len(runs)) - np.searchsorted(runs, runs) < size)


def _wave(selection: Selection, tried: I, following: I) -> _Wave:
    rule, strategy = selection.search_input.plan.rule, selection.strategy
    paths, runs = strategy.paths(tried), strategy.runs[tried]
    accepted = paths.sizes > 0
    if selection.search_input.plan.targeted:
        accepted &= (selection.search_input.frame.targets[runs] < 0) | _directed(selection.search_input, paths)
    if not accepted.all():
        paths, runs = some(paths, accepted), runs[accepted]
    paths, runs, bound = _allowed(selection, paths, runs)
    if rule.skip.to != "next":
        selected = not_skipped(paths.starts, runs, resumed(paths, rule.skip), following)
        paths, runs, bound = _subset(selection, paths, runs, bound, selected)
    size = len(paths.starts)
    return _Wave(runs, compact(paths), measured(bound, rule.trees.measures, size))


def _allowed(selection: Selection, paths: MatchPaths, runs: I) -> tuple[MatchPaths, I, MatchVectors]:
    """The matches for which ``having`` holds; what one condition refuses is not asked for the next."""
    bound = _bound(selection, paths)
    for tree in selection.search_input.plan.having:
        passing = np.broadcast_to(bound.holds(tree), len(runs))
        if not passing.all():
            paths, runs, bound = _subset(selection, paths, runs, bound, passing)
    return paths, runs, bound


def _subset(
    selection: Selection, paths: MatchPaths, runs: I, bound: MatchVectors, selected: B
) -> tuple[MatchPaths, I, MatchVectors]:
    """Some of the matches; on rows of their own where they are few beside those that are at hand."""
    paths, runs, bound = some(paths, selected), runs[selected], bound.only(selected)
    if int(paths.sizes.sum()) * _FEW < len(bound.own.rows.rows):
        bound = bound.on(*_rows(selection, paths))
    return paths, runs, bound


def _bound(selection: Selection, paths: MatchPaths) -> MatchVectors:
    rule = selection.search_input.plan.rule
    return MatchVectors(rule.names, *_rows(selection, paths), rule.trees.measures)


def _rows(selection: Selection, paths: MatchPaths) -> tuple[MatchPaths, FrameVectors]:
    """The rows to evaluate expressions on, and the matches with starts as places in them: the fewer rows are taken."""
    frame, sizes = selection.search_input.frame, paths.sizes
    ends = np.cumsum(sizes)
    if len(ends) and ends[-1] >= len(frame.rows):
        return paths, selection.rows
    places = ranges(paths.starts, paths.starts + sizes)
    return paths._replace(starts=ends - sizes), FrameVectors(
        selection.vectors, picked(frame.rows, places), places, selection.sequence_columns
    )


def _directed(search_input: SearchInput, paths: MatchPaths) -> B:
    """The matches that bind a row directed at the target."""
    size = int(paths.sizes.sum())
    if machine(size):
        return _bind_directed.at(size)(*paths, search_input.frame.rows, search_input.table.targets)  # type: ignore[no-any-return]
    paths = compact(paths)
    rows = search_input.frame.rows[ranges(paths.starts, paths.starts + paths.sizes)]
    number = counts((search_input.table.targets[rows] >= 0) & (paths.bindings >= 0))
    return np.asarray(number[paths.last] > number[paths.first])


@kernel
def _bind_directed(starts, first, last, bindings, rows, targets):  # type: ignore[no-untyped-def]
    directed = np.zeros(len(starts), dtype=np.bool_)
    for k in range(len(starts)):
        for i in range(last[k] - first[k]):
            if bindings[first[k] + i] >= 0 and targets[rows[starts[k] + i]] >= 0:
                directed[k] = True
                break
    return directed


def _only(matches: SelectedMatches, selected: I | B) -> SelectedMatches:
    runs, paths = matches.runs[selected], some(matches.paths, selected)
    return SelectedMatches(runs, paths, chosen(matches.measures, selected), matches.open_through[selected])


def resumed(paths: MatchPaths, skip: Skip) -> I:
    """For each match the row at which the search goes on after it."""
    following = paths.starts + 1
    if skip.to == "past":
        return np.asarray(np.maximum(following, paths.starts + paths.sizes))
    if skip.to == "next":
        return following
    paths = compact(paths)
    flat = np.flatnonzero(paths.bindings == skip.variable)
    owner = np.searchsorted(paths.last, flat, side="right")
    if skip.to == "first":
        flat, owner = flat[::-1], owner[::-1]
    resume_at = following.copy()
    resume_at[owner] = paths.starts[owner] + flat - paths.first[owner]  # of one match's rows the last one written stays
    return np.maximum(following, resume_at)


def not_skipped(starts: I, owners: I, resume: I, following: I) -> B:
    """The matches that the search comes to, run by run; ``following`` holds each run's next row."""
    stands = np.zeros(len(starts), dtype=np.bool_)
    _stand.at(len(starts))(starts, owners, resume, following, stands)
    return stands


@kernel
def _stand(starts, owners, resume, following, stands):  # type: ignore[no-untyped-def]
    for k in range(len(starts)):
        if starts[k] >= following[owners[k]]:
            stands[k] = True
            following[owners[k]] = resume[k]


def strongest(paths: MatchPaths, owners: I, strength: F, rows: int) -> B:
    """The matches that ``keep: strongest`` leaves: as ``search.strongest``, region by region."""
    ranking = np.where(np.isnan(strength), -1.0, strength)
    order = np.lexsort((paths.starts, -ranking, owners))
    selected = np.zeros(len(order), dtype=np.bool_)
    _keep.at(int(paths.sizes.sum()))(
        order, paths.starts, paths.starts + paths.sizes, np.zeros(rows, np.bool_), selected
    )
    return selected


@kernel
def _keep(order, starts, ends, taken, selected):  # type: ignore[no-untyped-def]
    for k in order:
        free = True
        for row in range(starts[k], ends[k]):
            if taken[row]:
                free = False
                break
        if free:
            selected[k] = True
            for row in range(starts[k], ends[k]):
                taken[row] = True
