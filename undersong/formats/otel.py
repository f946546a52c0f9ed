"""Traces of language-model calls: OTLP/JSON with the GenAI conventions, and spans as Phoenix exports them.

Each call repeats the whole conversation so far; ``calls`` merges them. Read are the attributes of OpenTelemetry's GenAI
conventions (``gen_ai.input.messages``, on a span, its event or a log record), the events and attributes that they had
before (``gen_ai.user.message``, ``gen_ai.prompt``), the numbered ``gen_ai.prompt.N.content`` of OpenLLMetry,
``llm.input_messages.N.message.content`` of OpenInference and ``ai.prompt.messages`` of Vercel's AI SDK.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.calls import (
    NOT_CAPTURED,
    CallLog,
    ModelCall,
    Utterance,
    chat_utterances,
    moment,
    read_calls,
)
from undersong.formats.json_stream import JsonRecord, decode, elements, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Problem, Role, SourceRef, ToolCall, ToolResult

MOST_MESSAGES = 10_000  # numbered attributes of one call; beyond, the numbers are nonsense
GROUPS = (
    "gen_ai.conversation.id", "session.id", "langfuse.session.id", "traceloop.association.properties.session_id",
)  # fmt: skip
MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
NAMES = ("gen_ai.agent.name",)
LISTS = (
    ("gen_ai.system_instructions", "system"),
    ("gen_ai.input.messages", "user"),
    ("gen_ai.output.messages", "assistant"),
    ("gen_ai.prompt", "user"),
    ("gen_ai.completion", "assistant"),
    ("ai.prompt.messages", "user"),
    ("ai.response.text", "assistant"),
)  # as the conventions have them today; before 2025; as Vercel's AI SDK has them
_AROUND = frozenset(("resource", "scope", "schemaUrl"))  # what stands beside a list of spans
_ODD_ATTRIBUTE = "attribute in an unknown form, not read"
CURRENT = frozenset(name for name, _ in LISTS[:3])
READ = frozenset(
    (
        "input.value",
        "output.value",
        "llm.invocation_parameters",
        "gen_ai.tool.definitions",
        "llm.tools",
        "ai.prompt",
        "ai.response.toolCalls",
    )
)  # repeat what the messages say, or say what a model may call
_EVENT = re.compile(r"gen_ai\.(?:(system|user|assistant|tool)\.message|choice)")
_FIELD = re.compile(
    r"role|content|name|tool_call_id|finish_reason|contents\.\d{1,5}\.message_content\.(?:text|type)|(?:message\.)?tool_calls\..*"
)
_PARTS = frozenset(("text", "refusal", "tool_call", "tool_call_response", "reasoning"))
_SPAN_KEYS = frozenset(
    ("attributes", "events", "context", "span_kind", "traceId", "spanId", "parentSpanId", "trace_id", "parent_id",
     "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "start_time", "end_time", "links", "traceState", "flags")
)  # fmt: skip
_MESSAGE_KEYS = frozenset(("role", "parts", "content", "name", "finish_reason", "tool_calls"))
NUMBERED = (
    (re.compile(r"gen_ai\.prompt\.(\d{1,5})\.(.+)"), "user"),
    (re.compile(r"llm\.input_messages\.(\d{1,5})\.message\.(.+)"), "user"),
    (re.compile(r"gen_ai\.completion\.(\d{1,5})\.(.+)"), "assistant"),
    (re.compile(r"llm\.output_messages\.(\d{1,5})\.message\.(.+)"), "assistant"),
)
_PART = re.compile(r"contents\.(\d{1,5})\.message_content\.text")


def sniff(sample: FormatSample) -> bool:
    """Spans of OTLP, or of Phoenix: a trace id in a ``context`` beside ``attributes``."""
    if any(path[0] in ("resourceSpans", "resourceLogs") for path in sample.keys):
        return True
    return sample.has("context.trace_id", "attributes") or sample.has("context.trace_id", "span_kind")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each conversation id, session id or, without either, trace."""
    notes = SkipLog(source.net)
    yield from read_calls(_calls(source, notes), CallLog("otel"), notes)


