"""SWE-agent trajectories (``.traj``): thought, action and observation of each step.

Shape: "Output files" in the documentation of SWE-agent (docs/usage/trajectories.md): a JSON object whose ``trajectory``
lists steps with ``response``, ``thought``, ``action`` and ``observation``; the task stands in ``history`` or in the
``query`` of a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.agent_log import AgentLog
from undersong.formats.json_stream import JsonRecord, elements, problems_of, read_records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Problem, SourceRef, ToolCall, ToolResult

EDITORS = {"str_replace_editor": 2, "edit_anthropic": 2, "edit": 0, "create": 1, "insert": 0}  # words before the rest
_WORD = re.compile(r"\w+")
_FRAME = ("DISCUSSION", "COMMAND", "THOUGHT", "ACTION")  # headings of a response
VIEWERS = frozenset({"open", "goto", "scroll_up", "scroll_down", "search_file", "search_dir", "find_file"})


_KEYS = frozenset(("action", "observation", "response", "thought", "query", "messages", "state", "extra_info"))


def sniff(sample: FormatSample) -> bool:
    """A ``trajectory`` of steps with an action and an observation."""
    return sample.under((), ("trajectory.action", "trajectory.observation"))


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per trajectory."""
    return read_records(source, (), _conversation)


def _conversation(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    steps = value.get("trajectory") if isinstance(value, dict) else None
    if not isinstance(steps, list):
        yield Problem(what="a record without a list 'trajectory'", where=str(ref))
        return
    log = AgentLog(values.name(value.get("instance_id")) or fallback.removesuffix("-0"))
    task, place = _task(value)
    if task:
        log.say("user", task, inside(ref, *place))
    _note_prompts(value.get("history"), ref, notes)
    take = lambda step, where: _step(log, step, where, notes)  # noqa: E731
    yield from problems_of(elements(steps, ref, "trajectory"), take)
    _note_submission(value.get("info"), steps, ref, notes)
    conversation = log.conversation("sweagent")
    if conversation is not None:
        yield conversation
    else:
        notes.add(values.EMPTY, ref)


def _note_submission(info: Any, steps: list[Any], ref: SourceRef, notes: SkipLog) -> None:
    """Note a submission that no step shows."""
    text = values.string(info.get("submission")) if isinstance(info, dict) else None
    observed = (values.string(step.get("observation")) for step in steps if isinstance(step, dict))
    if text and text.strip() and not any(text.strip() in one for one in observed if one):
        notes.add("submission that stands in no observation, not read", inside(ref, "info", "submission"))


def _task(value: Mapping[str, Any]) -> tuple[str, tuple[str | int, ...]]:
    """What the agent was asked, which is the first message of the user, and the steps to it; "" where nobody says."""
    steps = value.get("trajectory")
    first = steps[0] if isinstance(steps, list) and steps and isinstance(steps[0], dict) else {}
    for place, messages in ((("history",), value.get("history")), (("trajectory", 0, "query"), first.get("query"))):
        for index, message in enumerate(messages if isinstance(messages, list) else ()):
            if isinstance(message, dict) and message.get("role") == "user" and not message.get("is_demo"):
                text = values.text(message.get("content"))
                if text:
                    return text, (*place, index)
    return "", ()


def _note_prompts(history: Any, ref: SourceRef, notes: SkipLog) -> None:
    if history is not None and not isinstance(history, list):
        notes.add("history that is not a list, not read", ref)
    for message in history if isinstance(history, list) else ():
        notes.misplaced(message, inside(ref, "history"))
        if not isinstance(message, dict):
            notes.add("entry of the history that is not an object, not read", inside(ref, "history"))
        elif message.get("role") == "system" or message.get("is_demo"):
            notes.add("system prompt or demonstration in the history, not read", inside(ref, "history"))


def _step(log: AgentLog, step: Any, ref: SourceRef, notes: SkipLog) -> None:
    if not isinstance(step, dict):
        raise RecordError("a step that is not an object")
    notes.marks(step, ref)
    notes.unread(step, ref, _KEYS)
    action = values.string(step.get("action")) or ""
    thought = values.text(step.get("thought"))
    if thought is None or not (thought or action.strip()):
        thought = values.text(step.get("response")) or ""
    call_id = f"step-{ref.pointer or ''}"
    calls = (_call(action, call_id),) if action.strip() else ()
    if calls and step.get("thought") and values.text(step["thought"]) is None:
        notes.add("thought that is no text, not read", ref)
    elif not _repeats(values.text(step.get("response")) or "", thought, action):
        notes.add("response with other words than its thought and action, not read", inside(ref, "response"))
    if not thought and not calls:
        raise RecordError("a step without a thought and an action")
    log.say("assistant", thought, ref, calls=calls)
    if calls:
        result = ToolResult(text=values.printed(step.get("observation")), call_id=call_id)
        log.answer(result, inside(ref, "observation"))
    elif values.printed(step.get("observation")).strip():
        notes.add("output of a step without an action, not read", inside(ref, "observation"))


def _repeats(response: str, thought: str, action: str) -> bool:
    """Whether a response has no words but those of the thought and the action that were taken from it."""
    words = {*_FRAME, *_WORD.findall(thought), *_WORD.findall(action)}
    return response.strip() == thought.strip() or words.issuperset(_WORD.findall(response))


def _call(action: str, call_id: str) -> ToolCall:
    """The action as a call: a command of its editor or viewer by name, anything else as a command of the shell."""
    words = action.strip().split(maxsplit=3)
    name = words[0]
    if name in VIEWERS or (name == "str_replace_editor" and words[1:2] == ["view"]):
        return ToolCall(name="open_file", id=call_id, input={"text": action})
    if name in EDITORS:
        named = words[EDITORS[name]] if 0 < EDITORS[name] < len(words) else ""
        return ToolCall(name="str_replace_editor", id=call_id, input={"path": named, "text": action})
    return ToolCall(name="bash", id=call_id, input={"command": action})
