"""Files → rows of the scan, without a store: scanned and written piece by piece, then mended and handed out.

Routing needs the whole run (how much asks to be read, and what an agent said elsewhere), so that rows wait on disk.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from undersong.formats.sources import WorkDistributor
from undersong.formats.spool import Spool, SpooledConversation
from undersong.ingest import gather
from undersong.models import Conversation, Problem
from undersong.routing.budget import DemandHistogram
from undersong.routing.earlier import LookBackIndex
from undersong.scanrows.pieces import ChunkPortion, ScanChunk, ScanJob, portion, scan_chunk
from undersong.scanrows.splice import Bytes, RunRouting, patch_routes
from undersong.scanrows.workers import workers
from undersong.waiting import SpillFile

NUMBERS = 3  # of a portion: its piece, its first conversation there, how many conversations
PIECE = 1 << 19  # bytes of the input that a process is given at once: what it costs to hand them out does not count
COLLECTED = 1_000_000  # new values that can hold others, between two looks for cycles
RETAINED_BYTES = 24 << 20  # bytes that are not returned to the system between batches, at most; more than a batch needs


class ScannedPart(NamedTuple):
    """A part of the run done: its rows, in parts, or its rows of conversations as JSON Lines, and its messages.

    ``left_out`` counts the conversations that the user did not choose.
    """

    rows: Sequence[Bytes] = ()
    threads: bytes = b""
    problems: tuple[Problem, ...] = ()
    messages: int = 0
    left_out: int = 0


class _ScanChunks:
    """The pieces of a run; those of conversations that are whole in the input are scanned while their lines are read.

    ``tell`` hears how many messages were scanned so far.
    """

    def __init__(self, tell: Callable[[int], object]) -> None:
        self.work = _scan_at_once
        self.pieces: list[ScanChunk] = []
        self._tell, self._messages = tell, 0

    def keep(self, done: ScanChunk) -> int:
        """See AtOnce."""
        self.pieces.append(done)
        self._messages += done.messages
        self._tell(self._messages)
        return len(self.pieces) - 1

    def portions(self, spool: Spool, share: WorkDistributor) -> list[tuple[ScanChunk, int, int]]:
        """All conversations of the run in order, as portions; what could not be scanned at once is scanned now."""
        recorded, early = array("q"), len(self.pieces)
        for _, piece in share(_scan_stored, _left(spool, recorded, early)):
            self.keep(piece)
        numbers = (recorded[at : at + NUMBERS] for at in range(0, len(recorded), NUMBERS))
        return [(self.pieces[piece], first, conversations) for piece, first, conversations in numbers]


_work: list[ScanJob] = []  # of this run; processes that are copied from this one find it here


def stream(
    paths: str | Path | Sequence[str | Path],
    source_format: str | None,
    processes: int,
    work: Callable[[Spool, SpillFile], ScanJob],
    tell: Callable[[int], object],
) -> Iterator[Problem | ScannedPart]:
    """The problems of reading, then the pieces in the order of the input; the same for any number of processes.

    Memory is bounded by the largest conversation: what is not whole where it is read lies in a spool until its turn
    comes. ``tell`` hears how many messages were scanned so far.
    """
    _keep_memory()
    with _rare_collection(), Spool() as spool, SpillFile() as waiting, workers(processes) as share:
        _work.append(work(spool, waiting))
        try:
            pieces = _ScanChunks(tell)
            items = gather(paths, spool, source_format=source_format, share=share, at_once=pieces, hashed=False)
            for item in items:
                if isinstance(item, Problem):
                    yield item
            yield from _handed_out(pieces.portions(spool, share), _work[-1])
        finally:
            _work.pop()


def _keep_memory() -> None:
    """Have the C library keep what it was given back, so that each batch finds its memory where the last one had it.

    glibc learns from the largest piece that was given back; this one is never touched and takes no memory.
    """
    np.empty(RETAINED_BYTES, dtype=np.uint8)


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Have the collector of cycles look seldom, and not at what is loaded: a scan makes millions of short-lived values
    and hardly a cycle."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(COLLECTED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _scan_at_once(conversations: list[list[Conversation]]) -> ScanChunk:
    """The work of a process: scan what may be whole conversations while their lines are at hand."""
    return scan_chunk(_work[-1], conversations)


def _scan_stored(stored: list[SpooledConversation]) -> ScanChunk:
    """The work of a process: scan conversations from the spool."""
    work = _work[-1]
    return scan_chunk(work, map(work.spool.parts, stored))


def _left(spool: Spool, portions: array[int], number: int) -> Iterator[list[SpooledConversation]]:
    """What is to be scanned still, piece by piece from this number on; the portions of all are noted on the way."""
    group: list[SpooledConversation] = []
    size = 0
    for stored in spool.stored():
        done = stored.done
        if done.number >= 0:
            _note(portions, *done)
            continue
        _note(portions, number, len(group))
        group.append(stored)
        size += stored.size
        if size >= PIECE:
            yield group
            group, size, number = [], 0, number + 1
    if group:
        yield group


def _note(portions: array[int], piece: int, index: int) -> None:
    """Note the next conversation of the run: one more of the last portion, or the first of another."""
    if portions and portions[-3] == piece and portions[-2] + portions[-1] == index:
        portions[-1] += 1
    else:
        portions.extend((piece, index, 1))


def _handed_out(portions: list[tuple[ScanChunk, int, int]], work: ScanJob) -> Iterator[ScannedPart]:
    """Count what the whole run asks for, then route it and hand out its rows."""
    demand, earlier = DemandHistogram(work.policy.sample_minimum), LookBackIndex(work.policy.look_back)
    before = 0
    for entry in portions:
        own = portion(work.spill_file, *entry)
        demand.add(own.levels, own.counted)
        for number, directed in own.directed:
            earlier.add_directed(before + number, directed)
        before += len(own.first)
        yield ScannedPart((), own.threads, own.problems, len(own.levels), own.left_out)
    also = earlier.resolve(demand)
    cut = work.cut_of(demand)
    routing = RunRouting(cut, demand.sample_rate(cut, work.policy.sample_rate))
    before = 0
    for entry in portions:  # in this process alone: to hand a portion over would cost as much
        own = portion(work.spill_file, *entry)
        flags = also and {number: also[before + number] for number in range(len(own.first)) if before + number in also}
        yield ScannedPart(_routed(work.spill_file, own, routing, flags))
        before += len(own.first)


def _routed(
    waiting: SpillFile, own: ChunkPortion, routing: RunRouting, also: dict[int, dict[int, str]]
) -> Sequence[Bytes]:
    """The rows of a portion as they are routed; ``also`` has its messages, by conversation and place, that others call
    for."""
    starts = np.cumsum(own.lengths, dtype=np.int64) - own.lengths
    called = {own.first[number] + at: flag for number, each in also.items() for at, flag in each.items()}
    return patch_routes(waiting.get(own.rows), starts, own.levels, own.draws, routing, called)
