"""Exports of Telegram, Slack and Discord: who said what to whom, and what the messenger itself says is no message."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import Outcome, outcome

SAMPLES = Path(__file__).parent.parent / "samples"


def lines(result: Outcome) -> list[tuple[str, str]]:
    return [(message.author, message.text) for message in result.only.messages]


def test_a_telegram_chat_has_its_name_authors_and_replies() -> None:
    result = outcome(SAMPLES / "telegram" / "result.json")
    assert (result.only.id, result.only.title) == ("5120044871", "Noor")
    assert lines(result)[:2] == [
        ("Noor", "did the boiler man come?"),
        ("Ivo", "he did. two hours late, see https://example.org/bill"),
    ]
    assert result.only.messages[1].reply_to == "101"
    assert str(result.only.messages[0].time) == "2026-03-02 08:14:05+00:00"
    assert {message.role for message in result.only.messages} == {"participant"}
    assert sorted(result.problem_texts("note")) == [
        "1 × message of an account without a name, read as 'Deleted Account'",
        "1 × picture, recording or other attachment, not read",
        "1 × service message of Telegram (joined, called, pinned), not read",
    ]


def test_every_chat_of_a_telegram_account_is_a_conversation() -> None:
    result = outcome(SAMPLES / "telegram" / "account.json")
    assert [(each.id, each.title, len(each.messages)) for each in result.conversations] == [
        ("88401", "Allotment", 2),
        ("88402", None, 2),
    ]


@pytest.mark.parametrize("left", [{"about": "gone", "list": "a word"}, [{"messages": []}], "a word"])
def test_chats_of_a_telegram_account_that_are_no_list_are_noted(tmp_path: Path, left: object) -> None:
    account = json.loads((SAMPLES / "telegram" / "account.json").read_bytes())
    (tmp_path / "result.json").write_text(json.dumps({**account, "left_chats": left}))
    result = outcome(tmp_path / "result.json")
    assert "'left_chats' that is not an object with a 'list', not read" in str(result.problem_texts("note"))
    assert [each.id for each in result.conversations] == ["88401", "88402"]


def test_a_list_of_messages_that_ends_too_early_is_a_problem(tmp_path: Path) -> None:
    text = (SAMPLES / "telegram" / "result.json").read_text()
    first, rest = text.split('{"id": 102', 1)
    (tmp_path / "result.json").write_text(first.rstrip() + "]\n" + '{"id": 102' + rest)
    result = outcome(tmp_path / "result.json")
    assert len(result.only.messages) == 1
    assert any("around its records is not valid JSON" in each for each in result.problem_texts("record"))


def test_the_days_of_a_slack_channel_are_one_conversation_with_names_in_place_of_ids(tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "export"), "zip", SAMPLES / "slack")
    for source in (SAMPLES / "slack", tmp_path / "export.zip"):
        result = outcome(source)
        assert (result.only.id, result.only.title) == ("harbour-crew", "#harbour-crew")
        assert lines(result) == [
            ("Mette Lund", "@Ode the crane slot moved to 14:00 & nobody told the driver"),
            ("Ode", "I wrote it in schedule on Friday, see the plan https://example.org/plan"),
            ("berthbot", "Berth 4 is free from 15:30."),
            ("Mette Lund", "driver says he was never told. who called him?"),
            ("Ode", "me, at nine. he knows that."),
        ]
        assert [message.role for message in result.only.messages][2] == "agent"
        assert result.only.messages[1].target == "harbour-crew/Mette Lund"
        assert "1 × notice of Slack (joined, topic, deleted), not read" in result.problem_texts("note")


def profile(key: str, name: str, shown: str = "") -> dict[str, Any]:
    about = {"real_name": name, "real_name_normalized": name, "display_name": shown, "title": "runs the crane"}
    return {"id": key, "team_id": "T1", "name": name.split()[0].lower(), "deleted": False, "profile": about}


def slack_workspace() -> dict[str, Any]:
    """A workspace as its owner exports it: people, channels, conversations of two, days; few messages name anybody."""
    words = {"type": "message", "team": "T1"}
    return {
        "users.json": [profile("U1", "Mette Lund"), profile("U2", "Ode Vik", "ode"), profile("U3", "Ruth Berg")],
        "channels.json": [{"id": "C1", "name": "crane", "created": 1767000000, "creator": "U1", "members": ["U1", "U2"],
                           "topic": {"value": "", "creator": "", "last_set": 0}, "is_general": False}],
        "dms.json": [{"id": "D1", "created": 1767000000, "members": ["U1", "U2"]}],
        "integration_logs.json": [],
        "crane/2026-01-02.json": [
            words | {"user": "U1", "ts": "1767348000.000100", "text": "<@U2> who called <@U3>?"},
            words | {"user": "U2", "ts": "1767348060.000200", "text": "I did.", "thread_ts": "1767348000.000100"},
        ],
        "crane/2026-01-03.json": [
            words | {"user": "U2", "ts": "1767434400.000100", "text": "She is here.",
                     "user_profile": {"display_name": "ode", "real_name": "Ode Vik", "name": "ode"}},
        ],
        "D1/2026-01-03.json": [words | {"user": "U1", "ts": "1767434500.000100", "text": "Thank you for that."}],
    }  # fmt: skip


@pytest.mark.parametrize("packed", [True, False])
def test_a_slack_workspace_names_its_people_by_the_list_of_them(tmp_path: Path, packed: bool) -> None:
    for name, content in slack_workspace().items():
        path = tmp_path / "Harbour Slack export" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    source = tmp_path / "Harbour Slack export"
    if packed:
        source = Path(shutil.make_archive(str(tmp_path / "Harbour Slack export"), "zip", source))
    result = outcome(source)
    crane, private = sorted(result.conversations, key=lambda each: -len(each.messages))
    assert (crane.id, crane.title, private.id, private.title) == ("crane", "#crane", "D1", "Mette Lund, ode")
    assert [(each.author, each.text) for each in crane.messages] == [
        ("Mette Lund", "@ode who called @Ruth Berg?"), ("ode", "I did."), ("ode", "She is here."),
    ]  # fmt: skip
    assert "1 × list of people or channels, read for their names" in result.problem_texts("note")
    assert not [each for each in result.problems if each.kind != "note"]


def test_a_discord_channel_has_nicknames_replies_and_bots() -> None:
    result = outcome(SAMPLES / "discord" / "lantern.json")
    assert (result.only.id, result.only.title) == ("700200", "repairs")
    assert [(message.author, message.role, message.reply_to) for message in result.only.messages] == [
        ("Tamsin", "participant", None),
        ("oke", "participant", "9001"),
        ("LampBot", "agent", None),
    ]
    assert sorted(result.problem_texts("note")) == [
        "1 × attachments, not read",
        "1 × notice of Discord (joined, pinned, called), not read",
    ]


HOSTILE: tuple[tuple[str, Any, str], ...] = (
    ("telegram", {"name": 7, "messages": [3, {"type": "message", "from_id": [], "text": {"a": 1}}]}, "without text"),
    ("telegram", {"chats": {"list": [{"messages": "x"}, 5]}}, "a chat without a list of 'messages'"),
    ("slack", [{"type": "message", "ts": 5, "user": {}, "text": None}], "without text"),
    ("discord", {"guild": 1, "channel": [], "messages": [{"content": [1]}, None]}, "without 'content'"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "content", "what"), HOSTILE)
def test_a_wrong_record_is_named_with_its_place(ingest: Any, name: str, content: Any, what: str) -> None:
    result = ingest([content] if name == "slack" and isinstance(content, dict) else content, source_format=name)
    assert not result.conversations
    assert any(what in text for text in result.problem_texts("record"))


def test_a_good_message_beside_a_wrong_one_is_kept(ingest: Any) -> None:
    good = {"id": 1, "type": "message", "from": "Noor", "from_id": "user1", "date_unixtime": "1772439245", "text": "hi"}
    result = ingest({"name": "x", "id": 4, "messages": [{"type": "message"}, good | {"date_unixtime": "never"}, good]})
    assert [message.text for message in result.only.messages] == ["hi", "hi"]
    assert len(result.problem_texts("record")) == 1
