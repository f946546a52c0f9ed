"""Sequences towards targets: public rows belong to each target's, and are put into it only where something can match.

A match of a target's sequence binds a row that is directed at it. So only the surroundings of such rows are looked at:
as far as ``within`` and the longest match reach. Whatever starts elsewhere binds public rows alone and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undersong.patterns.engine.frames import Bounds, Frame, Order, Place, bisected, framed
from undersong.patterns.engine.jit import kernel, machine
from undersong.patterns.engine.sums import I, counts
from undersong.patterns.engine.table import Table, ranges
from undersong.patterns.engine.vectors import UNKNOWN, B, Codes
from undersong.patterns.search import ROWS

Masks = np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]


class Targets(NamedTuple):
    """The rows of a table apart: ``public`` and ``chain`` are places in the order, the chain target by target.

    ``public_before[i]`` counts the public rows before place i. Of each target within a group (a link of the chain): its
    group and code, and ``bounds`` in the chain. ``keys`` are the chain's links and places as one rising number.
    """

    order: Order
    public: I
    public_before: I
    chain: I
    bounds: I
    groups: I
    codes: Codes
    keys: I

    @property
    def span(self) -> int:
        """What a link is worth in a key."""
        return len(self.order.rows) + 1


class Around(NamedTuple):
    """Runs around directed rows: their link, and from which to which place of the order."""

    link: I
    first: I
    last: I


class Wanted(NamedTuple):
    """What every match needs: variables, and numbers of rows that fit a mask (of which each stands for some bits)."""

    variables: Sequence[int]
    rows: tuple[tuple[int, int], ...]


def apart(table: Table, order: Order) -> Targets:
    """The public and the directed rows of each group."""
    targets = table.targets[order.rows]
    group = np.repeat(np.arange(len(order.timelines)), np.diff(order.bounds))
    is_public = targets == UNKNOWN
    directed = np.flatnonzero(~is_public)
    chain = directed[np.lexsort((directed, targets[directed], group[directed]))]
    new = np.ones(len(chain), dtype=np.bool_)
    new[1:] = (group[chain[1:]] != group[chain[:-1]]) | (targets[chain[1:]] != targets[chain[:-1]])
    first = np.flatnonzero(new)
    before = np.concatenate([[0], np.cumsum(is_public)])
    keys = (np.cumsum(new) - 1) * (len(order.rows) + 1) + chain
    return Targets(
        order,
        np.flatnonzero(is_public),
        before,
        chain,
        np.append(first, len(chain)),
        group[chain[first]],
        targets[chain[first]].astype(np.int32),
        keys,
    )


def sequences(table: Table, parts: Targets) -> int:
    """How many sequences hold a read row: the public rows alone, and with those directed at each target."""
    order = parts.order
    read = table.read[order.rows]
    public = np.concatenate([[0], np.cumsum(read[parts.public])])[parts.public_before[order.bounds]]
    own = np.concatenate([[0], np.cumsum(read[parts.chain])])[parts.bounds]
    has_public = np.diff(public) > 0
    return int(np.count_nonzero(has_public)) + int(np.count_nonzero(has_public[parts.groups] | (np.diff(own) > 0)))


def towards(
    table: Table, parts: Targets, masks: Masks, wanted: Wanted, bounds: Bounds, *, whole: bool
) -> tuple[Frame, I]:
    """The runs in which a match may lie, and the timelines whose further runs would be too many rows.

    ``masks`` has the bits of each place of the order. With ``whole`` a run is its sequence, from the first row to the
    last.
    """
    order = parts.order
    groups = np.arange(len(order.timelines))
    hot = np.flatnonzero(masks[parts.chain])
    around = _whole(parts, hot) if whole else _around(table, parts, hot, masks, wanted, bounds)
    public_first, public_last = parts.public_before[order.bounds[:-1]], parts.public_before[order.bounds[1:]]
    nothing = np.zeros(len(groups), dtype=np.int64)
    run = _Runs(
        np.concatenate([groups, parts.groups[around.link]]),
        np.concatenate([np.full(len(groups), UNKNOWN, dtype=np.int64), around.link]),
        np.concatenate([public_first, parts.public_before[around.first]]),
        np.concatenate([public_last, parts.public_before[around.last]]),
        np.concatenate([nothing, np.searchsorted(parts.keys, around.link * parts.span + around.first)]),
        np.concatenate([nothing, np.searchsorted(parts.keys, around.link * parts.span + around.last)]),
    )
    run = run.only(_complete(parts, run, masks, wanted.variables))
    kept, gave_up = _affordable(order, run)
    return _merged(table, parts, run.only(kept), whole), gave_up


class _Runs(NamedTuple):
    """Runs of a public and a chain range each; link -1 is the public rows alone."""

    group: I
    link: I
    public_first: I
    public_last: I
    chain_first: I
    chain_last: I

    def only(self, kept: B) -> _Runs:
        return _Runs(*(part[kept] for part in self))

    @property
    def sizes(self) -> I:
        return self.public_last - self.public_first + self.chain_last - self.chain_first


def _whole(parts: Targets, hot: I) -> Around:
    link = np.unique(np.searchsorted(parts.bounds, hot, side="right") - 1)
    group = parts.groups[link]
    return Around(link, parts.order.bounds[group], parts.order.bounds[group + 1])


def _around(table: Table, parts: Targets, hot: I, masks: Masks, wanted: Wanted, bounds: Bounds) -> Around:
    """The surroundings of directed rows that can be bound; where they overlap they are one run.

    A match that binds such a row lies within its surroundings, and so do the rows that the match needs.
    """
    link = np.searchsorted(parts.bounds, hot, side="right") - 1
    place, group = parts.chain[hot], parts.groups[link]
    first, last = parts.order.bounds[group], parts.order.bounds[group + 1]
    if bounds.longest is not None:
        first, last = _within_rows(table, parts, place, first, last, bounds.longest)
    if bounds.within is not None:
        times = table.times[parts.order.rows]
        first = bisected(times, times[place] - bounds.within, first, place)
        last = bisected(times, times[place] + bounds.within + 1, place, last)
    kept = _enough(parts, hot, link, first, last, masks, wanted)
    link, first, last = link[kept], first[kept], last[kept]
    new = np.ones(len(link), dtype=np.bool_)
    new[1:] = (link[1:] != link[:-1]) | (first[1:] > last[:-1])
    opening = np.flatnonzero(new)
    closing = np.append(opening[1:], len(link))[: len(opening)] - 1
    return Around(link[opening], first[opening], last[closing])


def _enough(parts: Targets, hot: I, link: I, first: I, last: I, masks: Masks, wanted: Wanted) -> B:
    """The directed rows in whose surroundings as many rows fit each mask as a match needs."""
    kept = np.ones(len(hot), dtype=np.bool_)
    public, chain = masks[parts.public], masks[parts.chain]
    first_public, last_public = parts.public_before[first], parts.public_before[last]
    for mask, number in wanted.rows:
        bits = masks.dtype.type(mask)
        before = counts(public & bits != 0)
        left = number - (before[last_public] - before[first_public])  # to be found among the directed rows
        _reached.at(len(hot))(counts(chain & bits != 0), parts.chain, parts.bounds, hot, link, first, last, left, kept)
    return kept


@kernel
def _reached(before, chain, bounds, hot, link, first, last, left, kept):  # type: ignore[no-untyped-def]
    low = high = 0
    for k in range(len(hot)):
        if k == 0 or link[k] != link[k - 1]:
            low = high = bounds[link[k]]
        while chain[low] < first[k]:
            low += 1
        while high < bounds[link[k] + 1] and chain[high] < last[k]:
            high += 1
        if before[high] - before[low] < left[k]:
            kept[k] = False


def _within_rows(table: Table, parts: Targets, place: I, first: I, last: I, longest: int) -> tuple[I, I]:
    """At most so many read public rows before and after each place."""
    read = parts.public[table.read[parts.order.rows[parts.public]]]
    if not len(read):
        return first, last
    here = np.searchsorted(read, place)
    before, after = here - (longest - 1), here + longest - 2
    low = np.where(before >= 0, read[np.maximum(before, 0)], 0)
    high = np.where(after < len(read), read[np.clip(after, 0, len(read) - 1)] + 1, len(parts.order.rows))
    if longest == 1:
        low, high = place, place + 1
    return np.maximum(first, low), np.minimum(last, np.maximum(high, place + 1))


def _complete(parts: Targets, run: _Runs, masks: Masks, required: Sequence[int]) -> B:
    """The runs in which each required bit occurs."""
    wanted = sum(1 << index for index in required)
    if machine(len(masks)):
        public, chain = masks[parts.public], masks[parts.chain]
        return _has_all.at(len(masks))(public, chain, *run[2:], np.uint64(wanted))  # type: ignore[no-any-return]
    kept = run.sizes > 0
    for index in required:
        bit = masks.dtype.type(1 << index)
        before = [np.concatenate([[0], np.cumsum(masks[part] & bit != 0)]) for part in (parts.public, parts.chain)]
        public = before[0][run.public_last] - before[0][run.public_first]
        kept &= public + before[1][run.chain_last] - before[1][run.chain_first] > 0
    return kept


@kernel
def _has_all(public, chain, public_first, public_last, chain_first, chain_last, wanted):  # type: ignore[no-untyped-def]
    kept = np.zeros(len(public_first), dtype=np.bool_)
    for run in range(len(kept)):
        seen = np.uint64(0)
        for i in range(chain_first[run], chain_last[run]):
            seen |= np.uint64(chain[i])
        for i in range(public_first[run], public_last[run]):
            if seen & wanted == wanted:
                break
            seen |= np.uint64(public[i])
        full = public_last[run] > public_first[run] or chain_last[run] > chain_first[run]
        kept[run] = full and seen & wanted == wanted
    return kept


def _affordable(order: Order, run: _Runs) -> tuple[B, I]:
    """The runs within the number of rows that a timeline may cost, and the timelines of the sequences beyond it."""
    timeline = order.timelines[run.group]
    by = np.lexsort((np.arange(len(timeline)), timeline))
    sizes, owner = np.cumsum(run.sizes[by]), timeline[by]
    first = np.searchsorted(owner, owner)
    spent = np.empty(len(by), dtype=np.int64)
    spent[by] = sizes - np.concatenate([[0], sizes])[first]
    kept = spent <= ROWS
    beyond = np.unique(np.stack([run.group[~kept], run.link[~kept]], axis=1), axis=0)
    return kept, order.timelines[beyond[:, 0]]


def _merged(table: Table, parts: Targets, run: _Runs, whole: bool) -> Frame:
    """Each run's public and directed rows in order."""
    order, sizes = parts.order, run.sizes
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    places, in_public, in_chain = (np.empty(int(bounds[-1]), dtype=np.int64) for _ in range(3))
    merge = _merge.at(len(places)) if machine(len(places)) else _merge_arrays
    merge(parts.public, parts.chain, *run[2:], bounds, places, in_public, in_chain)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    public_first = parts.public_before[order.bounds[run.group]]
    link = np.maximum(run.link, 0)
    chain_first = np.where(run.link < 0, 0, parts.bounds[link])
    at = Place(in_public, public_first[owner], in_chain, chain_first[owner])
    codes = parts.codes[link] if len(parts.codes) else np.full(len(sizes), UNKNOWN, dtype=np.int32)
    targets = np.where(run.link < 0, UNKNOWN, codes).astype(np.int32)
    return framed(table, order.rows[places], bounds, order, run.group, targets, whole, at)


