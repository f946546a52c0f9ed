"""Export and import of a store as records, one a line; merge and sync use the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

import msgspec

from undersong.errors import InputError
from undersong.models import (
    Conversation,
    Evaluation,
    Finding,
    Lead,
    LedgerClaim,
    Record,
    Review,
    Route,
    Row,
    Scan,
    ThreadScan,
)
from undersong.stores.erasure import PSEUDONYM, Forgotten, digest, forget, routes_without, signals_without
from undersong.stores.protocol import Forgettable, Redaction, Store, Tombstone
from undersong.stores.reviewing import evidence_places

VERSION = 2  # 2: claims, leads and reviews
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
    claims: tuple[LedgerClaim, ...] = ()


class FindingRecord(Record, frozen=True, kw_only=True, tag="finding", tag_field="record"):
    """A finding."""

    finding: Finding


class LeadRecord(Record, frozen=True, kw_only=True, tag="lead", tag_field="record"):
    """A lead."""

    lead: Lead


class ReviewRecord(Record, frozen=True, kw_only=True, tag="review", tag_field="record"):
    """A review."""

    review: Review


class TombstoneRecord(Record, frozen=True, kw_only=True, tag="grave", tag_field="record"):
    """What was forgotten, so that it is forgotten elsewhere too."""

    grave: Tombstone


ExportRecord: TypeAlias = ExportHeader | TombstoneRecord | ThreadRecord | FindingRecord | LeadRecord | ReviewRecord


class ImportCounts(Record, frozen=True, kw_only=True):
    """How much an import brought; ``older`` are conversations of which the store holds a longer or the same version."""

    threads: int = 0
    rows: int = 0
    findings: int = 0
    leads: int = 0
    reviews: int = 0
    older: int = 0
    forgotten: int = 0


def export_records(store: Store) -> Iterator[ExportRecord]:
    """The whole content of a store: tombstones first, then thread by thread, then findings, leads and reviews."""
    yield ExportHeader(version=VERSION)
    yield from (TombstoneRecord(grave=grave) for grave in store.tombstones())
    judges = [judge.judge_hash for judge in store.judges()]
    stored = set(store.conversations())
    for name in sorted(stored | set(store.threads())):
        record = ThreadRecord(id=name, rows=tuple(row for judge in judges for row in store.thread(name, judge)))
        yield _with_conversation(store, record) if name in stored else record
    yield from (FindingRecord(finding=finding) for finding in store.findings())
    if store.keeps_reviews:
        yield from (LeadRecord(lead=lead) for lead in store.leads())
        yield from (ReviewRecord(review=review) for review in store.reviews())


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

    Of two versions of a conversation the longer one stands, of equally long ones the store's own; a lead that the store
    has stays, reviews come together. The same records again change nothing.
    """
    taken, findings, leads, reviews = ImportCounts(), list[Finding](), list[Lead](), list[Review]()
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
        elif isinstance(record, LeadRecord) and not _names_forgotten(store, record.lead, forgotten):
            leads.append(record.lead)
        elif isinstance(record, ReviewRecord) and not _reviews_forgotten(store, record.review, forgotten):
            reviews.append(record.review)
        if len(findings) >= _BATCH:
            store.append((), findings)
            taken, findings = _add(taken, ImportCounts(findings=len(findings))), []
    store.append((), findings)
    counts = ImportCounts(findings=len(findings), leads=_take_leads(store, leads), reviews=len(reviews))
    if reviews:
        store.add_reviews(reviews)
    return _add(taken, counts)


def _take_leads(store: Store, leads: Sequence[Lead]) -> int:
    """Put the leads that are not there; says how many."""
    new = [lead for lead in leads if store.keeps_reviews and store.lead(lead.id) is None]
    store.put_leads((), new)
    return len(new)


