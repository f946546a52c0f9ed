"""Scanned messages as lines of JSON: of a message without hits all but a few keys are bytes made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.formats.normalize import normalize_conversation
from undersong.formats.spill import SpillFile, SpillLocation
from undersong.formats.spool import Spool
from undersong.models import Conversation, Message, Observed, Problem, Role, Route, Row, Scan, SourceRef
from undersong.routing.audit_sample import NEVER, Draws, Levels, draws
from undersong.routing.budget import BudgetCutoff, DemandHistogram
from undersong.routing.lookback import DirectedMessage
from undersong.routing.route import UNREAD, Policy, directed_of, levels_of, propose, unbudgeted_routes, with_upgrades
from undersong.scan import SignalBook, scan_conversations

Lengths = npt.NDArray[np.int32]
LINE_FEED = 0x0A
_VARIED = ("tier", "tier_before", "width", "sampled", "reasons", "triage", "deference")
_encoder = msgspec.json.Encoder()
_FIRST, _AFTER = b'"tier":', b',"source_ref":'  # what lies between them is the same for many rows


class EncodedRows(NamedTuple):
    """Rows as JSON Lines, and how many bytes each takes with its line end."""

    data: bytearray
    lengths: Lengths


class _PreEncodedRow(msgspec.Struct, frozen=True, gc=False):
    """A Row whose keys from ``tier`` to ``source_ref`` are there as bytes, the first one without its name."""

    id: str
    conversation: str
    position: int
    time: datetime | None
    agent: str
    target: str | None
    role: Role
    observed: Observed
    branch: str | None
    text: str | None
    tier: msgspec.Raw
    source_ref: SourceRef | None
    reading: None = None
    bands: None = None


class RowWriter:
    """Rows of messages, appended one after the other; ``text`` False leaves the texts out.

    The bytes are those of ``Row.of`` encoded, for any message.
    """

    def __init__(self, text: bool) -> None:
        self._text = text
        self._data = bytearray()
        self._ends = [0]

    def extend(self, messages: Iterable[Message], scans: Iterable[Scan], routes: Iterable[Route]) -> None:
        """Append the rows of messages."""
        data, ended, encode_into, with_text = self._data, self._ends.append, _encoder.encode_into, self._text
        for message, scan, route in zip(messages, scans, routes, strict=True):
            rest = _rest_of(scan, route)
            row = (
                Row.of(message, scan, route)
                if rest is None
                else _PreEncodedRow(
                    message.id, message.conversation, message.position, message.time, message.agent, message.target,
                    message.role, message.observed, message.branch, message.text, rest, message.source_ref,
                )
            )  # fmt: skip
            encode_into(row if with_text else msgspec.structs.replace(row, text=None), data, -1)
            data.append(LINE_FEED)
            ended(len(data))

    def lines(self) -> EncodedRows:
        """What was appended."""
        lengths = np.array([after - before for before, after in pairwise(self._ends)], dtype=np.int32)
        return EncodedRows(self._data, lengths)


def _rest_of(scan: Scan, route: Route) -> msgspec.Raw | None:
    """What a row has between its text and its place, None where the scan found something."""
    if (
        scan.hits
        or scan.loops
        or scan.sentiment_score
        or scan.code_change_delta is not None
        or scan.latency_drop is not None
    ):
        return None
    if route is UNREAD and scan.triage is None is scan.deference:
        return _NOTHING_SAID
    return _without_hits(
        route.tier, route.tier_before, route.width, route.sampled, route.reasons, scan.triage, scan.deference
    )


@lru_cache(maxsize=4096)
def _without_hits(*values: object) -> msgspec.Raw:
    """The rest of a row without hits, from its routed keys, its triage score and its deference."""
    row = msgspec.structs.replace(_UNFLAGGED, **dict(zip(_VARIED, values, strict=True)))
    data = _encoder.encode(row)
    first = data.index(_FIRST) + len(_FIRST)
    return msgspec.Raw(data[first : data.index(_AFTER, first)])


_UNFLAGGED = Row.of(
    Message(id="", conversation="", position=0, author="", role="agent", text=""), Scan(message_id=""), UNREAD
)
_NOTHING_SAID = _without_hits(*(getattr(_UNFLAGGED, name) for name in _VARIED))


A = TypeVar("A")
BATCH = 1 << 19  # characters that are scanned together: most pieces are one batch, which is measured to be the fastest


class ScanJob(NamedTuple):
    """What every piece needs: where the input lies and where rows wait, the book, and what the user chose.

    ``threads``: rows of conversations are wanted too.
    """

    spool: Spool
    spill_file: SpillFile
    book: SignalBook
    policy: Policy
    signals: frozenset[str]
    seed: int
    text: bool
    threads: bool
    keep: Callable[[Conversation], bool]
    cut_of: Callable[[DemandHistogram], BudgetCutoff]


class ScanChunk(NamedTuple):
    """Where the rows of some conversations wait, and after them what is known of each, in so many bytes."""

    place: SpillLocation
    tail: int
    messages: int


class _Tail(msgspec.Struct, array_like=True):
    """Arrays as bytes: messages of each conversation (0 where the user left it out), and of each message the length of
    its row, its draw and its level. The rest is by the number of the conversation in the piece."""

    sizes: bytes
    lengths: bytes
    draws: bytes
    levels: bytes
    directed: list[tuple[int, DirectedMessage]]
    threads: list[bytes]
    problems: list[tuple[int, Problem]]


class ChunkPortion(NamedTuple):
    """Conversations of a piece that follow each other in the run, as they were written."""

    rows: SpillLocation
    lengths: Lengths
    draws: Draws
    levels: Levels
    first: list[int]  # the number of messages before each conversation
    directed: list[tuple[int, DirectedMessage]]
    threads: bytes
    problems: tuple[Problem, ...]
    left_out: int

    @property
    def counted(self) -> Draws:
        """The draws, NEVER for what another conversation may call for."""
        counted_draws = self.draws.copy()
        counted_draws[[self.first[number] + each.place for number, each in self.directed if each.score is not None]] = (
            NEVER
        )
        return counted_draws


class _ChunkWriter:
    """What is gathered while the conversations of a piece are scanned."""

    def __init__(self, work: ScanJob) -> None:
        self.work = work
        self.place = work.spill_file.put()
        self.lengths: list[Lengths] = []
        self.draws: list[Draws] = []
        self.levels: list[int] = []
        self.sizes: list[int] = []  # messages of each conversation
        self.directed: list[tuple[int, DirectedMessage]] = []
        self.threads: list[bytes] = []

    def add(self, batch: list[Conversation | None]) -> None:
        """Scan some conversations; None stands for one that is left out."""
        work, chosen = self.work, [each for each in batch if each is not None]
        rows, first = RowWriter(work.text), 0
        scanned = iter(scan_conversations(chosen, work.book, work.signals, summed=work.threads))
        drawn = draws(work.seed, [message for each in chosen for message in each.messages])
        self.draws.append(drawn)
        for conversation in batch:
            if conversation is None:
                self.sizes.append(0)
                self.threads.append(b"")
                continue
            messages, (scans, thread) = conversation.messages, next(scanned)
            drafted = propose(conversation, scans, thread, work.policy)
            routes = unbudgeted_routes(drafted)
            self.levels += levels_of(scans, drafted.ranks)
            own = directed_of(messages, scans, drafted.ranks, drawn[first : first + len(messages)])
            self.directed += ((len(self.sizes), each) for each in own)
            self.sizes.append(len(messages))
            first += len(messages)
            rows.extend(messages, scans, routes)
            if work.threads:
                self.threads.append(_encode(with_upgrades(thread, conversation, routes)) + b"\n")
        lines = rows.lines()
        self.lengths.append(lines.lengths)
        work.spill_file.put(lines.data)

    def finish(self, problems: list[tuple[int, Problem]]) -> ScanChunk:
        """Write the rest of the piece to disk."""
        tail = _encode_tail(
            _Tail(
                sizes=np.array(self.sizes, dtype=np.int32).tobytes(),
                lengths=b"".join(each.tobytes() for each in self.lengths),
                draws=b"".join(each.tobytes() for each in self.draws),
                levels=np.array(self.levels, dtype=np.int16).tobytes(),
                directed=self.directed,
                threads=self.threads if self.work.threads else [],
                problems=problems,
            )
        )
        end = self.work.spill_file.put(tail)
        size = end.offset + end.size - self.place.offset
        return ScanChunk(self.place._replace(size=size), len(tail), sum(self.sizes))


def scan_chunk(work: ScanJob, conversations: Iterable[Sequence[Conversation]]) -> ScanChunk:
    """Scan conversations, given as their parts, and write their rows as if nothing were cut."""
    written = _ChunkWriter(work)
    problems: list[tuple[int, Problem]] = []
    batch: list[Conversation | None] = []
    size = 0
    for number, parts in enumerate(conversations):
        conversation, notes = normalize_conversation(parts)
        problems += ((number, note) for note in notes)
        batch.append(conversation if work.keep(conversation) else None)
        size += sum([len(message.text) for message in conversation.messages])
        if size >= BATCH:
            written.add(batch)
            batch, size = [], 0
    written.add(batch)
    return written.finish(problems)


def portion(waiting: SpillFile, piece: ScanChunk, first: int, conversations: int) -> ChunkPortion:
    """So many conversations of a piece, from the ``first`` one."""
    place = piece.place
    tail = _decode_tail(waiting.get(place._replace(offset=place.offset + place.size - piece.tail, size=piece.tail)))
    sizes = np.frombuffer(tail.sizes, dtype=np.int32)
    lengths = np.frombuffer(tail.lengths, dtype=np.int32)
    own = sizes[first : first + conversations]
    before = int(sizes[:first].sum())
    of = slice(before, before + int(own.sum()))
    start = place.offset + int(lengths[:before].sum(dtype=np.int64))
    return ChunkPortion(
        rows=SpillLocation(place.process, start, int(lengths[of].sum(dtype=np.int64))),
        lengths=lengths[of],
        draws=np.frombuffer(tail.draws)[of],
        levels=np.frombuffer(tail.levels, dtype=np.int16)[of],
        first=(np.cumsum(own) - own).tolist(),
        directed=list(_of(tail.directed, first, conversations)),
        threads=b"".join(tail.threads[first : first + conversations]),
        problems=tuple(problem for _, problem in _of(tail.problems, first, conversations)),
        left_out=int(np.count_nonzero(own == 0)),
    )


def _of(listed: Iterable[tuple[int, A]], first: int, conversations: int) -> Iterator[tuple[int, A]]:
    """What belongs to some conversations of a piece, by their number among these."""
    return ((number - first, each) for number, each in listed if first <= number < first + conversations)


_encode = msgspec.json.Encoder().encode
_encode_tail = msgspec.msgpack.Encoder().encode
_decode_tail = msgspec.msgpack.Decoder(_Tail).decode
