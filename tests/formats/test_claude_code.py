"""Claude Code sessions: answers over several lines, tools in the user's name, subagents, the program's own words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.formats.conftest import outcome

FOLDER = Path(__file__).parent.parent / "samples" / "claude-code"


def line(kind: str, uuid: str, content: Any, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | fields.pop("message", {})
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message} | fields


def test_a_folder_gives_the_session_and_its_subagent() -> None:
    session, subagent = outcome(FOLDER).conversations
    assert (session.id, session.title) == ("9f1c", "Fixing the parser")
    assert subagent.id == "9f1c/agent-a7"
    assert [(message.author, message.role) for message in subagent.messages] == [
        ("main-agent", "participant"), ("a7", "assistant")
    ]  # fmt: skip


def test_lines_of_one_answer_are_one_message_and_its_usage_counts_once() -> None:
    answer = outcome(FOLDER).conversations[0].messages[2]
    assert (answer.id, answer.text, answer.tokens) == ("c2", "Let me look at the parser.", 41)
    assert answer.tool_calls[0].name == "Edit"
    assert answer.tool_calls[0].input["new_string"] == "a + b"
    assert answer.latency == 4.0


def test_tool_results_are_not_the_human() -> None:
    messages = outcome(FOLDER).conversations[0].messages
    assert [message.text for message in messages if message.role == "user"] == [
        "The parser test fails. Please fix it.", "It still fails for me."
    ]  # fmt: skip
    failed = messages[5]
    assert (failed.role, failed.author, failed.text) == ("tool", "Bash", "1 failed")
    assert (failed.tool_results[0].call_id, failed.tool_results[0].is_error) == ("tu_2", True)


def test_what_the_program_writes_is_system() -> None:
    messages = outcome(FOLDER).conversations[0].messages
    assert [message.author for message in messages if message.role == "system"] == ["claude-code", "claude-code"]
    assert messages[-1].text == "API Error: overloaded"


def test_a_reply_to_a_later_line_of_an_answer_is_a_reply_to_the_answer() -> None:
    assert outcome(FOLDER).conversations[0].messages[3].reply_to == "c2"


def test_human_words_beside_a_tool_result_stay_the_humans(ingest: Any) -> None:
    content = [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}, {"type": "text", "text": "stop that"}]
    result = ingest([line("user", "u", content)], "s.jsonl")
    assert [(message.id, message.role, message.text) for message in result.only.messages] == [
        ("u", "tool", "ok"), ("u#text", "user", "stop that")
    ]  # fmt: skip


def test_command_wrappers_and_compaction_are_not_the_human(ingest: Any) -> None:
    rows = [
        line("user", "1", "<command-name>/clear</command-name>"),
        line("user", "2", "The story so far", isCompactSummary=True),
        line("user", "3", "a <command-name> in the middle"),
    ]
    assert [message.role for message in ingest(rows, "s.jsonl").only.messages] == ["system", "system", "user"]


def test_an_old_sidechain_without_agent_id_is_a_conversation_of_its_own(ingest: Any) -> None:
    rows = [
        line("user", "1", "do it"),
        line("user", "2", "sub task", isSidechain=True),
        line("assistant", "3", [{"type": "text", "text": "done"}], "2", isSidechain=True, message={"id": "m"}),
    ]
    result = ingest(rows, "s.jsonl")
    assert [(each.id, len(each.messages)) for each in result.conversations] == [("s", 1), ("s/sidechain-2", 2)]


def test_unknown_types_are_counted_by_type_and_wrong_lines_reported(ingest: Any) -> None:
    rows = [
        line("user", "1", "hi"),
        line("progress", "2", "x"),
        line("progress", "3", "x"),
        line("user", "4", None),
        {"type": "assistant", "sessionId": "s", "uuid": "5"},
        ["no object"],
    ]
    result = ingest(rows, "s.jsonl")
    assert result.problem_texts("note") == ["2 × line of type 'progress', read as no message"]
    assert [problem.where.rsplit(":")[-1] for problem in result.problems if problem.kind == "record"] == ["4", "5", "6"]


def test_a_file_of_bookkeeping_alone_is_no_failure_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"type": "summary", "summary": "x", "leafUuid": "y"}\n')
    (tmp_path / "b.jsonl").write_text((FOLDER / "9f1c.jsonl").read_text())
    result = outcome(tmp_path)
    assert result.problem_texts("file") == []
    assert "no message could be read as claude-code" in result.problem_texts("note")
    assert outcome(tmp_path / "a.jsonl").problem_texts("file") == ["no message could be read as claude-code"]


def test_bookkeeping_is_passed_over_and_a_message_in_it_is_named(tmp_path: Path) -> None:
    first = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "timestamp": "2026-01-05T10:00:00Z",
             "message": {"role": "user", "content": "hello"}}  # fmt: skip
    plain = {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}}
    path = tmp_path / "s.jsonl"
    for more, notes in (({}, []), ({"message": {"content": "words"}}, ["file-history-snapshot"])):
        path.write_text("".join(json.dumps(line) + "\n" for line in (first, plain | more)))
        problems = outcome(path).problem_texts("note")
        assert ["file-history-snapshot" for problem in problems if "file-history-snapshot" in problem] == notes


def test_words_queued_while_the_agent_works_are_read_once_or_named(ingest: Any) -> None:
    def queue(operation: str, content: Any = None) -> dict[str, Any]:
        return {"type": "queue-operation", "operation": operation, "sessionId": "s", "content": content}

    def taken(prompt: Any, **more: Any) -> dict[str, Any]:
        return {"type": "attachment", "uuid": str(prompt), "sessionId": "s",
                "attachment": {"type": "queued_command", "prompt": prompt, **more}}  # fmt: skip

    rows = [
        line("user", "1", "go on"),
        queue("enqueue", "stop at once"), queue("remove"), taken("stop at once", origin={"kind": "human"}),
        queue("enqueue", "first"), queue("enqueue", "second"), queue("dequeue"), line("user", "2", "first\nsecond"),
        taken("<task-notification>done"), taken("ran", origin={"kind": "sdk"}), taken("ls", commandMode="bash"),
        {"type": "attachment", "uuid": "9", "sessionId": "s", "attachment": {"type": "task_reminder", "prompt": "no"}},
    ]  # fmt: skip
    result = ingest(rows, "s.jsonl")
    assert [message.text for message in result.only.messages if message.role == "user"] == [
        "go on", "stop at once", "first\nsecond"
    ]  # fmt: skip
    assert [message.role for message in result.only.messages][-3:] == ["system"] * 3
    assert result.problem_texts("note")[0] == "1 × line of type 'attachment', read as no message"
    withdrawn = ingest([*rows, queue("enqueue", [{"type": "text", "text": "never mind"}]), queue("popAll")], "s.jsonl")
    assert "1 × words that waited in the queue and that no message repeats, not read" in withdrawn.problem_texts("note")
