"""OpenAI and Anthropic chat messages: one conversation a line or element, or a bare list of messages.

Beside the messages a record may hold their answer: ``choices`` or ``response`` of an API, a ``completion``, or the
``chosen`` and ``rejected`` answers of preference data, of which the rejected ones are an abandoned branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.chat import chat_messages
from undersong.formats.json_stream import JsonRecord, elements, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import EMPTY, SkipLog, inside
from undersong.models import Conversation, Message, Problem, Role, SourceRef

_LISTS = ("messages", "prompt", "input")  # Chat Completions, Messages; preference data; Responses
_AROUND = ("request", "body", "input")  # objects that hold what was asked: logs, batches, preference data
# What stands alone beside the list: Messages; Responses; Completions.
_ALONE: tuple[tuple[str, Role, type | tuple[type, ...]], ...] = (
    ("system", "system", (str, list)),
    ("instructions", "system", str),
    ("prompt", "user", str),
    ("input", "user", str),
)
_ANSWERS = ("output", "choices", "completion", "response", "chosen", "preferred_output")
_REJECTED = ("rejected", "non_preferred_output")
_IDS = ("conversation_id", "id", "transcript_id", "custom_id")  # the last two: Scout's transcripts, batches
_RECORD_KEYS = frozenset((*_IDS, *_LISTS, *_AROUND, *(key for key, *_ in _ALONE), *_ANSWERS, *_REJECTED, "model"))
_TURN = re.compile(r"(?:\A|\n\n)(Human|Assistant|System): ?")  # of preference data that is written as one text


def sniff(sample: FormatSample) -> bool:
    """Messages with ``role`` and ``content``, or the answers that stand beside a prompt."""
    if any(sample.has(f"{key}.role", f"{key}.content") for key in (*_LISTS, "output")):
        return True
    if sample.has("chosen", "rejected") or sample.has("prompt", "completion") or sample.has("choices.message.role"):
        return True
    inner = ("messages.role", "input.role", "choices.message.role", "body.choices.message.role")
    if sample.any_of(*(f"{key}.{path}" for key in ("request", "response", "body", "input") for path in inner)):
        return True
    return sample.has("role", "content")


def read(source: TextSource) -> Iterator[Item]:
    """Conversations; messages that stand alone in the file are one conversation together."""
    bare: list[_ChatItem] = []
    notes = SkipLog(source.net)
    for number, record in enumerate(records(source, ("data", "conversations", "threads"))):
        if isinstance(record, Problem):
            yield record
        elif isinstance(record.value, list):
            parts = [_ChatItem(item) for item in elements(*record)]
            yield from _conversation(f"{source.stem}-{number}", parts, record.ref, None, notes)
        elif isinstance(record.value, dict) and "role" not in record.value and _has_parts(record.value):
            yield from _record(record, f"{source.stem}-{number}", notes)
        else:
            bare.append(_ChatItem(record))
        if not bare:
            notes.settle()
    if bare:
        yield from _conversation(source.stem, bare, bare[0].item.ref, None, notes)
    yield from notes.problems()


class _ChatItem(NamedTuple):
    """A message as it stands, and the branch that it is on."""

    item: JsonRecord
    branch: str | None = None

    def same(self, other: _ChatItem) -> bool:
        """Whether two parts say the same."""
        one, two = self.item.value, other.item.value
        if not isinstance(one, dict) or not isinstance(two, dict):
            return False
        return values.role(one.get("role")) == values.role(two.get("role")) and one.get("content") == two.get("content")


def _has_parts(value: dict[str, Any]) -> bool:
    asked = any(isinstance(value.get(key), str | list | dict) for key in (*_LISTS, *_AROUND))
    return asked or any(isinstance(value.get(key), str | list | dict) for key in (*_ANSWERS, *_REJECTED))


def _record(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    parts = _asked(value, ref, notes)
    for key in _ANSWERS:
        parts += _without_known(_answered(value.get(key), inside(ref, key)), parts)
    main = list(parts)
    for key in _REJECTED:
        rejected = _without_known(_answered(value.get(key), inside(ref, key)), main)
        parts += [part._replace(branch="rejected") for part in rejected]
    if not parts:
        notes.add(EMPTY, ref)
    own_id = next((name for key in _IDS if (name := values.name(value.get(key)))), fallback)
    model = values.string(value.get("model")) or _model_of(value)
    yield from _conversation(own_id, parts, ref, model, notes)


def _asked(value: dict[str, Any], ref: SourceRef, notes: SkipLog) -> list[_ChatItem]:
    """What stands before an answer: the messages of a record, and of the request in it."""
    parts = list[_ChatItem]()
    for key in _AROUND:
        if isinstance(value.get(key), dict):
            parts += _asked(value[key], inside(ref, key), notes)
    parts += [
        _ChatItem(JsonRecord({"role": role, "content": value[key]}, inside(ref, key)))
        for key, role, kinds in _ALONE
        if isinstance(value.get(key), kinds) and value[key]
    ]
    for key in _LISTS:
        if isinstance(value.get(key), list):
            parts += [_ChatItem(item) for item in elements(value[key], ref, key)]
    notes.unread(value, ref, _RECORD_KEYS)
    return parts


def _answered(answer: Any, ref: SourceRef, depth: int = 0) -> list[_ChatItem]:
    """The messages of an answer in the shapes that APIs and data sets give it; of several choices, the first is the one
    that was shown and the others are branches."""
    if isinstance(answer, str) and answer:
        return _turns(answer, ref)
    if isinstance(answer, list):
        if any(isinstance(each, dict) and "role" in each for each in answer) or not answer:
            return [_ChatItem(item) for item in elements(answer, ref)]
        listed = [(index, _answered(each, inside(ref, index), depth + 1)) for index, each in enumerate(answer)]
        return [part._replace(branch=f"choice-{index}") if index else part for index, parts in listed for part in parts]
    if not isinstance(answer, dict) or depth > 4:
        return []
    if "role" in answer or answer.get("type") in ("function_call", "function_call_output", "reasoning"):
        return [_ChatItem(JsonRecord(answer, inside(ref)))]
    below = ("body", "choices", "message", "messages", "output", "completion", "text", "content")
    key = next((key for key in below if answer.get(key)), None)
    return [] if key is None else _answered(answer[key], inside(ref, key), depth + 1)


def _turns(text: str, ref: SourceRef) -> list[_ChatItem]:
    """An answer that is text: the assistant's, or turns of ``Human:`` and ``Assistant:`` in one string."""
    pieces = _TURN.split(text)
    if len(pieces) < 3 or pieces[0].strip():
        return [_ChatItem(JsonRecord({"role": "assistant", "content": text}, inside(ref)))]
    pairs = zip(pieces[1::2], pieces[2::2], strict=True)
    return [_ChatItem(JsonRecord({"role": role, "content": words.strip()}, inside(ref))) for role, words in pairs]


