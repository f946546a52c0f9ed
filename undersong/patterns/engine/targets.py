"""Sequences towards targets: public rows belong to each target's, and are put into it only where something can match.

A match of a target's sequence binds a row that is directed at it. So only the surroundings of such rows are looked at:
as far as ``within`` and the longest match reach. Whatever starts elsewhere binds public rows alone and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undersong.jit import kernel, machine
from undersong.patterns.engine.frames import RowOrder, SequenceFrame, sorted_by
from undersong.patterns.engine.merging import ListMasks, RowLists, SequenceRuns, merged, row_lists
from undersong.patterns.engine.sums import I, counts
from undersong.patterns.engine.table import RowTable
from undersong.patterns.engine.vectors import UNKNOWN, B, Codes, Masks
from undersong.patterns.search import ROWS


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
    *,
    whole: bool,
    placed: bool,
) -> tuple[SequenceFrame, Masks, I]:
    """The runs of public rows, and those around directed ones, in which each required bit occurs.

    And their masks, and the timelines whose further runs would be too many rows. ``whole``: the runs are whole
    sequences; ``placed``: how far their rows are in the lists is asked for.
    """
    order = parts.order
    groups = np.arange(len(order.timelines))
    nothing = np.zeros(len(groups), dtype=np.int64)
    run = SequenceRuns(
        np.concatenate([groups, parts.groups[around.link]]),
        np.concatenate([np.full(len(groups), UNKNOWN, dtype=np.int64), around.link]),
        parts.public_before[np.concatenate([order.bounds[:-1], around.first])],
        parts.public_before[np.concatenate([order.bounds[1:], around.last])],
        np.concatenate([nothing, around.chain_first]),
        np.concatenate([nothing, around.chain_last]),
    )
    run = run.only(_complete(run, marked, required))
    affordable, gave_up = _affordable(order, run)
    return *_frame(table, parts, run.only(affordable), marked, whole=whole, placed=placed), gave_up


def _complete(run: SequenceRuns, marked: ListMasks, required: Sequence[int]) -> B:
    """The runs in which each required bit occurs."""
    wanted = sum(1 << index for index in required)
    size = len(marked.public) + len(marked.chain)
    if machine(size):
        return _has_all.at(size)(*marked, *run[2:], np.uint64(wanted))  # type: ignore[no-any-return]
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
