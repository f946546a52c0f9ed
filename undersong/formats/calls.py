"""Calls of models as traces keep them: each repeats the conversation so far, and every message is read once.

The calls of one conversation, in the order of time, are merged by what they share at the beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.chat import chat_messages
from undersong.formats.json_stream import records
from undersong.formats.repeats import Repeats
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Conversation, Message, Problem, Role, SourceRef, ToolCall, ToolResult

LONGEST_CUT = 500  # messages: how much of a history that was cut at its beginning is looked for
NOT_CAPTURED = "call of a model whose messages were not captured: switch on the capture of content"


class Utterance(NamedTuple):
    """What one call says that somebody said; two are the same message where role, words and tools are."""

    role: Role
    text: str
    name: str | None = None
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    thinking: str = ""
    time: datetime | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes it the same as another; a thought is not always repeated."""
        calls = tuple((call.name, msgspec.json.encode(call.input, order="sorted")) for call in self.calls)
        return self.role, self.text.strip(), calls, tuple(result.text for result in self.results)


class ModelCall(NamedTuple):
    """A call: its messages before and after, when it began and ended (ns since 1970, 0: unknown), its model, the name
    of the agent, its place, and the span that stands for it in a trace, as ``TRACE/SPAN``."""

    start: int
    end: int
    before: list[Utterance]
    after: list[Utterance]
    ref: SourceRef
    model: str | None = None
    name: str | None = None
    span: str | msgspec.UnsetType = msgspec.UNSET


class CallLog:
    """The calls of an input by conversation."""

    def __init__(self, source_format: str) -> None:
        self._format = source_format
        self._calls = defaultdict[str, list[ModelCall]](list)
        self._around: dict[str, list[ModelCall]] = {}

    def add(self, conversation: str, call: ModelCall) -> None:
        """One more call of a conversation, in any order."""
        self._calls[conversation].append(call)

    def add_whole(self, conversation: str, call: ModelCall) -> None:
        """What stands around the calls of a conversation, which counts where it has none."""
        self._around.setdefault(conversation, []).append(call)

    def conversations(self, notes: SkipLog) -> Iterator[Conversation]:
        """Each conversation, in the order of their first calls in the input, then those without any."""
        for key, calls in (self._around | self._calls).items():
            conversation = self._conversation(key, sorted(calls, key=lambda call: (call.start, call.end)))
            if key in self._calls:
                _note_repeated(self._around.get(key, ()), conversation.messages, notes)
            yield conversation

    def _conversation(self, key: str, calls: list[ModelCall]) -> Conversation:
        """The messages of the calls: each call adds what it does not share with those before it."""
        messages, keys = list[Message](), list[tuple[Any, ...]]()
        for call in calls:
            utterances = [(utterance, False) for utterance in call.before] + [
                (utterance, True) for utterance in call.after
            ]
            shared = overlap(keys, [utterance.key for utterance, _ in utterances])
            for utterance, is_answer in utterances[shared:]:
                keys.append(utterance.key)
                messages.append(_message(utterance, key, len(messages), call, is_answer))
        return Conversation(id=key, source_format=self._format, messages=tuple(messages), source_ref=calls[0].ref)


def chat_utterances(
    listed: Iterable[Any], ref: SourceRef, notes: SkipLog, problems: list[Problem], role: Role | None = None
) -> list[Utterance]:
    """Messages in the shapes of chat APIs, or strings that ``role`` says; those that cannot be read go to
    ``problems``."""
    tools, utterances = dict[str, str](), list[Utterance]()
    for index, value in enumerate(listed):
        item = {"role": role, "content": value} if role is not None and isinstance(value, str) else value
        try:
            field_sets = chat_messages(item, inside(ref, index), tools, notes)
        except RecordError as error:
            problems.append(Problem(what=error.what, where=str(inside(ref, index))))
            continue
        for fields in field_sets:
            named = None if fields["author"] == fields["role"] else fields["author"]
            calls, results = fields.get("tool_calls", ()), fields.get("tool_results", ())
            time = fields.get("time")
            utterances.append(Utterance(fields["role"], fields["text"], named, calls, results, time=time))
    return utterances


def _note_repeated(around: Iterable[ModelCall], messages: tuple[Message, ...], notes: SkipLog) -> None:
    """Note what stands around calls that are there, and where it has other words than they."""
    repeats = Repeats()
    for call in around:
        notes.add("span around calls of a model, whose messages they repeat, not read", call.ref)
        for utterance in (*call.before, *call.after):
            repeats.add(utterance.text, call.ref)
    repeats.note_others(messages, notes)


class TraceSpan(NamedTuple):
    """A span of a trace as a tool exports it: whether it is a call of a model, and whether nothing is around it."""

    conversation: str
    is_call: bool
    is_root: bool
    asked: Any
    answered: Any
    start: Any = None
    end: Any = None
    model: str | None = None
    name: str | None = None


def read_spans(
    source: TextSource,
    source_format: str,
    lists: tuple[str, ...],
    spans_of: Callable[[Any, SourceRef, SkipLog], Iterator[tuple[TraceSpan, SourceRef]]],
) -> Iterator[Item]:
    """The conversations of an export of spans. ``lists`` are the keys that may be around them; ``spans_of`` gives those
    of a record and raises RecordError for what is none."""
    notes, log = SkipLog(source.net), CallLog(source_format)
    for record in records(source, lists):
        if isinstance(record, Problem):
            yield record
            continue
        try:
            for span, place in spans_of(record.value, record.ref, notes):
                yield from _add(span, place, log, notes)
        except RecordError as error:
            yield Problem(what=error.what, where=str(record.ref), remedy=error.remedy)
    yield from log.conversations(notes)
    yield from notes.problems()