@kernel
def _merge(  # type: ignore[no-untyped-def]
    public, chain, public_first, public_last, chain_first, chain_last, bounds, places, in_public, in_chain
):
    for run in range(len(public_first)):
        i, j = public_first[run], chain_first[run]
        for k in range(bounds[run], bounds[run + 1]):
            in_public[k], in_chain[k] = i, j
            if j == chain_last[run] or (i < public_last[run] and public[i] < chain[j]):
                places[k] = public[i]
                i += 1
            else:
                places[k] = chain[j]
                j += 1


def _merge_arrays(
    public: I, chain: I, public_first: I, public_last: I, chain_first: I, chain_last: I, bounds: I, *found: I
) -> None:
    """The same with a sort."""
    places, in_public, in_chain = found
    from_public, from_chain = ranges(public_first, public_last), ranges(chain_first, chain_last)
    runs = np.arange(len(public_first))
    owner = np.concatenate([np.repeat(runs, public_last - public_first), np.repeat(runs, chain_last - chain_first)])
    values = np.concatenate([public[from_public], chain[from_chain]])
    order = np.lexsort((values, owner))
    is_public = order < len(from_public)
    places[:], owner = values[order], owner[order]
    before: I = np.cumsum(is_public) - is_public
    within: I = before - before[bounds[:-1][owner]] if len(owner) else before
    in_public[:] = public_first[owner] + within
    in_chain[:] = chain_first[owner] + np.arange(len(order)) - bounds[:-1][owner] - within
