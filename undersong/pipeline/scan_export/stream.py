"""Files → rows of the scan in two passes: scan to a spill file, then route and write."""

from __future__ import annotations

import pickle
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.core.collection import rare_collection
from undersong.core.processes import shared_out
from undersong.formats.ingest import Gathered, gather
from undersong.formats.normalize import normalize_conversation
from undersong.formats.spool import SpillFile, Spool, SpooledConversation
from undersong.models import Conversation, Message, Problem, Route, Scan, encode
from undersong.pipeline.options import Options, Progress, chosen, matched_none, reading_cutoff, silent
from undersong.pipeline.scan_export.rows import Bytes, EncodedRows, RunRouting, encode_rows, patch_routes
from undersong.routing.budget import NEVER, DemandHistogram, Draws, Levels, draws
from undersong.routing.lookback import DirectedMessage, LookBackIndex
from undersong.routing.route import (
    Policy,
    directed_of,
    levels_of,
    load_policy,
    propose,
    unbudgeted_routes,
    with_upgrades,
)
from undersong.scan import load_book, scan_conversations

Write = Callable[[Bytes], object]
PIECE = 1 << 19  # bytes of the input that are scanned together, which is measured to be the fastest
MANY = 200  # parts from which on it costs less to put them together than to write each
RETAINED_BYTES = 24 << 20  # bytes that are not returned to the system between pieces, at most; more than one needs


class ScanJob(NamedTuple):
    """What the scan of every piece needs; ``threads``: rows of conversations are wanted too."""

    options: Options
    policy: Policy
    text: bool
    threads: bool


class ScannedChunk(NamedTuple):
    """Some conversations of a run after the scan: rows and numbers of each message, and what routing needs to know.

    ``first`` has the number of messages before each conversation, ``names`` its id, and ``directed`` goes with the
    index of one.
    """

    rows: EncodedRows
    draws: Draws
    levels: Levels
    first: list[int]
    names: list[str]
    directed: list[tuple[int, DirectedMessage]]
    threads: bytes
    problems: list[Problem]
    left_out: int

    @property
    def counted(self) -> Draws:
        """The draws, NEVER for what another conversation may call for."""
        counted_draws = self.draws.copy()
        asked = [self.first[number] + message.place for number, message in self.directed if message.score is not None]
        counted_draws[asked] = NEVER
        return counted_draws


def scan_rows(
    paths: str | Path | Sequence[str | Path],
    options: Options,
    write: Write,
    *,
    write_thread: Write | None = None,
    progress: Progress | None = None,
    text: bool = True,
) -> list[Problem]:
    """Write one JSON row per scanned and routed message, and one per conversation; returns what was not read.

    The rows are the same for any number of processes. Memory is bounded by the largest conversation.
    """
    tell, done, left_out = progress or silent, 0, 0
    own = msgspec.structs.replace(options, rules=None)
    job = ScanJob(own, options.policy or load_policy(), text, write_thread is not None)
    demand, earlier = DemandHistogram(job.policy.sample_minimum), LookBackIndex(job.policy.look_back)
    _retain_memory()
    with (
        rare_collection(),
        Spool(early=True) as spool,
        SpillFile() as spill,
        shared_out(options.processes) as share,
    ):
        pieces = _Pieces(
            gather(
                paths,
                spool,
                source_format=options.source_format,
                dates=options.dates,
                fields=options.fields,
                hashed=False,
            ),
            spool,
        )
        for chunk in share(partial(scan_chunk, job), pieces):
            pieces.scanned.append(_put(spill, chunk))
            done += len(chunk.levels)
            tell("scan", done, 0)
        problems, places, done = pieces.problems, pieces.in_order(), 0
        for place in places:
            chunk = _get(spill, place)
            demand.add(chunk.levels, chunk.counted)
            for number, directed in chunk.directed:
                earlier.add_directed(chunk.names[number], directed)
            problems += chunk.problems
            if write_thread:
                write_thread(chunk.threads)
            done += len(chunk.levels)
            left_out += chunk.left_out
        also = earlier.resolve(demand)
        cut = reading_cutoff(demand, options, job.policy, load_book().triage)
        routing = RunRouting(cut, demand.sample_rate(cut, job.policy.sample_rate))
        for place in places:
            chunk = _get(spill, place)
            chunk = chunk._replace(rows=chunk.rows._replace(data=spill.get(*place.rows)))
            for part in _routed(chunk, routing, also):
                write(part)
    tell("scan", done, 0)
    if left_out and not done:
        raise matched_none(options, left_out)
    return problems


def _routed(chunk: ScannedChunk, routing: RunRouting, also: dict[str, dict[int, str]]) -> Sequence[Bytes]:
    """The rows of a chunk as they are routed; ``also`` has the messages that others call for, by conversation and by
    place."""
    called = {
        start + place: flag
        for name, start in zip(chunk.names, chunk.first, strict=True)
        if also and name in also
        for place, flag in also[name].items()
    }
    parts = patch_routes(chunk.rows, chunk.levels, chunk.draws, routing, called)
    return parts if len(parts) < MANY else (b"".join(parts),)


