"""Lots of rows in which matches may lie, walked together: from starts to the matches that stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from undersong.patterns.engine.aggregates import Bound, Measured, allowed, chosen, joined, measured
from undersong.patterns.engine.frames import Frame
from undersong.patterns.engine.jit import ENOUGH, installed
from undersong.patterns.engine.plan import Plan
from undersong.patterns.engine.scopes import FrameVectors, RuleVectors
from undersong.patterns.engine.sequence_windows import Added
from undersong.patterns.engine.skips import resumed, standing, strongest
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import ranges
from undersong.patterns.engine.targets import Masks
from undersong.patterns.engine.vectors import B
from undersong.patterns.engine.walk import Paths, Regions, nearest_ends, paths
from undersong.patterns.matcher import GaveUp, Matcher

CELLS = 1 << 25  # rows times instructions that are worked out together: 128 MB
CHEAP = 40  # cells that take about as long as a step of the reference
_FIRST_WAVE, _GROWTH = 16, 4  # starts per region that are tried together before it is known where the search goes on
_SPANS = 1 << 26  # rows that the starts of a wave may look at


class Lot(NamedTuple):
    """Some regions side by side: ``places`` are their rows in the frame, everything else counts from 0 in them.

    ``owners`` is the region of each start, ``limits`` one past the furthest that its match may take; ``directed`` marks
    the rows that name the target, of which the matches of a targeted region (``towards``) bind one.
    """

    places: I
    regions: Regions
    starts: I
    limits: I
    owners: I
    runs: I
    masks: Masks
    directed: B
    towards: B


class Matches(NamedTuple):
    """The matches that stand: the run of each, their paths with starts as rows of the frame, and their measures."""

    runs: I
    paths: Paths
    measures: Measured


def lots(plan: Plan, frame: Frame, masks: Masks, directed: B, starts: I, limits: I, steps: int) -> tuple[list[Lot], I]:
    """The lots, and the runs that are beyond what so many steps allow."""
    runs = np.searchsorted(frame.bounds, starts, side="right") - 1
    low, high = (frame.bounds[runs], frame.bounds[runs + 1]) if plan.anchored else (starts, limits)
    new = np.ones(len(starts), dtype=np.bool_)
    new[1:] = (runs[1:] != runs[:-1]) | (low[1:] >= np.maximum.accumulate(high)[:-1])
    if plan.anchored:
        new[1:] = runs[1:] != runs[:-1]
    opening = np.flatnonzero(new)
    first, last, of = low[opening], np.maximum.reduceat(high, opening), runs[opening]
    cells = (last - first) * len(plan.rule.program.instructions)
    fits = cells <= CHEAP * steps
    owner = np.cumsum(new) - 1
    groups = np.cumsum(np.where(fits, cells, 0)) // CELLS
    found = []
    for group in np.unique(groups[fits]).tolist():
        chosen_regions = np.flatnonzero(fits & (groups == group))
        begun, ended = np.searchsorted(owner, [chosen_regions[0], chosen_regions[-1] + 1])
        here = np.arange(begun, ended)
        here = here[fits[owner[here]]]
        number = np.searchsorted(chosen_regions, owner[here])
        found.append(_lot(frame, masks, directed, first[chosen_regions], last[chosen_regions], of[chosen_regions],
                          starts[here], limits[here], number))  # fmt: skip
    return found, np.unique(of[~fits])


def _lot(frame: Frame, masks: Masks, directed: B, first: I, last: I, runs: I, starts: I, limits: I, owners: I) -> Lot:
    places = ranges(first, last)
    bounds = np.concatenate([[0], np.cumsum(last - first)])
    shift = bounds[:-1] - first
    regions = Regions(bounds[:-1], bounds[1:], frame.bounds[runs] + shift, frame.bounds[runs + 1] + shift)
    moved = shift[owners]
    return Lot(
        places,
        regions,
        starts + moved,
        limits + moved,
        owners,
        runs,
        masks[places],
        directed[places],
        frame.targets[runs] >= 0,
    )


class Walker:
    """The preferred matches of a lot's starts; regions in which the search gave up are ``lost``."""

    def __init__(self, plan: Plan, lot: Lot, steps: int) -> None:
        self.plan, self.lot, self.steps = plan, lot, steps
        self.lost = np.zeros(len(lot.runs), dtype=np.bool_)
        self.fast = plan.code is not None and installed() and len(lot.places) * len(plan.code.operation) >= ENOUGH
        self._matchers: dict[int, Matcher] = {}
        if self.fast and plan.code is not None and not plan.outlook.fixed:
            self.ends, self.offsets = nearest_ends(plan.code, lot.masks, lot.regions)

    def paths(self, chosen_starts: I) -> Paths:
        """The match of each of some starts (their numbers, in order)."""
        lot, plan = self.lot, self.plan
        starts, limits, owners = lot.starts[chosen_starts], lot.limits[chosen_starts], lot.owners[chosen_starts]
        if plan.outlook.fixed:
            return _fixed(plan, starts)
        if self.fast and plan.code is not None:
            return paths(plan.code, self.ends, self.offsets, lot.regions, starts, limits, owners)
        found = [self._match(*each) for each in zip(starts.tolist(), limits.tolist(), owners.tolist(), strict=True)]
        sizes = np.array([len(each) for each in found], dtype=np.int64)
        bindings = np.array([index for each in found for index in each], dtype=np.int8)
        return Paths(starts, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), bindings)

    def _match(self, start: int, limit: int, owner: int) -> tuple[int, ...]:
        if self.lost[owner]:
            return ()
        matcher, first = self._matcher(owner), int(self.lot.regions.first[owner])
        matcher.limits[start - first] = limit - first  # type: ignore[index]
        try:
            found = matcher.match(start - first)
        except GaveUp:
            self.lost[owner] = True
            return ()
        return () if found is None else found.bindings

    def _matcher(self, owner: int) -> Matcher:
        if owner not in self._matchers:
            first, last = int(self.lot.regions.first[owner]), int(self.lot.regions.last[owner])
            masks = self.lot.masks[first:last].tolist()
            self._matchers[owner] = Matcher(self.plan.rule.program, masks, [0] * len(masks), steps=self.steps)
        return self._matchers[owner]


