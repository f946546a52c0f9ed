"""OpenHands events: actions and observations of version 0, and the events of the agent SDK of version 1.

Shapes: ``openhands/events/serialization/event.py`` of All-Hands-AI/OpenHands (``event_to_dict``: id, timestamp, source,
message, cause, and args of an action or content and extras of an observation), as a list, as JSON Lines or under
``history``; and ``MessageEvent``, ``ActionEvent`` and ``ObservationEvent`` of docs.openhands.dev/sdk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.agent_log import AgentLog, as_object
from undersong.formats.json_stream import elements, problems_of, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Problem, SourceRef, ToolCall, ToolResult

LISTS = ("history", "events", "trajectory")
_TOOLS = {"run": "execute_bash", "run_ipython": "execute_ipython_cell", "edit": "str_replace_editor"}
_KEYS = frozenset(
    (
        "action",
        "args",
        "observation",
        "content",
        "extras",
        "source",
        "message",
        "timestamp",
        "id",
        "cause",
        "kind",
        "llm_message",
        "thought",
        "reasoning_content",
        "tool_call_id",
        "tool_name",
        "error",
        "rejection_reason",
        "llm_metrics",
        "tool_call_metadata",
        "tool_call",
        "summary",
        "thinking_blocks",
    )
)  # message and the metadata repeat what args or content say
_SDK_KEYS = frozenset(
    (
        "kind",
        "llm_message",
        "thought",
        "reasoning_content",
        "error",
        "rejection_reason",
        "summary",
        "thinking_blocks",
    )
)  # of version 1 only
_ACTION_KEYS = _KEYS - _SDK_KEYS - {"content", "extras", "observation"}  # of version 0; these belong to the other kind
_OBSERVATION_KEYS = _KEYS - _SDK_KEYS - {"args"}
_WORD_KEYS = frozenset(
    (
        "content",
        "image_urls",
        "file_urls",
        "wait_for_response",
        "security_risk",
        "thought",
        "final_thought",
        "task_completed",
    )
)  # fmt: skip  of the actions that are words and no call
_EXTRAS = frozenset(
    (
        "command",
        "metadata",
        "hidden",
        "path",
        "prev_exist",
        "old_content",
        "new_content",
        "impl_source",
        "diff",
        "diff_cache",
        "outputs",
        "thought",
        "code",
        "image_urls",
        "url",
        "name",
        "arguments",
    )
)  # of observations: what the action said, or the state of a file before and after
_SILENT = frozenset({"system", "recall", "change_agent_state", "null", "condensation", "state"})


def sniff(sample: FormatSample) -> bool:
    """Events that are actions with ``args``, observations with ``content``, or ``ActionEvent`` and the like."""
    for prefix in ((), *((name,) for name in LISTS)):
        if sample.under(prefix, ("action", "args", "source")) or sample.under(prefix, ("observation", "extras")):
            return True
        kinds = sample.values_at(".".join((*prefix, "kind")))
        if kinds & {"MessageEvent", "ActionEvent", "ObservationEvent"} and sample.under(prefix, ("source",)):
            return True
    return False


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per file, or per record that holds a ``history``."""
    notes = SkipLog(source.net)
    bare = _EventLog(source.stem, notes)
    for number, record in enumerate(records(source)):
        if isinstance(record, Problem):
            yield record
            continue
        value = record.value
        listed = next((name for name in LISTS if isinstance(value, dict) and isinstance(value.get(name), list)), None)
        if listed is None:
            yield from problems_of((record,), bare.add_event)
            continue
        name = values.name(value.get("instance_id")) or values.name(value.get("id")) or f"{source.stem}-{number}"
        own = _EventLog(name, notes)
        yield from problems_of(elements(value[listed], record.ref, listed), own.add_event)
        yield from own.conversation()
    yield from bare.conversation()
    yield from notes.problems()


