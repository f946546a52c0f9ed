"""Logs of coding agents in the shapes of their programs: the same small session in each, and hostile ones."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import Outcome, outcome
from undersong.scan import load_book, scan_conversation
from undersong.verdict import session_verdict

SAMPLES = Path(__file__).parent.parent / "samples"
SESSIONS = {
    "claude-stream": "run.jsonl", "openhands": "events.json", "sweagent": "quay__tide-7.traj", "copilot": "chat.json",
    "specstory": "2026-03-01_08-00-00Z-low-tide.md", "cursor": "agent.jsonl",
}  # fmt: skip


@pytest.mark.parametrize(("name", "file"), SESSIONS.items(), ids=SESSIONS)
def test_the_same_session_says_the_same_in_every_shape(name: str, file: str) -> None:
    conversation = outcome(SAMPLES / name / file).only
    assert conversation.messages[0].role == "user"
    assert conversation.messages[0].text == "The low tide is off by one."
    calls = [call for message in conversation.messages for call in message.tool_calls]
    results = [result for message in conversation.messages for result in message.tool_results]
    assert [result.call_id for result in results[:2]] == [call.id for call in calls[:2]]
    scans, thread = scan_conversation(conversation, load_book())
    verdict = session_verdict(conversation, scans, thread, ())
    assert verdict.profile == "coding"
    assert (verdict.claims[0].kind, verdict.claims[0].state) == ("tests", "contradicted")


@pytest.mark.parametrize("name", ["claude-stream", "copilot", "specstory"])
def test_thoughts_are_kept_apart_from_what_is_said(name: str) -> None:
    first = outcome(SAMPLES / name / SESSIONS[name]).only.messages[1]
    assert (first.text, first.thinking) == ("I take one off.", "The table counts from one.")


def test_a_chat_exported_from_cursor_keeps_rules_within_a_message() -> None:
    conversation = outcome(SAMPLES / "cursor" / "low-tide.md").only
    assert conversation.title == "Low tide off by one"
    assert [message.role for message in conversation.messages] == ["user", "assistant", "user"]
    assert "---\n\nIt is fixed now." in conversation.messages[1].text


def test_events_of_the_agent_sdk_of_openhands(ingest: Any) -> None:
    events = [
        {"kind": "SystemPromptEvent", "source": "agent"},
        {"kind": "MessageEvent", "source": "user", "llm_message": {"content": [{"type": "text", "text": "low tide"}]}},
        {"kind": "ActionEvent", "source": "agent", "reasoning_content": "I guess.", "tool_name": "terminal",
         "thought": [{"type": "text", "text": "Tests."}], "tool_call_id": "c1", "action": {"command": "pytest -q"}},
        {"kind": "ObservationEvent", "source": "environment", "tool_name": "terminal", "tool_call_id": "c1",
         "observation": {"content": [{"type": "text", "text": "1 failed"}], "exit_code": 1, "is_error": False}},
        {"kind": "ActionEvent", "source": "agent", "tool_name": "finish", "action": {"message": "All tests pass."}},
    ]  # fmt: skip
    conversation = ingest(events).only
    assert [message.role for message in conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert conversation.messages[1].thinking == "I guess."
    assert conversation.messages[2].tool_results[0].is_error is True
    assert conversation.messages[3].text == "All tests pass."


def test_subagents_of_a_stream_are_conversations_of_their_own(ingest: Any) -> None:
    lines = [
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "session_id": "s", "parent_tool_use_id": "t9",
         "message": {"content": [{"type": "text", "text": "I am below."}]}},
        {"type": "result", "subtype": "error_max_turns", "session_id": "s", "is_error": True, "result": "stopped"},
    ]  # fmt: skip
    result = ingest(lines, "x.jsonl")
    assert {each.id: [message.text for message in each.messages] for each in result.conversations} == {
        "s": ["go", "stopped"], "s/agent-t9": ["I am below."]
    }  # fmt: skip


HOSTILE: dict[str, Any] = {
    "claude-stream": [
        {"type": "assistant", "session_id": "s", "message": {"content": [{"type": "text", "text": "fine"}]}},
        {"type": "assistant", "session_id": "s", "message": None},
        {"type": "user", "session_id": [], "message": {"content": 7}},
        {"type": {}, "session_id": "s"},
        [],
    ],
    "openhands": [
        {"action": "message", "source": "user", "args": {"content": "fine"}},
        {"action": "run", "source": "agent", "args": None, "timestamp": "x"},
        {"observation": "run", "content": {"a": 1}, "extras": {"metadata": [], "exit_code": "1"}, "cause": {}},
        {"kind": "ObservationEvent", "observation": "no object"},
        {"source": "agent"},
        None,
    ],
    "sweagent": {
        "trajectory": [
            {"action": "ls", "observation": None, "thought": 4}, {"action": "", "observation": "", "thought": "fine"},
            {"action": "", "observation": "", "thought": ""}, "step", {"action": ["ls"]},
        ],
        "history": {"role": "user"},
    },
    "copilot": {
        "responderUsername": 3,
        "requests": [
            {"message": {"text": "fine"}, "response": "no list", "result": []}, {"message": None}, 9,
            {"message": {"text": "q"}, "result": {"metadata": {"toolCallRounds": [{"toolCalls": {}}, 4]}}},
            {"message": {"text": "q"}, "result": {"metadata": {"toolCallRounds": 7}}},
            {"message": {"text": "q"}, "response": [{"kind": "textEditGroup", "edits": [3, [None]]}, {"kind": 5}, 6]},
        ],
    },
    "cursor": [
        {"type": "user", "session_id": "s", "message": {"content": "fine"}},
        {"type": "tool_call", "subtype": "started", "call_id": "c", "session_id": "s", "tool_call": {}},
        {"type": "tool_call", "subtype": "completed", "session_id": "s", "tool_call": {"x": {"result": 3}}},
        {"type": "assistant", "session_id": "s"},
        3,
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), HOSTILE.items(), ids=HOSTILE)
def test_what_is_broken_is_told_with_its_place_and_the_rest_goes_on(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / ("x.jsonl" if name in ("claude-stream", "cursor") else "x.json")
    text = "".join(json.dumps(line) + "\n" for line in value) if path.suffix == ".jsonl" else json.dumps(value)
    path.write_text(text, encoding="utf-8")
    result = outcome(path, source_format=name)
    assert "fine" in [message.text for each in result.conversations for message in each.messages]
    broken = [problem for problem in result.problems if problem.kind == "record"]
    assert broken
    assert all(problem.where.startswith(("x.json#", "x.jsonl:")) for problem in broken)


@pytest.mark.parametrize("content", [[{"text": "9"}], "9 failed", [{"value": "9 passed"}, {"text": "9"}]])
def test_a_part_of_a_copilot_result_without_a_value_is_noted(content: object, tmp_path: Path) -> None:
    chat = json.loads((SAMPLES / "copilot" / "chat.json").read_bytes())
    results = next(
        request["result"]["metadata"]["toolCallResults"]
        for request in chat["requests"]
        if "toolCallResults" in request.get("result", {}).get("metadata", {})
    )
    results["c2"]["content"] = content
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    assert "1 × part of a result without a value, not read" in outcome(tmp_path / "chat.json").problem_texts("note")


SPOILED = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

_**User (2026-13-99 99:99:99Z)**_

```
an open fence, and <tool-use data-tool-type="shell" data-tool-name="x">

---

_**Agent**_

<think><details><summary>Thought Process</summary>
never closed

_**Agent**_

Done.

---

_**User**_

still wrong
"""


