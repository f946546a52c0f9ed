"""The steps of an audit as functions from Arrow record batches to Arrow record batches.

Plain Python, Spark (``mapInArrow``), Ray Data and DuckDB call the same four:

    scan_batches    messages, conversation by conversation    → scans
    score_batches   scans, as they come, and the routing      → rows
    detect_batches  rows, agent by agent, and the corpus      → findings
    weigh_batches   the same rows again, and what was found   → findings with chance, stability and confidence

Each runs over one part of a corpus, and its last batch is the part's summary. Between two steps the summaries of all
parts are merged (``summary_of``), which is all that parts have to know of each other. What comes out is the same, byte
for byte, however a corpus is parted. Needs the extra ``parquet``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from undersong.arrow.summaries import merged_summary, packed_summary, unpacked_summary
from undersong.arrow.tables import (
    _FINDINGS,
    _MESSAGES,
    _ROWS,
    _SCANS,
    ADDRESSED,
    NOT_SEARCHED,
    ConversationHeader,
    TableFormat,
    summaries,
)
from undersong.core.batches import batches as grouped
from undersong.errors import InputError
from undersong.models import Conversation, Finding, Message, Row
from undersong.pipeline.evaluate import Ledger
from undersong.pipeline.options import Options
from undersong.pipeline.partwise import (
    AgentRows,
    CorpusRouting,
    CorpusScales,
    ScannedConversation,
    ScannedPart,
    ScoredPart,
    ScoredThread,
    SearchedPart,
    WeighedPart,
    addressed_pairs,
    following_rules,
    routing_of,
    scan_part,
    score_part,
    search_part,
    weigh_part,
)
from undersong.rows.binary import with_event_times

__all__ = [
    "FINDINGS",
    "MESSAGES",
    "ROWS",
    "SCANS",
    "addressed_batches",
    "conversations_in",
    "detect_batches",
    "findings_in",
    "finished_batches",
    "message_batches",
    "routing_from",
    "row_batches",
    "rows_in",
    "scan_batches",
    "score_batches",
    "summaries",
    "summary_of",
    "timed_batches",
    "weigh_batches",
]  # fmt: skip
MESSAGES, SCANS, ROWS, FINDINGS = _MESSAGES.schema, _SCANS.schema, _ROWS.schema, _FINDINGS.schema
WRITTEN = 2048  # records of a batch that is written
SEARCHED = 50_000  # rows of whole agents that are searched together
DEFAULTS = Options()
Batches = Iterable[pa.RecordBatch]
T = TypeVar("T")


def message_batches(conversations: Iterable[Conversation]) -> Iterator[pa.RecordBatch]:
    """Conversations as batches of MESSAGES."""
    for some in grouped(conversations, WRITTEN, lambda item: len(item.messages)):
        messages = [message for each in some for message in each.messages]
        headers = [header for each in some for header in [ConversationHeader.of(each)] * len(each.messages)]
        yield _MESSAGES.batch(messages, about=headers)


def row_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows as batches of ROWS."""
    return map(_ROWS.batch, grouped(rows, WRITTEN))


def scan_batches(batches: Batches, options: Options = DEFAULTS) -> Iterator[pa.RecordBatch]:
    """MESSAGES → SCANS: every message scanned for free.

    The messages of a conversation follow each other. A table needs ``conversation``, ``author`` and ``text``, and
    ``position`` or ``time`` for their order; what else is missing is worked out as for a file. ``only``, ``since`` and
    ``thinking`` of the options choose what is scanned. Raises InputError for a conversation in two places.
    """
    part = ScannedPart(options)
    scanned = scan_part(_conversations(batches, options.thinking), options, part)
    for some in grouped(scanned, WRITTEN, lambda item: len(item[0].messages)):
        yield _scans_table(some)
    yield _SCANS.summary(packed_summary(part))


def routing_from(scanned: Iterable[bytes], options: Options = DEFAULTS) -> CorpusRouting:
    """The routing of a corpus from the summaries of all its parts (column ``summary`` of SCANS)."""
    return routing_of(summary_of(scanned, ScannedPart), options)


def score_batches(
    batches: Batches, routing: CorpusRouting, options: Options = DEFAULTS, ledger: Ledger | None = None
) -> Iterator[pa.RecordBatch]:
    """SCANS → ROWS: every message that is routed, or all where reading is free, scored by the judge of the options.

    ``profile`` and ``claims`` are those of the verdict on its conversation, ``event_time`` is what detection goes by.
    ``ledger`` has a paid judge's answers and takes new ones; without it nothing is stored. Raises JudgeError where the
    judge fails as a whole.
    """
    part = ScoredPart()
    scored = score_part(_scanned(batches), routing, options, part, ledger)
    for some in grouped(scored, WRITTEN, lambda item: len(item.rows)):
        yield _rows_table(some)
    yield _ROWS.summary(packed_summary(part))


