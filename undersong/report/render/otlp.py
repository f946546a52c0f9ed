"""OTLP/JSON: a log event a finding, on the span of its last message; one event says what the run looked at.

The event is ``gen_ai.evaluation.result`` of OpenTelemetry's conventions for generative AI. Its names are written here,
since the packages of constants declare them deprecated; ``SCHEMA_URL`` pins the version of the conventions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from undersong.core.batches import batches
from undersong.core.sanitize import visible
from undersong.models import Bypass, Case, Deduction, LedgerClaim, Message, Moment
from undersong.report.coverage import coverage_of
from undersong.report.narrative import certainty_words, moment_label
from undersong.report.order import FindingResult, SessionResult, is_faint, results

SCHEMA_URL = "https://opentelemetry.io/schemas/1.40.0"
EVENT, RUN_EVENT = "gen_ai.evaluation.result", "undersong.run"
BATCH = 500  # events of a request, or of a line of the file
QUOTE = 1000  # characters of an explanation
INFO, WARN, ERROR = 9, 13, 17  # severity numbers of OTLP
SEVERITIES = {"informational": INFO, "low": INFO, "medium": WARN, "high": ERROR, "critical": ERROR}
OF_SARIF = {"error": ERROR, "warning": WARN, "note": INFO}
_SPAN = re.compile(r"([0-9a-f]{32})/([0-9a-f]{16})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def requests(case: Case) -> Iterator[dict[str, Any]]:
    """The bodies of the requests to ``/v1/logs``, one at least; the same case gives the same bodies."""
    messages = {(message.conversation, message.id): message for message in case.cited}
    for records in batches(_records(case, messages), BATCH):
        scope = {"name": "undersong", "version": case.version}
        logs = [{"scope": scope, "logRecords": records, "schemaUrl": SCHEMA_URL}]
        resource = {"attributes": _attributes({"service.name": "undersong", "service.version": case.version})}
        yield {"resourceLogs": [{"resource": resource, "scopeLogs": logs, "schemaUrl": SCHEMA_URL}]}


def span_of(message: Message | None, conversation: str, message_id: str) -> tuple[str, str, str]:
    """Trace id and span id in hexadecimal, and whose they are: ``input``, or ``made`` from conversation and message."""
    ref = message.source_ref if message else None
    match = _SPAN.fullmatch(ref.span) if ref and isinstance(ref.span, str) else None
    if match and int(match[1], 16) and int(match[2], 16):
        return match[1], match[2], "input"
    return _made("trace", conversation)[:32], _made("span", conversation, message_id)[:16], "made"


def _made(*parts: str) -> str:
    return hashlib.sha256("\0".join(("undersong", *parts)).encode(errors="surrogatepass")).hexdigest()


def _records(case: Case, messages: Mapping[tuple[str, str], Message]) -> Iterator[dict[str, Any]]:
    yield _run(case)
    for result in results(case):
        if isinstance(result, FindingResult):
            if not is_faint(result.finding):
                yield _finding(result, messages)
        else:
            yield _of_session(result, messages)


def _run(case: Case) -> dict[str, Any]:
    """What was looked at: a run without findings is not one without readings."""
    coverage = coverage_of(case)
    failed = any(problem.kind == "judge" for problem in case.problems)
    facts = {
        "undersong.judge": str(case.parameters.get("judge", "")),
        "undersong.conversations": case.conversations,
        "undersong.messages": case.messages,
        **{f"undersong.messages.{state}": number for state, number in sorted(case.states.items())},
        "undersong.findings": len(case.findings),
        "undersong.problems": len(case.problems),
        "undersong.looked_at": visible(coverage.looked),
        "undersong.not_looked_at": visible(coverage.missing),
    }
    return _record(RUN_EVENT, WARN if failed else INFO, facts | ({"error.type": "judge_failed"} if failed else {}))


def _finding(result: FindingResult, messages: Mapping[tuple[str, str], Message]) -> dict[str, Any]:
    finding = result.finding
    homes = finding.message_conversations or finding.conversations[:1] * len(finding.message_ids)
    home, last = homes[-1] if homes else "", finding.message_ids[-1]
    sure = "; ".join(certainty_words(finding))
    what = f"The order of {len(finding.message_ids)} messages is consistent with {finding.title}. {sure}."
    facts = {
        "gen_ai.evaluation.name": finding.pattern,
        "gen_ai.evaluation.score.label": "lead" if finding.is_lead else "finding",
        "gen_ai.evaluation.score.value": finding.confidence,
        "gen_ai.evaluation.explanation": visible(what),
        "gen_ai.agent.name": visible(finding.agent),
        "undersong.finding.id": finding.finding_id,
        "undersong.finding.level": finding.level,
        "undersong.finding.strength": finding.strength,
        "undersong.finding.target": None if finding.target is None else visible(finding.target),
        "undersong.message.ids": [visible(name) for name in finding.message_ids],
        "undersong.rule.hash": finding.rule_hash,
    }
    severity = INFO if finding.is_lead else SEVERITIES[finding.level]
    return _at(home, last, messages, severity, facts, finding.end)


def _of_session(result: SessionResult, messages: Mapping[tuple[str, str], Message]) -> dict[str, Any]:
    claim, home = result.claim, result.session.conversation
    name, label, what = _words(claim)
    facts = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": visible(what)[:QUOTE],
        "undersong.finding.id": visible(f"{home}#{claim.message_id}#{name}"),
    }
    return _at(home, claim.message_id, messages, OF_SARIF[result.level], facts, None)


def _words(claim: Deduction | LedgerClaim | Bypass | Moment) -> tuple[str, str, str]:
    """Name, label and explanation of what stands in a session."""
    if isinstance(claim, Deduction):
        return claim.mechanism, "points_deducted", f"{claim.points} points: {claim.explanation}"
    if isinstance(claim, LedgerClaim):
        return f"{claim.state}_claim", claim.state, f"“{claim.sentence.text}”: {claim.reason}"
    if isinstance(claim, Bypass):
        return "check_bypass", claim.kind, claim.what
    return claim.code, claim.kind, f"{moment_label(claim)}: {claim.explanation}"


def _at(
    home: str,
    message_id: str,
    messages: Mapping[tuple[str, str], Message],
    severity: int,
    facts: dict[str, Any],
    time: datetime | None,
) -> dict[str, Any]:
    """The record of a result on the span of a message."""
    message = messages.get((home, message_id))
    trace, span, whose = span_of(message, home, message_id)
    place = {
        "gen_ai.conversation.id": visible(home),
        "undersong.message.id": visible(message_id),
        "undersong.span.origin": whose,
        "undersong.source": visible(str(message.source_ref)) if message and message.source_ref else None,
    }
    record = _record(EVENT, severity, facts | place, (message.time if message else None) or time)
    return record | {"traceId": trace, "spanId": span}


def _record(event: str, severity: int, facts: Mapping[str, Any], time: datetime | None = None) -> dict[str, Any]:
    """One log record; without a message time it has none, and the receiver gives its own."""
    nanoseconds = {} if time is None else {"timeUnixNano": str((time - _EPOCH) // timedelta(microseconds=1) * 1000)}
    attributes = _attributes({name: value for name, value in facts.items() if value is not None})
    return nanoseconds | {"severityNumber": severity, "eventName": event, "attributes": attributes}


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in facts.items()]


def _value(value: str | float | int | list[str]) -> dict[str, Any]:
    """A typed value; whole numbers are texts in OTLP/JSON, as 64 bits do not fit into every number."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, str):
        return {"stringValue": value.encode(errors="replace").decode()}
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}


def lines(case: Case) -> bytes:
    """The same as a file, one request a line, as the file exporter of the OpenTelemetry Collector writes it."""
    return b"".join(msgspec.json.encode(request) + b"\n" for request in requests(case))
