"""Keys of somebody's own JSON: renamed before any reader, refused by name, and suggested where they are not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Undersong
from undersong.errors import UsageError
from undersong.formats.field_map import field_map
from undersong.formats.ingest import read
from undersong.models import Conversation, Problem
from undersong.monitor import SyncMonitor
from undersong.stores.sqlite import SQLiteStore

OWN = [
    {"msg_id": "m1", "user_id": "u1", "handle": "ada", "body": "Did you pay?", "created_at": "2026-03-01T08:00:00Z"},
    {"msg_id": "m2", "user_id": "u2", "handle": "bo", "body": "On {Friday}, é \ud83d.", "thread_id": "t"},
]
MAP = "text=body,author=handle,agent_id=user_id,id=msg_id"
SHAPES = {
    "lines": "".join(json.dumps(one) + "\n" for one in OWN),
    "a list on one line": json.dumps(OWN),
    "a list over lines": json.dumps(OWN, indent=1),
    "a conversation": json.dumps({"conversation": "c", "messages": OWN}),
    "a list below a key": json.dumps({"data": OWN}, indent=2),
    "broken lines between": "\nno JSON\n[1, 2]\n".join(json.dumps(one) for one in OWN) + "\n",
}


def items(path: Path, fields: dict[str, str] | None = None, form: str | None = None) -> list[Any]:
    return list(read(path, fields=fields, source_format=form))


@pytest.mark.parametrize("shape", SHAPES)
def test_messages_with_other_keys_are_read_as_ours(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(SHAPES[shape])
    messages = [m for item in items(path, field_map(MAP)) if isinstance(item, Conversation) for m in item.messages]
    read_facts = [(m.id, m.author, m.agent, m.text[:3]) for m in messages]
    assert sorted(read_facts) == [("m1", "ada", "u1", "Did"), ("m2", "bo", "u2", "On ")]


def test_a_key_of_ours_that_another_one_replaces_is_kept_beside(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"text": "a headline", "body": "The words.", "author": "ada"}) + "\n")
    read_items = items(path, {"body": "text"})
    assert [m.text for item in read_items if isinstance(item, Conversation) for m in item.messages] == ["The words."]
    assert any("text_" in item.what for item in read_items if isinstance(item, Problem))


def test_a_monitor_and_a_watch_read_other_keys_as_ours(undersong: Undersong) -> None:
    Path("own.jsonl").write_text(SHAPES["lines"])
    watched = undersong("watch", "own.jsonl", "--no-follow", "--store", "w.db", "--map", MAP)
    assert watched.code == 0, watched.err
    fields = field_map(f"{MAP},conversation=thread_id")
    with SyncMonitor("m.db", fields=fields) as monitor:
        monitor.extend({"thread_id": "t", **one} for one in OWN)
    for name in ("w.db", "m.db"):
        with SQLiteStore(Path(name), read_only=True) as store:
            talks = [store.conversation(one)[0] for one in store.conversations()]
            read_facts = sorted((m.id, m.author, m.agent) for talk in talks for m in talk.messages)
            assert read_facts == [("m1", "ada", "u1"), ("m2", "bo", "u2")]


@pytest.mark.parametrize(
    ("given_map", "what"),
    [
        ("txt=body", "we have no key 'txt'; did you mean 'text'?"),
        ("text", "'text' is no pair"),
        ("text=body,text=post", "'text=post' names a key twice"),
        ("text=body,author=body", "'author=body' names a key twice"),
    ],
)
def test_a_map_that_is_none_is_refused(given_map: str, what: str) -> None:
    with pytest.raises(UsageError, match=what.replace("?", r"\?")):
        field_map(given_map)


@pytest.mark.parametrize(
    ("record", "form", "suggested"),
    [
        (OWN[0], None, "--map text=body,author=handle,agent_id=user_id,id=msg_id"),
        ({"body": "hi", "user_id": "u1"}, None, "--map text=body,agent_id=user_id"),
        ({"body": "hi", "user_id": "u1"}, "jsonl", "--map text=body,agent_id=user_id"),
        ({"text": "hi", "username": "u1"}, None, "--map author=username"),
        ({"body": "hi", "colour": "red"}, None, ""),
        ({"height": 3, "user_id": "u1"}, None, ""),
    ],
)
def test_an_unknown_form_says_the_map_for_its_keys(
    record: dict[str, Any], form: str | None, suggested: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps(record) + "\n")
    remedies = " ".join(item.remedy for item in items(path, form=form) if isinstance(item, Problem))
    assert "".join(remedies.partition("--map")[1:]) == suggested
