"""Calls of models as traces keep them: each repeats the conversation so far, and every message is read once.

The calls of one conversation, in the order of time, are merged by what they share at the beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.chat import chat_messages
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

    def add(self, conversation: str, call: ModelCall) -> None:
        """One more call of a conversation, in any order."""
        self._calls[conversation].append(call)

    def conversations(self) -> Iterator[Conversation]:
        """Each conversation, in the order of their first calls in the input."""
        for key, calls in self._calls.items():
            yield self._conversation(key, sorted(calls, key=lambda call: (call.start, call.end)))

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
            utterances.append(Utterance(fields["role"], fields["text"], named, calls, results))
    return utterances


def nanoseconds(value: Any) -> int:
    """A moment in nanoseconds since 1970, 0 where there is none that can be read."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    moment = values.time_or_none(value)
    if moment is None:
        return 0
    return value if isinstance(value, int) and value > 10**17 else int(moment.timestamp() * 1e6) * 1000


def read_calls(source_items: Iterable[Item | tuple[str, ModelCall]], log: CallLog, notes: SkipLog) -> Iterator[Item]:
    """Put calls into the log and hand on what else comes; then the conversations and the notes."""
    for item in source_items:
        if isinstance(item, tuple):
            log.add(*item)
        else:
            yield item
    yield from log.conversations()
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
        time=values.time_or_none(moment) if moment else None,
        model=call.model if is_model and is_answer else None,
        tool_calls=utterance.calls,
        tool_results=utterance.results,
        thinking=utterance.thinking,
        source_ref=msgspec.structs.replace(inside(call.ref), span=call.span),
    )
