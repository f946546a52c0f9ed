"""What a program may ask of a store and of the report beside it: plain records, in a fixed order, nothing written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from undersong.errors import InputError, UsageError
from undersong.models import Case, Conversation, Finding, Lead, LedgerClaim, Message, Record, decode
from undersong.patterns.catalog import all_rules, named
from undersong.patterns.language.compile import PatternRule
from undersong.report.claims_view import WORDS
from undersong.report.coverage import coverage_of
from undersong.report.narrative import certainty_words
from undersong.report.order import order_findings
from undersong.report.writer import CLAIMS, LEADS
from undersong.stores.protocol import Store

AROUND = 120  # characters on each side of what was searched for
Item = dict[str, Any]
Items = Generator[Item, None, None]
R = TypeVar("R", bound=Record)


def conversations(store: Store) -> Items:
    """The conversations of a store, by id."""
    for name in store.conversations():
        conversation = store.conversation(name)[0]
        times = [message.time for message in conversation.messages if message.time]
        speakers = Counter(message.agent for message in conversation.messages)
        yield {
            "id": name,
            "title": conversation.title,
            "format": conversation.source_format,
            "messages": len(conversation.messages),
            "first": min(times).isoformat() if times else None,
            "last": max(times).isoformat() if times else None,
            "agents": dict(speakers.most_common()),
        }


def messages(store: Store, conversation_id: str) -> Items:
    """The messages of a conversation with the state and scores of each judge; raises UsageError for an unknown one."""
    conversation = _conversation(store, conversation_id)
    scores: dict[str, list[Item]] = {}
    for evaluation in store.evaluations(conversation_id):
        answer = {name: getattr(evaluation, name) for name in ("judge", "state", "traits", "reason")}
        scores.setdefault(evaluation.message_id, []).append(answer)
    for message in conversation.messages:
        yield _message(message) | {"evaluations": scores.get(message.id, []), "read": message.id in scores}


def agents(store: Store) -> Items:
    """Every agent with messages that a judge read or should have read, per judge, with the number of its findings."""
    findings = Counter(finding.agent for finding in store.findings())
    for judge in store.judges():
        for entry in store.agents(judge.judge_hash):
            yield msgspec.to_builtins(entry) | {"judge": judge.judge, "findings": findings[entry.agent]}


def findings(store: Store, agent: str | None, pattern: str | None, least: float) -> Items:
    """Findings, the surest and gravest first; those whose confidence is not known pass every ``least`` (0 to 1)."""
    for finding in order_findings(tuple(store.findings(agent))):
        if pattern in (None, finding.pattern) and (finding.confidence is None or finding.confidence >= least):
            yield _finding(finding)


def leads(report: Path) -> Items:
    """The leads of a report, best first: whom to read first, and no accusation."""
    yield from (msgspec.to_builtins(lead) for lead in _stored(report / LEADS, Lead))


def claims(report: Path, state: str | None, conversation: str | None) -> Items:
    """What agents say of their work, with its state and what speaks for or against it."""
    for claim in _stored(report / CLAIMS, LedgerClaim):
        if state in (None, claim.state) and conversation in (None, claim.conversation):
            yield msgspec.to_builtins(claim) | {"state_in_words": WORDS[claim.state]}


def rules(name: str | None) -> Items:
    """The rules that ship, or one in full; raises UsageError for an unknown name."""
    if name is not None:
        yield _rule(named(all_rules(), name)) | {"conditions": dict(named(all_rules(), name).file.define)}
        return
    yield from (_rule(rule) for rule in sorted(all_rules(), key=lambda rule: rule.id))


def search(store: Store, words: str) -> Items:
    """Messages that hold some words, whatever their case, with the words around; conversations in order."""
    if not words.strip():
        raise UsageError("nothing to search for", where="query", remedy="give a word or a phrase")
    wanted = re.compile(re.escape(words.strip()), re.IGNORECASE)
    for name in store.conversations():
        for message in store.conversation(name)[0].messages:
            if match := wanted.search(message.text):
                around = message.text[max(match.start() - AROUND, 0) : match.end() + AROUND]
                yield _message(message) | {"text": around, "conversation": name, "whole": around == message.text}


def case_items(case: Case) -> Items:
    """A case as items: what was looked at and what was not, problems, findings, claims against the session, leads."""
    coverage = coverage_of(case)
    yield {
        "type": "coverage",
        "looked_at": coverage.looked,
        "not_looked_at": coverage.missing,
        "states": case.states,
        "problems": len(case.problems),
    }
    yield from ({"type": "problem", "what": each.what, "where": each.where} for each in case.problems)
    yield from ({"type": "finding"} | _finding(finding) for finding in order_findings(case.findings))
    for session in case.sessions:
        against = (claim for claim in session.claims if claim.state in ("contradicted", "disputed"))
        yield from ({"type": "claim"} | msgspec.to_builtins(claim) for claim in against)
    yield from ({"type": "lead", "agent": lead.agent, "reason": lead.reason} for lead in case.leads)


def lines_items(lines: Iterable[str]) -> Items:
    """Lines of text as items."""
    yield from ({"line": line} for line in lines)


def _conversation(store: Store, name: str) -> Conversation:
    if store.length(name) is None:
        raise UsageError(f"no conversation '{name}' in the store", remedy="the tool `conversations` lists them")
    return store.conversation(name)[0]


def _message(message: Message) -> Item:
    return {
        "id": message.id,
        "position": message.position,
        "agent": message.agent,
        "target": message.target,
        "role": message.role,
        "time": message.time.isoformat() if message.time else None,
        "text": message.text,
        "tools": [call.name for call in message.tool_calls],
    }


def _finding(finding: Finding) -> Item:
    names = ("finding_id", "pattern", "title", "level", "agent", "target", "confidence", "strength", "conversations",
             "message_ids", "message_conversations", "stages", "status", "notes")  # fmt: skip
    quotes = [{"message_id": quote.message_id, "text": quote.text} for quote in finding.quotes]
    about = {"claim": "consistent with the pattern; no statement about intent", "is_lead": finding.is_lead}
    return (
        {name: getattr(finding, name) for name in names}
        | about
        | {
            "how_sure": list(certainty_words(finding)),
            "quotes": quotes,
        }
    )


def _rule(rule: PatternRule) -> Item:
    file = rule.file
    return {
        "id": rule.id,
        "title": file.title,
        "level": file.level,
        "description": " ".join(file.description.split()),
        "innocent_look_alikes": list(file.falsepositives),
    }


def _stored(path: Path, kind: type[R]) -> Iterator[R]:
    """The records of a file of a report; raises InputError where there is none that can be read."""
    remedy = "`undersong audit` writes it; name the folder of a report with --report"
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), remedy=remedy) from error
    for number, line in enumerate(lines, 1):
        try:
            if line:
                yield decode(line, kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"is damaged: {error}", where=f"{path}:{number}", remedy=remedy) from error