def _calls(source: TextSource, notes: SkipLog) -> Iterator[Item | tuple[str, ModelCall]]:
    for record in records(source, ("spans", "data")):
        if isinstance(record, Problem):
            yield record
            continue
        for item in _spans(record):
            if isinstance(item, Problem):
                yield item
                continue
            span, place = item
            try:
                call = _call(span, place, notes)
            except RecordError as error:
                yield Problem(what=error.what, where=str(place), remedy=error.remedy)
                continue
            if call is not None:
                yield call


def _spans(record: JsonRecord) -> Iterator[JsonRecord | Problem]:
    """The spans of a record: many in OTLP, one in Phoenix; the log records of one span stand for it."""
    value = record.value
    listed = value if isinstance(value, dict) else {}
    if not isinstance(listed.get("resourceSpans"), list) and not isinstance(listed.get("resourceLogs"), list):
        yield record
        return
    for steps in (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")):
        below = [record] if steps[0] in listed else []
        for step in steps:
            yield from (problem for each in below if (problem := _not_a_list(each, step)))
            lists = [(each.value.get(step), each.ref) for each in below if isinstance(each.value, dict)]
            below = [item for inner, place in lists if isinstance(inner, list) for item in elements(inner, place, step)]
        yield from below if steps[0] == "resourceSpans" else _by_span(below)


def _not_a_list(record: JsonRecord, step: str) -> Problem | None:
    """What is wrong with an entry in which there should be a list; an empty one may be left out."""
    value, ref = record
    if not isinstance(value, dict):
        return Problem(what=f"an entry around '{step}' that is not an object", where=str(ref))
    inner = value.get(step)
    if isinstance(inner, list) or (inner is None and value.keys() <= _AROUND | {step}):
        return None
    return Problem(what=f"an entry without a list of '{step}'", where=str(ref))


def _by_span(log_records: Iterable[JsonRecord]) -> Iterator[JsonRecord]:
    """A span for the log records of each: the events of the conventions that are logged instead."""
    spans = dict[tuple[str, str], JsonRecord]()
    span: dict[str, Any]
    for value, ref in log_records:
        if not isinstance(value, dict):
            yield JsonRecord(value, ref)
            continue
        key = str(value.get("traceId")), str(value.get("spanId") or ref)
        time = value.get("timeUnixNano") or value.get("observedTimeUnixNano")
        span = {"traceId": value.get("traceId"), "spanId": value.get("spanId"), "startTimeUnixNano": time, "events": []}
        span = spans.setdefault(key, JsonRecord(span, ref)).value
        name = value.get("eventName") or _attributes(value.get("attributes")).get("event.name")
        body = _typed(value.get("body"))
        span["events"].append({"name": name, "attributes": value.get("attributes"), "body": body})
        span["endTimeUnixNano"] = time
    yield from spans.values()


def _call(span: Any, ref: SourceRef, notes: SkipLog) -> tuple[str, ModelCall] | None:
    """The conversation of a span and the call in it; None for a span that is no call of a model, which is noted."""
    if not isinstance(span, dict):
        raise RecordError("a span that is not an object")
    attributes = _attributes(span.get("attributes"), ref, notes)
    notes.unread(span, ref, _SPAN_KEYS)
    notes.misplaced(span.get("context"), ref)
    if values.is_misplaced("span_kind", span.get("name")):
        notes.words_under("name", ref, span["name"])
    notes.no_object(span, ref, "context")
    events = span.get("events")
    if events is not None and not (isinstance(events, list) and all(isinstance(event, dict) for event in events)):
        notes.add("event in an unknown form, not read", ref)
    happened = list[tuple[str, Any]]()
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict):
            own = _attributes(event.get("attributes"), ref, notes)
            happened.append((str(event.get("name")), event["body"] if isinstance(event.get("body"), dict) else own))
            attributes = own | attributes
    before, after = _utterances(attributes, ref, notes)
    if not before and not after:
        before, after = _of_events(happened, ref, notes)
    kind = attributes.get("gen_ai.operation.name") or attributes.get("openinference.span.kind") or span.get("span_kind")
    if not before and not after:
        is_model = str(kind).lower() in ("chat", "text_completion", "generate_content", "llm")
        notes.add(NOT_CAPTURED if is_model else "span that is no call of a model, not read", ref)
        return None
    notes.unread({key: value for key, value in attributes.items() if not _is_read(key, value)}, ref, frozenset())
    context = span["context"] if isinstance(span.get("context"), dict) else {}
    trace = values.name(span.get("traceId")) or values.name(context.get("trace_id")) or str(ref)
    key = next((name for group in GROUPS if (name := values.name(attributes.get(group)))), trace)
    start, end = (
        next((moment(span[name], ref, notes) for name in names if span.get(name) is not None), 0)
        for names in (("startTimeUnixNano", "start_time"), ("endTimeUnixNano", "end_time"))
    )
    model, name = (
        next((text for each in names if (text := values.string(attributes.get(each)))), None)
        for names in (MODELS, NAMES)
    )
    span_id = values.name(span.get("spanId")) or values.name(context.get("span_id")) or ""
    return key, ModelCall(start, end, before, after, ref, model, name, f"{trace}/{span_id}")


