"""SARIF 2.1.0: a result is a finding, points, a claim held against, a way round a check, a smoking gun or a lead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote as percent

from undersong.core.sanitize import visible
from undersong.core.text import mechanism_name, text_hash
from undersong.models import Bypass, Case, Deduction, Lead, LedgerClaim, Message, Quote
from undersong.patterns.leads import places_of
from undersong.patterns.order_leads import CODES as ORDER_CODES
from undersong.patterns.order_leads import order_lead_id
from undersong.report.finding_view import RuleWords
from undersong.report.gated_leads import leads_above_cut
from undersong.report.narrative import certainty_words, moment_label
from undersong.report.order import FindingResult, SessionResult, group_of, is_faint, results

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RESULTS = 25_000  # of a run, as code hosts accept them
STEPS = 1000  # locations of a thread flow that they show
_PLACEHOLDER = re.compile(r"\{(\d+)\}")  # in a message, {0} stands for an argument; a quoted one is only text
Messages = Mapping[tuple[str, str], Message]


def sarif(case: Case, rules: Mapping[str, RuleWords]) -> dict[str, Any]:
    """The log of one run; ``rules`` are the words of the patterns by their hash."""
    messages = {(message.conversation, message.id): message for message in case.cited}
    rules_by_id: dict[str, dict[str, Any]] = {}
    results = [
        _numbered(each, rules_by_id) for each, _ in zip(_results(case, messages, rules), range(RESULTS), strict=False)
    ]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(case, results, list(rules_by_id.values()))]}


def _run(case: Case, results: list[dict[str, Any]], rules: list[dict[str, Any]]) -> dict[str, Any]:
    failed = any(problem.kind == "judge" for problem in case.problems)
    notices = [
        {
            "level": "warning" if each.kind in ("file", "judge") else "note",
            "message": _text(f"{each.where}: {each.what}"),
        }
        for each in case.problems[:STEPS]
    ]
    return {
        "tool": {"driver": {"name": "undersong", "version": case.version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not failed, "toolExecutionNotifications": notices}],
        "artifacts": [
            {"location": {"uri": _uri(each.name)}, "length": each.size, "hashes": {"sha-256": each.sha256}}
            for each in case.inputs
        ],
        "results": results,
        "properties": {"claims": "consistent with a pattern; not a statement about intent, and no diagnosis"},
    }


def _results(case: Case, messages: Messages, rules: Mapping[str, RuleWords]) -> Iterator[dict[str, Any]]:
    """Results with their rule inside, under the key ``rule``; without findings that are too unlikely to be listed."""
    for result in results(case):
        if isinstance(result, FindingResult):
            if is_faint(result.finding):
                continue
            yield _finding(result, messages, rules.get(result.finding.rule_hash, RuleWords()))
        else:
            yield _of_session(result, messages)
    noted = {order_lead_id(home.conversation, moment.agent) for home in case.sessions for moment in home.moments
             if moment.code in ORDER_CODES}  # fmt: skip
    yield from (_lead(lead, messages) for lead in leads_above_cut(case) if lead.id not in noted)


def _lead(lead: Lead, messages: Messages) -> dict[str, Any]:
    """A lead above the cut, which accuses nobody; one that a person rejected is suppressed."""
    quotes = {quote.message_id: quote for quote in lead.quotes}
    places = [_location(messages.get(place), place[1], quotes.get(place[1])) for place in places_of(lead)]
    name, title = ("lead_in_words", "rare words together") if lead.kind == "message" else ("lead", "where to look")
    facts = {"agent": visible(lead.agent), "kind": lead.kind, "rank": lead.rank, "score": lead.score, "lead": lead.id}
    rejected = [{"kind": "external", "status": "accepted", "justification": "a person looked at it and rejected it"}]
    return {
        "rule": _rule(name, title, "a lead says where to look and accuses nobody", "note"),
        "level": "note",
        "message": _text(lead.reason),
        "locations": places[:1],
        "relatedLocations": places[1:STEPS],
        "partialFingerprints": {"lead/v1": lead.id},
        "properties": facts | ({"decided": lead.decided} if lead.decided else {}),
    } | ({"suppressions": rejected} if lead.decided == "rejected" else {})


def _numbered(result: dict[str, Any], rules_by_id: dict[str, dict[str, Any]]) -> dict[str, Any]:
    rule = result.pop("rule")
    rules_by_id.setdefault(rule["id"], rule)
    return {"ruleId": rule["id"], "ruleIndex": list(rules_by_id).index(rule["id"]), **result}


def _finding(result: FindingResult, messages: Messages, words: RuleWords) -> dict[str, Any]:
    finding, level = result
    homes = finding.message_conversations or finding.conversations[:1] * len(finding.message_ids)
    quotes = {(quote.message_id, quote.sha256): quote for quote in finding.quotes}  # ids may repeat elsewhere
    stages = finding.stages or tuple(("", each) for each in finding.message_ids)
    steps = [
        {"location": _location(message, each, _quote_of(message, each, quotes), name), "executionOrder": number}
        for number, ((name, each), home) in enumerate(zip(stages, homes, strict=True), 1)
        for message in (messages.get((home, each)),)
    ]
    sure = "; ".join(certainty_words(finding))
    sentence = f"The order of these {len(finding.message_ids)} messages is consistent with {finding.title}. {sure}."
    if finding.compares:
        names = " and ".join(f"“{visible(name)}”" for name in finding.conversations)
        sentence = f"Side by side, messages of {names} are consistent with {finding.title}. {sure}."
    numbers = {name: getattr(finding, name) for name in ("strength", "chance", "q", "stability")}
    return {
        "rule": _rule(finding.pattern, finding.title, words.description, level),
        "level": level,
        "message": _text(sentence),
        "locations": [steps[0]["location"]],
        "partialFingerprints": {"finding/v1": finding.finding_id},
        "codeFlows": [{"threadFlows": [{"locations": steps[:STEPS]}]}],
        "properties": {name: value for name, value in numbers.items() if value is not None}
        | {"agent": visible(finding.agent), "level": finding.level},
    }


def _quote_of(message: Message | None, message_id: str, quotes: Mapping[tuple[str, str], Quote]) -> Quote | None:
    if message is None:
        return next((quote for (name, _), quote in quotes.items() if name == message_id), None)
    return quotes.get((message_id, text_hash(message.text)))


def _of_session(result: SessionResult, messages: Messages) -> dict[str, Any]:
    claim, session, level = result
    home, (first, *others) = session.conversation, (() if isinstance(claim, Bypass) else claim.quotes) or (None,)
    if isinstance(claim, Deduction):
        name, title, text = claim.mechanism, mechanism_name(claim.mechanism), claim.explanation
        fingerprint, what, own = "deduction/v1", claim.kind, {"points": claim.points, "kind": claim.kind}
        related = [_location(messages.get((home, each.message_id)), each.message_id, each) for each in others if each]
    elif isinstance(claim, LedgerClaim):
        name, title = f"{claim.state}_claim", f"{claim.state} claim"
        text = f"“{claim.sentence.text}”: {claim.reason}"
        fingerprint, what, own = "claim/v1", claim.kind, {"kind": claim.kind, "check": visible(claim.check)}
        related = [_location(messages.get((home, each.message_id)), each.message_id, each) for each in others if each]
    elif isinstance(claim, Bypass):
        name, title, text, related = "check_bypass", "way round a check", claim.what, None
        fingerprint, what, own = "bypass/v1", claim.kind, {"kind": claim.kind, "file": visible(claim.path)}
    else:
        name, title, text = claim.code, claim.title, f"{moment_label(claim)}: {claim.explanation}"
        fingerprint, what, own, related = "moment/v1", claim.code, {"basis": claim.basis}, None
        if claim.code in ORDER_CODES:
            own |= {"lead": order_lead_id(home, claim.agent)}
    return {
        "rule": _rule(name, title, "", level),
        "level": level,
        "message": _text(text),
        "locations": [_location(messages.get((home, claim.message_id)), claim.message_id, first)],
        **({} if related is None else {"relatedLocations": related}),
        "partialFingerprints": {fingerprint: visible(f"{home}/{claim.message_id}/{what}")},
        "properties": own | {"session": visible(home)},
    }


def _rule(name: str, title: str, description: str, level: str) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": visible(name),
        "shortDescription": _text(title),
        "defaultConfiguration": {"level": level},
        "properties": {"tags": [group_of(name)]},
    }
    return rule | ({"fullDescription": _text(description)} if description else {})


def _location(message: Message | None, message_id: str, quote: Quote | None, stage: str = "") -> dict[str, Any]:
    """Where a message stands: its file and line where it has one, its session and id in any case."""
    home = message.conversation if message else ""
    where: dict[str, Any] = {
        "logicalLocations": [
            {"name": visible(message_id), "fullyQualifiedName": visible(f"{home}/{message_id}"), "kind": "member"}
        ]
    }
    ref = message.source_ref if message else None
    if ref is not None:
        region: dict[str, Any] = {"startLine": ref.line} if ref.line else {}
        if region and quote:
            region["snippet"] = {"text": visible(quote.text)}
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(ref.file)}}
        where["physicalLocation"] = physical | ({"region": region} if region else {})
        if ref.pointer is not None:
            where["logicalLocations"][0]["properties"] = {"jsonPointer": ref.pointer}
    parts = [part for part in (stage, quote.text if quote else "") if part]
    return where | ({"message": _text(": ".join(parts))} if parts else {})


def _text(text: str) -> dict[str, str]:
    """A message in which nothing is an argument or a link."""
    plain = _PLACEHOLDER.sub(r"{{\1}}", visible(text)).replace("](", "\\](")
    return {"text": plain or "(empty)"}


def _uri(name: str) -> str:
    return percent(name.encode("utf-8", "surrogatepass"), safe="/~!$&'()*+,;=-._")
