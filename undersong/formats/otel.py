"""Traces of language-model calls: OTLP/JSON with the GenAI conventions, and spans as Phoenix exports them.

Each call repeats the whole conversation so far. The calls of one conversation, in the order of time, are merged by what
they share at the beginning, so that every message is read once. Read are the attributes of OpenTelemetry's GenAI
conventions (``gen_ai.input.messages``, on a span or its event), the older ``gen_ai.prompt.N.content`` of OpenLLMetry,
and ``llm.input_messages.N.message.content`` of OpenInference.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, decode, elements, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Conversation, Message, Problem, Role, SourceRef, ToolCall, ToolResult

LONGEST_CUT = 500  # messages: how much of a history that was cut at its beginning is looked for
MOST_MESSAGES = 10_000  # numbered attributes of one call; beyond, the numbers are nonsense
GROUPS = ("gen_ai.conversation.id", "session.id")
MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
NAMES = ("gen_ai.agent.name",)
LISTS = (
    ("gen_ai.system_instructions", "system"),
    ("gen_ai.input.messages", "user"),
    ("gen_ai.output.messages", "assistant"),
)
NUMBERED = (
    (re.compile(r"gen_ai\.prompt\.(\d{1,5})\.(.+)"), "user"),
    (re.compile(r"llm\.input_messages\.(\d{1,5})\.message\.(.+)"), "user"),
    (re.compile(r"gen_ai\.completion\.(\d{1,5})\.(.+)"), "assistant"),
    (re.compile(r"llm\.output_messages\.(\d{1,5})\.message\.(.+)"), "assistant"),
)
_PART = re.compile(r"contents\.(\d{1,5})\.message_content\.text")


class Utterance(NamedTuple):
    """What one call says that somebody said; two are the same message where role, words and tools are."""

    role: Role
    text: str
    name: str | None = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    thinking: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes it the same as another; a thought is not always repeated."""
        calls = tuple((call.name, msgspec.json.encode(call.input, order="sorted")) for call in self.calls)
        return self.role, self.text.strip(), calls, tuple(result.text for result in self.results)


class ModelCall(NamedTuple):
    """A span of a call: its messages before and after, its time, model and place."""

    start: int
    end: int
    attributes: Mapping[str, Any]
    before: list[Utterance]
    after: list[Utterance]
    ref: SourceRef
    span: str