def _add(span: TraceSpan, ref: SourceRef, log: CallLog, notes: SkipLog) -> Iterator[Problem]:
    problems = list[Problem]()
    if not (span.is_call or span.is_root):
        notes.add("span that is no call of a model, not read", ref)
        return
    before = chat_utterances(spoken(span.asked, "user", ref, notes), ref, notes, problems)
    after = chat_utterances(spoken(span.answered, "assistant", ref, notes), ref, notes, problems)
    yield from problems
    if not before and not after:
        if not problems:
            notes.add(NOT_CAPTURED if span.is_call else "span that is no call of a model, not read", ref)
        return
    start = moment(span.start, ref, notes)
    end = start if span.end == span.start else moment(span.end, ref, notes)
    call = ModelCall(start, end, before, after, ref, span.model, span.name)
    (log.add if span.is_call else log.add_whole)(span.conversation, call)


_INSIDE = ("messages", "choices", "generations", "message", "output", "input", "content", "text", "question", "query",
           "prompt", "answer", "response", "result")  # fmt: skip
_CHAINED = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


def spoken(value: Any, role: Role, ref: SourceRef, notes: SkipLog, depth: int = 0) -> list[Any]:
    """The messages in what a tool logged as input or output: a text, a message, a list, or an object around them;
    what else has words in it is noted."""
    if isinstance(value, str) and value[:1] in ("[", "{") and depth < 2:
        try:
            return spoken(msgspec.json.decode(value), role, ref, notes, depth + 1)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value else []
    if isinstance(value, list) and depth < 8:
        return [item for each in value for item in spoken(each, role, ref, notes, depth + 1)]
    if not isinstance(value, dict):
        notes.odd([value] if value else None, ref)
        return []
    message = _chained(value)
    if values.role(message.get("role")) or message.get("type") in (
        "function_call",
        "function_call_output",
        "reasoning",
    ):
        return [message]
    key = next((key for key in _INSIDE if value.get(key)), None)
    if key is None or depth >= 8:
        return [{"role": role, "content": values.printed(value)}] if value else []
    notes.unread(value, ref, frozenset((key,)))
    return spoken(value[key], role, ref, notes, depth + 1)


def _chained(value: dict[str, Any]) -> dict[str, Any]:
    """A message of LangChain, serialised or not, as one of a chat API; anything else as it is."""
    names = value.get("id")
    inner = value.get("kwargs", value.get("data"))
    if isinstance(inner, dict) and isinstance(names, list) and names:
        kind = str(names[-1]).removesuffix("Chunk").removesuffix("Message").lower()
    else:
        kind = str(value.get("type"))
    fields = inner if isinstance(inner, dict) else value
    if kind not in _CHAINED or "content" not in fields or "role" in fields:
        return value
    about = ("content", "name", "tool_calls", "tool_call_id", "id")
    return {"role": _CHAINED[kind]} | {key: fields[key] for key in about if fields.get(key) is not None}


def grouped(about: Any, names: Iterable[str]) -> str | None:
    """The first name of a conversation among some keys of what a span says about itself."""
    if not isinstance(about, dict):
        return None
    return next((name for key in names if (name := values.name(about.get(key)))), None)


THREADS = ("thread_id", "session_id", "conversation_id", "threadId", "sessionId", "conversationId")  # of metadata


def nanoseconds(value: Any) -> int:
    """A moment in nanoseconds since 1970, 0 where there is none that can be read."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    moment = values.time_or_none(value)
    if moment is None:
        return 0
    return value if isinstance(value, int) and value > 10**17 else int(moment.timestamp() * 1e6) * 1000


def moment(value: Any, ref: SourceRef, notes: SkipLog) -> int:
    """``nanoseconds``, where a time that cannot be read is noted."""
    result = nanoseconds(value)
    if not result and value not in (None, "", 0, "0"):
        notes.add(values.UNREADABLE_TIME, ref)
    return result


def read_calls(source_items: Iterable[Item | tuple[str, ModelCall]], log: CallLog, notes: SkipLog) -> Iterator[Item]:
    """Put calls into the log and hand on what else comes; then the conversations and the notes."""
    for item in source_items:
        if isinstance(item, tuple):
            log.add(*item)
        else:
            yield item
    yield from log.conversations(notes)
    yield from notes.problems()


def overlap(keys: list[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> int:
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
    is_model = utterance.role == "assistant"
    moment = call.end if is_answer else call.start
    return Message(
        id="",
        conversation=key,
        position=position,
        author=utterance.name or (call.name if is_model else None) or utterance.role,
        role=utterance.role,
        text=utterance.text,
        time=utterance.time or (values.time_or_none(moment) if moment else None),
        model=call.model if is_model and is_answer else None,
        tool_calls=utterance.calls,
        tool_results=utterance.results,
        thinking=utterance.thinking,
        source_ref=msgspec.structs.replace(inside(call.ref), span=call.span),
    )
