"""Files → rows of the scan, without a store: spooled, scanned and written batch by batch, then mended and handed out.

Routing needs the whole run (how much asks to be read, and what an agent said elsewhere), so that rows wait on disk.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.budget import Cut, Demand
from undersong.earlier import Directed, SameTarget
from undersong.formats.settle import settle
from undersong.formats.sources import Share
from undersong.formats.spool import Spool, Stored
from undersong.ingest import gather
from undersong.models import Conversation, Problem, Row, ThreadScan
from undersong.route import Asked, Policy, asked, draft, uncut, with_upgrades
from undersong.scan import SignalBook, scan_conversations
from undersong.splice import Routing, spliced
from undersong.waiting import Place, Waiting
from undersong.workers import workers

BATCH_NUMBERS = 5  # that are kept of each batch
BATCH = 1 << 17  # bytes of the input that are scanned together: the arrays stay in the processor's cache
KEPT = 24 << 20  # bytes that are not returned to the system between batches, at most; more than a batch needs


class Work(NamedTuple):
    """What every batch needs: where it lies and where its rows wait, the book, and what the user chose.

    ``threads``: rows of conversations are wanted too.
    """

    spool: Spool
    waiting: Waiting
    book: SignalBook
    policy: Policy
    signals: frozenset[str]
    seed: int
    text: bool
    threads: bool
    keep: Callable[[Conversation], bool]
    cut_of: Callable[[Demand], Cut]


class Written(NamedTuple):
    """A batch done: its rows or its rows of conversations as JSON Lines, and how many messages were scanned for it.

    ``left_out`` counts the conversations that the user did not choose.
    """

    rows: bytes = b""
    threads: bytes = b""
    problems: tuple[Problem, ...] = ()
    messages: int = 0
    left_out: int = 0


class Scanned(NamedTuple):
    """A batch whose rows wait for their routes at ``place``, after the numbers of messages per conversation, their
    levels and their draws.

    ``levels`` and ``counted`` are what the batch asks for, ``directed`` what reading backwards over conversations
    needs: the number of the conversation in the batch, and the message.
    """

    place: Place
    conversations: int
    levels: bytes
    counted: bytes
    directed: list[tuple[int, Directed]]
    threads: bytes
    problems: tuple[Problem, ...]
    left_out: int


_work: list[Work] = []  # of this run; processes that are copied from this one find it here


def stream(
    paths: str | Path | Sequence[str | Path],
    source_format: str | None,
    processes: int,
    work: Callable[[Spool, Waiting], Work],
) -> Iterator[Problem | Written]:
    """The problems of reading, then the batches in the order of the input; the same for any number of processes.

    Memory is bounded by the largest conversation: conversations lie in a spool until their turn comes.
    """
    _keep_memory()
    with Spool() as spool, Waiting() as waiting, workers(processes) as share:
        _work.append(work(spool, waiting))
        try:
            for item in gather(paths, spool, source_format=source_format, share=share):
                if isinstance(item, Problem):
                    yield item
            yield from _batches(_work[-1], share)
        finally:
            _work.pop()


def _keep_memory() -> None:
    """Have the C library keep what it was given back, so that each batch finds its memory where the last one had it.

    glibc learns from the largest piece that was given back; this one is never touched and takes no memory.
    """
    np.empty(KEPT, dtype=np.uint8)


def _batches(work: Work, share: Share) -> Iterator[Written]:
    demand, earlier = Demand(work.policy.sample_minimum), SameTarget(work.policy.look_back)
    places = array("q")  # of each batch: process, offset, size, conversations, messages
    conversations = 0
    for _, scanned in share(_scan, _in_batches(work.spool.stored())):
        levels = np.frombuffer(scanned.levels, dtype=np.int16)
        demand.add(levels, np.frombuffer(scanned.counted))
        for number, each in scanned.directed:
            earlier.add_directed(conversations + number, each)
        conversations += scanned.conversations
        places.extend((*scanned.place, scanned.conversations, len(levels)))
        yield Written(b"", scanned.threads, scanned.problems, len(levels), scanned.left_out)
    also = earlier.settle(demand)
    cut = work.cut_of(demand)
    routing = Routing(cut, demand.sample_rate(cut, work.policy.sample_rate))
    first = 0
    for at in range(0, len(places), BATCH_NUMBERS):
        *where, conversations, messages = places[at : at + BATCH_NUMBERS]
        called = {number: also[first + number] for number in range(conversations) if first + number in also}
        yield Written(_routed(work.waiting.get(Place(*where)), conversations, messages, routing, called))
        first += conversations


def _routed(data: bytes, conversations: int, messages: int, routing: Routing, also: dict[int, dict[int, str]]) -> bytes:
    """The rows of a batch, from what waits on disk; ``also`` is by the number of the conversation in the batch."""
    sizes = np.frombuffer(data, dtype=np.int64, count=conversations)
    draws = np.frombuffer(data, dtype=np.float64, count=messages, offset=sizes.nbytes)
    levels = np.frombuffer(data, dtype=np.int16, count=messages, offset=sizes.nbytes + draws.nbytes)
    rows = data[sizes.nbytes + draws.nbytes + levels.nbytes :]
    starts = np.cumsum(sizes) - sizes
    called = {int(starts[number]) + place: flag for number, own in also.items() for place, flag in own.items()}
    return spliced(rows, levels, draws, routing, called)


def _in_batches(conversations: Iterable[Stored]) -> Iterator[list[Stored]]:
    batch: list[Stored] = []
    size = 0
    for stored in conversations:
        batch.append(stored)
        size += stored.size
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _scan(batch: list[Stored]) -> Scanned:
    """The work of a process: scan a batch, write its rows as if nothing were cut, and say what it asks for."""
    work = _work[-1]
    problems: list[Problem] = []
    conversations: list[Conversation] = []
    for stored in batch:
        conversation, notes = settle(work.spool.parts(stored))
        problems += notes
        if work.keep(conversation):
            conversations.append(conversation)
    asks: list[Asked] = []
    rows: list[Row] = []
    threads: list[ThreadScan] = []
    scanned = scan_conversations(conversations, work.book, work.signals, summed=work.threads)
    for conversation, (scans, thread) in zip(conversations, scanned, strict=True):
        drafted = draft(conversation, scans, thread, work.policy)
        asks.append(asked(conversation, scans, drafted.ranks, work.seed))
        routes = uncut(drafted)
        rows += map(Row.of, conversation.messages, scans, routes)
        if work.threads:
            threads.append(with_upgrades(thread, conversation, routes))
    if not work.text:
        rows = [msgspec.structs.replace(row, text=None) for row in rows]
    sizes = np.array([len(each.levels) for each in asks], dtype=np.int64)
    levels = b"".join(each.levels.tobytes() for each in asks)
    draws = b"".join(each.draws.tobytes() for each in asks)
    return Scanned(
        place=work.waiting.put(sizes.tobytes(), draws, levels, _encode_lines(rows)),
        conversations=len(asks),
        levels=levels,
        counted=b"".join(each.counted.tobytes() for each in asks),
        directed=[(number, each) for number, own in enumerate(asks) for each in own.directed],
        threads=_encode_lines(threads),
        problems=tuple(problems),
        left_out=len(batch) - len(conversations),
    )


_encode_lines = msgspec.json.Encoder().encode_lines