def _fixed(plan: Plan, starts: I) -> Paths:
    """The matches of a pattern of single rows: every start that is left is one."""
    row = np.array([second for _, _, second in plan.rule.program.instructions[:-1]], dtype=np.int8)
    offsets = np.arange(len(starts) + 1, dtype=np.int64) * len(row)
    return Paths(starts, offsets, np.tile(row, len(starts)))


def stand(plan: Plan, vectors: RuleVectors, frame: Frame, added: Added, lot: Lot, walker: Walker) -> Matches | None:
    """The matches of a lot that stand; None where there is none."""
    rows = FrameVectors(vectors, frame.rows[lot.places], lot.places, added)
    parts = [found for found in _waves(plan, lot, walker, rows) if len(found.runs)]
    if not parts:
        return None
    found = _joined(parts)
    if plan.rule.file.keep == "strongest":
        kept = strongest(found.paths, found.runs, found.measures["strength"], len(lot.places))
        found = _only(found, kept)
    order = np.argsort(found.paths.starts, kind="stable")
    found = _only(found, order)
    starts = lot.places[found.paths.starts]
    return Matches(lot.runs[found.runs], found.paths._replace(starts=starts), found.measures)


def _waves(plan: Plan, lot: Lot, walker: Walker, rows: FrameVectors) -> Iterator[Matches]:
    """Matches with their region, wave by wave: a wave tries some starts of each region, whatever came of others."""
    following = np.zeros(len(lot.runs), dtype=np.int64)
    left, size = np.arange(len(lot.starts)), _FIRST_WAVE
    independent = plan.rule.skip.to == "next"
    while len(left):
        owners = lot.owners[left]
        taken = np.arange(len(left)) - np.searchsorted(owners, owners) < (len(left) if independent else size)
        spans = np.cumsum(np.where(taken, lot.limits[left] - lot.starts[left], 0))
        taken &= (spans <= _SPANS) | (spans == spans[np.argmax(taken)])
        tried, left = left[taken], left[~taken]
        yield _wave(plan, lot, walker, rows, tried, following)
        left = left[lot.starts[left] >= following[lot.owners[left]]]
        size *= _GROWTH


def _wave(plan: Plan, lot: Lot, walker: Walker, rows: FrameVectors, tried: I, following: I) -> Matches:
    found, owners = walker.paths(tried), lot.owners[tried]
    accepted = found.sizes > 0
    accepted &= ~lot.towards[owners] | _directed(lot, found)
    found, owners = _some(found, accepted), owners[accepted]
    bound = Bound(plan.rule.names, found, rows, plan.rule.trees.measures)
    values = measured(bound, plan.rule.trees.measures, len(found.starts))
    kept = allowed(bound, plan.rule.trees.having, len(found.starts))
    if plan.rule.skip.to != "next":
        kept = standing(found.starts, owners, resumed(found, plan.rule.skip), kept, following)
    return _only(Matches(owners, found, values), kept)


def _directed(lot: Lot, found: Paths) -> B:
    """The matches that bind a row directed at the target."""
    rows = ranges(found.starts, found.starts + found.sizes)
    number = np.concatenate([[0], np.cumsum(lot.directed[rows] & (found.bindings >= 0))])
    return np.diff(number[found.offsets]) > 0


def _some(found: Paths, kept: I | B) -> Paths:
    starts, sizes = found.starts[kept], found.sizes[kept]
    bindings = found.bindings[ranges(found.offsets[:-1][kept], found.offsets[1:][kept])]
    return Paths(starts, np.concatenate([[0], np.cumsum(sizes)]), bindings)


def _only(found: Matches, kept: I | B) -> Matches:
    return Matches(found.runs[kept], _some(found.paths, kept), chosen(found.measures, kept))


def _joined(parts: list[Matches]) -> Matches:
    sizes = np.concatenate([part.paths.sizes for part in parts])
    paths_ = Paths(
        np.concatenate([part.paths.starts for part in parts]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([part.paths.bindings for part in parts]),
    )
    return Matches(np.concatenate([part.runs for part in parts]), paths_, joined([part.measures for part in parts]))