def _is_read(name: str, value: Any) -> bool:
    """Whether an attribute is read, or repeats what is; not where words stand in place of an id or a name."""
    if name in (*GROUPS, *MODELS, *NAMES):
        return not values.is_misplaced("name" if name in NAMES else "model", value)
    if name in READ or name in dict(LISTS):
        return True
    matches = (match for pattern, _ in NUMBERED if (match := pattern.fullmatch(name)))
    return any(int(match[1]) < MOST_MESSAGES and _FIELD.fullmatch(match[2]) for match in matches)


def _of_events(
    events: list[tuple[str, Any]], ref: SourceRef, notes: SkipLog
) -> tuple[list[Utterance], list[Utterance]]:
    """The messages of the older conventions, each an event: ``gen_ai.user.message`` and its like, ``gen_ai.choice``."""
    before, after = list[Utterance](), list[Utterance]()
    for name, body in events:
        match = _EVENT.fullmatch(name)
        if match is None:
            continue
        inner = body["message"] if isinstance(body.get("message"), dict) else body
        role = "assistant" if match[1] is None else match[1]
        message = {key: inner[key] for key in ("content", "tool_calls", "name") if key in inner}
        message |= {"role": role, "tool_call_id": inner.get("id")}
        problems = list[Problem]()
        side = after if match[1] is None else before
        side += chat_utterances([message], ref, notes, problems)
        for problem in problems:
            notes.add(f"event with {problem.what}, not read", ref)
    return before, after


def _attributes(value: Any, ref: SourceRef | None = None, notes: SkipLog | None = None) -> dict[str, Any]:
    """Attributes by their dotted names: OTLP's list of keys and typed values, or objects, nested or not; the others of
    a list are noted."""
    if isinstance(value, list):
        if ref and notes and (odd := sum(not _is_attribute(item) for item in value)):
            notes.add(_ODD_ATTRIBUTE, ref, odd)
        typed = ((item.get("key"), _typed(item.get("value"))) for item in value if isinstance(item, dict))
        pairs = [(key, plain) for key, plain in typed if isinstance(key, str)]
        named = dict(pairs)
        if ref and notes and (twice := sum(named[key] != plain for key, plain in pairs)):
            notes.add("earlier one of two attributes of one name, not read", ref, twice)
        return named
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


def _is_attribute(item: Any) -> bool:
    """Whether an attribute of OTLP has a name and a typed value, which may be empty, and nothing else."""
    if not isinstance(item, dict) or not isinstance(item.get("key"), str) or not item.keys() <= {"key", "value"}:
        return False
    return isinstance(item.get("value", {}), dict) and len(item.get("value", {})) <= 1


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


