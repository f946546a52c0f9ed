"""Runs of public and directed rows, laid out in order as a frame."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.frames import FramePositions, RowOrder, SequenceFrame, framed
from undersong.patterns.engine.sums import I, counts
from undersong.patterns.engine.table import RowTable, ranges
from undersong.patterns.engine.vectors import B, Codes, Masks

Firsts = tuple[I, I]  # how many rows of each list, public and directed, come before the sequence of each run


class SequenceRuns(NamedTuple):
    """Runs of a public and a chain range each; link -1 is the public rows alone."""

    group: I
    link: I
    public_first: I
    public_last: I
    chain_first: I
    chain_last: I

    def only(self, selected: B) -> SequenceRuns:
        """Some of the runs."""
        return SequenceRuns(*(part[selected] for part in self))

    @property
    def sizes(self) -> I:
        """How many rows each has, read or not."""
        return self.public_last - self.public_first + self.chain_last - self.chain_first


class RowLists(NamedTuple):
    """The public rows and the directed ones (the chain): their places in an order, their rows in the table, and how
    many read ones come before each.

    ``seen`` are the numbers of the public rows that are read; ``unread`` public rows come before each of these. Before
    each of the chain come ``met`` public rows that are read and ``missed`` ones that are not.
    """

    public: I
    chain: I
    public_rows: I
    chain_rows: I
    public_read: I
    chain_read: I
    seen: I
    unread: Codes
    met: I
    missed: Codes

    def marked(self, masks: Masks) -> ListMasks:
        """The masks of the public rows and of the chain, given those of the rows of the table."""
        return ListMasks(masks[self.public_rows], masks[self.chain_rows])


class ListMasks(NamedTuple):
    """The masks of the public rows and of the chain."""

    public: Masks
    chain: Masks


def row_lists(table: RowTable, order: RowOrder, public: I, chain: I, before: I) -> RowLists:
    """The lists of public and directed places; ``before`` counts the public ones before each place."""
    public_rows, chain_rows = order.rows[public], order.rows[chain]
    read = table.read[public_rows]
    public_read, chain_read, seen = counts(read), counts(table.read[chain_rows]), np.flatnonzero(read)
    unread = (seen - np.arange(len(seen))).astype(np.int32)
    met = public_read[before[chain]]
    missed = (before[chain] - met).astype(np.int32)
    return RowLists(public, chain, public_rows, chain_rows, public_read, chain_read, seen, unread, met, missed)


def merged(
    table: RowTable, order: RowOrder, lists: RowLists, run: SequenceRuns, targets: Codes, marked: ListMasks,
    firsts: Firsts, *, whole: bool, placed: bool,
) -> tuple[SequenceFrame, Masks]:  # fmt: skip
    """Each run's read public and directed rows in order, and their masks.

    How many directed ones come before each row is told only where ``placed``.
    """
    if machine(int(run.sizes.sum())):
        return _laid_out(order, lists, run, targets, marked, firsts, whole=whole, placed=placed)
    bounds = np.concatenate([[0], np.cumsum(run.sizes)])
    places, in_chain = _sorted(lists, run, bounds)
    frame = framed(table, order.rows[places], bounds, order, run.group, targets, whole)
    directed = lists.chain_read[in_chain[table.read[order.rows[places]]]].astype(np.int32)
    return frame._replace(at=_place(lists, run, firsts, directed)), _masks(lists, marked)[frame.rows]


def _masks(lists: RowLists, marked: ListMasks) -> Masks:
    """The masks of the table's rows again."""
    masks = np.empty(len(marked.public) + len(marked.chain), dtype=marked.public.dtype)
    masks[lists.public_rows], masks[lists.chain_rows] = marked
    return masks


def _sorted(lists: RowLists, run: SequenceRuns, bounds: I) -> tuple[I, I]:
    from_public, from_chain = ranges(run.public_first, run.public_last), ranges(run.chain_first, run.chain_last)
    runs = np.arange(len(run.group))
    sizes = run.public_last - run.public_first, run.chain_last - run.chain_first
    owner = np.concatenate([np.repeat(runs, sizes[0]), np.repeat(runs, sizes[1])])
    values = np.concatenate([lists.public[from_public], lists.chain[from_chain]])
    order = np.lexsort((values, owner))
    is_chain = order >= len(from_public)
    places, owner = values[order], owner[order]
    before: I = np.cumsum(is_chain) - is_chain
    return places, run.chain_first[owner] + before - before[bounds[:-1][owner]] if len(owner) else before


def _place(lists: RowLists, run: SequenceRuns, firsts: Firsts, directed: Codes) -> FramePositions:
    public, chain = (lists.public_read[firsts[0]], lists.chain_read[firsts[1]])
    return FramePositions(
        directed, lists.chain_read[run.chain_first] + lists.public_read[run.public_first], public, chain
    )


def _laid_out(
    order: RowOrder, lists: RowLists, run: SequenceRuns, targets: Codes, marked: ListMasks,
    firsts: Firsts, *, whole: bool, placed: bool,
) -> tuple[SequenceFrame, Masks]:  # fmt: skip
    """The same in one go over the rows."""
    public, chain = lists.public_read, lists.chain_read
    first, last = public[run.public_first], public[run.public_last]
    bounds = np.concatenate([[0], np.cumsum(last - first + chain[run.chain_last] - chain[run.chain_first])])
    rows, holes = (np.empty(int(bounds[-1]), dtype=np.int64) for _ in range(2))
    masks, directed = np.empty(len(rows), marked.chain.dtype), np.empty(len(rows) if placed else 0, np.int32)
    _lay.at(len(rows))(
        lists.public_rows[lists.seen], lists.unread, marked.public[lists.seen], lists.chain_rows, chain, lists.met,
        lists.missed, marked.chain, first, last, run.public_first - first, run.chain_first, run.chain_last, bounds,
        placed, rows, holes, masks, directed,
    )  # fmt: skip
    groups = order.timelines[run.group], order.conversations[run.group]
    return SequenceFrame(
        rows, bounds, holes, *groups, targets, whole, _place(lists, run, firsts, directed) if placed else None
    ), masks


@kernel
def _lay(  # type: ignore[no-untyped-def]
    rows, unread, masks, chain_rows, chain_read, met, missed, chain_masks, first, last, gone, chain_first, chain_last,
    bounds, placed, out_rows, holes, out_masks, directed,
):  # fmt: skip
    """Stretches of public rows, each up to the next directed one; ``gone`` unread public rows come before each run."""
    for run in range(len(first)):
        i, k, seen, lost = first[run], bounds[run], gone[run], 0
        for j in range(chain_first[run], chain_last[run] + 1):
            until = met[j] if j < chain_last[run] else last[run]
            if i < until:
                shift = k - i
                for public in range(i, until):
                    out_rows[shift + public], out_masks[shift + public] = rows[public], masks[public]
                    holes[shift + public] = unread[public] - unread[public - 1]
                    if placed:
                        directed[shift + public] = chain_read[j]
                holes[k] = unread[i] - seen + lost
                seen, lost = unread[until - 1], 0
                i, k = until, k + until - i
            if j == chain_last[run]:
                break
            if chain_read[j] == chain_read[j + 1]:
                lost += 1
                continue
            out_rows[k], out_masks[k], holes[k] = chain_rows[j], chain_masks[j], missed[j] - seen + lost
            if placed:
                directed[k] = chain_read[j]
            k, seen, lost = k + 1, missed[j], 0