class _ChunkPlace(NamedTuple):
    """Where the rows of a chunk and the rest of it lie in the spill file: offset and size."""

    rows: tuple[int, int]
    rest: tuple[int, int]


def _put(spill: SpillFile, chunk: ScannedChunk) -> _ChunkPlace:
    rest = chunk._replace(rows=chunk.rows._replace(data=b""))
    return _ChunkPlace(spill.put(chunk.rows.data), spill.put(pickle.dumps(rest)))


def _get(spill: SpillFile, place: _ChunkPlace) -> ScannedChunk:
    """The chunk without the bytes of its rows."""
    chunk: ScannedChunk = pickle.loads(spill.get(*place.rest))
    return chunk


class _Pieces:
    """The conversations of a run, as many together as are scanned at once: first those that seem whole, while the input
    is read, then what they leave of the run.

    ``scanned``: who scans the pieces puts here, in turn, where the chunk of each lies.
    """

    def __init__(self, read: Iterable[Gathered], spool: Spool) -> None:
        self.problems: list[Problem] = []
        self.scanned: list[_ChunkPlace] = []
        self._read, self._spool = read, spool
        self._numbers: list[range] = []  # of the conversations of each piece; empty where one was not whole

    def __iter__(self) -> Iterator[list[SpooledConversation]]:
        yield from self._in_pieces(self._while_read())
        self._numbers = [numbers if self._spool.is_whole(numbers) else range(0) for numbers in self._numbers]
        done = [numbers for numbers in self._numbers if numbers]
        yield from self._in_pieces(self._spool.stored(done), [numbers.start for numbers in done])

    def in_order(self) -> list[_ChunkPlace]:
        """Where the chunks lie that make up the run."""
        chunks = zip(self._numbers, self.scanned, strict=True)
        return [place for _, place in sorted((numbers.start, place) for numbers, place in chunks if numbers)]

    def _while_read(self) -> Iterator[SpooledConversation]:
        for item in self._read:
            if isinstance(item, SpooledConversation):
                yield item
            elif isinstance(item, Problem):
                self.problems.append(item)

    def _in_pieces(
        self, conversations: Iterable[SpooledConversation], between: Sequence[int] = ()
    ) -> Iterator[list[SpooledConversation]]:
        """Pieces of conversations that follow each other, none of the numbers ``between`` them."""
        piece: list[SpooledConversation] = []
        size = 0
        for spooled in conversations:
            if size >= PIECE or (piece and bisect(between, piece[0].number) < bisect(between, spooled.number)):
                yield self._numbered(piece)
                piece, size = [], 0
            piece.append(spooled)
            size += spooled.size
        if piece:
            yield self._numbered(piece)

    def _numbered(self, piece: list[SpooledConversation]) -> list[SpooledConversation]:
        self._numbers.append(range(piece[0].number, piece[-1].number + 1))
        return piece


def scan_chunk(job: ScanJob, stored: Iterable[SpooledConversation]) -> ScannedChunk:
    """Scan conversations and encode their rows as if no budget cut anything."""
    problems: list[Problem] = []
    wanted: list[Conversation] = []
    names: list[str] = []
    sizes: list[int] = []  # 0 where the user left a conversation out
    for spooled in stored:
        conversation, notes = normalize_conversation(spooled.decoded())
        problems += notes
        is_wanted = chosen(conversation, job.options)
        names.append(conversation.id)
        sizes.append(len(conversation.messages) if is_wanted else 0)
        if is_wanted:
            wanted.append(conversation)
    drawn = draws(job.options.seed, [message for conversation in wanted for message in conversation.messages])
    first = (np.cumsum(sizes) - sizes).tolist()
    levels, rows, threads = list[int](), list[tuple[Message, Scan, Route]](), list[bytes]()
    directed: list[tuple[int, DirectedMessage]] = []
    scanned = scan_conversations(wanted, load_book(), frozenset(job.options.signals), summed=job.threads)
    places = [number for number, size in enumerate(sizes) if size]
    for number, conversation, (scans, thread) in zip(places, wanted, scanned, strict=True):
        messages = conversation.messages
        proposal = propose(conversation, scans, thread, job.policy)
        routes = unbudgeted_routes(proposal)
        own_draws = drawn[first[number] : first[number] + len(messages)]
        levels += levels_of(scans, proposal.ranks)
        directed += ((number, each) for each in directed_of(messages, scans, proposal.ranks, own_draws))
        rows += zip(messages, scans, routes, strict=True)
        if job.threads:
            threads.append(encode(with_upgrades(thread, conversation, routes)) + b"\n")
    return ScannedChunk(
        rows=encode_rows(rows, text=job.text),
        draws=drawn,
        levels=np.array(levels, dtype=np.int16),
        first=first,
        names=names,
        directed=directed,
        threads=b"".join(threads),
        problems=problems,
        left_out=len(sizes) - len(wanted),
    )


def _retain_memory() -> None:
    """Have the C library retain what it was given back, so that each piece finds its memory where the last one had it.

    glibc learns from the largest piece that was given back; this one is never touched and takes no memory.
    """
    np.empty(RETAINED_BYTES, dtype=np.uint8)
