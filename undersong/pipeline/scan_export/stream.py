"""Files → rows of the scan, as the user chose them: no judge, no store, no report."""

from __future__ import annotations

import gc
import warnings
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.errors import UndersongError, UsageError
from undersong.formats.ingest import gather
from undersong.formats.sources import WorkDistributor, in_turn
from undersong.formats.spill import SpillFile
from undersong.formats.spool import Spool, SpooledConversation
from undersong.models import Conversation, Problem, Tier, Width
from undersong.pipeline.options import Options, Progress, chosen, matched_none, reading_cutoff, silent
from undersong.pipeline.scan_export.chunks import ChunkPortion, ScanChunk, ScanJob, portion, scan_chunk
from undersong.routing.audit_sample import Draws, Levels
from undersong.routing.budget import BACKWARDS, STEPS, TRIAGE, UNSCORED, WIDTH, BudgetCutoff, DemandHistogram
from undersong.routing.lookback import LookBackIndex
from undersong.routing.route import called_for, decide_route, load_policy
from undersong.scan import load_book

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor


Write = Callable[[bytes | memoryview], object]


def scan_rows(
    paths: str | Path | Sequence[str | Path],
    options: Options,
    write: Write,
    *,
    write_thread: Write | None = None,
    progress: Progress | None = None,
    text: bool = True,
) -> list[Problem]:
    """Write one JSON row per scanned and routed message, and one per conversation; returns what was not read."""
    problems: list[Problem] = []
    done = left_out = 0

    def work(spool: Spool, waiting: SpillFile) -> ScanJob:
        keep = partial(chosen, options=options)
        policy, book = options.policy or load_policy(), load_book()
        cut = partial(reading_cutoff, options=options, policy=policy, triage=book.triage)
        return ScanJob(
            spool, waiting, book, policy, frozenset(options.signals), options.seed, text, write_thread is not None,
            keep, cut,
        )  # fmt: skip

    def tell(messages: int) -> None:
        (progress or silent)("scan", messages, 0)

    for item in stream(paths, options.source_format, options.processes, work, tell):
        if isinstance(item, Problem):
            problems.append(item)
            continue
        problems += item.problems
        for part in item.rows:
            write(part)
        if write_thread:
            write_thread(item.threads)
        done, left_out = done + item.messages, left_out + item.left_out
    tell(done)
    if left_out and not done:
        raise matched_none(options, left_out)
    return problems


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


# The routed keys of a row, between the message's own and the scan's. No string of JSON holds these bytes: its quotes
# are escaped.
_FIRST, _AFTER = b',"tier":', b',"triage":'
MANY = 200  # parts from which on it costs less to put them together than to write each
Bytes: TypeAlias = bytes | memoryview
Starts = npt.NDArray[np.int64]


class RoutedKeys(msgspec.Struct, frozen=True):
    """The routed keys of a row, in its order."""

    tier: Tier
    tier_before: Tier
    width: Width
    sampled: bool
    reasons: tuple[str, ...]


class RunRouting(NamedTuple):
    """What the whole run decides for every message."""

    cut: BudgetCutoff
    rate: float


def patch_routes(
    rows: bytes, starts: Starts, levels: Levels, draws: Draws, routing: RunRouting, also: Mapping[int, str]
) -> Sequence[Bytes]:
    """The rows (JSON Lines) as the run's routing has them, in parts to be written one after the other.

    ``starts``, ``levels`` and ``draws`` are of each row. ``also`` names, for a row by its index, the flagged message of
    another conversation for which it is read too.
    """
    called = sorted(also)
    levels = levels.copy()
    levels[called] -= WIDTH * (TRIAGE - BACKWARDS)
    read = levels <= routing.cut.level
    drawn = draws < routing.rate
    changed = (read != (levels < TRIAGE * WIDTH)) | (drawn & ~read)
    changed[called] = True
    places = np.flatnonzero(changed)
    if not len(places):
        return (rows,)
    view = memoryview(rows)
    pieces: list[Bytes] = []
    last = 0
    decisions = zip(
        places.tolist(), starts[places].tolist(), read[places].tolist(), drawn[places].tolist(), strict=True
    )
    for place, start, is_read, is_drawn in decisions:
        first = rows.find(_FIRST, start)
        after = rows.find(_AFTER, first)
        triage = None if levels[place] == UNSCORED else (STEPS - int(levels[place]) % WIDTH) / STEPS
        mended = _patched_keys(rows[first + 1 : after], also.get(place), is_read, is_drawn, triage, routing.cut)
        pieces += (view[last : first + 1], mended)
        last = after
    pieces.append(view[last:])
    return pieces if len(pieces) < MANY else (b"".join(pieces),)


@lru_cache(maxsize=4096)
def _patched_keys(
    keys: bytes, flagged: str | None, read: bool, drawn: bool, triage: float | None, cut: BudgetCutoff
) -> bytes:
    """The routed keys of one row, from what they were."""
    was = _decode(b"{%b}" % keys)
    tier, reasons = was.tier, was.reasons
    if flagged is not None:
        tier, reasons = "focused", (*reasons, called_for(flagged))
    route = decide_route(tier, was.tier_before, reasons, read=read, drawn=drawn, triage=triage, cut=cut)
    return _encode(RoutedKeys(route.tier, route.tier_before, route.width, route.sampled, route.reasons))[1:-1]


_decode = msgspec.json.Decoder(RoutedKeys).decode
_encode = msgspec.json.Encoder().encode


A = TypeVar("A")
B = TypeVar("B")
AHEAD = 4  # pieces of work that wait for each process, so that none is idle and few are in memory


@contextmanager
def workers(number: int) -> Iterator[WorkDistributor]:
    """Something that shares work out to so many processes; with 1 all of it is done here, in turn.

    The processes are copies of this one, made when the first work comes: they see what it had opened and loaded by
    then. Raises UsageError where the system cannot copy a process.
    """
    if number <= 1:
        yield in_turn
        return
    import multiprocessing  # here, since most runs have one process and loading these takes a tenth of a small run
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    if "fork" not in multiprocessing.get_all_start_methods():
        raise UsageError("this system cannot copy a process", remedy="use --processes 1")
    pool = ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("fork"))
    try:
        yield _ProcessDistributor(pool, number * AHEAD)
    except BrokenProcessPool as error:
        raise UndersongError("a process that scanned was killed", remedy="use fewer --processes") from error
    finally:
        pool.shutdown(cancel_futures=True)


class _ProcessDistributor:
    in_turn = False

    def __init__(self, pool: ProcessPoolExecutor, ahead: int) -> None:
        self._pool, self._ahead = pool, ahead

    def __call__(self, work: Callable[[A], B], pieces: Iterable[A]) -> Iterator[tuple[A, B]]:
        waiting: deque[tuple[A, Future[B]]] = deque()
        for piece in pieces:
            waiting.append((piece, self._submit(work, piece)))
            if len(waiting) > self._ahead:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()

    def later(self, work: Callable[[A], B], piece: A) -> Callable[[], B]:
        """See Share."""
        return self._submit(work, piece).result

    def _submit(self, work: Callable[[A], B], piece: A) -> Future[B]:
        with warnings.catch_warnings():
            # copying a process that has threads: ours wait for work, and NumPy's are not used by the copies
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._pool.submit(work, piece)
