"""Interval bounds around directed rows, in which a match can lie: as far as ``within`` and the longest match reach."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from undersong.patterns.vectorized import start_filter
from undersong.patterns.vectorized.exact_sum import I
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.layout import RowTable, bisected, fitting, picked
from undersong.patterns.vectorized.start_filter import MatchRequirements
from undersong.patterns.vectorized.targets import DirectedRuns, ListMasks, TargetRows
from undersong.patterns.vectorized.vector_logic import B, Codes, Masks

Needs = tuple[tuple[int, int], ...]  # masks, and how many rows a match needs that fit one of its bits


class DirectedReach:
    """Interval bounds shared by rules with the same sequences: how far around each row of the chain a match reaches."""

    def __init__(self, table: RowTable, parts: TargetRows) -> None:
        self.table, self.parts = table, parts
        self._reaches: dict[tuple[int | None, int | None], tuple[I, I]] = {}

    @cached_property
    def link(self) -> I:
        """The link of each row of the chain."""
        return np.repeat(np.arange(len(self.parts.groups)), np.diff(self.parts.bounds))

    @cached_property
    def ends(self) -> Codes:
        """The places of the read public rows, and where they end."""
        return np.append(self.read, len(self.parts.order.rows)).astype(np.int32)

    @cached_property
    def starts(self) -> Codes:
        """0, and the places behind the read public rows: directed rows there come before the next one."""
        return np.append(0, self.read + 1).astype(np.int32)

    @cached_property
    def read(self) -> I:
        """The places of the read public rows."""
        public = self.parts.public
        return public[self.parts.lists.seen]

    @cached_property
    def times(self) -> I:
        """The time of each place."""
        return np.asarray(picked(self.table.times, self.parts.order.rows))

    def reach(self, within: int | None, longest: int | None) -> tuple[I, I]:
        """For each row of the chain, from which to before which place a match that takes it may reach.

        ``within`` are microseconds, ``longest`` rows; None: no bound.
        """
        if (within, longest) not in self._reaches:
            self._reaches[within, longest] = self._reach(within, longest)
        return self._reaches[within, longest]

    def _reach(self, within: int | None, longest: int | None) -> tuple[I, I]:
        parts, place, times = self.parts, self.parts.chain, self.times
        if longest is not None:
            return self._shortened(*self.reach(within, None), longest)
        if within is not None and machine(len(times), _sweep):
            sweep = np.empty((2, len(times)), dtype=np.int32)
            _sweep.at(len(times))(times, parts.order.bounds, within, *sweep)
            return picked(sweep[0], place), picked(sweep[1], place)
        group = parts.groups[self.link]
        first, last = parts.order.bounds[group], parts.order.bounds[group + 1]
        if within is None:
            return first, last
        wanted = times[place]
        return bisected(times, wanted - within, first, place), bisected(times, wanted + within + 1, place, last)

    def _shortened(self, first: I, last: I, longest: int) -> tuple[I, I]:
        """The ends brought nearer, to where a match of so many rows reaches whatever of it is public."""
        place, read, before = self.parts.chain, self.read, self.parts.lists.met
        if longest == 1:
            return place, place + 1
        if not len(read):
            return first, last
        if machine(len(place), _shorten):
            shortened = np.empty_like(first), np.empty_like(last)
            _shorten.at(len(place))(place, first, last, read, before, longest, *shortened)
            return shortened
        earliest, latest = before - (longest - 1), before + longest - 2
        first = np.where(earliest < 0, first, np.maximum(first, read[np.maximum(earliest, 0)]))
        beyond = np.maximum(read[np.minimum(latest, len(read) - 1)], place) + 1
        return first, np.where(latest < len(read), np.minimum(last, beyond), last)

    def around(self, marked: ListMasks, wanted: MatchRequirements, within: int | None) -> DirectedRuns:
        """The surroundings of directed rows that can be bound; where they overlap they are one run.

        A match that binds such a row lies within its surroundings, and so do the rows that the match needs: without as
        many rows that fit each mask there is none.
        """
        parts, (public, chain), needs = self.parts, marked, wanted.needs
        hot = fitting(chain, wanted.bound)
        first, last = self._bridged(hot, *self.reach(within, wanted.longest), public, wanted)
        in_public, in_chain = _fitting(public, needs), _fitting(chain, needs)
        if not machine(len(hot), _surround):
            return self._around(hot, first, last, in_public, in_chain, needs)
        runs = DirectedRuns(*(np.empty(len(hot), dtype=np.int64) for _ in DirectedRuns._fields))
        needed = np.array([number for _, number in needs], dtype=np.int64)
        number = _surround.at(len(hot))(
            hot, self.link, parts.bounds, parts.chain, first, last, parts.public_before, in_public, in_chain, needed,
            *runs,
        )  # fmt: skip
        return DirectedRuns(*(part[:number] for part in runs))

    def _bridged(self, hot: I, first: I, last: I, public: Masks, wanted: MatchRequirements) -> tuple[I, I]:
        """From which to before which place a match may go that takes a row of the chain, of those that are ``hot``.

        So far as they reach, and over public rows as far as a gap or the next hot row of the same link.
        """
        if wanted.gap is None:
            return first[hot], last[hot]
        lists = self.parts.lists
        gone = start_filter.reached(public, lists.seen, wanted.bound, wanted.gap)
        if machine(len(hot), _bridge):
            bridged = np.empty(len(hot), dtype=first.dtype), np.empty(len(hot), dtype=last.dtype)
            _bridge.at(len(hot))(hot, self.link, lists.met, self.starts, self.ends, *gone, first, last, *bridged)
            return bridged
        link, met = self.link[hot], lists.met[hot]
        begin, end = self.starts[gone[0][met]], self.ends[gone[1][met]]
        new, final = _apart(link, begin, end)
        number = np.cumsum(new) - 1
        return np.maximum(first[hot], begin[new][number]), np.minimum(last[hot], end[final][number])

    def _around(self, hot: I, first: I, last: I, in_public: Codes, in_chain: Codes, needs: Needs) -> DirectedRuns:
        """The same by whole arrays."""
        parts, link = self.parts, self.link[hot]
        low, high = (np.searchsorted(parts.keys, link * parts.span + end) for end in (first, last))
        public_first, public_last = parts.public_before[first], parts.public_before[last]
        enough = np.ones(len(hot), dtype=np.bool_)
        for (_, number), public, chain in zip(needs, in_public, in_chain, strict=True):
            enough &= public[public_last] - public[public_first] + chain[high] - chain[low] >= number
        link, first, last, low, high = (part[enough] for part in (link, first, last, low, high))
        new, final = _apart(link, first, last)
        return DirectedRuns(link[new], first[new], last[final], low[new], high[final])


def _apart(link: I, first: I | Codes, last: I | Codes) -> tuple[B, B]:
    """Which ranges do not touch the one before, and which not the one after, of the same link."""
    new = np.ones(len(link), dtype=np.bool_)
    new[1:] = (link[1:] != link[:-1]) | (first[1:] > last[:-1])
    return new, np.append(new[1:], True)[: len(new)]


def _fitting(masks: Masks, needs: Needs) -> Codes:
    """Per wanted mask the running numbers of rows that fit it."""
    running = np.empty((len(needs), len(masks) + 1), dtype=np.int32)
    running[:, 0] = 0
    for number, (mask, _) in zip(running, needs, strict=True):
        if machine(len(masks)):
            _number.at(len(masks))(masks, masks.dtype.type(mask), number)
        else:
            np.cumsum(masks & masks.dtype.type(mask) != 0, out=number[1:])
    return running


@kernel
def _number(masks, wanted, number):  # type: ignore[no-untyped-def]
    for row in range(len(masks)):
        number[row + 1] = number[row] + (masks[row] & wanted != 0)


@kernel
def _shorten(place, first, last, read, before, longest, found_first, found_last):  # type: ignore[no-untyped-def]
    for k in range(len(place)):
        earliest, latest = before[k] - (longest - 1), before[k] + longest - 2
        found_first[k] = first[k] if earliest < 0 else max(first[k], read[earliest])
        found_last[k] = min(last[k], max(read[latest], place[k]) + 1) if latest < len(read) else last[k]


@kernel
def _sweep(times, bounds, within, first, last):  # type: ignore[no-untyped-def]
    """For each row of groups in order of time, the first one within reach before it, and past the last one after it."""
    for group in range(len(bounds) - 1):
        early = late = bounds[group]
        for row in range(bounds[group], bounds[group + 1]):
            while times[early] < times[row] - within:
                early += 1
            while late < bounds[group + 1] and times[late] <= times[row] + within:
                late += 1
            first[row], last[row] = early, late


@kernel
def _bridge(  # type: ignore[no-untyped-def]
    hot, links, met, starts, ends, gone_first, gone_last, reach_first, reach_last, first, last
):
    """How far a match may go from each hot row: what touches is gone through as one."""
    k = 0
    while k < len(hot):
        opened, row = k, hot[k]
        begin, end = starts[gone_first[met[row]]], ends[gone_last[met[row]]]
        while k + 1 < len(hot) and links[hot[k + 1]] == links[row] and starts[gone_first[met[hot[k + 1]]]] <= end:
            k += 1
            end = ends[gone_last[met[hot[k]]]]
        k += 1
        for i in range(opened, k):
            first[i], last[i] = max(begin, reach_first[hot[i]]), min(end, reach_last[hot[i]])


@kernel
def _surround(  # type: ignore[no-untyped-def]
    hot, links, bounds, chain, firsts, lasts, public_before, in_public, in_chain, needed,
    link, first, last, chain_first, chain_last,
):  # fmt: skip
    written, current, low, high, end = 0, -1, 0, 0, 0
    for place in range(len(hot)):
        if links[hot[place]] != current:
            current = links[hot[place]]
            low, high, end = bounds[current], bounds[current], bounds[current + 1]
        begin, finish = firsts[place], lasts[place]
        while chain[low] < begin:
            low += 1
        while high < end and chain[high] < finish:
            high += 1
        for k in range(len(needed)):
            public = in_public[k, public_before[finish]] - in_public[k, public_before[begin]]
            if public + in_chain[k, high] - in_chain[k, low] < needed[k]:
                finish = -1  # too few
                break
        if finish < 0:
            continue
        if written and link[written - 1] == current and begin <= last[written - 1]:
            last[written - 1], chain_last[written - 1] = finish, high
        else:
            link[written], first[written], last[written] = current, begin, finish
            chain_first[written], chain_last[written] = low, high
            written += 1
    return written