def sniff(sample: FormatSample) -> bool:
    """Spans of OTLP, or of Phoenix: a trace id in a ``context`` beside ``attributes``."""
    if any(path[0] == "resourceSpans" for path in sample.keys):
        return True
    return sample.has("context.trace_id", "attributes") or sample.has("context.trace_id", "span_kind")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each conversation id, session id or, without either, trace."""
    notes, calls = SkipLog(), defaultdict[str, list[ModelCall]](list)
    for record in records(source, ("spans", "data")):
        if isinstance(record, Problem):
            yield record
            continue
        for span, place in _spans(record):
            try:
                key, call = _call(span, place, notes)
            except RecordError as error:
                yield Problem(what=error.what, where=str(place), remedy=error.remedy)
                continue
            if call is not None:
                calls[key].append(call)
    for key, own_calls in calls.items():
        yield _conversation(key, sorted(own_calls, key=lambda call: (call.start, call.end)))
    yield from notes.problems()


def _spans(record: JsonRecord) -> Iterator[JsonRecord]:
    """The spans of a record: many in OTLP, one in Phoenix."""
    value, ref = record
    resources = value.get("resourceSpans") if isinstance(value, dict) else None
    if not isinstance(resources, list):
        yield record
        return
    for resource, at in elements(resources, ref, "resourceSpans"):
        scopes = resource.get("scopeSpans") if isinstance(resource, dict) else None
        for scope, below in elements(scopes if isinstance(scopes, list) else (), at, "scopeSpans"):
            spans = scope.get("spans") if isinstance(scope, dict) else None
            yield from elements(spans if isinstance(spans, list) else (), below, "spans")


def _call(span: Any, ref: SourceRef, notes: SkipLog) -> tuple[str, ModelCall | None]:
    """The conversation of a span and the call in it; None for a span that is no call of a model."""
    if not isinstance(span, dict):
        raise RecordError("a span that is not an object")
    attributes = _attributes(span.get("attributes"))
    for event in span.get("events") or () if isinstance(span.get("events"), list) else ():
        if isinstance(event, dict):
            attributes = _attributes(event.get("attributes")) | attributes
    kind = str(
        attributes.get("gen_ai.operation.name") or attributes.get("openinference.span.kind") or span.get("span_kind")
    )
    before, after = _utterances(attributes)
    if not before and not after:
        if kind.lower() in ("chat", "text_completion", "generate_content", "llm"):
            notes.add("call of a model whose messages were not captured: switch on the capture of content", ref)
        return "", None
    context = span["context"] if isinstance(span.get("context"), dict) else {}
    trace = values.name(span.get("traceId")) or values.name(context.get("trace_id")) or str(ref)
    key = next((name for group in GROUPS if (name := values.name(attributes.get(group)))), trace)
    start, end = (
        _nanoseconds(span, names) for names in (("startTimeUnixNano", "start_time"), ("endTimeUnixNano", "end_time"))
    )
    span_id = values.name(span.get("spanId")) or values.name(context.get("span_id")) or ""
    return key, ModelCall(start, end, attributes, before, after, ref, f"{trace}/{span_id}")


def _nanoseconds(span: dict[str, Any], names: tuple[str, str]) -> int:
    value = next((span[name] for name in names if span.get(name) is not None), None)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    moment = values.time_or_none(value)
    return 0 if moment is None else int(moment.timestamp() * 1e6) * 1000


def _attributes(value: Any) -> dict[str, Any]:
    """Attributes by their dotted names: OTLP's list of keys and typed values, or objects, nested or not."""
    if isinstance(value, list):
        pairs = ((item.get("key"), _typed(item.get("value"))) for item in value if isinstance(item, dict))
        return {key: plain for key, plain in pairs if isinstance(key, str)}
    flat = dict[str, Any]()
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        prefix, inner = stack.pop()
        steps = inner.items() if isinstance(inner, dict) else enumerate(inner) if _is_numbered(prefix, inner) else None
        if steps is None or (prefix in dict(LISTS)):
            flat[prefix] = inner
        else:
            stack += [(f"{prefix}.{step}" if prefix else str(step), below) for step, below in steps]
    return flat


def _is_numbered(prefix: str, value: Any) -> bool:
    """Lists of messages and of their parts are numbered in flat attributes."""
    return isinstance(value, list) and prefix.rpartition(".")[2] in (
        "input_messages",
        "output_messages",
        "contents",
        "tool_calls",
    )


def _typed(value: Any) -> Any:
    """The plain value of OTLP's ``{"stringValue": …}`` and its like."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_typed(item) for item in inner.get("values", ())] if isinstance(inner, dict) else None
    if kind == "kvlistValue":
        return _attributes(inner.get("values")) if isinstance(inner, dict) else None
    return int(inner) if kind == "intValue" and str(inner).lstrip("-").isdigit() else inner


def _utterances(attributes: Mapping[str, Any]) -> tuple[list[Utterance], list[Utterance]]:
    """The messages before a call and those of its answer."""
    before, after = list[Utterance](), list[Utterance]()
    for name, role in LISTS:
        side = after if role == "assistant" else before
        side += _listed(attributes.get(name), "system" if role == "system" else None)
    for pattern, role in NUMBERED:
        side = after if role == "assistant" else before
        if not side or role == "assistant":
            side += _numbered(attributes, pattern, values.ROLES[role])
    return before, after


def _listed(value: Any, role: Role | None) -> Iterator[Utterance]:
    """Messages with parts, as the conventions have them: a JSON text or its value."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        value, _ = decode(value.encode())
    if role == "system" and isinstance(value, str | list):
        if text := _part_text(value if isinstance(value, list) else [value]):
            yield Utterance("system", text)
        return
    for message in value if isinstance(value, list) else ():
        if not isinstance(message, dict):
            continue
        own_role = values.role(message.get("role")) or "user"
        content = message.get("parts", message.get("content"))
        parts: list[Any] = [content] if isinstance(content, str) else content if isinstance(content, list) else []
        yield _of_parts(own_role, values.string(message.get("name")), parts)


