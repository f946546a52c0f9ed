"""The steps from the inputs to the verdict, replayed: messages, free signals, routes and scores beside the report's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from undersong.core.text import text_hash
from undersong.models import Case, Conversation, Message, Row
from undersong.pipeline.case_builder import read_up_to
from undersong.pipeline.options import Options, silent
from undersong.pipeline.stages import AuditCorpus, ingest_and_scan, routed_threads
from undersong.report.writer import CASE, CONVERSATIONS, EVALUATIONS
from undersong.routing.budget import Census
from undersong.routing.route import Policy
from undersong.scan import load_book
from undersong.stores.erasure import PSEUDONYM, digest, pseudonym
from undersong.stores.protocol import Redaction, Tombstone
from undersong.stores.sqlite import temporary_store
from undersong.verify.manifest_check import Content, Discrepancy, NotPossibleError
from undersong.verify.recompute import compare_conversation

# of source_ref the folder is left out, since a report may be checked elsewhere than where it was made
FACTS = ("position", "author", "agent", "role", "target", "time", "reply_to", "branch", "observed", "model", "latency",
         "tokens", "tool_calls", "tool_results", "thinking")  # fmt: skip
OF_INPUTS = frozenset({"file", "record"})  # kinds of problems that only reading the inputs makes
READ_FACTS = ("size", "source_format", "conversations", "messages", "skipped")  # of an input; its name may differ here
LONG = frozenset({"tool_calls", "tool_results", "thinking"})  # named without their values
Turn = Message | Row
INPUTS = ("stands in the inputs", "the inputs")  # how a missing row and a difference name them


def replay_inputs(content: Content, inputs: Sequence[Path]) -> Iterator[Discrepancy]:
    """Messages, free signals, routes and scores that do not come out of the inputs, the files in their order.

    Raises NotPossibleError, once the texts are compared, where conversations have other names than in the report, as
    those without an id of their own can have after a file was renamed.
    """
    if content.case.parameters.get("add"):
        raise NotPossibleError("the report was made with --add: earlier messages are those of its store")
    rows = {(row.conversation, row.id): row for row in content.rows}
    verdicts = {session.conversation: session for session in content.case.sessions}
    options = options_of(content.case.parameters)
    forgotten, parts = _forgotten(content.rows, inputs, options), parts_of(content)
    with temporary_store() as store:
        for name in forgotten:
            store.redact(Redaction(name=name, tombstone=_tombstone(name)))
        corpus = ingest_and_scan(inputs, store, load_book(), options, silent)
        yield from _reading(content.case, corpus)
        texts = {text_hash(m.text) for name in corpus.conversations for m in store.conversation(name)[0].messages}
        yield from _texts(content, texts)
        if set(corpus.conversations) != verdicts.keys():
            raise NotPossibleError("the conversations have other names here")
        yield from unknown(parts, corpus.conversations)
        census, upgrades = Census(), Counter[str]()
        for thread in routed_threads(corpus, store, options):
            conversation = thread.conversation
            upgrades.update(thread.thread.upgrades)
            for message in conversation.messages:
                if row := rows.get((conversation.id, message.id)):
                    census.add(row, blank=not message.text.strip())
            yield from unlike_input(parts.get(conversation.id, ()), conversation)
            yield from compare_conversation(
                conversation, thread.scans, thread.thread, rows, verdicts[conversation.id], INPUTS, thread.routes
            )
    if content.case.upgrades != dict(upgrades):
        yield Discrepancy(what="whom thread signals raised does not come out of the inputs again", where=CASE)
    if content.case.missed != census.missed():
        yield Discrepancy(what="what the router left out does not come out of the inputs again", where=CASE)


def _reading(case: Case, corpus: AuditCorpus) -> Iterator[Discrepancy]:
    """How the inputs were read: their facts, what could not be read, and the rate of the audit sample."""
    again = {each.sha256: each for each in corpus.inputs}
    for entry in case.inputs:
        other = again.get(entry.sha256)
        for name in READ_FACTS if other is not None else ():
            one, two = getattr(entry, name), getattr(other, name)
            if one != two:
                what = f"{name} does not agree with the input"
                yield Discrepancy(what=what, where=entry.name, expected=_shown(two), found=_shown(one))
    yield from _problems(case, corpus)
    for parameter, actual in (("audit_sample_rate", corpus.rate), ("read_up_to", read_up_to(corpus.cut))):
        if (stated := case.parameters.get(parameter)) != actual:
            what = f"{parameter} does not come out of the inputs again"
            yield Discrepancy(what=what, where=CASE, expected=_shown(actual), found=_shown(stated))


def _problems(case: Case, corpus: AuditCorpus) -> Iterator[Discrepancy]:
    """Problems that were erased, and those that reading the inputs does not make."""
    reported, actual = (Counter((each.kind, each.what) for each in every.problems) for every in (case, corpus))
    places = {(each.kind, each.what): each.where for each in (*case.problems, *corpus.problems)}
    for problem, number in (actual - reported).items():
        what = f"a problem of the inputs is not in the report: {problem[1]} ({number} ×)"
        yield Discrepancy(what=what, where=places[problem])
    for problem, number in (reported - actual).items():
        if problem[0] in OF_INPUTS:
            what = f"a problem that the inputs do not have: {problem[1]} ({number} ×)"
            yield Discrepancy(what=what, where=places[problem])


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
        dates=parameters.get("dates"),
        fields=parameters.get("fields"),
        read_all=parameters.get("read_all") is True,
        budget_share=parameters.get("budget_share"),
        recall=parameters.get("recall"),
        seed=parameters.get("seed", 0),
        only=tuple(parameters.get("only", ())),
        since=None if since is None else datetime.fromisoformat(since),
        policy=msgspec.convert(router, Policy) if router else None,
        thinking=parameters.get("thinking") is not False,
    )


def _texts(content: Content, texts: set[str]) -> Iterator[Discrepancy]:
    reported = (message for conversation in content.conversations for message in conversation.messages)
    missing = {m.id: None for m in (*reported, *content.case.cited) if text_hash(m.text) not in texts}
    yield from (Discrepancy(what="its text stands in no input", where=message_id) for message_id in missing)


class ReportPart(NamedTuple):
    """What one file of the report holds of a conversation; ``whole`` where it must hold every message."""

    file: str
    turns: list[Turn]
    whole: bool


def parts_of(content: Content) -> dict[str, list[ReportPart]]:
    """Conversation → what each file of the report holds of it."""
    parts: dict[str, list[ReportPart]] = {}
    for conversation in content.conversations:
        parts.setdefault(conversation.id, []).append(ReportPart(CONVERSATIONS, list(conversation.messages), whole=True))
    for file, turns, whole in ((EVALUATIONS, content.rows, True), (CASE, content.case.cited, False)):
        for name, grouped in _by_conversation(turns).items():
            parts.setdefault(name, []).append(ReportPart(file, grouped, whole))
    return parts


def unlike_input(parts: Sequence[ReportPart], conversation: Conversation) -> Iterator[Discrepancy]:
    """How the messages of a report differ from a conversation of the inputs; each difference once."""
    differences: dict[Discrepancy, None] = {}
    own = {message.id: message for message in conversation.messages}
    for part in parts:
        for turn in part.turns:
            if turn.id in own:
                differences |= dict.fromkeys(_facts(turn, own[turn.id]))
            else:
                differences[Discrepancy(what=f"is in {part.file} and in no input", where=turn.id)] = None
        if part.whole:
            differences |= dict.fromkeys(_order(part, list(own)))
    yield from differences


def unknown(parts: Mapping[str, Sequence[ReportPart]], conversations: Sequence[str]) -> Iterator[Discrepancy]:
    """Conversations of the report that none of the inputs has."""
    for name in parts.keys() - set(conversations):
        for part in parts[name]:
            yield Discrepancy(what=f"is in {part.file} and in no input", where=f"conversation {name}")


def _by_conversation(turns: Sequence[Turn]) -> dict[str, list[Turn]]:
    grouped: dict[str, list[Turn]] = {}
    for turn in turns:
        grouped.setdefault(turn.conversation, []).append(turn)
    return grouped


def _facts(turn: Turn, own: Message) -> Iterator[Discrepancy]:
    for name in FACTS:
        actual, expected = getattr(turn, name, getattr(own, name)), getattr(own, name)
        if actual != expected:
            values = {} if name in LONG else {"expected": _shown(expected), "found": _shown(actual)}
            yield Discrepancy(what=f"{name} does not agree with the input", where=turn.id, **values)
    if isinstance(turn, Message) and _place(turn) != _place(own):
        sides = {"expected": str(own.source_ref), "found": str(turn.source_ref)}
        yield Discrepancy(what="place in the input does not agree", where=turn.id, **sides)
    if isinstance(turn, Message) and text_hash(turn.text) != text_hash(own.text):
        yield Discrepancy(what="text does not agree with the input", where=turn.id)


def _place(message: Message) -> tuple[str, int | None, str | None] | None:
    """Where a message stands in its file, whatever folder that is in."""
    ref = message.source_ref
    return None if ref is None else (Path(ref.file).name, ref.line, ref.pointer)


def _order(part: ReportPart, own: Sequence[str]) -> Iterator[Discrepancy]:
    """Messages that a file leaves out or holds at another place, counted from 1 among those that both have."""
    input_ids = set(own)
    reported = [turn.id for turn in part.turns if turn.id in input_ids]
    present = set(reported)
    both = [each for each in own if each in present]
    for message_id in own:
        if message_id not in present and part.file != EVALUATIONS:  # rows that are missing are named by the scan
            yield Discrepancy(what=f"is in the inputs and not in {part.file}", where=message_id)
    for place, message_id in enumerate(reported):
        if both[place : place + 1] != [message_id]:
            sides = {"expected": str(both.index(message_id) + 1), "found": str(place + 1)}
            yield Discrepancy(what=f"place in {part.file} does not agree with the input", where=message_id, **sides)


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "none" if value is None else str(value)
