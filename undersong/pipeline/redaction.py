"""Redaction of a report: case, rows and conversations with secrets and listed names masked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from undersong.core.text import text_hash
from undersong.datafiles.yaml_loader import RULES, file_hash
from undersong.ml.ngrams import words_of
from undersong.models import (
    Case,
    Confirmed,
    Conversation,
    Deduction,
    Finding,
    Indicator,
    Moment,
    Quote,
    Record,
    Row,
    SequenceReading,
    SessionVerdict,
    StageReading,
    Why,
)
from undersong.patterns.detect import RowSearch, quote, strongest_sentences
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.lead_quotes import with_quotes
from undersong.patterns.outcome import with_outcome
from undersong.patterns.request_leads import all_leads
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import estimate_significance
from undersong.pipeline.judged_findings import reading_facts, with_disagreement, with_readings
from undersong.pipeline.lead_kinds import with_kinds
from undersong.pipeline.masking import FILE, Masked, Masker
from undersong.scan import load_book, scan_conversation
from undersong.verdict import agent_verdicts, with_ledger

__all__ = ["hashes", "redacted"]


N = TypeVar("N", bound=Record)
ConversationLoader = Callable[[str], Conversation]
Texts: TypeAlias = Mapping[tuple[str, str], Masked]  # by conversation and message id
GONE = "(words of a message with something masked)"
TEXTS = frozenset({
    "text", "title", "explanation", "what", "remedy", "notes", "context", "session_context_vector", "input", "reason",
    "raw", "quote", "claim",
})  # fmt: skip
FIXED = frozenset({
    "role", "observed", "tier", "tier_before", "state", "width", "level", "kind", "status", "assessment", "basis",
    "mechanism", "mechanisms", "pattern", "code", "judge", "judges", "judge_hash", "scope", "trait", "traits",
    "label", "signals", "flags", "finding_id", "rule_hash", "version", "hashes", "tiers", "states", "highest",
    "stages", "measures", "balance", "codes", "protective", "conduct", "guns", "candidates", "hard_constraints",
    "indicators", "source_format", "sha256", "why", "bands", "spans", "unmapped",
})  # fmt: skip


def redacted(
    case: Case,
    rows: Sequence[Row],
    load_conversation: ConversationLoader,
    rules: Sequence[PatternRule],
    effort: ResamplingConfig | None,
    names: Iterable[str] = (),
) -> tuple[Case, list[Row], Callable[[str], Conversation | None]]:
    """The case, its rows and its conversations with every e-mail, phone, key and listed name masked.

    A secret has the same mask wherever it stands, so who is who can still be told. Hashes of messages and quotes are
    those of the masked texts: the hash of a text with one number masked would give the number away to whoever tries all
    of them. Where a mask changes who an agent is, findings are looked for again, since their ids and their chance
    follow from the names. ``case.parameters["redacted"]`` says what was masked, and how often; the names are not in it.
    """
    masker = Masker(names)
    masks = {each.conversation: masker.name(each.conversation) for each in case.sessions}
    dirty, places = _learn(masker, masks, load_conversation)
    new_rows = [_row(row, masker, dirty) for row in rows]
    texts = {(message.conversation, message.id): masker.text(message.text) for message in case.cited}
    cited = tuple(_any(message, masker) for message in case.cited)
    messages = {(message.conversation, message.id): message for message in cited}
    masked_findings = tuple(_with_masked_why(each, masker, texts) for each in case.findings)
    sequences = tuple(_sequence(each, masker, texts) for each in case.sequences)
    by_rules = tuple(each for each in masked_findings if not each.is_read)
    by_rules = tuple(_findings(by_rules, rows, new_rows, rules, effort, case))
    named = (msgspec.structs.replace(each, conversation=masks[each.conversation]) for each in case.sessions)
    facts_of_run = reading_facts(msgspec.structs.replace(case, sessions=tuple(named)), new_rows)
    findings = with_readings(by_rules, sequences, new_rows, rules, *facts_of_run)
    strongest = strongest_sentences(row for row in new_rows if (row.conversation, row.id) in messages)
    originals = {mask: name for name, mask in masks.items()}

    def masked(name: str) -> Conversation | None:
        return _conversation(load_conversation(originals[name]), masker) if name in originals else None

    sessions = tuple(_with_ledger(_session(each, masker, texts), masked) for each in case.sessions)
    quoted = with_quotes(all_leads(new_rows, findings, case.signals, sessions), new_rows, messages)
    leads = with_kinds(quoted, masked)
    facts = {**masker.counts(), "names_listed": len(masker.listed), "messages": len(dirty), "places": places}
    new = _any(
        msgspec.structs.replace(
            case, findings=(), sequences=(), leads=(), reviews=(), cited=(), sessions=(), agents=()
        ),
        masker,
    )
    again = msgspec.structs.replace(
        new,
        findings=tuple(
            each
            if each.is_read
            else _with_masked_outcome(quote(_any(each, masker), messages, strongest=strongest), masked)
            for each in findings
        ),
        sequences=sequences,
        leads=leads,
        cited=cited,
        sessions=sessions,
        agents=agent_verdicts(new_rows, sessions, findings),
        upgrades={masker.name(agent): count for agent, count in case.upgrades.items()},
        parameters=new.parameters | {"redacted": facts},
        hashes=case.hashes | hashes(),
    )
    return again, new_rows, masked


def hashes() -> dict[str, str]:
    """File name → SHA-256 of what is masked, for the manifest."""
    return {FILE: file_hash(RULES / FILE)}


def _learn(
    masker: Masker, names: Iterable[str], load_conversation: ConversationLoader
) -> tuple[dict[tuple[str, str], Masked], int]:
    """The messages in which something is masked, and how often; secrets are numbered in the order of the messages."""
    dirty, places = dict[tuple[str, str], Masked](), 0
    for name in names:
        for message in load_conversation(name).messages:
            masker.name(message.author)
            masked = masker.text(message.text)
            mask_count = len(masked.spans) + sum(len(masker.text(result.text).spans) for result in message.tool_results)
            places += mask_count
            if mask_count:
                dirty[name, message.id] = masked
    return dirty, places


def _row(row: Row, masker: Masker, dirty: Texts) -> Row:
    masked = dirty.get((row.conversation, row.id))
    hide, spans = masked is not None, row.spans
    if masked is not None:
        spans = {name: (masked.place(start), masked.after(end)) for name, (start, end) in spans.items()}
    loops = tuple(
        msgspec.structs.replace(
            loop,
            ngram=GONE if hide else masker.text(loop.ngram).text,
            message_ids=tuple(masker.name(each) for each in loop.message_ids),
        )
        for loop in row.loops
    )
    return msgspec.structs.replace(_any(msgspec.structs.replace(row, loops=()), masker), loops=loops, spans=spans)


def _findings(
    findings: Sequence[Finding],
    before: Sequence[Row],
    after: Sequence[Row],
    rules: Sequence[PatternRule],
    effort: ResamplingConfig | None,
    case: Case,
) -> Sequence[Finding]:
    """The findings, looked for again where a mask changed who somebody is or which message is meant."""

    def who(row: Row) -> tuple[str, str, str, str | None]:
        return row.id, row.conversation, row.agent, row.target

    if all(who(one) == who(other) for one, other in zip(before, after, strict=True)):
        return findings
    gives = case.parameters.get("judge_gives")
    search = RowSearch(after)
    detection = search.detect(rules, gives=None if gives is None else frozenset(gives))
    if effort is None:
        return with_disagreement(detection.findings, after, rules)
    noise = case.parameters.get("judge_noise")
    weighed = estimate_significance(detection.findings, detection.outcomes, search, rules, effort, noise)
    return with_disagreement(weighed.findings, after, rules)


def _with_masked_outcome(finding: Finding, load_conversation: Callable[[str], Conversation | None]) -> Finding:
    """The finding with its outcome in the masked conversations: quotes, places and hashes are of masked texts."""
    conversations = filter(None, map(load_conversation, finding.conversations))
    return with_outcome(finding, (message for conversation in conversations for message in conversation.messages))


def _sequence(reading: SequenceReading, masker: Masker, texts: Texts) -> SequenceReading:
    """A reading with its names masked, and its quotes as they are in the masked texts."""
    places = dict(zip(reading.message_ids, reading.message_conversations, strict=True))

    def masked(stage: StageReading) -> StageReading:
        homes = [stage.conversation or places[each.message_id] for each in stage.quotes]
        quoted = zip(stage.quotes, homes, strict=True)
        quotes = (_quote(each, masker, texts.get((home, each.message_id))) for each, home in quoted)
        ids = tuple(masker.name(name) for name in stage.message_ids)
        conversation = stage.conversation and masker.name(stage.conversation)
        return msgspec.structs.replace(stage, message_ids=ids, quotes=tuple(quotes), conversation=conversation)

    shapes = tuple(
        msgspec.structs.replace(each, innocent=masker.text(each.innocent).text, stages=tuple(map(masked, each.stages)))
        for each in reading.shapes
    )
    return msgspec.structs.replace(_any(msgspec.structs.replace(reading, shapes=()), masker), shapes=shapes)


def _session(session: SessionVerdict, masker: Masker, texts: Texts) -> SessionVerdict:
    claims = {
        field: tuple(_claim(each, masker, texts, session.conversation) for each in getattr(session, field))
        for field in ("deductions", "moments", "confirmations")
    }
    without = msgspec.structs.replace(session, **dict.fromkeys((*claims, "claims", "bypasses", "repeated"), ()))
    return msgspec.structs.replace(_any(without, masker), **claims)


def _with_ledger(session: SessionVerdict, load_conversation: Callable[[str], Conversation | None]) -> SessionVerdict:
    """The session with the ledger of its masked texts: quotes, places and hashes are theirs."""
    conversation = load_conversation(session.conversation)
    if conversation is None:
        return session
    scans, _ = scan_conversation(conversation, load_book())
    return with_ledger(session, conversation, scans)


C = TypeVar("C", Deduction, Moment, Confirmed)


def _claim(claim: C, masker: Masker, texts: Texts, name: str) -> C:
    quotes = tuple(_quote(each, masker, texts.get((name, each.message_id))) for each in claim.quotes)
    return msgspec.structs.replace(_any(msgspec.structs.replace(claim, quotes=()), masker), quotes=quotes)


def _quote(quote: Quote, masker: Masker, masked: Masked | None) -> Quote:
    new_id = masker.name(quote.message_id)
    if masked is None:  # a message that the report does not hold: its place cannot be told any more
        text = masker.text(quote.text).text
        return Quote(message_id=new_id, text=text, start=0, end=len(text), sha256=text_hash(text))
    start, end = masked.place(quote.start), masked.after(quote.end)
    return Quote(message_id=new_id, text=masked.text[start:end], start=start, end=end, sha256=text_hash(masked.text))


def _conversation(conversation: Conversation, masker: Masker) -> Conversation:
    messages = tuple(_any(message, masker) for message in conversation.messages)
    new = _any(msgspec.structs.replace(conversation, messages=()), masker)
    return msgspec.structs.replace(new, messages=messages)


def _any(value: N, masker: Masker) -> N:
    """A record with its texts and names masked, whatever it holds."""
    if isinstance(value, Indicator):  # its id is one of the catalogue, its quote somebody's words
        return msgspec.structs.replace(value, quote=value.quote and masker.text(value.quote).text)
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    open_fields = {name: part for name, part in fields.items() if name not in FIXED or _quotes(part)}
    return msgspec.structs.replace(value, **{name: _inside(part, name, masker) for name, part in open_fields.items()})


def _quotes(value: Any) -> bool:
    """Whether these are a judge's indicators or mechanisms, which quote a message, and no mere names."""
    return isinstance(value, tuple) and any(isinstance(each, Indicator) for each in value)


