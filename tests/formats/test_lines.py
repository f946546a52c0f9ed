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
    ("line", "messages", "problem"),
    [
        (b'{"author": "a", "text": "t", "x": "\xff"}', 0, "is not UTF-8"),
        (b'{"author": "a", "text": "\\ud800"}', 1, "half a surrogate pair"),
        (b'{"author": "a", "text": "t", "x": ' + b"[" * 300 + b"]" * 300 + b"}", 0, "deeper than 200 levels"),
        (b'{"author": "a", "text": "' + b"[" * 300 + b'"}', 1, ""),
        (b'{"author": "a", "text": "t", "title": "T"}', 1, ""),
        (b'{"author": "a", "text": "t"', 0, "is not valid JSON"),
        (b'{"text": "t"}', 0, "without an author"),
        (b'{"author": "a"}', 0, "without text"),
        (b"[]", 0, "that is a list"),
        (b'{"id":"m","conversation":"c","author":"x","role":"user","text":"caf\xc3\xa9"}', 1, ""),
        (b'{"id":"m","conversation":"c","author":"x","role":"user","text":"caf\xc3"}', 0, "is not UTF-8"),
        (b'{"id":"m","conversation":"c","author":"x","role":"user","text":"\xed\xa0\x80"}', 0, "is not UTF-8"),
        (b'{"id":"m","conversation":"c","author":"x","role":"user","text":"t","position":-1}', 1, "no whole number"),
        (b'{"id":"m","conversation":"c","author":"x","role":"user","text":"t","time":"soon"}', 1, "cannot be read"),
        (b'{"id":" ","conversation":" ","author":"x","role":"user","text":"t"}', 1, ""),
    ],
)
def test_a_line_is_read_or_a_problem(line: bytes, messages: int, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(b'{"author": "before", "text": "t"}\n' + line + b"\n")
    result = outcome(path, source_format="jsonl")
    read_messages = [message for conversation in result.conversations for message in conversation.messages]
    assert len(read_messages) == 1 + messages
    texts = [each.what for each in result.problems]
    assert any(problem in text for text in texts) if problem else not texts


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_object_over_two_lines_does_not_make_up_for_two_on_one(end: bytes, tmp_path: Path) -> None:
    plain = b'{"author": "a", "text": "t", "thread": "%b", "id": "%b"}'
    lines = plain % (b"x", b"1") + plain % (b"y", b"2"), b'{"author": "a",', b'"text": "t"}', plain % (b"x", b"3")
    path = tmp_path / "many.jsonl"
    path.write_bytes(b"".join(line + end for line in lines))
    result = outcome(path, source_format="jsonl")
    assert [each.id for each in result.only.messages] == ["3"]
    assert len(result.problem_texts("record")) == 3


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


@pytest.mark.parametrize("first", ["#### no line of it", '{"conversation": "c", "auth', "null"])
def test_a_first_line_that_is_no_message_is_named_and_the_rest_is_read(first: str, tmp_path: Path) -> None:
    lines = [json.dumps({"conversation": "c", "author": each, "text": "hi"}) for each in ("kira", "ann")]
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join((first, *lines)), encoding="utf-8")
    items = list(read(path))
    assert [len(each.messages) for each in items if isinstance(each, Conversation)] == [2]
    assert [each.where for each in items if isinstance(each, Problem)] == ["talk.jsonl:1"]


def test_a_pasted_talk_with_objects_in_it_stays_a_talk(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_text('Kira: what is this?\n{"author": "ann", "text": "hi"}\nAnn: an export\n', encoding="utf-8")
    talks = [each for each in read(path) if isinstance(each, Conversation)]
    assert [each.source_format for each in talks] == ["text"]
