"""Rows that are written in short have the bytes of the whole ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.scan.dialogue import talk
from undersong.models import Message, Route, Row, Scan, SourceRef, encode
from undersong.pipeline.scan_export.rows import encode_rows
from undersong.scan import load_book, scan_conversation

ROUTES = (
    Route(message_id="", tier="standard", tier_before="standard", depth="skip", width="none"),
    Route(
        message_id="",
        tier="focused",
        tier_before="standard",
        depth="standard",
        width="message",
        reasons=('reading backwards from "m1"', "é"),
    ),
    Route(message_id="", tier="standard", tier_before="standard", depth="standard", width="message", sampled=True),
)
MESSAGE = Message(id="m", conversation="c", position=0, author="a", agent="c/a", role="user", text='“so”, "it"\n\x01')
OTHERS: list[dict[str, Any]] = [
    {},
    {"time": datetime(2026, 3, 1, 12, tzinfo=UTC), "target": "b", "role": "agent", "observed": "yes"},
    {"branch": "x", "text": "", "source_ref": SourceRef(file="é.jsonl", line=3), "position": 7},
    {"text": ',"source_ref":{"file":"f"},"tier":', "source_ref": SourceRef(file='"tier":', pointer="/0")},
]
SCANS = [
    Scan(message_id="m"),
    Scan(message_id="m", triage=0.123),
    Scan(message_id="m", words=5, triage=0.0),
    Scan(message_id="m", sentiment_score=0.5),
    Scan(message_id="m", code_change_delta=0.0),
    Scan(message_id="m", latency_drop=False),
    *scan_conversation(
        talk("a: You owe me this.", "assistant: I am so sorry. I fixed it now. You are right."), load_book()
    )[0],
]


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("other", OTHERS)
def test_the_bytes_are_those_of_the_row(other: dict[str, Any], text: bool) -> None:
    message = msgspec.structs.replace(MESSAGE, **other)
    cases = [(scan, route) for scan in SCANS for route in ROUTES] * 2
    whole = [Row.of(message, *case) for case in cases]
    expected = [encode(row if text else msgspec.structs.replace(row, text=None)) + b"\n" for row in whole]
    written = encode_rows([(message, *case) for case in cases], text=text)
    assert bytes(written.data) == b"".join(expected)
    assert written.lengths.tolist() == [len(each) for each in expected]