def test_what_a_message_leaves_open_hides_no_message_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_text(SPOILED, encoding="utf-8")
    result = outcome(path)
    texts = [message.text for message in result.only.messages]
    assert texts[-1] == "still wrong"
    assert result.problem_texts("note") == ["1 × time that cannot be read, taken as unknown"]


def test_a_submission_of_an_agent_that_no_step_shows_is_noted(tmp_path: Path) -> None:
    run = json.loads((SAMPLES / "sweagent" / "quay__tide-7.traj").read_bytes())
    run["info"]["submission"] = "diff --git a/other.py b/other.py"
    (tmp_path / "x.traj").write_text(json.dumps(run))
    notes = outcome(tmp_path / "x.traj").problem_texts("note")
    assert "1 × submission that stands in no observation, not read" in notes


NOTES_OF_COPILOT = ["1 × part of kind 'progressTaskSerialized', read as no message"]


def test_shown_text_of_copilot_that_stands_in_no_round_is_noted(tmp_path: Path) -> None:
    chat = json.loads((SAMPLES / "copilot" / "chat.json").read_bytes())
    assert outcome(SAMPLES / "copilot" / "chat.json").problem_texts("note") == NOTES_OF_COPILOT
    chat["requests"][0]["result"]["metadata"]["toolCallRounds"][-1]["response"] = "Something else."
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    notes = outcome(tmp_path / "chat.json").problem_texts("note")
    assert set(notes) - set(NOTES_OF_COPILOT) == {"1 × text that was shown and stands in no round, not read"}


