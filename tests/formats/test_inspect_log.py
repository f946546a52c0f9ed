"""Logs of Inspect AI: samples with calls, thinking and errors, from JSON and from archives packed with Zstandard."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "inspect" / "harbour.json"


def archive(path: Path, members: dict[str, Any]) -> Path:
    """An ``.eval`` file: a ZIP whose members are packed with Zstandard, which ``zipfile`` writes from 3.14 on only."""
    zstandard = pytest.importorskip("zstandard")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as stored:
        for name, value in members.items():
            stored.writestr(name, zstandard.ZstdCompressor().compress(json.dumps(value).encode()))
        infos = stored.infolist()
    data = bytearray(path.read_bytes())
    for info in infos:
        data[info.header_offset + 8 : info.header_offset + 10] = struct.pack("<H", 93)
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 10 : at + 12] = struct.pack("<H", 93)
        at = data.find(b"PK\x01\x02", at + 4)
    path.write_bytes(data)
    return path


def test_a_sample_is_a_conversation_with_calls_thinking_and_errors() -> None:
    first, second = outcome(SAMPLE).conversations
    assert (first.id, first.title) == ("Sp1", "pier (epoch 1)")
    assert [(message.author, message.role) for message in first.messages] == [
        ("system", "system"),
        ("user", "user"),
        ("assistant", "assistant"),
        ("depth", "tool"),
        ("assistant", "assistant"),
    ]
    assert (first.messages[2].thinking, first.messages[2].text) == ("The tool knows.", "I look it up.")
    assert first.messages[2].tool_calls[0].name == "depth"
    assert first.messages[3].tool_results[0].is_error is True
    assert first.messages[4].model == "mockllm/model"
    assert len(second.messages) == 1
    assert "1 × sample that ended in an error, read as far as it goes" in outcome(SAMPLE).problem_texts("note")


def test_an_archive_gives_the_same_messages_as_the_log(tmp_path: Path) -> None:
    log = json.loads(SAMPLE.read_text(encoding="utf-8"))
    members = {f"samples/{sample['id']}_epoch_1.json": sample for sample in log["samples"]}
    header = {"header.json": {"version": 2, "status": "success", "eval": log["eval"], "plan": log["plan"]}}
    result = outcome(archive(tmp_path / "x.eval", header | members))
    texts = {each.id: [message.text for message in each.messages] for each in outcome(SAMPLE).conversations}
    assert {each.id: [message.text for message in each.messages] for each in result.conversations} == texts
    assert not result.problem_texts("record")
    assert not result.problem_texts("file")


def test_summaries_of_samples_are_no_conversations_of_their_own(tmp_path: Path) -> None:
    said = [{"id": "m1", "role": "user", "content": "how deep?"}, {"id": "m2", "role": "assistant", "content": "Two."}]
    sample = {"id": "a", "epoch": 1, "input": said, "target": "", "messages": said}
    summary = {"id": "a", "epoch": 1, "input": said, "target": "", "uuid": "u", "completed": True, "message_count": 2}
    members = {"_journal/summaries/1.json": [summary], "samples/a_epoch_1.json": sample, "summaries.json": [summary]}
    result = outcome(archive(tmp_path / "x.eval", members))
    assert [message.text for message in result.only.messages] == ["how deep?", "Two."]
    assert [problem.what for problem in result.problems] == [
        "1 × summary of a sample, whose messages stand in the sample"] * 2  # fmt: skip


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.eval", {"samples/a.json": {"epoch": 1, "input": "", "target": "", "messages": []}})
    data = bytearray(path.read_bytes())
    data[45:50] = b"\0" * 5
    path.write_bytes(data)
    result = outcome(path)
    assert not result.conversations
    assert [problem.kind for problem in result.problems] == ["file"]


def test_a_message_without_a_role_is_named_and_the_others_are_kept(ingest: Any) -> None:
    messages = [{"role": "pilot", "content": "x"}, 4, {"role": "user", "content": [{"type": "image"}, "hello"]}]
    result = ingest({"id": "a", "epoch": 1, "input": "hello", "target": "b", "messages": messages})
    assert [message.text for message in result.only.messages] == ["hello"]
    assert len(result.problem_texts("record")) == 2
