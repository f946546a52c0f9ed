"""Trajectories of coding agents in the Agent Trajectory Interchange Format (``schema_version`` "ATIF-v1…").

The shape is that of the format's specification in the Harbor project (docs: "Agent Trajectory Format").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, elements, problems_of, read_records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Conversation, Message, Problem, Role, SourceRef, ToolCall, ToolResult

ROLES: dict[str, Role] = {"user": "user", "agent": "assistant", "system": "system"}


_KEYS = frozenset(
    (
        "step_id",
        "timestamp",
        "source",
        "message",
        "model_name",
        "reasoning_content",
        "tool_calls",
        "observation",
        "metrics",
    )
)
_AGENT_KEYS = frozenset(("name", "version", "model_name", "tool_definitions", "extra"))
_ANSWER_KEYS = frozenset(("source_call_id", "content", "subagent_trajectory_ref"))
_ABOUT_KEYS = frozenset(
    ("schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "subagent_trajectories")
)


def sniff(sample: FormatSample) -> bool:
    """Steps of an agent, under a version of the format."""
    versions = sample.values_at("schema_version")
    return sample.has("steps") and any(version.upper().startswith("ATIF") for version in versions)


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each trajectory, and one for each of its subagents."""
    return read_records(source, ("trajectories",), _trajectory)


def _trajectory(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    steps = value.get("steps") if isinstance(value, dict) else None
    if not isinstance(steps, list):
        yield Problem(what="a trajectory without a list of 'steps'", where=str(ref))
        return
    notes.unread(value, ref, _ABOUT_KEYS)
    key = values.name(value.get("session_id")) or values.name(value.get("trajectory_id")) or fallback
    agent = value["agent"] if isinstance(value.get("agent"), dict) else {}
    notes.unread(agent, ref, _AGENT_KEYS)
    notes.no_object(value, ref, "agent")
    messages = list[Message]()
    yield from problems_of(
        elements(steps, ref, "steps"), lambda step, place: messages.extend(_step(step, agent, key, place, notes))
    )
    if messages:
        yield Conversation(id=key, source_format="atif", messages=tuple(messages), source_ref=ref)
    else:
        notes.add(values.EMPTY, ref)
    below = value.get("subagent_trajectories")
    if below is not None and not isinstance(below, list):
        notes.add("'subagent_trajectories' that are not a list, not read", ref)
    for number, inner in enumerate(elements(below if isinstance(below, list) else (), ref, "subagent_trajectories")):
        yield from _trajectory(inner, f"{key}/{number}", notes)


def _step(step: Any, agent: dict[str, Any], key: str, ref: SourceRef, notes: SkipLog) -> Iterator[Message]:
    """What a step says, with its calls; then what its tools answered."""
    role = ROLES.get(str(step.get("source")).lower()) if isinstance(step, dict) else None
    if role is None:
        raise RecordError("a step whose 'source' is not user, agent or system")
    notes.marks(step, ref)
    notes.unread(step, ref, _KEYS)
    if not isinstance(step.get("reasoning_content"), str):
        notes.unread({"reasoning_content": step.get("reasoning_content")}, ref, frozenset())
    text = _text(step.get("message"), ref, notes)
    calls = notes.calls(step.get("tool_calls"), _call, ref)
    time = notes.time(step.get("timestamp"), ref)
    own_name = values.string(agent.get("name")) or "agent"
    model = values.string(step.get("model_name")) or values.string(agent.get("model_name"))
    is_agent = role == "assistant"
    if text or calls or not isinstance(step.get("observation"), dict):
        yield Message(
            id="",
            conversation=key,
            position=-1,
            author=own_name if is_agent else role,
            role=role,
            text=text,
            time=time,
            model=model if is_agent else None,
            tool_calls=calls,
            thinking=(values.string(step.get("reasoning_content")) or "") if is_agent else "",
            source_ref=ref,
        )
    yield from _observation(step.get("observation"), {call.id: call.name for call in calls}, key, time, ref, notes)


def _observation(
    observation: Any, tools: dict[str | None, str], key: str, time: Any, ref: SourceRef, notes: SkipLog
) -> Iterator[Message]:
    answers = observation.get("results") if isinstance(observation, dict) else observation
    if answers is not None and not isinstance(answers, list):
        notes.add("observation without a list of 'results', not read", ref)
    if isinstance(observation, dict):
        notes.unread(observation, ref, frozenset(("results",)))
    for answer, place in elements(answers if isinstance(answers, list) else (), ref, "observation", "results"):
        if not isinstance(answer, dict):
            notes.add("answer of a tool that is not an object, not read", place)
            continue
        notes.unread(answer, place, _ANSWER_KEYS)
        call = values.name(answer.get("source_call_id"))
        text = values.printed(answer.get("content"))
        notes.blocks(answer.get("content"), place)
        result = ToolResult(text=text, call_id=call)
        yield Message(
            id="",
            conversation=key,
            position=-1,
            author=tools.get(call, "tool"),
            role="tool",
            text=text,
            time=time,
            tool_results=(result,),
            source_ref=place,
        )


def _call(value: Any) -> ToolCall | None:
    called = values.name(value.get("function_name")) if isinstance(value, dict) else None
    return (
        ToolCall(name=called, id=values.name(value.get("tool_call_id")), input=value.get("arguments"))
        if called
        else None
    )


def _text(content: Any, ref: SourceRef, notes: SkipLog) -> str:
    """The words of a string or of parts; pictures are noted."""
    notes.odd(content, inside(ref, "message"))
    notes.blocks(values.blocks(content), inside(ref, "message"))
    return values.text(content) or ""