def _without_known(parts: list[_ChatItem], before: list[_ChatItem]) -> list[_ChatItem]:
    """An answer without the history that it repeats from its beginning."""
    shared = 0
    while shared < min(len(parts), len(before)) and parts[shared].same(before[shared]):
        shared += 1
    return parts[shared:]


def _model_of(value: dict[str, Any]) -> str | None:
    """The model that a request or an answer inside a record names."""
    inner = [value.get(key) for key in ("response", "request", "body")]
    inner += [each.get("body") for each in inner if isinstance(each, dict)]
    return next(
        (model for each in inner if isinstance(each, dict) and (model := values.string(each.get("model")))), None
    )


def _conversation(
    key: str, parts: Iterable[_ChatItem], ref: SourceRef, model: str | None, notes: SkipLog
) -> Iterator[Item]:
    messages: list[Message] = []
    tools: dict[str, str] = {}
    for (value, place), branch in parts:
        try:
            field_sets = chat_messages(value, place, tools, notes)
        except RecordError as error:
            yield Problem(what=error.what, where=str(place))
            continue
        for fields in field_sets:
            by = model if fields["role"] == "assistant" else None
            position = len(messages)
            messages.append(
                Message(conversation=key, position=position, source_ref=place, model=by, branch=branch, **fields)
            )
    if messages:
        yield Conversation(id=key, source_format="openai", messages=tuple(messages), source_ref=ref)
