"""What a store and a case hold as plain items, for programs that ask; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from undersong.bridges.paging import Item
from undersong.errors import UsageError
from undersong.models import Case, Finding, LedgerClaim, Message, Record
from undersong.models.verdict import AGAINST
from undersong.patterns.catalog import all_rules, named
from undersong.patterns.language.compile import PatternRule
from undersong.report.claims_view import state_words
from undersong.report.coverage import coverage_of
from undersong.report.narrative import certainty_words
from undersong.report.order import order_findings
from undersong.stores.protocol import Store


def messages(store: Store, conversation_id: str) -> Iterator[Item]:
    """The messages of a conversation with the state and scores of each judge; raises UsageError for an unknown one."""
    if store.length(conversation_id) is None:
        what = f"no conversation '{conversation_id}' in the store"
        raise UsageError(what, remedy="the tool `conversations` lists them")
    scores: dict[str, list[Item]] = {}
    for evaluation in store.evaluations(conversation_id):
        answer = {name: getattr(evaluation, name) for name in ("judge", "state", "traits", "reason")}
        scores.setdefault(evaluation.message_id, []).append(answer)
    for message in store.conversation(conversation_id)[0].messages:
        answers = scores.get(message.id, [{"judge": None, "state": "unread"}])
        yield _message(message) | {"evaluations": answers}


def rules(name: str | None) -> Iterator[Item]:
    """The rules that ship, or one in full; raises UsageError for an unknown name."""
    if name is None:
        yield from (_rule(rule) for rule in sorted(all_rules(), key=lambda rule: rule.id))
        return
    rule = named(all_rules(), name)
    yield _rule(rule) | {"pattern": rule.file.pattern, "conditions": dict(rule.file.define)}


def case_items(case: Case) -> Iterator[Item]:
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
    yield from ({"type": "finding"} | finding_item(finding) for finding in order_findings(case.findings))
    for session in case.sessions:
        yield from ({"type": "claim"} | claim_item(claim) for claim in session.claims if claim.state in AGAINST)
    yield from ({"type": "lead"} | record_item(lead) for lead in case.leads)


def record_item(record: Record) -> Item:
    """A record with all of its fields."""
    item: dict[str, Any] = msgspec.to_builtins(record)
    return item


def claim_item(claim: LedgerClaim) -> Item:
    """A claim with its id and its state in words."""
    return {"id": claim.claim_id, "state_in_words": state_words(claim)} | record_item(claim)


def finding_item(finding: Finding) -> Item:
    """A finding, how sure it is in words, and its quotes."""
    names = ("finding_id", "pattern", "title", "level", "agent", "target", "confidence", "strength", "conversations",
             "message_ids", "message_conversations", "stages", "status", "notes")  # fmt: skip
    return {name: getattr(finding, name) for name in names} | {
        "claim": "consistent with the pattern; no statement about intent",
        "is_lead": finding.is_lead,
        "how_sure": certainty_words(finding),
        "quotes": [{"message_id": quote.message_id, "text": quote.text} for quote in finding.quotes],
    }


def _message(message: Message) -> Item:
    names = ("id", "position", "agent", "target", "role", "time", "text")
    tools = [call.name for call in message.tool_calls]
    return {name: getattr(message, name) for name in names} | {"tools": tools}


def _rule(rule: PatternRule) -> Item:
    file = rule.file
    return {
        "id": rule.id,
        "title": file.title,
        "level": file.level,
        "description": " ".join(file.description.split()),
        "innocent_look_alikes": file.falsepositives,
    }