class _EventLog:
    """The events of one conversation so far."""

    def __init__(self, name: str, notes: SkipLog) -> None:
        self.log, self.notes = AgentLog(name), notes

    def conversation(self) -> Iterator[Item]:
        conversation = self.log.conversation("openhands")
        if conversation is not None:
            yield conversation

    def add_event(self, event: Any, ref: SourceRef) -> None:
        if not isinstance(event, dict):
            raise RecordError("an event that is not an object")
        self.notes.marks(event, ref)
        is_action, is_observation = (isinstance(event.get(key), str) for key in ("action", "observation"))
        self.notes.unread(event, ref, _ACTION_KEYS if is_action else _OBSERVATION_KEYS if is_observation else _KEYS)
        for key in ("action", "observation"):
            if values.is_misplaced("kind", event.get(key)) and isinstance(event[key], str):
                self.notes.words_under(key, ref, event[key])
        if is_action:
            self._action(event, ref)
        elif is_observation:
            self._observation(event, ref)
        elif isinstance(event.get("kind"), str):
            self._sdk_event(event, ref)
        else:
            raise RecordError("an event that is neither an action nor an observation")

    def _action(self, event: Mapping[str, Any], ref: SourceRef) -> None:
        kind, args = event["action"], as_object(event.get("args"))
        time, call_id = self.notes.time(event.get("timestamp"), ref), values.name(event.get("id"))
        thought = values.text(args.get("thought")) or ""
        self.notes.odd(args.get("thought"), ref)
        self.notes.no_object(event, ref, "args")
        if kind in ("message", "think", "finish"):
            self.notes.unread(args, ref, _WORD_KEYS)
            self.notes.odd(args.get("final_thought"), ref)
        if kind == "message":
            role = "user" if event.get("source") == "user" else "assistant"
            self.notes.odd(args.get("content"), ref)
            self.notes.blocks(values.blocks(args.get("content")), ref)
            if args.get("image_urls"):
                self.notes.add(values.BLOCK, ref)
            text = values.text(args.get("content")) or values.string(event.get("message")) or ""
            self.log.say(role, text, ref, time=time)
        elif kind == "think":
            self.log.think(thought)
        elif kind == "finish":
            final = values.text(args.get("final_thought"))
            text = final or thought or values.string(event.get("message")) or ""
            self.log.think(thought if final and thought != final else None)
            self.log.say("assistant", text, ref, time=time)
        elif kind in _SILENT:
            self.notes.add(f"action {kind[:40]!r}, read as no message", ref)
        else:
            rest = {key: value for key, value in args.items() if key != "thought" and value not in (None, "")}
            call = ToolCall(name=_TOOLS.get(kind, kind), id=call_id, input=rest)
            self.log.say("assistant", thought, ref, calls=(call,), time=time)

    def _observation(self, event: Mapping[str, Any], ref: SourceRef) -> None:
        kind, extras = event["observation"], as_object(event.get("extras"))
        if kind in ("agent_state_changed", "recall", "think", "null", "user_rejected", "condense"):
            self.notes.add(f"observation {kind[:40]!r}, read as no message", ref)
            return
        self.notes.unread(extras, ref, _EXTRAS)
        metadata = as_object(extras.get("metadata"))
        code = metadata.get("exit_code", extras.get("exit_code"))
        failed = True if kind == "error" else _failed(code)
        result = ToolResult(
            text=values.printed(event.get("content")), call_id=values.name(event.get("cause")), is_error=failed
        )
        self.log.answer(result, ref, time=self.notes.time(event.get("timestamp"), ref), tool=_TOOLS.get(kind, kind))

    def _sdk_event(self, event: Mapping[str, Any], ref: SourceRef) -> None:
        """An event of the agent SDK: a message, a call of a tool, or its answer."""
        kind, time = event["kind"], self.notes.time(event.get("timestamp"), ref)
        call_id, tool = values.name(event.get("tool_call_id")), values.name(event.get("tool_name")) or "tool"
        if kind == "MessageEvent":
            message = as_object(event.get("llm_message"))
            role = "user" if event.get("source") == "user" else "assistant"
            self.log.think(message.get("reasoning_content") if role == "assistant" else None)
            self.notes.odd(message.get("content"), ref)
            self.notes.blocks(values.blocks(message.get("content")), ref)
            self.log.say(role, values.text(message.get("content")) or "", ref, time=time)
        elif kind == "ActionEvent":
            self.log.think(event.get("reasoning_content"))
            action = as_object(event.get("action"))
            thought = values.text(event.get("thought")) or ""
            if tool == "finish":
                words = values.string(action.get("message"))
                self.log.think(thought if words else None)
                self.log.say("assistant", words or thought, ref, time=time)
                return
            rest = {key: value for key, value in action.items() if key != "kind" and value is not None}
            self.log.say("assistant", thought, ref, calls=(ToolCall(name=tool, id=call_id, input=rest),), time=time)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._sdk_answer(event, kind, ref)
        else:
            self.notes.add(f"event of kind {kind[:40]!r}, read as no message", ref)

    def _sdk_answer(self, event: Mapping[str, Any], kind: str, ref: SourceRef) -> None:
        observation = as_object(event.get("observation"))
        error = observation.get("is_error")
        failed = True if kind == "AgentErrorEvent" or error is True else _failed(observation.get("exit_code"))
        if failed is None and isinstance(error, bool):
            failed = error
        content = next((observation[key] for key in ("content", "output") if observation.get(key) is not None), None)
        text = values.printed(content if content is not None else event.get("error", event.get("rejection_reason")))
        tool = values.name(event.get("tool_name")) or "tool"
        result = ToolResult(text=text, call_id=values.name(event.get("tool_call_id")), is_error=failed)
        self.log.answer(result, ref, time=self.notes.time(event.get("timestamp"), ref), tool=tool)


def _failed(code: Any) -> bool | None:
    """Whether an exit code is one of failure; None for none, and for -1, which stands for a command that still runs."""
    return code != 0 if isinstance(code, int) and not isinstance(code, bool) and code >= 0 else None
