"""From starts to the matches that stand, with their measures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.aggregates import Bound, Measured, chosen, joined, measured
from undersong.patterns.engine.paths import Paths, compact, some
from undersong.patterns.engine.paths import joined as joined_paths
from undersong.patterns.engine.scopes import FrameVectors, RuleVectors
from undersong.patterns.engine.sequence_windows import Added
from undersong.patterns.engine.skips import resumed, standing, strongest
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import picked, ranges
from undersong.patterns.engine.vectors import B
from undersong.patterns.engine.walkers import Fixed, Ground, Walker
from undersong.patterns.expressions import Node

_FIRST_WAVE, _GROWTH = 16, 4  # starts per run that are tried together before it is known where the search goes on
_FEW = 4  # how many times more rows than its own a match may be measured on
_SPANS = 1 << 26  # rows that the starts of a wave may look at


class Matches(NamedTuple):
    """The matches that stand: the run of each, their paths with starts as rows of the frame, and their measures."""

    runs: I
    paths: Paths
    measures: Measured


class Stage:
    """What matches are measured on."""

    def __init__(self, ground: Ground, vectors: RuleVectors, added: Added, walker: Walker) -> None:
        self.ground, self.vectors, self.added, self.walker = ground, vectors, added, walker

    @cached_property
    def rows(self) -> FrameVectors:
        """Expressions over all rows of the frame, worked out once."""
        return FrameVectors(self.vectors, self.ground.frame.rows, None, self.added)


def stand(stage: Stage) -> Matches | None:
    """The matches that stand; None where there is none."""
    if isinstance(stage.walker, Fixed):
        stage.walker.screen(stage.rows)
    parts = [found for found in _waves(stage) if len(found.runs)]
    if not parts:
        return None
    measures = joined([part.measures for part in parts])
    found = Matches(
        np.concatenate([part.runs for part in parts]), joined_paths([part.paths for part in parts]), measures
    )
    if stage.ground.plan.rule.file.keep == "strongest":
        size = len(stage.ground.masks)
        found = _only(found, strongest(found.paths, found.runs, found.measures["strength"], size))
    return found


def _waves(stage: Stage) -> Iterator[Matches]:
    """Matches wave by wave: a wave tries some starts of each run, whatever came of others."""
    walker = stage.walker
    following = np.zeros(len(stage.ground.frame.targets), dtype=np.int64)
    left, size = np.arange(len(walker.starts)), _FIRST_WAVE
    plan = stage.ground.plan
    independent = plan.rule.skip.to == "next" or plan.outlook.fixed  # then it costs little to try them all
    while len(left):
        spans = walker.spans(left)
        if independent and int(spans.sum()) <= _SPANS:
            yield _wave(stage, left, following)
            return
        taken = np.ones(len(left), dtype=np.bool_) if independent else _first(walker.runs[left], size)
        spent = np.cumsum(np.where(taken, spans, 0))
        taken &= (spent <= _SPANS) | (spent == spent[np.argmax(taken)])
        tried, left = left[taken], left[~taken]
        yield _wave(stage, tried, following)
        left = left[walker.starts[left] >= following[walker.runs[left]]]
        size *= _GROWTH


def _first(runs: I, size: int) -> B:
    """The first so many of each run."""
    return np.asarray(np.arange(len(runs)) - np.searchsorted(runs, runs) < size)


def _wave(stage: Stage, tried: I, following: I) -> Matches:
    rule, walker = stage.ground.plan.rule, stage.walker
    found, runs = walker.paths(tried), walker.runs[tried]
    accepted = found.sizes > 0
    if stage.ground.plan.targeted:
        accepted &= (stage.ground.frame.targets[runs] < 0) | _directed(stage.ground, found)
    if not accepted.all():
        found, runs = some(found, accepted), runs[accepted]
    found, runs, bound = _allowed(stage, found, runs)
    if rule.skip.to != "next":
        kept = standing(found.starts, runs, resumed(found, rule.skip), following)
        found, runs, bound = _kept(stage, found, runs, bound, kept)
    return Matches(runs, compact(found), measured(bound, rule.trees.measures, len(found.starts)))


def _allowed(stage: Stage, found: Paths, runs: I) -> tuple[Paths, I, Bound]:
    """The matches for which ``having`` holds; what one condition refuses is not asked for the next."""
    bound = _bound(stage, found)
    for tree in stage.ground.plan.having:
        for question in (_not_refused, Bound.holds):
            kept = np.broadcast_to(question(bound, tree), len(runs))
            if not kept.all():
                found, runs, bound = _kept(stage, found, runs, bound, kept)
    return found, runs, bound


def _kept(stage: Stage, found: Paths, runs: I, bound: Bound, kept: B) -> tuple[Paths, I, Bound]:
    """Some of the matches; on rows of their own where they are few beside those that are at hand."""
    found, runs, bound = some(found, kept), runs[kept], bound.only(kept)
    if int(found.sizes.sum()) * _FEW < len(bound.own.rows.rows):
        bound = bound.on(*_rows(stage, found))
    return found, runs, bound


def _not_refused(bound: Bound, tree: Node) -> B:
    refused = bound.surely_fails(tree)
    return np.ones((), dtype=np.bool_) if refused is None else ~refused


def _bound(stage: Stage, found: Paths) -> Bound:
    rule = stage.ground.plan.rule
    return Bound(rule.names, *_rows(stage, found), rule.trees.measures)


def _rows(stage: Stage, found: Paths) -> tuple[Paths, FrameVectors]:
    """The rows to evaluate expressions on, and the matches with starts as places in them: the fewer rows are taken."""
    frame, sizes = stage.ground.frame, found.sizes
    ends = np.cumsum(sizes)
    if len(ends) and ends[-1] >= len(frame.rows):
        return found, stage.rows
    places = ranges(found.starts, found.starts + sizes)
    return found._replace(starts=ends - sizes), FrameVectors(
        stage.vectors, picked(frame.rows, places), places, stage.added
    )


def _directed(ground: Ground, found: Paths) -> B:
    """The matches that bind a row directed at the target."""
    size = int(found.sizes.sum())
    if machine(size):
        return _bind_directed.at(size)(*found, ground.frame.rows, ground.table.targets)  # type: ignore[no-any-return]
    found = compact(found)
    rows = ground.frame.rows[ranges(found.starts, found.starts + found.sizes)]
    number = np.concatenate([[0], np.cumsum((ground.table.targets[rows] >= 0) & (found.bindings >= 0))])
    return np.asarray(number[found.last] > number[found.first])


@kernel
def _bind_directed(starts, first, last, bindings, rows, targets):  # type: ignore[no-untyped-def]
    directed = np.zeros(len(starts), dtype=np.bool_)
    for k in range(len(starts)):
        for i in range(last[k] - first[k]):
            if bindings[first[k] + i] >= 0 and targets[rows[starts[k] + i]] >= 0:
                directed[k] = True
                break
    return directed


def _only(found: Matches, kept: I | B) -> Matches:
    return Matches(found.runs[kept], some(found.paths, kept), chosen(found.measures, kept))
