"""Plain lines are read as the lenient reader reads them; every other line is left to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.conftest import outcome
from undersong.formats.ingest import read
from undersong.formats.jsonl_lines import first_change, split_block, stretches
from undersong.models import Conversation, InputFile, Message, Problem

NAMES = st.sampled_from([None, "", " ", "kira", "c", 7, 2.5, True, {"name": "ann"}, 10**25, "user"])
TIMES = st.sampled_from(
    [None, "2026-01-01T10:00:00Z", "2026-01-01 11:00", "20260101", 1767261600, 1.5e9, "soon", "", True]
)
VALUES: dict[str, Any] = {
    "id": NAMES, "conversation": NAMES, "conversation_id": NAMES, "thread": NAMES, "author": NAMES,
    "agent_id": NAMES, "agent": NAMES, "sender": NAMES, "name": NAMES, "target": NAMES, "reply_to": NAMES,
    "branch": NAMES, "time": TIMES, "ts": TIMES, "created_at": TIMES,
    "role": st.sampled_from([None, "user", "Human", " agent ", "boss", 3, "tool"]),
    "text": st.sampled_from([None, "hello", "", "caf\u00e9 \u2028", 5, ["a"], [{"type": "text", "text": "b"}]]),
    "content": st.sampled_from([None, "other", ["c"], 1]),
    "position": st.sampled_from([None, 0, 3, -1, 2.0, True, 10**20]),
    "latency": st.sampled_from([None, 1, 2.5, -1, True]), "latency_ms": st.sampled_from([None, 1500, "x"]),
    "tokens": st.sampled_from([None, 5, -5, 2.0, "many"]), "observed": st.sampled_from([None, "yes", "maybe", 1]),
    "model": st.sampled_from([None, "m", "", 4]), "title": st.sampled_from([None, "T", "", 3]),
    "timezone": st.sampled_from([None, "Europe/Vienna", 2]),
    "tool_calls": st.sampled_from([None, [], [{"name": "Edit", "input": {"a": 1}}], "x", [5]]),
    "tool_results": st.sampled_from([None, ["done"], [{"content": "ok", "is_error": False}]]),
    "messages": st.sampled_from([None, 5, "x"]), "other": st.sampled_from([None, [[]], {"a": None}, 1e300]),
}  # fmt: skip
LINE = st.fixed_dictionaries(
    {"author": st.sampled_from(["kira", "ann"]), "text": st.just("hi")},
    optional={key: values for key, values in VALUES.items() if key not in ("author", "text")},
) | st.fixed_dictionaries({}, optional=VALUES)


def without_places(path: Path) -> list[Any]:
    """What was read, as if nothing had a place in a file."""
    items: list[Any] = []
    for item in read([path], source_format="jsonl"):
        if isinstance(item, Conversation):
            messages = [msgspec.structs.replace(message, source_ref=None) for message in item.messages]
            items.append(msgspec.structs.replace(item, messages=tuple(messages), source_ref=None))
        elif isinstance(item, Problem):
            items.append(("problem", item.what, item.kind))
        elif isinstance(item, InputFile):
            items.append((item.conversations, item.messages, item.skipped))
    return items


@settings(deadline=None, max_examples=200)
@given(records=st.lists(LINE, min_size=2, max_size=6))
def test_lines_are_read_as_the_elements_of_a_list(tmp_path_factory: pytest.TempPathFactory, records: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("lines")
    lines, document = folder / "input.jsonl", folder / "list" / "input.json"
    document.parent.mkdir()
    lines.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    document.write_text(json.dumps(records), encoding="utf-8")
    assert without_places(lines) == without_places(document)


@pytest.mark.parametrize(
    "line",
    [
        b'{"author": "a", "text": "t", "x": "\xff"}',
        b'{"author": "a", "text": "\\ud800"}',
        b'{"author": "a", "text": "t", "x": ' + b"[" * 300 + b"]" * 300 + b"}",
        b'{"author": "a", "text": "t", "title": "T"}',
        b'{"author": "a", "text": "t"',
        b'{"text": "t"}',
        b'{"author": "a"}',
        b"[]",
    ],
)
def test_a_line_in_doubt_is_not_plain(line: bytes) -> None:
    assert [each.conversation for each in stretches(line, "stem")] == [None]


def test_a_block_is_cut_at_every_change_of_the_conversation_and_at_lines_in_doubt() -> None:
    plain = b'{"author": "a", "text": "t", "thread": "%b"}\n'
    block = plain % b"x" + b"\n" + plain % b"x" + b"broken\n" + plain % b"x" + plain % b"y" + b"  \n"
    cuts = [(each.conversation, each.line, each.messages) for each in stretches(block, "stem")]
    assert cuts == [("x", 0, 2), (None, 3, 1), ("x", 4, 1), ("y", 5, 1)]
    assert b"".join(block[each.start : each.end] for each in stretches(block, "stem")).count(b"\n") == 6


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_object_over_two_lines_does_not_make_up_for_two_on_one(end: bytes, tmp_path: Path) -> None:
    plain = b'{"author": "a", "text": "t", "thread": "%b", "id": "%b"}'
    lines = plain % (b"x", b"1") + plain % (b"y", b"2"), b'{"author": "a",', b'"text": "t"}', plain % (b"x", b"3")
    path = tmp_path / "many.jsonl"
    path.write_bytes(b"".join(line + end for line in lines))
    result = outcome(path, source_format="jsonl")
    assert [each.id for each in result.only.messages] == ["3"]
    assert len(result.problem_texts("record")) == 3


@pytest.mark.parametrize(
    ("names", "place"),
    [("xxyy", 2), ("xy", 1), ("x", None), ("xxx", None), ("", None), ("-xy", 0), ("xx-y", 0), ("x=xy", 1)],
)
def test_a_piece_ends_where_another_conversation_begins(names: str, place: int | None) -> None:
    plain = b'{"text": "t", "thread": "%b"}\n'
    lines = [{"-": b"broken\n", "=": b'{"thread": ["x"]}\n'}.get(name, plain % name.encode()) for name in names]
    end = first_change(b"".join(lines) + b'{"text": "the beginning of a line')
    assert end == (None if place is None else len(b"".join(lines[:place])))


def test_places_in_the_file_are_kept_over_blocks_and_interleaved_conversations(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    record = '{"author": "a", "text": "%s", "thread": "t%d", "id": "%d"}\n'
    path.write_text("".join(record % ("x" * 900, number % 7, number) for number in range(3000)), encoding="utf-8")
    result = outcome(path)
    assert len(result.conversations) == 7
    lines = path.read_text(encoding="utf-8").splitlines()
    for conversation in result.conversations:
        assert len(conversation.messages) in (428, 429)
        for message in conversation.messages:
            assert place(message, lines)["id"] == message.id


def place(message: Message, lines: list[str]) -> Any:
    assert message.source_ref is not None
    assert message.source_ref.line is not None
    return json.loads(lines[message.source_ref.line - 1])


USUAL = b'{"id":"m","conversation":"c","author":"x","role":"user","text":"%b"}\n'


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        (b"caf\xc3\xa9", True),
        (b"[" * 1000, True),
        (b"caf\xc3", False),
        (b"\xed\xa0\x80", False),
        (b"half a pair \\ud800", False),
        (b'","other":' + b"[" * 100_000 + b'"', False),
    ],
)
def test_only_sound_text_is_read_as_columns(text: bytes, usual: bool) -> None:
    block = USUAL % b"one" + USUAL % text
    assert (split_block(block, "s").columns is not None) == usual
