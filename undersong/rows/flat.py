"""Findings, leads and claims as flat records: one row each, for tables of every kind."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from io import StringIO
from typing import Any

import msgspec

from undersong.models import Finding, Lead, LedgerClaim, Quote, Review

FINDING = [
    "finding_id", "pattern", "title", "level", "rule_hash", "agent", "target", "start", "end", "strength", "chance",
    "q", "stability", "confidence", "message_ids", "message_conversations", "stages", "gap_ids", "unread_ids",
    "conversations", "judges", "notes", "measures", "quotes", "status", "reading", "nominated_by",
]  # fmt: skip
LEAD = [
    "id", "rank", "kind", "agent", "target", "conversation", "reason", "score", "above_cut", "message_ids",
    "message_conversations", "quotes", "evidence",
]  # fmt: skip
CLAIM = [
    "conversation", "message_id", "position", "agent", "time", "kind", "object", "sentence", "state", "reason",
    "evidence", "evidence_message_ids", "check", "masked", "thought", "model",
]  # fmt: skip
REVIEW = [
    "kind", "id", "verdict", "reasons", "note", "reviewer", "at", "shown_score", "drawn", "propensity", "pool",
    "pattern", "rule_hash", "level", "confidence", "agent", "target", "evidence", "conversations", "message_ids"
]  # fmt: skip
FORMULA = tuple("=+-@\t\r\n")  # at the start of a cell, a spreadsheet runs what follows


def finding_record(finding: Finding) -> dict[str, Any]:
    """The columns of a finding; ``stages`` are the variables alone, in the order of ``message_ids``."""
    values = {name: getattr(finding, name) for name in FINDING}
    return values | {"stages": [stage for stage, _ in finding.stages], "quotes": _texts(finding.quotes)}


def lead_record(lead: Lead) -> dict[str, Any]:
    """The columns of a lead; ``evidence`` maps each source to its figure."""
    values = {name: getattr(lead, name) for name in LEAD}
    return values | {"quotes": _texts(lead.quotes), "evidence": {each.source: each.value for each in lead.evidence}}


def claim_record(claim: LedgerClaim) -> dict[str, Any]:
    """The columns of a claim: its sentence, and what speaks for or against it with the messages that hold it."""
    values = {name: getattr(claim, name, None) for name in CLAIM}
    places = [quote.message_id for quote in claim.evidence]
    return values | {
        "sentence": _text(claim.sentence.text),
        "evidence": _texts(claim.evidence),
        "evidence_message_ids": places,
    }


def review_record(review: Review) -> dict[str, Any]:
    """The columns of a review, with the places of the messages that it was about."""
    values = {name: getattr(review, name, None) for name in REVIEW}
    places = {"conversations": [row[0] for row in review.rows], "message_ids": [row[1] for row in review.rows]}
    return values | {"note": _text(review.note)} | places


def csv_text(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A table as CSV (RFC 4180), the header first, line by line. Lists and maps are JSON, an absent value is empty.

    A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    yield _line(columns)
    for record in records:
        yield _line([_cell(record[name]) for name in columns])


def _line(cells: Sequence[str]) -> str:
    buffer = StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        text = _text(value)
        return f"'{text}" if text.startswith(FORMULA) else text
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return msgspec.json.encode(value).decode()


def _texts(quotes: Iterable[Quote]) -> list[str]:
    return [_text(quote.text) for quote in quotes]


def _text(text: str) -> str:
    """The text, in which a lone surrogate of a broken export is written as ``?``."""
    return text.encode(errors="replace").decode()
