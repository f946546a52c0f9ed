"""Files → rows of the scan, without a store: read into a spool, then scanned, routed and written batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.formats.settle import settle
from undersong.formats.sources import Share
from undersong.formats.spool import Spool, Stored
from undersong.ingest import gather
from undersong.models import Conversation, Problem, Row, Scan, ThreadScan, encode
from undersong.route import Policy, flag_tier, route, sample_rate, with_upgrades
from undersong.scan import SignalBook, scan_conversations
from undersong.workers import workers

BATCH = 131_072  # bytes of the input that are scanned together: the arrays stay in the processor's cache
KEPT = 24 << 20  # bytes that are not returned to the system between batches, at most; more than a batch needs
HELD = 16_384  # messages that wait for the rate of the audit sample; more are scanned again

Write = Callable[[bytes], object]


class Work(NamedTuple):
    """What every batch needs: the spool it lies in, the book, and what the user chose."""

    spool: Spool
    book: SignalBook
    policy: Policy
    signals: frozenset[str]
    seed: int
    text: bool
    keep: Callable[[Conversation], bool]


class Written(NamedTuple):
    """A batch done: its rows and its rows of conversations as JSON Lines, and how many messages it had."""

    rows: bytes
    threads: bytes
    problems: tuple[Problem, ...]
    messages: int


class Scanned(NamedTuple):
    """A batch scanned and not yet routed."""

    threads: tuple[tuple[Conversation, tuple[Scan, ...], ThreadScan], ...]
    problems: tuple[Problem, ...]
    messages: int

    @property
    def unflagged(self) -> int:
        """How many messages have no flag of their own."""
        return sum(flag_tier(scan) == "standard" for _, scans, _ in self.threads for scan in scans)


_work: list[Work] = []  # of this run; processes that are copied from this one find it here


def stream(
    paths: Sequence[str | Path],
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
    """All batches written. The audit sample's rate depends on the number of unflagged messages until there are many."""
    batches = _in_batches(work.spool.stored())
    held: list[Scanned] = []
    messages = unflagged = 0
    for batch in batches:
        scanned = _scan(work, batch)
        messages, unflagged = messages + scanned.messages, unflagged + scanned.unflagged
        held.append(scanned)
        if messages > HELD or _is_settled(work.policy, unflagged):
            break
    if messages > HELD and not _is_settled(work.policy, unflagged):
        held.clear()
        unflagged += sum(number for _, number in share(_unflagged, batches))
        batches = _in_batches(work.spool.stored())
    rate = sample_rate(work.policy, unflagged)
    for scanned in held:
        yield _written(work, scanned, rate)
    held.clear()
    for _, written in share(partial(_rows, rate), batches):
        yield written


def _is_settled(policy: Policy, unflagged: int) -> bool:
    """Whether more unflagged messages would not change the rate of the audit sample."""
    return sample_rate(policy, unflagged) == policy.sample_rate


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


def _rows(rate: float, batch: list[Stored]) -> Written:
    """The work of a process: scan a batch and write its rows, at a rate of the audit sample."""
    return _written(_work[-1], _scan(_work[-1], batch), rate)


def _unflagged(batch: list[Stored]) -> int:
    return _scan(_work[-1], batch).unflagged


def _scan(work: Work, batch: Iterable[Stored]) -> Scanned:
    problems: list[Problem] = []
    conversations: list[Conversation] = []
    for stored in batch:
        conversation, notes = settle(work.spool.parts(stored))
        problems += notes
        if work.keep(conversation):
            conversations.append(conversation)
    scanned = scan_conversations(conversations, work.book, work.signals)
    threads = tuple((each, *found) for each, found in zip(conversations, scanned, strict=True))
    return Scanned(threads, tuple(problems), sum(len(scans) for scans, _ in scanned))


def _written(work: Work, scanned: Scanned, rate: float) -> Written:
    rows: list[Row] = []
    threads: list[bytes] = []
    for conversation, scans, thread in scanned.threads:
        routes = route(conversation, scans, thread, work.policy, rate=rate, seed=work.seed)
        threads.append(encode(with_upgrades(thread, conversation, routes)))
        for parts in zip(conversation.messages, scans, routes, strict=True):
            row = Row.of(*parts)
            rows.append(row if work.text else msgspec.structs.replace(row, text=None))
    lines = b"".join(b"%b\n" % line for line in threads)
    return Written(_encode_lines(rows), lines, scanned.problems, scanned.messages)


_encode_lines = msgspec.json.Encoder().encode_lines