ODD = "content that is neither text nor a block"
OTHER, UNTOLD = "text that should repeat a message and has other words", "result of a call that is not told"
REPEATED = (
    ("codex/rollout-2026-02-02.jsonl", '"text": "The body is empty; nothing is rendered."', '"text": "Look."', OTHER),
    ("cursor/agent.jsonl", '[{"type": "text", "text": "I take "}]', '[""]', OTHER),
    (
        "claude-stream/run.jsonl",
        '"content": "The file has been',
        '"contents": "The file has been',
        "words under 'contents'",
    ),
    ("copilot/chat.json", '"toolCallRounds"', '"rounds"', UNTOLD),
    ("copilot/chat.json", '"value": "."', '"value": {"content": "It is late."}', "words under 'content'"),
    ("inspect/harbour.json", '"input": "When is high tide?"', '"input": "When is low water?"', OTHER),
    ("claude/conversations.json", '"text": "Not outdoors."', '"text": "Not in the yard."', OTHER),
    ("braintrust/logs.jsonl", '"output": "In the shed."', '"output": "In the attic."', OTHER),
    ("copilot/chat.json", '"toolCallRounds"', '"calls": ["The edit."], "toolCallRounds"', "words under 'calls'"),
    (
        "cursor/agent.jsonl",
        '"result": {"failure"',
        '"results": {"failure"',
        "words under 'results'",
    ),
    ("inspect/harbour.json", '"message": "no such pier"', '"message": "the pier is gone"', OTHER),
    ("openhands/events.json", '"final_thought"', '"last_thought"', "words under 'last_thought'"),
    (
        "sweagent/quay__tide-7.traj",
        '"thought": "I take one off."',
        '"thought": "user"',
        "response with other words than its thought and action",
    ),
    ("telegram/result.json", '"type": "plain", "text": "did', '"type": "plain", "text": "Why did', OTHER),
    (
        "openhands/events.json",
        '"extras": {',
        '"extras": {"final_thought": "It holds.", ',
        "words under 'final_thought'",
    ),
    ("telegram/result.json", '"plain", "text"', '"plain", "words"', "words under 'words'"),
    ("openhands/events.json", '"args": {', '"thought": "It is late.", "args": {', "words under 'thought'"),
    (
        "otel/trace.json",
        '"key": "gen_ai.input.messages"',
        '"key": "gen_ai.input.messages", "value": {"stringValue": "Which?"}}, {"key": "gen_ai.input.messages"',
        "earlier one of two attributes of one name",
    ),
    ("telegram/result.json", '"bold", "text"', '"bold", "words"', "words under 'words'"),
    ("discord/lantern.json", '"embeds": []', '"embeds": "The lantern is out."', "words under 'embeds'"),
    ("gemini/MyActivity.json", '"html": "', '"markup": "', "words under 'markup'"),
    (
        "slack/harbour-crew/2026-03-03.json",
        '"text": "me, at',
        '"blocks": [{"text": "Not me."}], "text": "me, at',
        OTHER,
    ),
    ("cursor/agent.jsonl", '"stdout"', '"printed"', "words under 'printed'"),
    ("signal/main.jsonl", '"chat": {', '"chat": {"said": "It is late.", ', "words under 'said'"),
    ("signal/main.jsonl", '"body": "who locks', '"words": "who locks', "words under 'words'"),
    ("signal/main.jsonl", '"group": {', '"said": "It is late.", "group": {', "words under 'said'"),
    ("claude-code/9f1c.jsonl", '"content": "edited"', '"printed": "edited"', "words under 'printed'"),
    ("chatgpt/conversations.json", '"Never mind."', '"Never mind.", ["aside"]', ODD),
    ("claude-stream/run.jsonl", '"type": "text"', '"type": "thinking"', "words under 'text'"),
    ("claude/conversations.json", '"content": [', '"content": [["aside"], ', ODD),
    (
        "claude/conversations.json",
        '"type": "tool_use"',
        '"type": "tool_use", "text": "It rains."',
        "words under 'text'",
    ),
    ("claude-stream/run.jsonl", '"content": [{"type": "text"', '"content": [["aside"], {"type": "text"', ODD),
    ("gemini/MyActivity.json", '"html": "', '"html": ["aside"], "x": "', ODD),
    ("openhands/events.json", '"observation": "run"', '"observation": "It has run."', "words under 'observation'"),
    ("openhands/events.json", '"observation": "run"', '"observation": "run", "args": "It ran."', "words under 'args'"),
    (
        "gemini/MyActivity.json",
        '"products": [',
        '"products": {"html": "Not at noon."}, "x": [',
        "words under 'products'",
    ),
    ("moltbook/posts.json", '"content": "', '"content": ["aside"], "x": "', ODD),
    (
        "moltbook/posts.json",
        '"comments": [',
        '"replies": [{"content": "Kind of you."}], "comments": [',
        "words under 'replies'",
    ),
    ("moltbook/posts.json", '"replies": [', '"replies": {"aside": "x"}, "x": [', "replies that are not a list"),
)