def _inside(value: Any, field: str, masker: Masker) -> Any:
    if isinstance(value, Record):
        return _any(value, masker)
    if isinstance(value, str):
        return masker.text(value).text if field in TEXTS else masker.name(value)
    if isinstance(value, tuple | list):
        return type(value)(_inside(each, field, masker) for each in value)
    if isinstance(value, dict):
        keys = (masker.text(key).text if field == "input" and isinstance(key, str) else key for key in value)
        return dict(zip(keys, (_inside(each, field, masker) for each in value.values()), strict=True))
    return value


def _with_masked_why(finding: Finding, masker: Masker, texts: Texts) -> Finding:
    """The finding with its words and sentences as they are in the masked texts."""
    if finding.why is None:
        return finding
    masked = (_masked_why(why, masker, texts.get((why.conversation, why.message_id))) for why in finding.why)
    return msgspec.structs.replace(finding, why=tuple(masked))


def _masked_why(why: Why, masker: Masker, text: Masked | None) -> Why:
    return msgspec.structs.replace(
        why,
        conversation=masker.name(why.conversation),
        message_id=masker.name(why.message_id),
        words=() if text is None else _remaining_words(why, masker, text),
        sentence=why.sentence and _quote(why.sentence, masker, text),
    )


def _remaining_words(why: Why, masker: Masker, text: Masked) -> tuple[tuple[str, float], ...]:
    if not text.spans:
        return why.words
    there = set(words_of(text.text)[0])
    return tuple(each for each in why.words if each[0] in there and not masker.text(each[0]).spans)
