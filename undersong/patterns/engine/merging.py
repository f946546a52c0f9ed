"""Runs of public and directed rows, laid out in order as a frame."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.frames import Frame, Order, Place, framed
from undersong.patterns.engine.sums import I
from undersong.patterns.engine.table import Table, ranges
from undersong.patterns.engine.vectors import B, Codes

Read = tuple[I, I]  # numbers of read rows before each public and each directed one


class Runs(NamedTuple):
    """Runs of a public and a chain range each; link -1 is the public rows alone."""

    group: I
    link: I
    public_first: I
    public_last: I
    chain_first: I
    chain_last: I

    def only(self, kept: B) -> Runs:
        """Some of the runs."""
        return Runs(*(part[kept] for part in self))

    @property
    def sizes(self) -> I:
        """How many rows each has, read or not."""
        return self.public_last - self.public_first + self.chain_last - self.chain_first


class Lists(NamedTuple):
    """The places of the public rows and of the directed ones, and where the lists of each run's sequence begin."""

    public: I
    chain: I
    public_first: I
    chain_first: I


def merged(
    table: Table, order: Order, lists: Lists, run: Runs, targets: Codes, read: Read, *, whole: bool, placed: bool
) -> Frame:
    """Each run's read public and directed rows in order; how far each is in the two lists only where ``placed``."""
    if machine(int(run.sizes.sum())):
        return _laid_out(table, order, lists, run, targets, read, whole=whole, placed=placed)
    bounds = np.concatenate([[0], np.cumsum(run.sizes)])
    places, in_public, in_chain = _sorted(lists, run, bounds)
    owner = np.repeat(np.arange(len(run.sizes)), run.sizes)
    at = Place(in_public, lists.public_first[owner], in_chain, lists.chain_first[owner])
    return framed(table, order.rows[places], bounds, order, run.group, targets, whole, at)


def _sorted(lists: Lists, run: Runs, bounds: I) -> tuple[I, I, I]:
    from_public, from_chain = ranges(run.public_first, run.public_last), ranges(run.chain_first, run.chain_last)
    runs = np.arange(len(run.group))
    sizes = run.public_last - run.public_first, run.chain_last - run.chain_first
    owner = np.concatenate([np.repeat(runs, sizes[0]), np.repeat(runs, sizes[1])])
    values = np.concatenate([lists.public[from_public], lists.chain[from_chain]])
    order = np.lexsort((values, owner))
    is_public = order < len(from_public)
    places, owner = values[order], owner[order]
    before: I = np.cumsum(is_public) - is_public
    within: I = before - before[bounds[:-1][owner]] if len(owner) else before
    in_chain = run.chain_first[owner] + np.arange(len(order)) - bounds[:-1][owner] - within
    return places, run.public_first[owner] + within, in_chain


def _laid_out(
    table: Table, order: Order, lists: Lists, run: Runs, targets: Codes, read: Read, *, whole: bool, placed: bool
) -> Frame:
    """The same in one go over the rows."""
    public, chain = read
    sizes = public[run.public_last] - public[run.public_first] + chain[run.chain_last] - chain[run.chain_first]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    rows, holes = (np.empty(int(bounds[-1]), dtype=np.int64) for _ in range(2))
    at = Place(*(np.empty(len(rows) if placed else 0, dtype=np.int64) for _ in Place._fields))
    _lay.at(len(rows))(*lists, order.rows, table.read, *run[2:], bounds, rows, holes, placed, *at)
    groups = order.timelines[run.group], order.conversations[run.group]
    return Frame(rows, bounds, holes, *groups, targets, whole, at if placed else None)


@kernel
def _lay(  # type: ignore[no-untyped-def]
    public, chain, list_public, list_chain, rows, read, public_first, public_last, chain_first, chain_last, bounds,
    found, holes, placed, in_public, in_public_first, in_chain, in_chain_first,
):  # fmt: skip
    for run in range(len(public_first)):
        i, j, k, unread = public_first[run], chain_first[run], bounds[run], 0
        public_end, chain_end = public_last[run], chain_last[run]
        while i < public_end or j < chain_end:
            is_public = j == chain_end or (i < public_end and public[i] < chain[j])
            row = rows[public[i] if is_public else chain[j]]
            if not read[row]:
                unread += 1
            else:
                found[k], holes[k] = row, unread
                if placed:
                    in_public[k], in_public_first[k] = i, list_public[run]
                    in_chain[k], in_chain_first[k] = j, list_chain[run]
                k, unread = k + 1, 0
            if is_public:
                i += 1
            else:
                j += 1
