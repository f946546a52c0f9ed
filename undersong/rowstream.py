"""Files → rows of the scan, without a store: spooled and scanned batch by batch, then routed and written.

Routing needs the whole run (how much asks to be read, and what an agent said elsewhere), so that scans wait on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import numpy as np

from undersong.budget import TRIAGE, Cut, Demand
from undersong.earlier import Directed, SameTarget
from undersong.formats.settle import settle
from undersong.formats.sources import Share
from undersong.formats.spool import Spool, Stored
from undersong.ingest import gather
from undersong.models import Conversation, Problem, Row, Scan, ThreadScan, encode
from undersong.route import Policy, draft, route, sample_rate, with_upgrades
from undersong.scan import SignalBook, scan_conversations
from undersong.workers import workers

BATCH = 131_072  # bytes of the input that are scanned together: the arrays stay in the processor's cache
KEPT = 24 << 20  # bytes that are not returned to the system between batches, at most; more than a batch needs

Write = Callable[[bytes], object]
Threads = tuple[tuple[Conversation, tuple[Scan, ...], ThreadScan], ...]


class Work(NamedTuple):
    """What every batch needs: the spool it lies in, the book, and what the user chose."""

    spool: Spool
    book: SignalBook
    policy: Policy
    signals: frozenset[str]
    seed: int
    text: bool
    keep: Callable[[Conversation], bool]
    cut_of: Callable[[Demand], Cut]


class Written(NamedTuple):
    """A batch done: its rows and its rows of conversations as JSON Lines, and how many messages it had.

    ``left_out`` counts the conversations that the user did not choose.
    """

    rows: bytes
    threads: bytes
    problems: tuple[Problem, ...]
    messages: int
    left_out: int = 0


class Scanned(NamedTuple):
    """A batch scanned and not yet routed: ``threads`` encoded, and what it asks for, per conversation.

    ``asks`` are (rank, triage score) of every message, ``directed`` what reading backwards over conversations needs.
    """

    threads: bytes
    problems: tuple[Problem, ...]
    messages: int
    asks: list[list[tuple[int, float | None]]]
    directed: list[list[Directed]]
    left_out: int


class Routing(NamedTuple):
    """What the whole run decides for every batch; ``also`` maps conversations of the batch to their messages."""

    cut: Cut
    rate: float


_work: list[Work] = []  # of this run; processes that are copied from this one find it here


def stream(
    paths: str | Path | Sequence[str | Path],
    source_format: str | None,
    processes: int,
    work: Callable[[Spool], Work],
) -> Iterator[Problem | Written]:
    """The problems of reading, then the batches in the order of the input; the same for any number of processes.

    Memory is bounded by the largest conversation: conversations lie in a spool until their turn comes.
    """
    _keep_memory()
    with Spool() as spool, workers(processes) as share:
        _work.append(work(spool))
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
    demand, earlier = Demand(), SameTarget(work.policy.look_back)
    lengths: list[tuple[int, int]] = []  # bytes and conversations of each batch on disk
    conversations = 0
    with tempfile.TemporaryFile() as waiting:
        for _, scanned in share(_scan, _in_batches(work.spool.stored())):
            for asks, directed in zip(scanned.asks, scanned.directed, strict=True):
                for rank, score in asks:
                    demand.add(rank, score)
                for each in directed:
                    earlier.add_directed(conversations, each)
                conversations += 1
            waiting.write(scanned.threads)
            lengths.append((len(scanned.threads), len(scanned.asks)))
            yield Written(b"", b"", scanned.problems, 0, scanned.left_out)
        also: dict[int, dict[int, str]] = {}
        for conversation, place, score, flagged in earlier.found():
            also.setdefault(conversation, {})[place] = flagged
            demand.promote(score)
        cut = work.cut_of(demand)
        routing = Routing(cut, sample_rate(work.policy, demand.unread(cut)))
        waiting.seek(0)
        for _, written in share(partial(_write, routing), _waiting(waiting, lengths, also)):
            yield written


def _waiting(
    file: IO[bytes], lengths: Iterable[tuple[int, int]], also: dict[int, dict[int, str]]
) -> Iterator[tuple[bytes, list[dict[int, str]]]]:
    """Each batch from disk, with what a flag elsewhere routes in each of its conversations."""
    first = 0
    for length, conversations in lengths:
        yield file.read(length), [also.get(first + place, {}) for place in range(conversations)]
        first += conversations


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
    """The first work of a process: scan a batch and say what it asks for."""
    work = _work[-1]
    problems: list[Problem] = []
    conversations: list[Conversation] = []
    for stored in batch:
        conversation, notes = settle(work.spool.parts(stored))
        problems += notes
        if work.keep(conversation):
            conversations.append(conversation)
    scanned = scan_conversations(conversations, work.book, work.signals)
    threads: Threads = tuple((each, *found) for each, found in zip(conversations, scanned, strict=True))
    asked = [_asked(*thread, work.policy) for thread in threads]
    messages = sum(len(scans) for scans, _ in scanned)
    asks, directed = [each[0] for each in asked], [each[1] for each in asked]
    return Scanned(_pack(threads), tuple(problems), messages, asks, directed, len(batch) - len(conversations))


def _asked(
    conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan, policy: Policy
) -> tuple[list[tuple[int, float | None]], list[Directed]]:
    ranks = draft(conversation, scans, thread, policy).ranks
    asks = [(rank, scan.triage) for rank, scan in zip(ranks, scans, strict=True)]
    found = (
        Directed.of(place, message, flagged=bool(scan.total), score=scan.triage if rank == TRIAGE else None)
        for place, (message, scan, rank) in enumerate(zip(conversation.messages, scans, ranks, strict=True))
    )
    return asks, [each for each in found if each is not None]


def _write(routing: Routing, batch: tuple[bytes, list[dict[int, str]]]) -> Written:
    """The second work of a process: route a batch and write its rows."""
    work, (packed, also) = _work[-1], batch
    rows: list[Row] = []
    threads: list[bytes] = []
    for (conversation, scans, thread), elsewhere in zip(_unpack(packed), also, strict=True):
        routes = route(
            conversation, scans, thread, work.policy,
            rate=routing.rate, seed=work.seed, cut=routing.cut, also=elsewhere,
        )  # fmt: skip
        threads.append(encode(with_upgrades(thread, conversation, routes)))
        for parts in zip(conversation.messages, scans, routes, strict=True):
            row = Row.of(*parts)
            rows.append(row if work.text else msgspec.structs.replace(row, text=None))
    lines = b"".join(b"%b\n" % line for line in threads)
    return Written(_encode_lines(rows), lines, (), len(rows))


_encode_lines = msgspec.json.Encoder().encode_lines
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Threads).decode