def timed_batches(batches: Batches) -> Iterator[pa.RecordBatch]:
    """ROWS of any source → ROWS with ``event_time``: what ``score_batches`` says of rows that were scored elsewhere.

    The rows of a conversation follow each other. Raises InputError where two of them have one id.
    """
    part = ScoredPart()
    for records in _by_key(batches, lambda row: row.conversation, "conversation"):
        times = _event_times(records)
        for row in records:
            part.add(row)
        for some in grouped(records, WRITTEN):
            yield _ROWS.batch(some, event_time=[times[row.id] for row in some])
    yield _ROWS.summary(packed_summary(part))


def finished_batches(batches: Batches, corpus: ScoredPart) -> Iterator[pa.RecordBatch]:
    """ROWS with what the whole corpus says of them: ranks where levels are not measured, and the names of bands."""
    scales = CorpusScales(corpus)
    for batch in batches:
        records, extras = _ROWS.read(batch)
        yield _ROWS.batch([scales.of(row) for row in records], **extras)


def detect_batches(batches: Batches, corpus: ScoredPart, options: Options = DEFAULTS) -> Iterator[pa.RecordBatch]:
    """ROWS → FINDINGS of the rules of the options, or of the shipped ones.

    The rows of an agent follow each other, and all rows of it are in one part; beside them may be rows of those whom
    it addressed (``beside`` names the agent), for rules that follow them. Columns that no rule asks for may be missing.
    ``corpus`` is the merged summary of all ROWS. Raises InputError for an agent in two places.
    """
    part = SearchedPart()
    for some in grouped(search_part(_agents(batches), corpus, options, part), WRITTEN):
        yield _FINDINGS.batch(some)
    yield _FINDINGS.summary(packed_summary(part))


def weigh_batches(
    batches: Batches,
    corpus: ScoredPart,
    searched: SearchedPart,
    options: Options = DEFAULTS,
    noise: Mapping[str, float] | None = None,
) -> Iterator[pa.RecordBatch]:
    """ROWS of agents with findings → their FINDINGS with chance, stability and confidence; q is still null.

    As ``detect_batches``; ``searched`` is the merged summary of what that found, ``noise`` the judge's own. q follows
    from the tests of all parts: ``summary_of(…, WeighedPart).corrected(findings, searched)``.
    """
    part = WeighedPart()
    weighed = weigh_part(_agents(batches), corpus, searched, options, part, noise)
    for some in grouped(weighed, WRITTEN):
        yield _FINDINGS.batch(some)
    yield _FINDINGS.summary(packed_summary(part))


def summary_of(parts: Iterable[bytes], kind: type[T]) -> T:
    """The summary of a corpus from those of its parts; raises InputError where one is of another step."""
    several: Iterator[Any] = (_of_kind(unpacked_summary(each), kind) for each in parts)
    whole: T = merged_summary(several)
    return whole


def rows_in(batches: Batches) -> Iterator[Row]:
    """The rows of batches of ROWS."""
    return chain.from_iterable(_ROWS.read(batch).records for batch in batches)


def findings_in(batches: Batches) -> Iterator[Finding]:
    """The findings of batches of FINDINGS."""
    return chain.from_iterable(_FINDINGS.read(batch).records for batch in batches)


def conversations_in(batches: Batches) -> Iterator[Conversation]:
    """The conversations of batches of MESSAGES or SCANS, in which the messages of each follow each other."""
    return _conversations(batches, True)


def addressed_batches(batches: Batches, corpus: ScoredPart, options: Options = DEFAULTS) -> Iterator[pa.RecordBatch]:
    """ROWS → who addressed whom in a row that a rule follows: ``beside`` and ``addressed``.

    The rows of whoever was addressed belong beside those of the agent who did (``detect_batches``).
    """
    rules = following_rules(options, corpus)
    for batch in batches:
        pairs = sorted(addressed_pairs(_ROWS.read(batch, NOT_SEARCHED).records, rules))
        columns = [pa.array([pair[place] for pair in pairs], pa.string()) for place in (0, 1)]
        yield pa.RecordBatch.from_arrays(columns, schema=ADDRESSED)


def _of_kind(summary: Any, kind: type[T]) -> T:
    if not isinstance(summary, kind):
        remedy = "merge the summaries of the step before"
        raise InputError(f"a summary is {type(summary).__name__}, not {kind.__name__}", remedy=remedy)
    return summary


