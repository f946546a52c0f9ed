"""ChatGPT exports: the tree, its branches, hidden messages and tools."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "chatgpt" / "conversations.json"


def node(key: str, parent: str | None, text: Any = "hi", role: str = "user", **message: Any) -> dict[str, Any]:
    body = {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}, **message}
    return {"id": key, "parent": parent, "children": [], "message": body}


def export(*nodes: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return [{"id": "c", "mapping": {each["id"]: each for each in nodes}, **fields}]


def test_a_regenerated_answer_is_kept_as_a_branch() -> None:
    bakery = outcome(SAMPLE).conversations[0]
    assert {message.id: message.branch for message in bakery.messages if message.branch} == {"b3": "b3"}
    assert [message.id for message in bakery.messages] == ["b2", "b3", "b4", "b5", "b6", "b7", "b8"]
    assert bakery.title == "Bakery plan"


def test_the_node_tells_author_time_model_and_place() -> None:
    last = outcome(SAMPLE).conversations[0].messages[-1]
    assert (last.author, last.model, last.reply_to) == ("assistant", "m-warm", "b7")
    assert str(last.source_ref).endswith("conversations.json#/0/mapping/b8")
    assert last.time is not None
    assert last.time.isoformat() == "2026-01-01T10:01:50+00:00"


def test_words_to_a_tool_are_a_call_and_its_words_a_result() -> None:
    call, result = outcome(SAMPLE).conversations[0].messages[4:6]
    assert (call.text, call.tool_calls[0].name, call.tool_calls[0].input) == ("", "python", "print(4200 / 0.31)")
    assert (result.role, result.author, result.tool_results[0].text) == ("tool", "python", "13548.387")


def test_hidden_messages_and_thoughts_are_counted_not_read(ingest: Any) -> None:
    result = ingest(
        export(
            node("a", None, weight=0),
            node("b", "a", metadata={"is_visually_hidden_from_conversation": True}),
            node("c", "b", role="assistant", content={"content_type": "thoughts", "thoughts": []}),
            node("d", "c", "seen"),
        )
    )
    assert [message.text for message in result.only.messages] == ["seen"]
    assert "2 × hidden message, not read" in result.problem_texts("note")
    assert any("thoughts" in note for note in result.problem_texts("note"))


def test_parts_may_mix_text_and_objects(ingest: Any) -> None:
    parts = ["look", {"content_type": "image_asset_pointer"}, {"content_type": "audio_transcription", "text": "spoken"}]
    content = {"content_type": "multimodal_text", "parts": parts}
    assert ingest(export(node("a", None, content=content))).only.messages[0].text == "look\n\nspoken"


def test_wrong_nodes_are_reported_with_their_pointer_and_the_rest_is_read(ingest: Any) -> None:
    rows = export(node("a", None), node("b", "a", content=None), node("c", "b", "last"), node("x/y", "a", role="robot"))
    rows[0]["mapping"]["n"] = 7
    result = ingest(rows)
    assert [message.text for message in result.only.messages] == ["hi", "last"]
    assert sorted(problem.where.split("#")[1] for problem in result.problems) == [
        "/0/mapping/b", "/0/mapping/n", "/0/mapping/x~1y"
    ]  # fmt: skip
    assert result.files[0].skipped == 3


def test_nodes_on_a_circle_are_reported(ingest: Any) -> None:
    result = ingest(export(node("a", "b"), node("b", "a"), node("c", None, "kept")))
    assert [message.text for message in result.only.messages] == ["kept"]
    assert result.problem_texts("record") == ["2 nodes that no root leads to"]


def test_a_single_conversation_object_is_read_too(ingest: Any) -> None:
    assert ingest(export(node("a", None))[0]).only.id == "c"


def test_an_archive_gives_the_conversations_of_all_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in (1, 2):
            rows = export(node("a", None))
            rows[0]["id"] = f"c{number}"
            archive.writestr(f"conversations-00{number}.json", json.dumps(rows))
        archive.writestr("user.json", '{"id": "user-1"}')
        archive.writestr("chat.html", "<html>")
        archive.writestr("message_feedback.json", "[]")
    result = outcome(path)
    assert [conversation.id for conversation in result.conversations] == ["c1", "c2"]
    assert str(result.conversations[1].source_ref).endswith("export.zip/conversations-002.json#/0")
    assert [(each.name, each.source_format, each.conversations) for each in result.files] == [(path.name, "chatgpt", 2)]
    assert result.problem_texts("note") == [
        "1 member of another ending, not read: chat.html",
        "2 members of no known format, not read: message_feedback.json, user.json",
    ]
    assert result.files[0].size == path.stat().st_size


def test_an_older_and_a_newer_export_are_one_conversation(tmp_path: Path) -> None:
    old, new = tmp_path / "a.json", tmp_path / "b.json"
    old.write_text(json.dumps(export(node("a", None), node("b", "a", "two", "assistant"))))
    new.write_text(json.dumps(export(node("a", None), node("b", "a", "two", "assistant"), node("c", "b", "three"))))
    assert [message.text for message in outcome(old, new).only.messages] == ["hi", "two", "three"]