def _utterances(
    attributes: Mapping[str, Any], ref: SourceRef, notes: SkipLog
) -> tuple[list[Utterance], list[Utterance]]:
    """The messages before a call and those of its answer."""
    before, after = list[Utterance](), list[Utterance]()
    for name, role in LISTS:
        side = after if role == "assistant" else before
        if name in CURRENT or not side:
            side += _listed(attributes.get(name), values.ROLES[role], ref, notes)
    for pattern, role in NUMBERED:
        side = after if role == "assistant" else before
        if not side or role == "assistant":
            side += _numbered(attributes, pattern, values.ROLES[role], ref, notes)
    return before, after


def _listed(value: Any, role: Role, ref: SourceRef, notes: SkipLog) -> Iterator[Utterance]:
    """Messages with parts, as the conventions have them: a JSON text or its value; other text is what ``role`` says."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        value, _ = decode(value.encode())
    if isinstance(value, str) and value:
        yield Utterance(role, value)
    elif value is not None and not isinstance(value, str | list | dict):
        notes.add(values.ODD, ref)
    if role == "system" and isinstance(value, list):
        yield from (spoken for spoken in (_of_parts(role, None, value, ref, notes),) if spoken.text)
        return
    listed = [value] if isinstance(value, dict) else value
    for message in listed if isinstance(listed, list) else ():
        if not isinstance(message, dict):
            notes.odd([message], ref)
            if isinstance(message, str) and message:
                yield Utterance(role, message)
            continue
        notes.unread(message, ref, _MESSAGE_KEYS)
        own_role = values.role(message.get("role")) or role
        content = message.get("parts", message.get("content"))
        parts: list[Any] = [content] if isinstance(content, str) else content if isinstance(content, list) else []
        if not isinstance(content, list):
            notes.odd(content, ref)
        calls = notes.calls(message.get("tool_calls"), values.tool_call, ref)
        utterance = _of_parts(own_role, values.string(message.get("name")), parts, ref, notes)
        yield utterance._replace(calls=(*utterance.calls, *calls))


def _of_parts(role: Role, name: str | None, parts: list[Any], ref: SourceRef, notes: SkipLog) -> Utterance:
    notes.odd(parts, ref)
    for part in parts:
        if isinstance(part, dict) and not _is_readable(part):
            notes.add(values.block_name(part), ref, part=part)
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


def _is_readable(part: dict[str, Any]) -> bool:
    kind = part.get("type", "text")
    if kind in ("text", "refusal"):
        return isinstance(_words(part), str)
    return kind in _PARTS and (kind != "tool_call" or values.name(part.get("name")) is not None)


def _words(part: dict[str, Any]) -> Any:
    return part.get("content", part.get("text", part.get("refusal")))


def _part_text(parts: list[Any]) -> str:
    texts = [
        part if isinstance(part, str) else _words(part)
        for part in parts
        if isinstance(part, str) or (isinstance(part, dict) and part.get("type", "text") in ("text", "refusal"))
    ]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _numbered(
    attributes: Mapping[str, Any], pattern: re.Pattern[str], role: Role, ref: SourceRef, notes: SkipLog
) -> Iterator[Utterance]:
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
        notes.misplaced(own, ref)
        notes.odd([part for name, part in own.items() if _is_text(name) and part is not None], ref)
        results = (ToolResult(text=text, call_id=values.name(own.get("tool_call_id"))),) if own_role == "tool" else ()
        yield Utterance(own_role, text, values.string(own.get("name")), tuple(_numbered_calls(own)), results)


def _is_text(name: str) -> bool:
    return name == "content" or _PART.fullmatch(name) is not None


def _numbered_calls(fields: Mapping[str, Any]) -> Iterator[ToolCall]:
    for number in range(100):
        for prefix in (f"tool_calls.{number}.tool_call.function.", f"tool_calls.{number}."):
            if called := values.name(fields.get(f"{prefix}name")):
                yield ToolCall(name=called, input=fields.get(f"{prefix}arguments"))
                break
        else:
            return
