"""Integrity check of a store: every record can be read, and references lead somewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from undersong.errors import StoreError
from undersong.models import evidence_hash
from undersong.stores.protocol import Store


def problems(store: Store, digest: str | None = None) -> Iterator[str]:
    """What is wrong with a store, in words; reads all of it, in a file as of one moment, whoever writes meanwhile.

    ``digest`` is that of its content when it was last checked; without it, it is not compared.
    """
    with store.repeatable_read():
        if digest is not None and (now := store.digest()) != digest.strip().lower():
            yield f"the content is not that of the digest {digest}; its own is {now}"
        yield from store.integrity_errors()
        yield from _conversations(store)
        yield from _histories(store)
        yield from _findings(store)
        if store.keeps_reviews:
            yield from _reviewed(store)


def _conversations(store: Store) -> Iterator[str]:
    for name in store.conversations():
        try:
            conversation, _, _ = store.conversation(name)
            routes, answers = store.routes(name), store.evaluations(name)
        except StoreError as error:
            yield f"conversation {name}: {error.what}"
            continue
        if routes and len(routes) != len(conversation.messages):
            yield f"conversation {name}: {len(conversation.messages)} messages and {len(routes)} routes"
        message_ids = {message.id for message in conversation.messages}
        yield from (
            f"conversation {name}: an answer for {a.message_id}, which is not there"
            for a in answers
            if a.message_id not in message_ids
        )


def _histories(store: Store) -> Iterator[str]:
    for judge in store.judges():
        try:
            rows = sum(len(history.rows) for history in store.histories(judge.judge_hash))
        except StoreError as error:
            yield f"histories of {judge.judge or 'an unnamed judge'}: {error.what}"
            continue
        if rows != judge.rows:
            yield f"histories of {judge.judge or 'an unnamed judge'}: {judge.rows} rows, and {rows} by agent"


def _findings(store: Store) -> Iterator[str]:
    try:
        findings = tuple(store.findings())
    except StoreError as error:
        yield f"findings: {error.what}"
        return
    stored = {*store.conversations(), *store.threads()}
    for finding in findings:
        lost = [name for name in finding.conversations if name not in stored]
        if lost:
            yield f"finding {finding.finding_id}: conversation {lost[0]} is not there"


def _reviewed(store: Store) -> Iterator[str]:
    """Leads and claims that cannot be read, and reviews that are not of the messages that they name."""
    for name, read in (("leads", store.leads), ("claims", store.claims)):
        try:
            deque(read(), maxlen=0)
        except StoreError as error:
            yield f"{name}: {error.what}"
    try:
        reviews = tuple(store.reviews())
    except StoreError as error:
        yield f"reviews: {error.what}"
        return
    for review in reviews:
        if review.evidence != evidence_hash(review.rows):
            yield f"review of {review.kind} {review.id}: its evidence is not the hash of its messages"