def _with_conversation(store: Store, record: ThreadRecord) -> ThreadRecord:
    conversation, scans, thread = store.conversation(record.id)
    return msgspec.structs.replace(
        record,
        conversation=conversation,
        scans=scans,
        thread=thread,
        routes=store.routes(record.id),
        answers=store.evaluations(record.id),
        claims=tuple(store.claims(record.id)) if store.keeps_reviews else (),
    )


def _take_thread(store: Store, record: ThreadRecord, forgotten: Forgotten) -> ImportCounts:
    if forgotten.conversation(record.id):
        return ImportCounts(forgotten=1)
    conversation = record.conversation
    newer = conversation is not None and len(conversation.messages) > (store.length(record.id) or 0)
    if conversation is not None and record.thread is not None:
        shown = forgotten.without(conversation)
        if newer:
            thread = record.thread
            for agent in forgotten.named(conversation):
                thread = signals_without(thread, agent)
            hidden = _hidden(shown, conversation)
            scans = tuple(Scan(message_id=s.message_id) if s.message_id in hidden else s for s in record.scans)
            store.put_conversation(shown, scans, thread)
        if newer or store.conversation(record.id)[0].messages == shown.messages:
            _take_readings(store, record, shown, forgotten, newer=newer)
    claims = [each for each in record.claims if not _names_forgotten(store, each, forgotten)]
    if claims and (newer or (store.keeps_reviews and not any(store.claims(record.id)))):
        store.put_claims([record.id], claims)
    rows = [row for row in record.rows if not (forgotten.agent(row.agent) or forgotten.agent(row.target or ""))]
    store.append(rows)
    return ImportCounts(threads=1, rows=len(rows), older=int(conversation is not None and not newer))


def _take_readings(
    store: Store, record: ThreadRecord, shown: Conversation, forgotten: Forgotten, *, newer: bool
) -> None:
    """Routes and answers of a conversation; of one that is there already where it has none.

    An import that was killed after it had put the conversation has put neither: the same import again brings them.
    """
    conversation = record.conversation
    assert conversation is not None, record.id
    if newer or not store.routes(record.id):
        routes = record.routes
        for agent in forgotten.named(conversation):
            routes = routes_without(routes, agent)
        store.put_routes([(record.id, routes)])
    if newer or not any(store.evaluations(record.id)):
        hidden = _hidden(shown, conversation)
        store.put_answers((record.id, answer) for answer in record.answers if answer.message_id not in hidden)


def _hidden(shown: Conversation, conversation: Conversation) -> set[str]:
    """Ids of the messages of which something was forgotten."""
    return {now.id for now, then in zip(shown.messages, conversation.messages, strict=True) if now != then}


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


def _names_forgotten(store: Store, item: Lead | LedgerClaim, forgotten: Forgotten) -> bool:
    return bool(forgotten.agent(item.agent)) or _rests_on_forgotten(store, evidence_places(item), forgotten)


def _reviews_forgotten(store: Store, review: Review, forgotten: Forgotten) -> bool:
    agents = any(forgotten.agent(name) for name in (review.agent, review.target or "", review.reviewer))
    return agents or _rests_on_forgotten(store, [row[:2] for row in review.rows], forgotten)


def _rests_on_forgotten(store: Store, places: Iterable[tuple[str, str]], forgotten: Forgotten) -> bool:
    """Whether a conversation was forgotten, or who wrote one of the messages was."""
    by_conversation: dict[str, list[str]] = {}
    for name, message_id in places:
        by_conversation.setdefault(name, []).append(message_id)
    if any(map(forgotten.conversation, by_conversation)):
        return True
    messages = (message for name, ids in by_conversation.items() for message in store.messages(name, ids))
    return any(message.agent.startswith(PSEUDONYM) for message in messages)


def _add(a: ImportCounts, b: ImportCounts) -> ImportCounts:
    sums = {name: getattr(a, name) + getattr(b, name) for name in ImportCounts.__struct_fields__}
    return ImportCounts(**sums)
