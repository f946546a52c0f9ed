"""One input of each format with a message of every kind that the format can express.

A word says what must become of it: ``read_X`` is said by a message, ``kept_X`` is a call, result, thought, title or
name, ``time_X`` is read at 9:00 UTC on 7 January 2026, ``said_X`` is not read and counted in a note or problem, and
``one_X`` and ``two_X`` are of two conversations with one id. X is the kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

KINDS = (
    "text", "block", "call", "result", "refusal", "unknown", "deleted", "system", "edited", "twin", "control", "mail",
    "lower", "number", "empty", "same",
)  # fmt: skip
CONTROL = "read_control \x00\x1b[2J\u202e"
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/said_block.png"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "kept_call"}'}}
MOMENTS = {"mail": "Wed, 07 Jan 2026 10:00:00 +0100", "lower": "2026-01-07t09:00:00z", "number": 1767776400}


def document(value: Any) -> Callable[[], str]:
    return lambda: json.dumps(value)


def lines(*values: Any) -> Callable[[], str]:
    return lambda: "".join(json.dumps(value) + "\n" for value in values)


CHAT = [
    {"role": "system", "content": "read_system2"},
    {"role": "user", "content": [{"type": "text", "text": "read_text"}, IMAGE]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "read_result"}]},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "read_refusal"}]},
    {"role": "assistant", "content": None, "refusal": "read_refusal2"},
    {"role": "assistant", "content": [{"type": "hologram", "beam": "said_unknown words"}]},
    {"role": "user", "content": "read_deleted", "deleted": True},
    {"role": "user", "content": "read_edited", "edited_at": "2026-01-07"},
    {"role": "user", "content": "read_twin", "id": "kept_twin"},
    {"role": "user", "content": "read_twin2", "id": "kept_twin"},
    {"role": "user", "content": CONTROL, "annotations": "said_unknown of others"},
    {"role": "user", "content": "", "id": "kept_empty"},
    *({"role": "user", "content": f"time_{kind}", "timestamp": moment} for kind, moment in MOMENTS.items()),
]  # fmt: skip
OPENAI = lines(
    {"id": "all", "system": "read_system", "messages": CHAT, "tools": [{"description": "said_system of tools"}]},
    {"id": "same", "messages": [{"role": "user", "content": "one_same"}]},
    {"id": "same", "messages": [{"role": "user", "content": "two_same"}]},
    {"id": "a", "messages": [{"role": "user", "content": "read_text3"}], "choices": [
        {"message": {"role": "assistant", "content": "read_text4"}}, {"message": {"content": "read_text5"}}]},
    {"id": "b", "prompt": "read_text6", "completion": "read_text7"},
    {"id": "c", "prompt": "read_text8", "chosen": "read_text9", "rejected": "read_text10"},
    {"id": "d", "chosen": "\n\nHuman: read_text11\n\nAssistant: read_text12",
     "rejected": "\n\nHuman: read_text11\n\nAssistant: read_text13"},
    {"id": "e", "request": {"messages": [{"role": "user", "content": "read_text14"}]},
     "response": {"choices": [{"message": {"role": "assistant", "content": "read_text15"}}]}},
    {"id": "f", "input": [{"role": "user", "content": "read_text16"}], "output": "read_text17"},
    {"custom_id": "g", "response": {"body": {"choices": [{"message": {"role": "assistant",
        "content": "read_text18"}}]}}},
    {"id": "h", "input": {"messages": [{"role": "user", "content": "read_text19"}]},
     "preferred_output": [{"role": "assistant", "content": "read_text20"}],
     "non_preferred_output": [{"role": "assistant", "content": "read_text21"}]},
)  # fmt: skip
SHAREGPT = document([
    {"id": "all", "system": "read_system", "conversations": [
        {"from": "human", "value": "read_text"}, {"from": "function_call", "value": "kept_call"},
        {"from": "observation", "value": "read_result"}, {"from": "gpt", "value": CONTROL},
        {"from": "human", "value": [{"type": "text", "text": "read_text2"}, IMAGE]},
        {"from": "gpt", "value": "read_unknown", "weight": "said_unknown of others"}, {"from": "human", "value": ""},
        {"from": "human", "value": "read_deleted", "deleted": 1},
            {"from": "human", "value": "read_edited", "edited": 1},
        *({"from": "human", "value": f"time_{kind}", "timestamp": moment} for kind, moment in MOMENTS.items()),
        {"from": "spirit", "value": "said_refusal"}]},
    {"id": "same", "conversations": [{"from": "human", "value": "one_same"}]},
    {"id": "same", "conversations": [{"from": "human", "value": "two_same"}]},
])  # fmt: skip
CHATGPT_PARTS: list[tuple[str, dict[str, Any]]] = [
    ("user", {"content_type": "text", "parts": ["read_text"]}),
    ("system", {"content_type": "text", "parts": ["read_system"]}),
    ("user",
        {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer", "u": "said_block"}]}),
    ("tool", {"content_type": "execution_output", "text": "read_result"}),
    ("assistant", {"content_type": "refusal", "text": "read_refusal"}),
    ("assistant", {"content_type": "text", "parts": [{"content_type": "hologram", "beam": "said_unknown"}]}),
    ("user", {"content_type": "text", "parts": [CONTROL]}),
    ("user", {"content_type": "text", "parts": [""]}),
    ("assistant", {"content_type": "thoughts", "thoughts": [{"content": "said_unknown2"}]}),
]  # fmt: skip


def chatgpt() -> str:
    nodes: dict[str, Any] = {"root": {"message": None, "parent": None, "children": []}}
    messages = [{"author": {"role": role}, "content": content} for role, content in CHATGPT_PARTS]
    messages.append({"author": {"role": "assistant"}, "recipient": "find", "content": {"parts": ["kept_call"]}})
    messages.append({"author": {"role": "user"}, "content": {"parts": ["read_deleted"]}, "deleted": True})
    messages.append({"author": {"role": "user"}, "content": {"parts": ["read_edited"]}, "edited": True})
    for kind, moment in MOMENTS.items():
        messages.append({"author": {"role": "user"}, "content": {"parts": [f"time_{kind}"]}, "create_time": moment})
    for number, message in enumerate(messages):
        parent = f"n{number - 1}" if number else "root"
        nodes[f"n{number}"] = {"message": message, "parent": parent, "children": []}
    one, two = ({"id": "same", "mapping": {f"{word}": {"message": {"author": {"role": "user"}, "content":
                {"parts": [f"{word}_same"]}}, "parent": None}}} for word in ("one", "two"))  # fmt: skip
    return json.dumps([{"id": "all", "mapping": nodes}, one, two])


CLAUDE = document([
    {"uuid": "all", "name": "kept_text", "summary": "said_system of it", "chat_messages": [
        {"uuid": "m1", "sender": "human", "content": [{"type": "text", "text": "read_text"},
            {"type": "image", "u": "said_block"}]},
        {"uuid": "m2", "sender": "assistant", "content": [{"type": "tool_use", "name": "f", "input": "kept_call"}]},
        {"uuid": "m3", "sender": "assistant", "content": [{"type": "tool_result", "content": [
            {"type": "text", "text": "kept_result"}, {"type": "image"}]}]},
        {"uuid": "m4", "sender": "assistant", "content": [{"type": "hologram", "beam": "said_unknown"},
            {"type": "thinking", "thinking": "said_unknown2"}]},
        {"uuid": "m5", "sender": "human", "text": "read_deleted", "deleted": True},
        {"uuid": "m6", "sender": "human", "text": "read_edited", "edited": True},
        {"uuid": "kept_twin", "sender": "human", "text": "read_twin"},
        {"uuid": "kept_twin", "sender": "human", "text": "read_twin2"},
        {"uuid": "m7", "sender": "human", "text": CONTROL}, {"uuid": "kept_empty", "sender": "human", "text": ""},
        *({"uuid": kind, "sender": "human", "text": f"time_{kind}", "created_at": at} for kind,
            at in MOMENTS.items())]},
    *({"uuid": "same", "chat_messages": [{"uuid": word, "sender": "human", "text": f"{word}_same"}]}
      for word in ("one", "two")),
])  # fmt: skip
JSONL = lines(
    {"id": "m1", "conversation": "c", "author": "kept_text", "role": "system", "text": "read_system"},
    {"id": "m2", "conversation": "c", "author": "a", "content": [{"type": "text", "text": "read_text"}, IMAGE]},
    {"id": "m3", "conversation": "c", "author": "a", "text": "", "tool_calls": [{"name": "f", "input": "kept_call"},
        "x"]},
    {"id": "m4", "conversation": "c", "author": "f", "role": "tool", "tool_results": [{"text": "kept_result"}]},
    {"id": "m5", "conversation": "c", "author": "a", "text": "read_unknown", "aside": "said_unknown of others"},
    {"id": "m6", "conversation": "c", "author": "a", "text": "read_deleted", "deleted": True},
    {"id": "m7", "conversation": "c", "author": "a", "text": "read_edited", "edited": True},
    {"id": "m8", "conversation": "c", "author": "a", "text": "read_twin"},
    {"id": "m8", "conversation": "c", "author": "a", "text": "read_twin2"},
    {"id": "m9", "conversation": "c", "author": "a", "text": CONTROL},
    {"id": "kept_empty", "conversation": "c", "author": "a", "text": ""},
    *({"conversation": "c", "author": "a", "text": f"time_{kind}", "time": at} for kind, at in MOMENTS.items()),
)  # fmt: skip
SESSION = document({"session": {"id": "s", "title": "kept_text"}, "context": ["kept_text2"], "turns": [
    {"role": "system", "text": "read_system"}, {"role": "user", "text": "read_text", "mood": "said_unknown of it"},
    {"role": "assistant", "text": "", "tool_calls": [{"name": "f", "input": "kept_call"}]},
    {"role": "tool", "text": "", "tool_results": [{"text": "kept_result"}]},
    {"role": "user", "text": "read_deleted", "deleted": True}, {"role": "user", "text": "read_edited", "edited": True},
    {"role": "user", "text": "read_twin", "id": "t"}, {"role": "user", "text": "read_twin2", "id": "t"},
    {"role": "user", "text": CONTROL}, {"role": "user", "text": "", "id": "kept_empty"},
    *({"role": "user", "text": f"time_{kind}", "ts": at} for kind, at in MOMENTS.items()),
    {"role": "user", "text": [{"text": "said_block"}]}]})  # fmt: skip
WILDCHAT = document([
    {"conversation_id": "all", "model": "kept_text", "note": "said_unknown of a row", "conversation": [
        {"role": "system", "content": "read_system"}, {"role": "user", "content": "read_text"},
        {"role": "user", "content": [{"type": "text", "text": "read_text2"}, IMAGE]},
        {"role": "user", "content": "read_deleted", "deleted": True}, {"role": "user", "content": CONTROL},
        {"role": "user", "content": "read_edited", "edited": True}, {"role": "tool", "content": "read_result"},
        {"role": "assistant", "content": ""}, {"role": "user", "content": None, "refusal": "said_refusal"},
        *({"role": "user", "content": f"time_{kind}", "timestamp": at} for kind, at in MOMENTS.items())]},
    *({"conversation_id": "same", "model": "m", "conversation": [{"role": "user", "content": f"{word}_same"}]}
      for word in ("one", "two")),
])  # fmt: skip
ATIF = document([
    {"schema_version": "ATIF-v1.4", "session_id": "all", "notes": "said_unknown of all", "steps": [
        {"source": "system", "message": "read_system"},
        {"source": "user", "message": [{"type": "text", "text": "read_text"}, IMAGE], "aside": "said_unknown2 of it"},
        {"source": "agent", "message": "", "reasoning_content": "kept_text", "tool_calls": [
            {"tool_call_id": "c", "function_name": "f", "arguments": {"q": "kept_call"}}],
         "observation": {"results": [{"source_call_id": "c", "content": "read_result"}]}},
        {"source": "user", "message": "read_deleted", "deleted": True}, {"source": "user", "message": CONTROL},
        {"source": "user", "message": "read_edited", "edited": True}, {"source": "user", "message": ""},
        *({"source": "user", "message": f"time_{kind}", "timestamp": at} for kind, at in MOMENTS.items())]},
    *({"schema_version": "ATIF-v1.4", "session_id": "same", "steps": [{"source": "user", "message": f"{word}_same"}]}
      for word in ("one", "two")),
])  # fmt: skip


def inspect_sample(name: str, *messages: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "epoch": 1, "input": "", "target": "", "messages": list(messages), **more}


INSPECT = document({"version": 2, "status": "success", "eval": {"task": "t"}, "plan": {}, "samples": [
    inspect_sample("all", {"role": "system", "content": "read_system"},
        {"role": "user", "content": [{"type": "text", "text": "read_text"}, {"type": "image", "image": "said_block"}]},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "kept_text"}], "tool_calls": [
            {"id": "c", "function": "f", "arguments": {"q": "kept_call"}}]},
        {"role": "tool", "tool_call_id": "c", "function": "f", "content": "read_result"},
        {"role": "assistant", "content": [{"type": "hologram", "beam": "said_unknown"}]},
        {"role": "user", "content": "read_deleted", "deleted": True}, {"role": "user", "content": CONTROL},
        {"role": "user", "content": "read_edited", "edited": True}, {"role": "user", "content": "", "id": "kept_empty"},
        {"role": "user", "content": "read_twin", "id": "t"}, {"role": "user", "content": "read_twin2", "id": "t"}),
    inspect_sample("same", {"role": "user", "content": "one_same"}),
    inspect_sample("same", {"role": "user", "content": "two_same"})]})  # fmt: skip


def code_line(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    name = more.get("n", hashlib.sha256(json.dumps([content, more]).encode()).hexdigest()[:8])
    line = {"type": kind, "sessionId": "s", "uuid": f"u{name}"}
    return line | {"message": {"role": kind, "content": content}} | {key: more[key] for key in more if key != "n"}


CLAUDE_CODE = lines(
    {"type": "system", "sessionId": "s", "uuid": "u0", "content": "read_system", "aside": "said_unknown of it"},
    code_line("user", [{"type": "text", "text": "read_text"}, {"type": "image", "source": "said_block"}]),
    code_line("assistant", [{"type": "tool_use", "id": "c", "name": "f", "input": {"q": "kept_call"}},
                            {"type": "hologram", "beam": "said_unknown2"},
                                {"type": "thinking", "thinking": "kept_text"}]),
    code_line("user", [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text",
        "text": "read_result"}]}]),
    code_line("user", "read_deleted", deleted=True), code_line("user", "read_edited", edited=True),
    code_line("user", "read_twin", n=9), code_line("user", "read_twin2", n=9),
    code_line("user", CONTROL), code_line("user", ""),
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "said_text, taken back"},
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "read_text, as it was queued"},
    {"type": "attachment", "sessionId": "s", "uuid": "u1", "attachment": {"type": "queued_command",
        "prompt": [{"type": "text", "text": "read_text, as it was queued"}]}},
    *(code_line("user", f"time_{kind}", timestamp=at) for kind, at in MOMENTS.items()),
)  # fmt: skip


def codex_line(payload: dict[str, Any], kind: str = "response_item", **more: Any) -> dict[str, Any]:
    return {"type": kind, "payload": payload, **more}


def codex_message(role: str, text: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}, *blocks], **more}


CODEX = lines(
    codex_line({"id": "s", "base_instructions": "said_system of it"}, "session_meta"),
    codex_line(codex_message("user", "read_text", {"type": "input_image", "image_url": "said_block"})),
    codex_line({"type": "function_call", "name": "f", "call_id": "c", "arguments": "kept_call"}),
    codex_line({"type": "function_call_output", "call_id": "c", "output": "read_result"}),
    codex_line(codex_message("assistant", "read_unknown", {"type": "hologram", "beam": "said_unknown"})),
    codex_line({"type": "hologram", "beam": "said_unknown2"}),
    codex_line(codex_message("user", "read_deleted", deleted=True)),
    codex_line(codex_message("user", "read_edited", edited=True)),
    codex_line(codex_message("user", "read_twin", id="t")), codex_line(codex_message("user", "read_twin2", id="t")),
    codex_line(codex_message("user", CONTROL)), codex_line(codex_message("user", "", id="kept_empty")),
    *(codex_line(codex_message("user", f"time_{kind}"), timestamp=at) for kind, at in MOMENTS.items()),
)  # fmt: skip


def streamed(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": "s", "message": {"role": kind, "content": content}, **more}


CLAUDE_STREAM = lines(
    {"type": "system", "subtype": "init", "session_id": "s", "prompt": "said_system of it"},
    streamed("user", [{"type": "text", "text": "read_text"}, {"type": "image", "source": "said_block"}]),
    streamed("assistant", [{"type": "tool_use", "id": "c", "name": "f", "input": {"q": "kept_call"}},
                           {"type": "hologram", "beam": "said_unknown"}]),
    streamed("user", [{"type": "tool_result", "tool_use_id": "c", "content": "read_result"}]),
    streamed("user", "read_deleted", deleted=True), streamed("user", "read_edited", edited=True),
    streamed("user", "read_twin", uuid="t"), streamed("user", "read_twin2", uuid="t"),
    streamed("user", CONTROL), streamed("user", ""),
    *(streamed("user", f"time_{kind}", timestamp=at) for kind, at in MOMENTS.items()),
    streamed("assistant", [{"type": "thinking", "thinking": "kept_text"}]),
)  # fmt: skip
CURSOR = lines(
    {"type": "system", "session_id": "s", "prompt": "said_system of it"},
    streamed("user", [{"type": "text", "text": "read_text"}, {"type": "image", "source": "said_block"}]),
    {"type": "tool_call", "session_id": "s", "call_id": "c", "subtype": "started",
     "tool_call": {"readToolCall": {"args": {"q": "kept_call"}}}},
    {"type": "tool_call", "session_id": "s", "call_id": "c", "subtype": "completed",
     "tool_call": {"readToolCall": {"result": {"success": {"content": "read_result"}}}}},
    {"type": "hologram", "session_id": "s", "beam": "said_unknown"},
    streamed("user", "read_deleted", deleted=True), streamed("user", "read_edited", edited=True),
    streamed("user", CONTROL), streamed("user", ""),
)  # fmt: skip
COPILOT = document({"responderUsername": "Copilot", "sessionId": "s", "customTitle": "kept_text", "requests": [
    {"message": {"text": "read_text"}, "aside": "said_unknown of it", "response": [{"value": "read_text2"},
        {"kind": "toolInvocationSerialized", "toolId": "f", "toolSpecificData": {"commandLine": "kept_call",
            "terminalCommandOutput": {"text": "read_result"}}},
        {"kind": "hologram", "beam": "said_unknown2"}]},
    {"message": {"text": "read_deleted"}, "deleted": True}, {"message": {"text": "read_edited"}, "edited": True},
    {"message": {"text": "read_twin"}, "requestId": "t"}, {"message": {"text": "read_twin2"}, "requestId": "t"},
    {"message": {"text": CONTROL}}, {"message": {"text": ""}},
    {"message": {"text": "read_refusal"}, "result": {"errorDetails": {"message": "said_refusal"}}},
    *({"message": {"text": f"time_{kind}"}, "timestamp": at} for kind, at in MOMENTS.items())]})  # fmt: skip


def event(text: str, **more: Any) -> dict[str, Any]:
    return {"action": "message", "source": "user", "args": {"content": text}, **more}


OPENHANDS = document([
    {"action": "system", "source": "agent", "args": {"content": "said_system"}},
    event("read_text", args={"content": "read_text", "image_urls": ["said_block"]}, aside="said_unknown of it"),
    {"action": "run", "source": "agent", "id": 7, "args": {"command": "kept_call", "thought": "read_text2"}},
    {"observation": "run", "source": "agent", "cause": 7, "content": "read_result", "extras": {}},
    {"kind": "Hologram", "source": "agent", "beam": "said_unknown2"},
    event("read_deleted", deleted=True), event("read_edited", edited=True), event(CONTROL),
    {"action": "finish", "source": "agent", "args": {"final_thought": "read_text3", "thought": "kept_text"}},
    *(event(f"time_{kind}", timestamp=at) for kind, at in MOMENTS.items()),
])  # fmt: skip
SWEAGENT = document(
    {
        "history": [{"role": "system", "content": "said_system"}, {"role": "user", "content": "read_text"}],
        "trajectory": [
            {"thought": "read_text2", "action": "cat kept_call", "observation": "read_result"},
            {"thought": "read_deleted", "action": "", "deleted": True, "aside": "said_unknown of it"},
            {"thought": "read_edited", "action": "", "edited": True},
            {"thought": CONTROL, "action": ""},
        ],
    }
)


def telegram(text: Any, number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "type": "message", "from": "A", "from_id": "u1", "text": text, **more}


TELEGRAM = document({"name": "kept_text", "id": 1, "messages": [
    telegram(["read_text", {"type": "bold", "text": "read_text2"}], 1, photo="said_block", aside="said_unknown of it"),
    {"id": 2, "type": "service", "actor_id": "u1", "text": "said_system"}, telegram(CONTROL, 3), telegram("", 4),
    telegram("read_deleted", 5, deleted=True), telegram("read_edited", 6, edited="2026-01-07"),
    telegram("read_twin", 7), telegram("read_twin2", 7),
    *(telegram(f"time_{kind}", 8 + n, date=at) for n, (kind, at) in enumerate(MOMENTS.items()))]})  # fmt: skip


def slack(text: str, number: int, **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": "U1", "text": text, "ts": f"1772440{number:03}.000100", **more}


SLACK = document([
    slack("read_text", 1, files=[{"name": "said_block"}], aside="said_unknown of it"),
    slack("said_system", 2, subtype="channel_join"), slack(CONTROL, 3), slack("read_deleted", 4, deleted=True),
    slack("read_edited", 5, edited={"ts": "1"}), slack("read_twin", 6), slack("read_twin2", 6),
    slack("", 7, attachments=[{"text": "said_unknown2 of it"}]), slack("", 8),
])  # fmt: skip


def discord(text: str, number: int, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "type": "Default", "content": text, "author": {"name": "a", "isBot": False}, **more}


DISCORD = document({"guild": {"name": "g"}, "channel": {"id": "1", "name": "kept_text"}, "messages": [
    discord("read_text", 1, attachments=[{"url": "said_block"}], aside="said_unknown of it"),
    discord("said_system", 2, type="ChannelPinnedMessage"), discord(CONTROL, 3), discord("", 4),
    discord("read_deleted", 5, isDeleted=True), discord("read_edited", 6, timestampEdited="2026-01-07"),
    discord("read_twin", 7), discord("read_twin2", 7),
    *(discord(f"time_{kind}", 8 + n, timestamp=at) for n, (kind, at) in enumerate(MOMENTS.items()))]})  # fmt: skip


def comment(text: str, number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"c{number}", "content": text, "author": {"name": f"a{number}"}, **more}


MOLTBOOK = document([
    {"id": "all", "title": "read_text", "content": "read_text2", "author": {"name": "a"}, "submolt": "s", "comments": [
        comment("read_twin", 1), comment("read_twin2", 1), comment(CONTROL, 2), comment("", 3),
        comment("read_deleted", 4, is_deleted=True), comment("read_edited", 5, edited_at="2026-01-07"),
        comment("read_unknown", 6, aside="said_unknown of it"),
        *(comment(f"time_{kind}", 7 + n, created_at=at) for n, (kind, at) in enumerate(MOMENTS.items()))]},
    *({"id": "same", "content": f"{word}_same", "author": {"name": word}, "submolt": "s", "comments": []}
      for word in ("one", "two")),
])  # fmt: skip


def activity(text: str, at: Any = "2026-01-07T09:00:00Z", **more: Any) -> dict[str, Any]:
    return {"header": "Gemini Apps", "title": f"Prompted {text}", "time": at, **more}


GEMINI = document([
    activity("read_text", safeHtmlItem=[{"html": "<p>read_text2</p>"}], attachedFiles=["said_block"]),
    activity("read_deleted", deleted=True), activity("read_edited", edited=True), activity(CONTROL),
    activity("read_unknown", subtitles=[{"name": "said_unknown of it"}]),
    {"header": "Gemini Apps", "title": "said_system", "time": "2026-01-07T09:00:00Z"},
    *(activity(f"time_{kind}", at) for kind, at in MOMENTS.items()),
])  # fmt: skip


def otel() -> str:
    parts = [
        {"role": "user", "parts": [{"type": "text", "content": "read_text"}, {"type": "blob", "uri": "said_block"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": "kept_call"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "read_result"}]},
        {"role": "assistant", "parts": [{"type": "refusal", "content": "read_refusal"}]},
        {"role": "assistant", "parts": [{"type": "hologram", "beam": "said_unknown"}]},
        {"role": "user", "parts": [{"type": "text", "content": CONTROL}]}, {"role": "user", "parts": []},
    ]  # fmt: skip
    texts = {"gen_ai.system_instructions": [{"type": "text", "content": "read_system"}], "gen_ai.input.messages": parts}
    attributes = [{"key": key, "value": {"stringValue": json.dumps(value)}} for key, value in texts.items()]
    attributes.append({"key": "gen_ai.evaluation.explanation", "value": {"stringValue": "said_unknown2 of it"}})
    span = {"traceId": "t", "name": "chat", "attributes": attributes}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


TRACED = [message for message in CHAT if "id" not in message]
LANGFUSE = lines(
    {"id": "o", "traceId": "all", "type": "GENERATION", "input": TRACED, "output": "read_text22", "model": "m",
     "statusMessage": "said_unknown3 of it"},
    {"id": "p", "traceId": "all", "type": "SPAN", "input": "said_text of it", "output": "said_text2"},
)  # fmt: skip
CHAINED = {"id": ["langchain", "HumanMessage"], "kwargs": {"content": "read_text23"}}
LANGSMITH = lines(
    {"id": "r", "run_type": "llm", "trace_id": "all", "inputs": {"messages": [[*TRACED, CHAINED]]}, "error":
     "said_unknown3 of it", "outputs": {"generations": [[{"text": "read_text22"}]]}},
    {"id": "s", "run_type": "tool", "trace_id": "all", "parent_run_id": "r", "inputs": {"q": "said_text"}},
)  # fmt: skip
BRAINTRUST = lines(
    {"id": "b", "span_id": "b", "root_span_id": "all", "span_parents": ["all"], "span_attributes": {"type": "llm"},
     "input": TRACED, "output": [{"message": {"role": "assistant", "content": "read_text22"}}],
     "expected": "said_unknown3 of it"},
    {"id": "c", "span_id": "c", "root_span_id": "all", "span_parents": ["all"], "input": "said_text", "output": "x"},
)  # fmt: skip


def frame(text: str, sent: int, **more: Any) -> dict[str, Any]:
    item = {"chatId": "1", "authorId": "2", "dateSent": str(1767776400000 + sent), "incoming": {}}
    return {"chatItem": item | {"standardMessage": {"text": {"body": text}}} | more}


SIGNAL = lines(
    {"recipient": {"id": "2", "contact": {"profileGivenName": "kept_text"}}}, {"chat": {"id": "1", "recipientId": "2"}},
    frame("read_text", 1, aside="said_unknown of it"), frame("read_edited", 2, revisions=[{}]), frame(CONTROL, 3),
    frame("", 4, standardMessage={"text": {"body": "read_text2"}, "attachments": [{"name": "said_block"}]}),
    frame("read_twin", 5), frame("read_twin2", 5), frame("time_number", 0), frame("", 6),
    {"chatItem": {"chatId": "1", "updateMessage": {"words": "said_system"}}},
    {"chatItem": {"chatId": "1", "remoteDeletedMessage": {"words": "said_deleted"}}},
    {"hologram": {"beam": "said_unknown2"}},
)  # fmt: skip

TEXT = f"""said_unknown before all

said_system of another line
User [2026-01-07T09:00:00Z]: read_text
Assistant [2026-01-07t09:00:00z]: time_lower
User [Wed, 07 Jan 2026 10:00:00 +0100]: time_mail
Assistant [1767776400]: time_number
User: {CONTROL}
Assistant:
User: read_text2
"""
SPECSTORY = f"""<!-- Generated by SpecStory, Markdown v2.1.0 -->

# kept_text

said_unknown before all

_**User (2026-01-07 09:00:00Z)**_

read_text

---

_**Agent (m 2026-01-07 09:00:00Z)**_

<think><details><summary>Thought</summary>
kept_text2
</details></think>

<tool-use data-tool-type="shell" data-tool-name="Bash"><details>
<summary>Tool use: **Bash**</summary>

```bash
echo kept_call
```

```
read_result
```
</details></tool-use>

{CONTROL}
"""
