"""Partitions by target: public rows belong to each target's, and are put into it only where something can match.

A match of a target's sequence binds a row that is directed at it. So only the surroundings of such rows are looked at:
as far as ``within`` and the longest match reach. Whatever starts elsewhere binds public rows alone and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undersong.patterns.reference.search import ROWS
from undersong.patterns.vectorized.exact_sum import I, counts
from undersong.patterns.vectorized.jit import kernel, machine
from undersong.patterns.vectorized.layout import (
    FramePositions,
    RowOrder,
    RowTable,
    SequenceFrame,
    framed,
    ranges,
    sorted_by,
)
from undersong.patterns.vectorized.vector_logic import UNKNOWN, B, Codes, Masks


class TargetRows(NamedTuple):
    """The rows of a table apart: ``public`` and ``chain`` are places in the order, the chain target by target.

    ``public_before[i]`` counts the public rows before place i. Of each target within a group (a link of the chain): its
    group and code, and ``bounds`` in the chain. ``keys`` are the chain's links and places as one rising number.
    """

    order: RowOrder
    public: I
    public_before: I
    chain: I
    bounds: I
    groups: I
    codes: Codes
    keys: I
    lists: RowLists

    @property
    def span(self) -> int:
        """What a link is worth in a key."""
        return len(self.order.rows) + 1


class DirectedRuns(NamedTuple):
    """Runs around directed rows: their link, from which to which place of the order and of the chain."""

    link: I
    first: I
    last: I
    chain_first: I
    chain_last: I


def split_by_target(table: RowTable, order: RowOrder) -> TargetRows:
    """The public and the directed rows of each group."""
    targets = table.targets[order.rows]
    group = np.repeat(np.arange(len(order.timelines)), np.diff(order.bounds))
    is_public = targets == UNKNOWN
    directed = np.flatnonzero(~is_public)
    chain = directed[sorted_by(group[directed], targets[directed])]
    new = np.ones(len(chain), dtype=np.bool_)
    new[1:] = (group[chain[1:]] != group[chain[:-1]]) | (targets[chain[1:]] != targets[chain[:-1]])
    first = np.flatnonzero(new)
    before, public = counts(is_public), np.flatnonzero(is_public)
    keys = (np.cumsum(new) - 1) * (len(order.rows) + 1) + chain
    return TargetRows(
        order,
        public,
        before,
        chain,
        np.append(first, len(chain)),
        group[chain[first]],
        targets[chain[first]].astype(np.int32),
        keys,
        row_lists(table, order, public, chain, before),
    )


def sequences(parts: TargetRows) -> int:
    """How many sequences hold a read row: the public rows alone, and with those directed at each target."""
    public = parts.lists.public_read[parts.public_before[parts.order.bounds]]
    own = parts.lists.chain_read[parts.bounds]
    has_public = np.diff(public) > 0
    return int(np.count_nonzero(has_public)) + int(np.count_nonzero(has_public[parts.groups] | (np.diff(own) > 0)))


def whole_sequences(parts: TargetRows, marked: ListMasks) -> DirectedRuns:
    """The sequences, from the first row to the last, in which a directed row can be bound."""
    hot = np.flatnonzero(marked.chain)
    link = np.unique(np.searchsorted(parts.bounds, hot, side="right") - 1)
    group = parts.groups[link]
    first, last = parts.order.bounds[group], parts.order.bounds[group + 1]
    return DirectedRuns(link, first, last, parts.bounds[link], parts.bounds[link + 1])


def target_frame(
    table: RowTable,
    parts: TargetRows,
    marked: ListMasks,
    required: Sequence[int],
    around: DirectedRuns,
    groups: I,
    *,
    whole: bool,
    placed: bool,
) -> tuple[SequenceFrame, Masks, I]:
    """The runs of public rows of some ``groups``, and those around directed ones, in which each required bit occurs.

    And their masks, and the timelines whose further runs would be too many rows. ``whole``: the runs are whole
    sequences; ``placed``: how far their rows are in the lists is asked for.
    """
    order = parts.order
    nothing = np.zeros(len(groups), dtype=np.int64)
    run = SequenceRuns(
        np.concatenate([groups, parts.groups[around.link]]),
        np.concatenate([np.full(len(groups), UNKNOWN, dtype=np.int64), around.link]),
        parts.public_before[np.concatenate([order.bounds[groups], around.first])],
        parts.public_before[np.concatenate([order.bounds[groups + 1], around.last])],
        np.concatenate([nothing, around.chain_first]),
        np.concatenate([nothing, around.chain_last]),
    )
    run = run.only(_complete(run, marked, required))
    affordable, gave_up = _affordable(order, run)
    return *_frame(table, parts, run.only(affordable), marked, whole=whole, placed=placed), gave_up


def _complete(run: SequenceRuns, marked: ListMasks, required: Sequence[int]) -> B:
    """The runs in which each required bit occurs."""
    size = len(marked.public) + len(marked.chain)
    if machine(size, _has_all):
        wanted = np.uint64(sum(1 << index for index in required))
        return _has_all.at(size)(*marked, *run[2:], wanted)  # type: ignore[no-any-return]
    complete = run.sizes > 0
    for index in required:
        before = [counts(masks & masks.dtype.type(1 << index) != 0) for masks in marked]
        public = before[0][run.public_last] - before[0][run.public_first]
        complete &= public + before[1][run.chain_last] - before[1][run.chain_first] > 0
    return complete


@kernel
def _has_all(public, chain, public_first, public_last, chain_first, chain_last, wanted):  # type: ignore[no-untyped-def]
    complete = np.zeros(len(public_first), dtype=np.bool_)
    for run in range(len(complete)):
        seen = np.uint64(0)
        for i in range(chain_first[run], chain_last[run]):
            seen |= np.uint64(chain[i])
        for i in range(public_first[run], public_last[run]):
            if seen & wanted == wanted:
                break
            seen |= np.uint64(public[i])
        full = public_last[run] > public_first[run] or chain_last[run] > chain_first[run]
        complete[run] = full and seen & wanted == wanted
    return complete


def _affordable(order: RowOrder, run: SequenceRuns) -> tuple[B, I]:
    """The runs within the number of rows that a timeline may cost, and the timelines of the sequences beyond it."""
    timeline = order.timelines[run.group]
    if np.bincount(timeline, weights=run.sizes).max(initial=0.0) <= ROWS:
        return np.ones(len(timeline), dtype=np.bool_), np.zeros(0, dtype=np.int64)
    by = np.lexsort((np.arange(len(timeline)), timeline))
    sizes, owner = np.cumsum(run.sizes[by]), timeline[by]
    first = np.searchsorted(owner, owner)
    spent = np.empty(len(by), dtype=np.int64)
    spent[by] = sizes - np.concatenate([[0], sizes])[first]
    affordable = spent <= ROWS
    beyond = np.unique(np.stack([run.group[~affordable], run.link[~affordable]], axis=1), axis=0)
    return affordable, order.timelines[beyond[:, 0]]


def _frame(
    table: RowTable, parts: TargetRows, run: SequenceRuns, marked: ListMasks, *, whole: bool, placed: bool
) -> tuple[SequenceFrame, Masks]:
    order, link = parts.order, np.maximum(run.link, 0)
    codes = parts.codes[link] if len(parts.codes) else np.full(len(link), UNKNOWN, dtype=np.int32)
    targets = np.where(run.link < 0, UNKNOWN, codes).astype(np.int32)
    public_first = parts.public_before[order.bounds[run.group]]
    chain_first = np.where(run.link < 0, 0, parts.bounds[link])
    firsts = public_first, chain_first
    return merged(table, order, parts.lists, run, targets, marked, firsts, whole=whole, placed=placed)


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
    places, in_chain = _in_order(lists, run, bounds)
    frame = framed(table, order.rows[places], bounds, order, run.group, targets, whole)
    directed = lists.chain_read[in_chain[table.read[order.rows[places]]]].astype(np.int32)
    return frame._replace(at=_place(lists, run, firsts, directed)), _masks(lists, marked)[frame.rows]


def _masks(lists: RowLists, marked: ListMasks) -> Masks:
    """The masks of the table's rows again."""
    masks = np.empty(len(marked.public) + len(marked.chain), dtype=marked.public.dtype)
    masks[lists.public_rows], masks[lists.chain_rows] = marked
    return masks


def _in_order(lists: RowLists, run: SequenceRuns, bounds: I) -> tuple[I, I]:
    """The places of each run's rows, and how many directed ones of the chain come before each row."""
    directed, sizes = ranges(run.chain_first, run.chain_last), run.chain_last - run.chain_first
    owner, public_before = np.repeat(np.arange(len(run.group)), sizes), lists.met + lists.missed
    at = (bounds[:-1] - run.chain_first - run.public_first)[owner] + directed + public_before[directed]
    is_chain = np.zeros(int(bounds[-1]), dtype=np.bool_)
    is_chain[at] = True
    places = np.empty(len(is_chain), dtype=np.int64)
    places[at], places[~is_chain] = lists.chain[directed], lists.public[ranges(run.public_first, run.public_last)]
    before = counts(is_chain)
    return places, before[:-1] + np.repeat(run.chain_first - before[bounds[:-1]], np.diff(bounds))


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
