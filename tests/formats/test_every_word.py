"""No word of an input is lost in silence: it is read, kept with a message, or counted in what is said of the input."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.formats import containers
from tests.formats import every_kind as sample
from tests.formats.conftest import Outcome, outcome
from undersong.formats import FORMATS
from undersong.models import encode


class EveryKind(NamedTuple):
    """An input and all that is said of it; ``lacks`` names the kinds that the format cannot express."""

    form: str
    name: str
    data: Callable[[], str | bytes]
    notes: tuple[str, ...]
    lacks: str = ""


CHAT_NOTES = (
    "1 × image or other block that is not text, not read",
    "1 × block of type 'hologram', not read",
    "1 × message marked as deleted, read as it stands",
    "1 × edited message, read in its last wording",
    "1 × words under 'annotations', not read",
)
SAME = "has the id of another one; kept apart as 'same~2'"
TWIN = "1 messages have the id of another one; kept as ID~2, ID~3, …"

MARKS = ("1 × message marked as deleted, read as it stands", "1 × edited message, read in its last wording")
BLOCK, HOLOGRAM = CHAT_NOTES[0], CHAT_NOTES[1]


def said(kind: str, number: int = 1) -> str:
    return f"{number} × words under {kind!r}, not read"


TABLE = (
    EveryKind("openai", "a.jsonl", sample.OPENAI, (*CHAT_NOTES, said("tools"), SAME, TWIN)),
    EveryKind("sharegpt", "a.json", sample.SHAREGPT,
              (*MARKS, BLOCK, said("weight"), "a turn without a known speaker", SAME), "twin"),
    EveryKind("chatgpt", "a.json", sample.chatgpt,
              (*MARKS, BLOCK, HOLOGRAM, "1 × thoughts message (not said to the user), not read", SAME), "twin"),
    EveryKind("claude", "a.json", sample.CLAUDE,
              (*MARKS, "2" + BLOCK[1:], HOLOGRAM, "1 × thinking block (not said to the user), not read",
               said("summary"), SAME, TWIN), "refusal"),
    EveryKind("jsonl", "a.jsonl", sample.JSONL,
              (*MARKS, BLOCK, said("aside"), TWIN, "1 × call or result of a tool"), "refusal same"),
    EveryKind("session", "a.json", sample.SESSION, (*MARKS, said("mood"), "turn 13: no text", TWIN), "refusal same"),
    EveryKind("wildchat", "a.json", sample.WILDCHAT,
              (*MARKS, BLOCK, said("note"), "a turn without a known 'role'", SAME), "call twin"),
    EveryKind("atif", "a.json", sample.ATIF, (*MARKS, BLOCK, said("notes"), said("aside"), SAME), "refusal twin"),
    EveryKind("inspect", "a.json", sample.INSPECT,
              (*MARKS, BLOCK, HOLOGRAM, TWIN, "'same/1' has the id of another"),
              "refusal mail lower number"),
    EveryKind("claude-code", "a.jsonl", sample.CLAUDE_CODE,
              (*MARKS, BLOCK, HOLOGRAM, said("aside"), TWIN, "1 × words that waited in the queue"), "refusal same"),
    EveryKind("codex", "a.jsonl", sample.CODEX,
              (*MARKS, BLOCK, HOLOGRAM, said("base_instructions"), TWIN, "item of type 'hologram', read as no"),
              "refusal same"),
    EveryKind("claude-stream", "a.jsonl", sample.CLAUDE_STREAM,
              (*MARKS, BLOCK, HOLOGRAM, said("prompt"), TWIN, "line of type 'system'"), "refusal same"),
    EveryKind("cursor", "a.jsonl", sample.CURSOR, (*MARKS, BLOCK, "line of type 'system'", "line of type 'hologram'"),
              "refusal same twin mail lower number"),
    EveryKind("copilot", "a.json", sample.COPILOT,
              (*MARKS, said("aside"), TWIN, "part of kind 'hologram'", "error of a request"), "same system block"),
    EveryKind("openhands", "a.json", sample.OPENHANDS,
              (*MARKS, BLOCK, said("aside"), "action 'system'", "event of kind 'Hologram'"), "refusal same twin"),
    EveryKind("sweagent", "a.traj", sample.SWEAGENT, (*MARKS, said("aside"), "system prompt or demonstration"),
              "refusal same twin block mail lower number"),
    EveryKind("telegram", "a.json", sample.TELEGRAM,
              (*MARKS, said("aside"), TWIN, "service message", "other attachment"), "refusal same call result"),
    EveryKind("slack", "a.json", sample.SLACK,
              (*MARKS, said("aside"), said("attachments"), TWIN, "notice of Slack", "attached file", "without text"),
              "refusal same call result mail lower number"),
    EveryKind("discord", "a.json", sample.DISCORD,
              (*MARKS, said("aside"), TWIN, "notice of Discord", "attachments, not read"),
              "refusal same call result"),
    EveryKind("moltbook", "a.json", sample.MOLTBOOK,
              (*MARKS, said("aside"), TWIN, SAME), "refusal call result system block"),
    EveryKind("gemini", "a.json", sample.GEMINI,
              (*MARKS, said("subtitles"), "no prompt", "attached file", "conversations are inferred"),
              "refusal same call result twin"),
    EveryKind("otel", "a.json", sample.otel, (BLOCK, HOLOGRAM, said("gen_ai.evaluation.explanation")),
              "same twin deleted edited mail lower number"),
    EveryKind("langfuse", "a.jsonl", sample.LANGFUSE,
              (*CHAT_NOTES, said("statusMessage"), "span that is no call"), "same twin"),
    EveryKind("langsmith", "a.jsonl", sample.LANGSMITH,
              (*CHAT_NOTES, said("error"), "span that is no call"), "same twin"),
    EveryKind("braintrust", "a.jsonl", sample.BRAINTRUST,
              (*CHAT_NOTES, said("expected"), "span that is no call"), "same twin"),
    EveryKind("signal", "a.jsonl", sample.SIGNAL,
              (MARKS[1], BLOCK, said("aside"), TWIN, "deleted message, of which", "notice of Signal", "'hologram'"),
              "refusal same call result mail lower"),
    EveryKind("text", "a.txt", lambda: sample.TEXT, ("2 × line of text before the first turn",),
              "refusal same call result twin deleted edited block"),
    EveryKind("specstory", "a.md", lambda: sample.SPECSTORY, ("1 × line of text before the first message",),
              "refusal same twin deleted edited block system mail lower number"),
)  # fmt: skip
CONTAINERS = (
    EveryKind("text", "WhatsApp Chat.zip", containers.whatsapp,
              ("1 × notice of the messenger, not read", "2 × picture, recording or deleted message", MARKS[1],
               "1 member of another ending, not read: 00000001-PHOTO.jpg"),
              "refusal same call result unknown twin deleted mail lower number"),
    EveryKind("openai", "a.parquet", containers.parquet, (*CHAT_NOTES, said("tools"), SAME, TWIN)),
    EveryKind("otel", "a.pb", containers.otlp, (BLOCK, HOLOGRAM, said("gen_ai.evaluation.explanation")),
              "same twin deleted edited mail lower number"),
)  # fmt: skip

NEEDS = {".parquet": "pyarrow", ".pb": "opentelemetry.proto"}
WORD = re.compile(r"\b(read|kept|said|time|one|two)_([a-z]+)\d*\b")
MOMENT = datetime(2026, 1, 7, 9, tzinfo=UTC)


@pytest.fixture(params=(*TABLE, *CONTAINERS), ids=lambda row: f"{row.form}-{row.name}")
def row(request: pytest.FixtureRequest) -> EveryKind:
    each: EveryKind = request.param
    if needed := NEEDS.get(Path(each.name).suffix):
        pytest.importorskip(needed)
    return each


def read(row: EveryKind, tmp_path: Path) -> Outcome:
    path = tmp_path / row.name
    data = row.data()
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return outcome(path)


def words(row: EveryKind) -> dict[str, str]:
    data = row.data()
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    return {match[0]: match[1] for match in WORD.finditer(text)}


def test_a_format_is_tried_with_every_kind_that_it_can_express(row: EveryKind) -> None:
    kinds = {WORD.fullmatch(word)[2] for word in words(row)}  # type: ignore[index]
    lacking = set(row.lacks.split())
    assert kinds | lacking | {"empty"} == set(sample.KINDS)
    assert not kinds & lacking


def test_every_word_is_read_or_kept_or_counted(row: EveryKind, tmp_path: Path) -> None:
    result = read(row, tmp_path)
    messages = [message for each in result.conversations for message in each.messages]
    texts = "\n".join(message.text for message in messages)
    kept = "\n".join(encode(each).decode() for each in result.conversations)
    by_word = words(row)
    assert [word for word, fate in by_word.items() if fate != "kept" and (word in texts) == (fate == "said")] == []
    assert [word for word, fate in by_word.items() if fate == "kept" and word not in kept] == []
    assert {file.source_format for file in result.files} == {row.form}


def test_all_that_is_said_of_it_is_what_the_table_says(row: EveryKind, tmp_path: Path) -> None:
    problems = [problem.what for problem in read(row, tmp_path).problems]
    unexplained = [what for what in problems if not any(note in what for note in row.notes)]
    assert (unexplained, [note for note in row.notes if not any(note in what for what in problems)]) == ([], [])


def test_times_control_characters_and_twins_are_what_the_source_has(row: EveryKind, tmp_path: Path) -> None:
    result = read(row, tmp_path)
    for message in (message for each in result.conversations for message in each.messages):
        if "time_" in message.text:
            assert message.time == MOMENT, message.text
        if "read_control" in message.text:
            assert "\x1b[2J" in message.text
    for word in ("one_", "two_"):
        homes = [each.id for each in result.conversations if any(word in message.text for message in each.messages)]
        assert len(homes) <= 1
    together = [each for each in result.conversations if "one_" in (said := repr(each.messages)) and "two_" in said]
    assert together == []


def test_every_format_is_in_the_table() -> None:
    assert {row.form for row in TABLE} == {form.name for form in FORMATS}
