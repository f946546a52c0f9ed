"""ChatGPT data exports: trees of nodes, with regenerated and edited branches kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, read_records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.tree import branches
from undersong.formats.values import EMPTY, SkipLog, inside
from undersong.models import Conversation, Message, Problem, SourceRef, ToolCall, ToolResult

_CITATION = re.compile(r"[ ]?\ue200[a-z_]{1,30}\ue202[^\ue200\ue201\n]{0,300}\ue201")  # what the page shows as a link
_INNER = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"})


_MESSAGE_KEYS = frozenset(
    ("id", "author", "content", "create_time", "update_time", "status", "end_turn", "weight", "metadata", "recipient")
)
_NODE_KEYS = frozenset(("id", "message", "parent", "children"))
_ABOUT_KEYS = frozenset(("title", "mapping", "id", "conversation_id", "default_model_slug", "current_node"))


def sniff(sample: FormatSample) -> bool:
    """A ``mapping`` whose values are nodes."""
    nodes = {"children", "parent", "message"}
    return sample.has("mapping") and (
        sample.has("current_node") or any(path[-1] in nodes and "mapping" in path[:2] for path in sample.keys)
    )


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per element of the export."""
    return read_records(source, ("conversations", "data"), _conversation)


def _conversation(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    mapping = value.get("mapping") if isinstance(value, dict) else None
    if not isinstance(mapping, dict):
        yield Problem(what="a conversation without a 'mapping' of nodes", where=str(ref))
        return
    key = values.name(value.get("id")) or values.name(value.get("conversation_id")) or fallback
    notes.unread(value, ref, _ABOUT_KEYS)
    model = values.string(value.get("default_model_slug"))
    messages: dict[str, Message] = {}
    parents = _parents(mapping)
    order = branches(parents, values.string(value.get("current_node")))
    for node_id, branch in order.items():
        place = inside(ref, "mapping", node_id)
        try:
            message = _message(mapping[node_id], place, notes)
        except RecordError as error:
            yield Problem(what=error.what, where=str(place))
            continue
        if message:
            about = {"conversation": key, "position": len(messages), "branch": branch}
            about |= {"reply_to": _nearest_message_above(node_id, parents, messages), "id": node_id}
            messages[node_id] = Message(**(message | about | {"model": message["model"] or _model(message, model)}))
    for lost in list(parents.keys() - order.keys())[:1]:
        number = len(parents) - len(order)
        yield Problem(what=f"{number} nodes that no root leads to", where=str(inside(ref, "mapping", lost)))
    if not mapping:
        notes.add(EMPTY, ref)
    if messages:
        yield Conversation(
            id=key,
            source_format="chatgpt",
            messages=tuple(messages.values()),
            title=values.string(value.get("title")),
            started_at=values.time_or_none(value.get("create_time")),
            ended_at=values.time_or_none(value.get("update_time")),
            source_ref=ref,
        )


def _parents(mapping: Mapping[str, Any]) -> dict[str, str | None]:
    """Node → parent, siblings in the order of their parent's list of children."""
    parents: dict[str, str | None] = {}
    for node_id, node in mapping.items():
        listed = node.get("children") if isinstance(node, dict) else None
        for child in listed if isinstance(listed, list) else ():
            if isinstance(child, str) and isinstance(mapping.get(child), dict) and child != node_id:
                parents.setdefault(child, node_id)
    for node_id, node in mapping.items():
        named = node.get("parent") if isinstance(node, dict) else None
        if isinstance(named, str) and named in mapping and named != node_id:
            parents.setdefault(node_id, named)
        parents.setdefault(node_id, None)
    return parents


def _message(node: Any, ref: SourceRef, notes: SkipLog) -> dict[str, Any] | None:
    """The fields of a Message that the node itself gives; None for a node without a message for the reader."""
    if not isinstance(node, dict):
        raise RecordError("a node that is not an object")
    message = node.get("message")
    if message is None:
        notes.unread(node, ref, _NODE_KEYS)
        return None
    if not isinstance(message, dict) or not isinstance(message.get("author"), dict):
        raise RecordError("a message without an author")
    role = values.role(message["author"].get("role"))
    if role is None:
        raise RecordError("a message without a known role")
    metadata = message["metadata"] if isinstance(message.get("metadata"), dict) else {}
    if message.get("weight") == 0 or metadata.get("is_visually_hidden_from_conversation"):
        notes.add("hidden message, not read", ref)
        return None
    content = message.get("content")
    kind = content.get("content_type") if isinstance(content, dict) else None
    if isinstance(kind, str) and kind in _INNER:
        notes.add(f"{kind} message (not said to the user), not read", ref)
        return None
    _note_left_out(message, metadata, ref, notes)
    text = _text(content)
    if text is None:
        raise RecordError("a message without readable content")
    text, marks = _CITATION.subn("", text)
    if marks:
        notes.add("mark of a citation, not read", ref, marks)
    return {
        "role": role,
        "author": values.string(message["author"].get("name")) or role,
        "time": notes.time(message.get("create_time"), ref),
        "model": values.string(metadata.get("model_slug")),
        "source_ref": ref,
        **_text_or_tool_fields(role, text, message.get("recipient")),
    }


def _note_left_out(message: Mapping[str, Any], metadata: Mapping[str, Any], ref: SourceRef, notes: SkipLog) -> None:
    notes.marks(message, ref)
    notes.unread(message, ref, _MESSAGE_KEYS)
    if isinstance(metadata.get("attachments"), list) and metadata["attachments"]:
        notes.add("attached file, not read", ref, len(metadata["attachments"]))
    content = message.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    notes.odd(parts if isinstance(parts, list) else None, ref)
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and not isinstance(part.get("text"), str):
            kind = part.get("content_type")
            notes.add(values.block_name({"type": kind} if isinstance(kind, str) else part), ref, part=part)


def _text_or_tool_fields(role: str, text: str, recipient: Any) -> dict[str, Any]:
    """Text for the reader, a call where the recipient is a tool, a result where a tool speaks."""
    if role == "assistant" and isinstance(recipient, str) and recipient not in ("all", ""):
        return {"text": "", "tool_calls": (ToolCall(name=recipient, input=text),)}
    if role == "tool":
        return {"text": text, "tool_results": (ToolResult(text=text),)}
    return {"text": text}


def _text(content: Any) -> str | None:
    if isinstance(content, str):
        return content
    if not isinstance(content, dict):
        return None
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n\n".join(part_text for part in parts if (part_text := _part(part)))
    return next((content[key] for key in ("text", "content", "result") if isinstance(content.get(key), str)), None)


def _part(part: Any) -> str | None:
    if isinstance(part, dict):
        return values.string(part.get("text"))
    return values.string(part)


def _model(message: Mapping[str, Any], default: str | None) -> str | None:
    return default if message["role"] == "assistant" else None


def _nearest_message_above(node: str, parents: Mapping[str, str | None], messages: Mapping[str, Message]) -> str | None:
    """The nearest node above that became a message; kept answers end the walk, so that long gaps stay short."""
    above = parents.get(node)
    for _ in range(50):
        if above is None or above in messages:
            return above
        above = parents.get(above)
    return None