@pytest.mark.parametrize(("path", "old", "new", "note"), REPEATED, ids=[f"{case[0]}-{case[3]}" for case in REPEATED])
def test_words_that_no_message_has_are_noted(path: str, old: str, new: str, note: str, tmp_path: Path) -> None:
    assert note not in str(outcome(SAMPLES / path).problems)
    assert f"1 × {note}, not read" in _changed(path, old, new, tmp_path).problem_texts("note")


READ = (
    ("openhands/events.json", '"final_thought": "Low', '"final_thought": ["Low tide."], "x": "Low', "Low tide."),
    (
        "slack/harbour-crew/2026-03-03.json",
        '"text": "me, at nine. he knows that."',
        '"blocks": [{"elements": [{"text": "me, at "}, {"type": "emoji", "name": "nine"}, {"text": "ten &gt; nine"}]}]',
        "me, at ten > nine",
    ),
    ("cursor/agent.jsonl", '"subtype": "completed", "call_id": "c2"', '"subtype": "", "call_id": "c2"', "8 passed"),
    ("sweagent/quay__tide-7.traj", '"thought": "I take one off.",', "", "I take one off"),
    (
        "codex/rollout-2026-02-02.jsonl",
        '"summary": [], "encrypted',
        '"summary": "It is empty.", "encrypted',
        "It is empty",
    ),
)


@pytest.mark.parametrize(("path", "old", "new", "words"), READ, ids=[case[0] for case in READ])
def test_words_in_a_damaged_step_are_read(path: str, old: str, new: str, words: str, tmp_path: Path) -> None:
    assert words in repr(_changed(path, old, new, tmp_path).only.messages)


def _changed(path: str, old: str, new: str, tmp_path: Path) -> Outcome:
    text = (SAMPLES / path).read_text()
    assert old in text
    changed = tmp_path / Path(path).name
    changed.write_text(text.replace(old, new, 1))
    return outcome(changed)


def test_text_between_a_session_and_its_first_message_is_noted(tmp_path: Path) -> None:
    session = "<!-- Claude Code Session 4c1d0e6a (2026-03-01 08:00:00Z) -->\n\n"
    path = tmp_path / "x.md"
    path.write_text(
        f"{session}_**User**_\n\nx\n\n_**Agent**_\n\nz\n\n{session}_**User (all 20 pass.\n\n---\n\n_**User**_\n\ny\n"
    )
    assert outcome(path).problem_texts("note") == ["1 × line of text before the first message, not read"]


def test_a_history_of_open_blocks_is_read_in_time(tmp_path: Path) -> None:
    block = '<tool-use data-tool-type="shell" data-tool-name="x"><details>\n<summary>`a`</summary>\n```bash\n'
    path = tmp_path / "x.md"
    path.write_text("_**User**_\n\nx\n\n---\n\n_**Agent**_\n\n" + block * 20_000, encoding="utf-8")
    began = time.process_time()
    assert len(outcome(path).only.messages) == 2
    assert time.process_time() - began < 20


@pytest.mark.parametrize("size", [100_000, 3_000_000])
@pytest.mark.parametrize("name", ["claude-code", "claude-stream", "sweagent"])
def test_a_long_first_record_is_no_reason_to_refuse(name: str, size: int, tmp_path: Path) -> None:
    long = "The low tide is off by one. " * (size // 28)
    if name == "claude-code":
        line: dict[str, Any] = {
            "message": {"role": "user", "content": long},
            "type": "user",
            "uuid": "u",
            "sessionId": "s",
        }
    elif name == "claude-stream":
        line = {"message": {"role": "user", "content": long}, "type": "user", "session_id": "s"}
    else:
        line = {"history": [{"role": "user", "content": long}],
                "trajectory": [{"thought": "Done.", "action": "ls", "observation": ""}]}  # fmt: skip
    path = tmp_path / "x.json"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    result = outcome(path)
    assert [each.source_format for each in result.files] == [name]
    assert result.only.messages[0].text == long
