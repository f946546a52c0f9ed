"""The inputs read, scanned and routed again: does the report tell what stands in them?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from undersong.evaluate import RoutedThread
from undersong.manifest import text_hash
from undersong.models import Message, Row
from undersong.options import Options, silent
from undersong.passes import ingest_and_scan, routed_threads
from undersong.routing.route import Policy
from undersong.scan import load_book
from undersong.stores import Redaction, Tombstone
from undersong.stores.forget import PSEUDONYM, digest, pseudonym
from undersong.stores.sqlite import temporary_store
from undersong.verdict import session_verdict
from undersong.verify.content import Content
from undersong.verify.discrepancy import Discrepancy, NotPossibleError
from undersong.verify.rerun import AGAIN, messages_of, unlike_scan
from undersong.verify.turns import parts_of, unknown, unlike_input

ROUTED = ("tier", "tier_before", "width", "sampled", "reasons")


def replay_inputs(content: Content, inputs: Sequence[Path]) -> Iterator[Discrepancy]:
    """Messages, free signals, routes and scores that do not come out of the inputs, the files in their order.

    Raises NotPossibleError, once the texts are compared, where conversations have other names than in the report, as
    those without an id of their own can have after a file was renamed.
    """
    rows = {(row.conversation, row.id): row for row in content.rows}
    verdicts = {session.conversation: session for session in content.case.sessions}
    options = options_of(content.case.parameters)
    forgotten, parts = _forgotten(content.rows, inputs, options), parts_of(content)
    with temporary_store() as store:
        for name in forgotten:
            store.redact(Redaction(name=name, tombstone=_tombstone(name)))
        corpus = ingest_and_scan(inputs, store, load_book(), options, silent)
        texts = {text_hash(m.text) for name in corpus.conversations for m in store.conversation(name)[0].messages}
        yield from _texts(content, texts)
        if set(corpus.conversations) != verdicts.keys():
            raise NotPossibleError("the conversations have other names here")
        yield from unknown(parts, corpus.conversations)
        for thread in routed_threads(corpus, store, options):
            yield from unlike_input(parts.get(thread.conversation.id, ()), thread.conversation)
            yield from _thread(thread, rows)
            reported = verdicts[thread.conversation.id]
            judged = _judged(thread, rows)
            again = session_verdict(thread.conversation, thread.scans, thread.thread, judged, reported.confirmations)
            names = [name for name in again.__struct_fields__ if getattr(reported, name) != getattr(again, name)]
            if names:
                where = f"session {thread.conversation.id}"
                yield Discrepancy(what=f"{', '.join(names)}: {AGAIN} from the inputs", where=where)


def _forgotten(rows: Iterable[Row], inputs: Sequence[Path], options: Options) -> list[str]:
    """The agents of the inputs for whom the report has a pseudonym, since its store was told to forget them."""
    pseudonyms = {name for row in rows for name in (row.agent, row.target) if name and name.startswith(PSEUDONYM)}
    if not pseudonyms:
        return []
    with temporary_store() as store:
        corpus = ingest_and_scan(inputs, store, load_book(), options, silent)
        messages = (message for name in corpus.conversations for message in store.conversation(name)[0].messages)
        named = {name for message in messages for name in (message.agent, message.target) if name}
    return sorted(name for name in named if pseudonym(name) in pseudonyms)


def _tombstone(name: str) -> Tombstone:
    return Tombstone(kind="agent", digest=digest(name), forgotten=datetime(1970, 1, 1, tzinfo=UTC), messages=0)


def options_of(parameters: Mapping[str, Any]) -> Options:
    """What the audit was asked for, from the parameters of its report."""
    router = {name.removeprefix("router_"): value for name, value in parameters.items() if name.startswith("router_")}
    since = parameters.get("since")
    return Options(
        source_format=parameters.get("source_format"),
        read_all=parameters.get("read_all") is True,
        budget_share=parameters.get("budget_share"),
        recall=parameters.get("recall"),
        seed=parameters.get("seed", 0),
        only=tuple(parameters.get("only", ())),
        since=None if since is None else datetime.fromisoformat(since),
        policy=msgspec.convert(router, Policy) if router else None,
    )


def _texts(content: Content, texts: set[str]) -> Iterator[Discrepancy]:
    reported: list[Message] = [*messages_of(content.conversations), *content.case.cited]
    missing = {message.id: None for message in reported if text_hash(message.text) not in texts}
    yield from (Discrepancy(what="its text stands in no input", where=message_id) for message_id in missing)


def _thread(thread: RoutedThread, rows: Mapping[tuple[str, str], Row]) -> Iterator[Discrepancy]:
    for scan, route in zip(thread.scans, thread.routes, strict=True):
        row = rows.get((thread.conversation.id, scan.message_id))
        if row is None:
            yield Discrepancy(what="stands in the inputs and not in evaluations.jsonl", where=scan.message_id)
            continue
        names = unlike_scan(row, scan) + [name for name in ROUTED if getattr(row, name) != getattr(route, name)]
        if names:
            yield Discrepancy(what=f"{', '.join(names)}: {AGAIN} from the inputs", where=row.id)


def _judged(thread: RoutedThread, rows: Mapping[tuple[str, str], Row]) -> list[Row]:
    """The rows of a thread as the verdict saw them: with texts and hits, and with the scores of the report."""
    return [
        msgspec.structs.replace(row, text=message.text, hits=scan.hits)
        for message, scan in zip(thread.conversation.messages, thread.scans, strict=True)
        if (row := rows.get((thread.conversation.id, message.id))) is not None
    ]
