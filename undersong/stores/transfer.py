"""Export and import of a store as records, one a line; merge and sync use the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeAlias

import msgspec

from undersong.errors import InputError
from undersong.models import Conversation, Evaluation, Finding, Record, Route, Row, Scan, ThreadScan
from undersong.stores.erasure import Forgotten, digest, forget, routes_without, signals_without
from undersong.stores.protocol import Forgettable, Redaction, Store, Tombstone

VERSION = 1
_BATCH = 1_000  # findings that are put together


class ExportHeader(Record, frozen=True, kw_only=True, tag="undersong-store", tag_field="record"):
    """The first line of an export."""

    version: int


class ThreadRecord(Record, frozen=True, kw_only=True, tag="thread", tag_field="record"):
    """All records of one conversation; ``conversation`` is None where only rows were ever put."""

    id: str
    conversation: Conversation | None = None
    scans: tuple[Scan, ...] = ()
    thread: ThreadScan | None = None
    routes: tuple[Route, ...] = ()
    answers: tuple[Evaluation, ...] = ()
    rows: tuple[Row, ...] = ()


class FindingRecord(Record, frozen=True, kw_only=True, tag="finding", tag_field="record"):
    """A finding."""

    finding: Finding


class TombstoneRecord(Record, frozen=True, kw_only=True, tag="grave", tag_field="record"):
    """What was forgotten, so that it is forgotten elsewhere too."""

    grave: Tombstone


ExportRecord: TypeAlias = ExportHeader | TombstoneRecord | ThreadRecord | FindingRecord


class ImportCounts(Record, frozen=True, kw_only=True):
    """How much an import brought; ``older`` are conversations of which the store holds a longer or the same version."""

    threads: int = 0
    rows: int = 0
    findings: int = 0
    older: int = 0
    forgotten: int = 0


def export_records(store: Store) -> Iterator[ExportRecord]:
    """The whole content of a store: tombstones first, then thread by thread, then the findings."""
    yield ExportHeader(version=VERSION)
    yield from (TombstoneRecord(grave=grave) for grave in store.tombstones())
    judges = [judge.judge_hash for judge in store.judges()]
    stored = set(store.conversations())
    for name in sorted(stored | set(store.threads())):
        record = ThreadRecord(id=name, rows=tuple(row for judge in judges for row in store.thread(name, judge)))
        yield _with_conversation(store, record) if name in stored else record
    yield from (FindingRecord(finding=finding) for finding in store.findings())


def read_records(lines: Iterable[bytes], name: str) -> Iterator[ExportRecord]:
    """The records of an export; ``name`` is its file. Raises InputError with the line of a wrong one."""
    decoder: msgspec.json.Decoder[ExportRecord] = msgspec.json.Decoder(ExportRecord)
    for number, line in enumerate(lines, 1):
        try:
            record = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            remedy = "export the store again; what stands before this line was imported"
            raise InputError(f"not a record of a store: {error}", where=f"{name}:{number}", remedy=remedy) from error
        if isinstance(record, ExportHeader) and record.version > VERSION:
            what = f"version {record.version} is newer than this program"
            raise InputError(what, where=f"{name}:{number}", remedy="upgrade undersong")
        yield record


def import_records(store: Store, incoming: Iterable[ExportRecord], now: datetime) -> ImportCounts:
    """Put records into a store; what either has forgotten stays forgotten. ``now`` is the time of new tombstones.

    Of two versions of a conversation the longer one stands, of equally long ones the store's own. The same records
    again change nothing.
    """
    taken, findings = ImportCounts(), list[Finding]()
    forgotten: Forgotten | None = None
    for record in incoming:
        if isinstance(record, TombstoneRecord):
            _erase(store, record.grave, now)
            forgotten = None
            continue
        forgotten = forgotten or Forgotten(store.tombstones())
        if isinstance(record, ThreadRecord):
            taken = _add(taken, _take_thread(store, record, forgotten))
        elif isinstance(record, FindingRecord) and not _is_forgotten(record.finding, forgotten):
            findings.append(record.finding)
        if len(findings) >= _BATCH:
            store.append((), findings)
            taken, findings = _add(taken, ImportCounts(findings=len(findings))), []
    store.append((), findings)
    return _add(taken, ImportCounts(findings=len(findings)))


def _with_conversation(store: Store, record: ThreadRecord) -> ThreadRecord:
    conversation, scans, thread = store.conversation(record.id)
    return msgspec.structs.replace(
        record,
        conversation=conversation,
        scans=scans,
        thread=thread,
        routes=store.routes(record.id),
        answers=store.evaluations(record.id),
    )


def _take_thread(store: Store, record: ThreadRecord, forgotten: Forgotten) -> ImportCounts:
    if forgotten.conversation(record.id):
        return ImportCounts(forgotten=1)
    conversation = record.conversation
    newer = conversation is not None and len(conversation.messages) > (store.length(record.id) or 0)
    if newer and conversation is not None and record.thread is not None:
        shown = forgotten.without(conversation)
        hidden = {now.id for now, then in zip(shown.messages, conversation.messages, strict=True) if now != then}
        scans = tuple(Scan(message_id=s.message_id) if s.message_id in hidden else s for s in record.scans)
        thread, routes = record.thread, record.routes
        for agent in forgotten.named(conversation):
            thread, routes = signals_without(thread, agent), routes_without(routes, agent)
        store.put_conversation(shown, scans, thread)
        store.put_routes([(record.id, routes)])
        store.put_answers((record.id, answer) for answer in record.answers if answer.message_id not in hidden)
    rows = [row for row in record.rows if not (forgotten.agent(row.agent) or forgotten.agent(row.target or ""))]
    store.append(rows)
    return ImportCounts(threads=1, rows=len(rows), older=int(conversation is not None and not newer))


def _erase(store: Store, tombstone: Tombstone, now: datetime) -> None:
    """Forget what the tombstone names, where it is here; where it is not, it must not come either."""
    if any((each.kind, each.digest) == (tombstone.kind, tombstone.digest) for each in store.tombstones()):
        return
    name = next((each for each in sorted(_names(store, tombstone.kind)) if digest(each) == tombstone.digest), None)
    if name is None:
        store.redact(Redaction(name=tombstone.digest, tombstone=tombstone, elsewhere=True))
    else:
        forget(store, name, now, tombstone.kind)


def _names(store: Store, kind: Forgettable) -> set[str]:
    """The conversations of a store; or the agents, also those who are only spoken to."""
    conversations = {*store.conversations(), *store.threads()}
    if kind == "conversation":
        return conversations
    judges = [judge.judge_hash for judge in store.judges()]
    rows = (row for name in conversations for judge in judges for row in store.thread(name, judge))
    messages = (message for name in store.conversations() for message in store.conversation(name)[0].messages)
    named = {*((each.agent, each.target) for each in rows), *((each.agent, each.target) for each in messages)}
    return {name for pair in named for name in pair if name}


def _is_forgotten(finding: Finding, forgotten: Forgotten) -> bool:
    agents = any(forgotten.agent(name) for name in (finding.agent, finding.target or ""))
    return agents or any(forgotten.conversation(name) for name in finding.conversations)


def _add(a: ImportCounts, b: ImportCounts) -> ImportCounts:
    sums = {name: getattr(a, name) + getattr(b, name) for name in ImportCounts.__struct_fields__}
    return ImportCounts(**sums)