def _of_parts(role: Role, name: str | None, parts: list[Any]) -> Utterance:
    typed = [part for part in parts if isinstance(part, dict)]
    calls = tuple(
        ToolCall(name=called, id=values.name(part.get("id")), input=part.get("arguments"))
        for part in typed
        if part.get("type") == "tool_call" and (called := values.name(part.get("name")))
    )
    results = tuple(
        ToolResult(text=_plain(part.get("response", part.get("result"))), call_id=values.name(part.get("id")))
        for part in typed
        if part.get("type") == "tool_call_response"
    )
    thoughts = [str(part.get("content")) for part in typed if part.get("type") == "reasoning" and part.get("content")]
    text = _part_text(parts) or "\n\n".join(result.text for result in results)
    return Utterance("tool" if results and role == "user" else role, text, name, calls, results, "\n\n".join(thoughts))


def _part_text(parts: list[Any]) -> str:
    texts = [
        part if isinstance(part, str) else part.get("content", part.get("text"))
        for part in parts
        if isinstance(part, str) or (isinstance(part, dict) and part.get("type", "text") == "text")
    ]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _numbered(attributes: Mapping[str, Any], pattern: re.Pattern[str], role: Role) -> Iterator[Utterance]:
    """Messages whose fields are attributes with a number in their names."""
    fields = defaultdict[int, dict[str, Any]](dict)
    for name, value in attributes.items():
        match = pattern.fullmatch(name)
        if match and int(match[1]) < MOST_MESSAGES:
            fields[int(match[1])][match[2]] = value
    for _, own in sorted(fields.items()):
        parts = sorted((int(match[1]), own[name]) for name in own if (match := _PART.fullmatch(name)))
        text = values.string(own.get("content")) or "\n\n".join(part for _, part in parts if isinstance(part, str))
        own_role = values.role(own.get("role")) or role
        results = (ToolResult(text=text, call_id=values.name(own.get("tool_call_id"))),) if own_role == "tool" else ()
        yield Utterance(own_role, text, values.string(own.get("name")), tuple(_numbered_calls(own)), results)


def _numbered_calls(fields: Mapping[str, Any]) -> Iterator[ToolCall]:
    for number in range(100):
        for prefix in (f"tool_calls.{number}.tool_call.function.", f"tool_calls.{number}."):
            if called := values.name(fields.get(f"{prefix}name")):
                yield ToolCall(name=called, input=fields.get(f"{prefix}arguments"))
                break
        else:
            return


def _conversation(key: str, calls: list[ModelCall]) -> Conversation:
    """The messages of the calls: each call adds what it does not share with those before it."""
    messages, keys = list[Message](), list[tuple[Any, ...]]()
    for call in calls:
        utterances = [(utterance, False) for utterance in call.before] + [(utterance, True) for utterance in call.after]
        shared = _overlap(keys, [utterance.key for utterance, _ in utterances])
        for utterance, is_answer in utterances[shared:]:
            keys.append(utterance.key)
            messages.append(_message(utterance, key, len(messages), call, is_answer))
    return Conversation(id=key, source_format="otel", messages=tuple(messages), source_ref=calls[0].ref)


def _overlap(keys: list[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> int:
    """How many of a call's messages are known: all that it has up to the last that agrees, from the beginning or,
    where the history was cut, from the end of what is known."""
    shared = 0
    while shared < min(len(keys), len(new)) and keys[shared] == new[shared]:
        shared += 1
    if shared == len(keys) or shared == len(new):
        return shared
    cut = next((size for size in range(min(len(keys), len(new), LONGEST_CUT), 0, -1) if keys[-size:] == new[:size]), 0)
    return max(shared, cut)


def _message(utterance: Utterance, key: str, position: int, call: ModelCall, is_answer: bool) -> Message:
    model = next((values.string(call.attributes.get(name)) for name in MODELS if call.attributes.get(name)), None)
    is_model = utterance.role == "assistant"
    own_name = next((values.string(call.attributes.get(name)) for name in NAMES if call.attributes.get(name)), None)
    moment = call.end if is_answer else call.start
    return Message(
        id="",
        conversation=key,
        position=position,
        author=utterance.name or (own_name if is_model else None) or utterance.role,
        role=utterance.role,
        text=utterance.text,
        time=values.time_or_none(moment) if moment else None,
        model=model if is_model and is_answer else None,
        tool_calls=utterance.calls,
        tool_results=utterance.results,
        thinking=utterance.thinking,
        source_ref=msgspec.structs.replace(inside(call.ref), span=call.span),
    )