def _conversations(batches: Batches, thinking: bool) -> Iterator[Conversation]:
    """The conversations of messages that follow each other."""
    records = _contiguous(_pairs(_MESSAGES, batches, "about"), lambda item: str(item[0].conversation), "conversation")
    for name, members in records:
        header = next((each for _, each in members if each is not None), ConversationHeader())
        messages: list[Message] = [message for message, _ in members]
        if not thinking:
            messages = [msgspec.structs.replace(message, thinking="") for message in messages]
        yield header.conversation(name, messages)


def _scanned(batches: Batches) -> Iterator[ScannedConversation]:
    """Scanned conversations of SCANS."""
    records = _contiguous(
        _pairs(_SCANS, batches, "about", "scan", "thread"), lambda item: str(item[0].conversation), "conversation"
    )
    for name, members in records:
        messages, headers, scans, threads = zip(*members, strict=True)
        if headers[0] is None or None in scans or threads[0] is None:
            remedy = "give what scan_batches made, in its order"
            raise InputError("a message without its scan", where=f"conversation {name}", remedy=remedy)
        yield headers[0].conversation(name, messages), scans, threads[0]


def _scans_table(scanned: Sequence[ScannedConversation]) -> pa.RecordBatch:
    headers, threads = list[Any](), list[Any]()
    for conversation, scans, thread in scanned:
        headers += [ConversationHeader.of(conversation)] * len(scans)
        threads += [thread, *[None] * (len(scans) - 1)]
    messages = [message for conversation, _, _ in scanned for message in conversation.messages]
    scans_in_order = [scan for _, scans, _ in scanned for scan in scans]
    return _SCANS.batch(messages, about=headers, scan=scans_in_order, thread=threads)


def _rows_table(threads: Sequence[ScoredThread]) -> pa.RecordBatch:
    times, claims, profiles = list[Any](), list[Any](), list[str | None]()
    for thread in threads:
        own_times, own_claims = _event_times(thread.rows), dict[str, list[Any]]()
        for claim in thread.verdict.claims:
            own_claims.setdefault(claim.message_id, []).append(claim)
        for row in thread.rows:
            times.append(own_times[row.id])
            claims.append(tuple(own_claims.get(row.id, ())))
            profiles.append(thread.verdict.profile)
    rows = [row for thread in threads for row in thread.rows]
    return _ROWS.batch(rows, event_time=times, claims=claims, profile=profiles)


def _event_times(rows: Sequence[Row]) -> dict[str, Any]:
    """The event time of each row of a conversation, by its id."""
    times = {row.id: row.time for row in with_event_times(rows)}
    if len(times) < len(rows):
        remedy = "give every message of a conversation an id of its own"
        raise InputError("two rows have one id", where=f"conversation {rows[0].conversation}", remedy=remedy)
    return times


def _agents(batches: Batches) -> Iterator[AgentRows]:
    """The rows of whole agents, some thousand at a time."""
    read = (_ROWS.read(batch, NOT_SEARCHED) for batch in batches)
    rows = (
        (_at(row, time), profile, beside)
        for records, extras in read
        for row, time, profile, beside in zip(
            records, extras["event_time"], extras["profile"], extras["beside"], strict=True
        )
    )
    agents = _contiguous(rows, lambda item: item[0].agent if item[2] is None else item[2], "agent")
    for some in grouped(agents, SEARCHED, lambda item: len(item[1])):
        members = [each for _, own in some for each in own]
        yield AgentRows(
            rows=[row for row, _, beside in members if beside is None],
            others=[row for row, _, beside in members if beside is not None],
            profiles={row.conversation: profile for row, profile, _ in members if profile is not None},
        )


def _at(row: Row, time: Any) -> Row:
    return row if time is None or row.time == time else msgspec.structs.replace(row, time=time)


def _by_key(batches: Batches, key: Callable[[Row], str], what: str) -> Iterator[list[Row]]:
    return (members for _, members in _contiguous(rows_in(batches), key, what))


def _pairs(table: TableFormat, batches: Batches, *names: str) -> Iterator[Any]:
    """Each record with the columns of these names beside it."""
    for batch in batches:
        records, extras = table.read(batch)
        yield from zip(records, *(extras[name] for name in names), strict=True)


def _contiguous(items: Iterable[T], key: Callable[[T], str], what: str) -> Iterator[tuple[str, list[T]]]:
    """Runs of items with one key; raises InputError where a key comes again after another one."""
    done: set[str] = set()
    for name, members in groupby(items, key):
        if name in done:
            remedy = f"sort the batches by {what}, with all of one in one part"
            raise InputError(f"its rows do not follow each other: {what} {name[:80]!r}", remedy=remedy)
        done.add(name)
        yield name, list(members)
