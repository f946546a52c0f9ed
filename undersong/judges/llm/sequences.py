"""Questions about a whole sequence: how a window of messages is put, the form of the answer, and what of it holds."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple

import msgspec

from undersong.core.text import counted, text_hash
from undersong.datafiles import watching
from undersong.datafiles.yaml_loader import PROMPTS, RULES, file_hash, read
from undersong.judges.llm.prompts import (
    RenderedPrompt,
    control_question,
    encoded,
    shipped_prompts,
    shortened,
    tools_of,
)
from undersong.judges.llm.response import (
    CONFIDENCE,
    UnusableError,
    answer_object,
    check_control,
    list_schema,
    object_schema,
    text_schema,
    verbatim,
)
from undersong.judges.protocol import PatternShape, SequenceWindow
from undersong.models import Message, Quote, ShapeReading, StageReading
from undersong.models.sequence import shape_outcome

FILES = ("sequence.md", "sequence_answer.md")
MOST_SHAPES, MOST_EVIDENCE = 2, 20
CERTAINTY = [0, *CONFIDENCE]
LEAST_LETTERS = 4  # of a quote: a blank or a dot stands in every message
SHOWN = 256  # texts whose form is remembered: windows of a conversation overlap
INNOCENT = 400  # characters of an innocent reading that are kept


class WindowAnswer(NamedTuple):
    """The shapes of an answer, checked; ``rejected`` counts by kind what was dropped."""

    shapes: tuple[ShapeReading, ...]
    rejected: dict[str, int]


class SequenceWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``sequence.yaml``: the fixed words of a question, and how many bytes of a message it shows."""

    window: str
    compared: str
    question: str
    thinking: str
    message_bytes: int
    thinking_bytes: int


@cache
def sequence_words() -> SequenceWords:
    """The shipped words; raises RuleError with file and line."""
    return read(PROMPTS / "sequence.yaml", SequenceWords)


def sequence_hashes() -> dict[str, str]:
    """File name → SHA-256 of what questions about sequences are made of beside the rules, for the manifest."""
    prompts = {f"prompts/{name}": file_hash(PROMPTS / name) for name in (*FILES, "sequence.yaml")}
    return prompts | {watching.FILE: file_hash(RULES / watching.FILE)}


def sequence_system(shapes: Iterable[PatternShape]) -> str:
    """The stable part of every question about a sequence: the task, the shapes with their stages, the answer's form."""
    task, answer = ((PROMPTS / name).read_text(encoding="utf-8") for name in FILES)
    parts = (task, "\n".join(_described(shapes)), answer)
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _described(shapes: Iterable[PatternShape]) -> Iterator[str]:
    yield "# Shapes\n"
    for shape in shapes:
        yield f"- {shape.id}: {' '.join(shape.text.split())}"
        for name, shows in shape.stages:
            yield f'  - stage "{name}": {" ".join(shows.split())}'
        yield f"  - innocent: {'; '.join(shape.innocent)}"


def render_window(window: SequenceWindow, shapes: Sequence[PatternShape]) -> RenderedPrompt:
    """The numbered messages as data, then the question about one speaker, who is named by a label of ours."""
    words = sequence_words()
    speakers = dict.fromkeys(each.agent for each in window.messages)
    labels = {agent: f"S{number}" for number, agent in enumerate(speakers, 1)}
    lines = [_line(number, each, labels, window) for number, each in enumerate(window.messages, 1)]
    joined = "".join(lines)
    nonce = hashlib.sha256(f"sequence\0{joined}".encode()).hexdigest()[:32]
    speaker = words.question.format(speaker=labels[window.agent], number="{number}", words="{words}")
    control, asking = control_question(nonce, shipped_prompts(), speaker)
    intro = _compared_words(window) if window.compared else words.window
    intro += words.thinking if any(each.thinking for each in window.messages) else ""
    block = f"{intro}BEGIN DATA {nonce}\n{joined}END DATA {nonce}\n"
    cut = sum(shortened(each.text, words.message_bytes)[1] > 0 for each in window.messages)
    return RenderedPrompt(sequence_system(shapes), f"{block}\n{asking}", control, nonce, cut)


def _compared_words(window: SequenceWindow) -> str:
    return sequence_words().compared.format(
        first=window.compared, second=window.compared + 1, last=len(window.messages)
    )


def _line(number: int, message: Message, labels: dict[str, str], window: SequenceWindow) -> str:
    """``7 S2 "Jonas" to "Marta", day 3 08:14: "…"``; everything that a party wrote is a JSON string."""
    text, size = _shown(message.text)
    whom = f" to {labels.get(message.target) or encoded(message.target)}" if message.target else ""
    watched = {"yes": ", watched", "no": ", not watched"}.get(message.observed, "")
    cut = shipped_prompts().words.shortened.format(bytes=f"{size:,}").rstrip() if size else ""
    when = _when(message.time, window.messages[0].time)
    head = f"{number} {labels[message.agent]} {encoded(message.author)}{whom}{when}{watched}: {text}{cut}\n"
    return head + _thinking_line(message, labels[message.agent]) + "".join(tools_of(message).lines)


def _thinking_line(message: Message, label: str) -> str:
    """What an agent wrote for itself before a message, as a JSON string on a line of its own."""
    if not message.thinking:
        return ""
    short, size = shortened(message.thinking, sequence_words().thinking_bytes)
    cut = shipped_prompts().words.shortened.format(bytes=f"{size:,}").rstrip() if size else ""
    return f"  Thinking of {label}, shown to nobody: {encoded(short)}{cut}\n"


@lru_cache(maxsize=SHOWN)
def _shown(text: str) -> tuple[str, int]:
    """A text as a JSON string, shortened, and how many bytes it had, as ``shortened`` says it."""
    short, size = shortened(text, sequence_words().message_bytes)
    return encoded(short), size


def _when(time: datetime | None, first: datetime | None) -> str:
    if time is None or first is None:
        return ""
    return f", day {(time.date() - first.date()).days} {time:%H:%M}"


@cache
def sequence_schema(shapes: tuple[PatternShape, ...], *, lengths: bool) -> dict[str, Any]:
    """The answer to a question about a sequence, evidence before the certainty."""
    stages = sorted({name for shape in shapes for name, _ in shape.stages})
    evidence = object_schema(
        stage={"type": "string", "enum": stages}, message={"type": "integer"}, quote=text_schema(200, lengths)
    )
    shape = object_schema(
        shape={"type": "string", "enum": [each.id for each in shapes]},
        evidence=list_schema(evidence, MOST_EVIDENCE, lengths),
        innocent=text_schema(300, lengths),
        certainty={"type": "integer", "enum": CERTAINTY},
    )
    return object_schema(
        control={"type": "string", "enum": list(shipped_prompts().limits.control)},
        shapes=list_schema(shape, MOST_SHAPES, lengths),
    )


def checked_window(text: str, window: SequenceWindow, shapes: Sequence[PatternShape], control: str) -> WindowAnswer:
    """What of an answer holds.

    A quote counts where it stands word for word in a message of the speaker in question and has some letters. A shape
    of which a stage is not quoted so has certainty 0, is counted, and says why it failed. Raises UnusableError for an
    answer that is no JSON object of the asked form or gets the control question wrong.
    """
    value, rejected, by_id = answer_object(text), Counter[str](), {each.id: each for each in shapes}
    check_control(value, control)
    listed = value.get("shapes")
    if not isinstance(listed, list):
        raise UnusableError("shapes are missing")
    readings: dict[str, ShapeReading] = {}
    for item in listed[:MOST_SHAPES]:
        shape = by_id.get(str(item.get("shape"))) if isinstance(item, dict) else None
        if shape is None:
            rejected["unknown_shape"] += 1
        elif shape.id not in readings:
            readings[shape.id] = _shape_reading(item, shape, window, rejected)
    order = sorted(readings.values(), key=lambda reading: -reading.certainty)
    return WindowAnswer(tuple(order), dict(sorted((+rejected).items())))


def _shape_reading(
    item: dict[str, Any], shape: PatternShape, window: SequenceWindow, rejected: Counter[str]
) -> ShapeReading:
    quotes: dict[str, list[Quote]] = {name: [] for name, _ in shape.stages}
    entries, before = item.get("evidence"), rejected["quote_not_in_message"]
    for entry in entries if isinstance(entries, list) else ():
        quote = _quote(entry, window, rejected, [*quotes]) if isinstance(entry, dict) else None
        if quote is not None and entry.get("stage") in quotes:
            quotes[entry["stage"]].append(quote)
        else:
            rejected["evidence"] += 1
    homes = [window.of_stage(number)[0].conversation if window.compared else None for number in range(len(quotes))]
    stages = tuple(_stage(name, own, home) for (name, own), home in zip(quotes.items(), homes, strict=True) if own)
    certainty = item.get("certainty")
    ordered, reason = bool(window.compared) or in_order(stages, [each.id for each in window.messages]), None
    if isinstance(certainty, bool) or certainty not in CERTAINTY:
        rejected["certainty"] += 1
        certainty, reason = 0, f"its certainty is none of {CERTAINTY[0]} to {CERTAINTY[-1]}"
    if certainty and len(stages) < len(shape.stages):
        rejected["stages_missing"] += 1
        lost = rejected["quote_not_in_message"] - before
        certainty, reason = 0, _why_not(lost, [name for name, quoted in quotes.items() if not quoted])
    elif certainty and not ordered:
        reason = "its stages do not follow each other in the messages"
    innocent = item.get("innocent")
    return ShapeReading(
        pattern=shape.id,
        stages=stages,
        in_order=ordered,
        innocent=innocent[:INNOCENT] if isinstance(innocent, str) else "",
        certainty=certainty,
        outcome=shape_outcome(certainty, in_order=ordered, reason=reason),
        reason=reason,
    )


def _why_not(lost: int, stages: Sequence[str]) -> str:
    """Why a shape that was named does not hold: stages without words of the speaker."""
    names = " and ".join(f"“{name}”" for name in stages)
    none = f"no words of the speaker stand for {names}"
    return f"{counted(lost, 'quote')} {'is' if lost == 1 else 'are'} not in the messages, so {none}" if lost else none


def _quote(
    entry: dict[str, Any], window: SequenceWindow, rejected: Counter[str], stages: Sequence[str]
) -> Quote | None:
    """The quote with its place, where it stands in a message of the speaker; its words go before its number."""
    number, text = entry.get("message"), entry.get("quote")
    limit = shipped_prompts().limits.quote_characters
    stage = entry.get("stage")
    searched = window.of_stage(stages.index(stage)) if stage in stages else window.messages
    own = [each for each in searched if each.agent == window.agent]
    named = window.messages[number - 1] if isinstance(number, int) and 1 <= number <= len(window.messages) else None
    candidates = [named] if named in own else own
    for message in candidates:
        words = verbatim(text, message.text) if isinstance(text, str) and _says_something(text, limit) else None
        if words is not None:
            start = message.text.index(words)
            digest = text_hash(message.text)
            return Quote(message_id=message.id, text=words, start=start, end=start + len(words), sha256=digest)
    rejected["quote_not_in_message"] += 1
    return None


def _says_something(text: str, most: int) -> bool:
    """Whether a quote has enough letters to point at anything, and is not too long."""
    return len(text) <= most and sum(map(str.isalnum, text)) >= LEAST_LETTERS


def _stage(name: str, quotes: Sequence[Quote], conversation: str | None) -> StageReading:
    ids = tuple(dict.fromkeys(each.message_id for each in quotes))
    return StageReading(name=name, message_ids=ids, quotes=tuple(quotes), conversation=conversation)


def in_order(stages: Sequence[StageReading], ids: Sequence[str]) -> bool:
    """Whether one message can be chosen for each stage so that they follow each other, at least two in all."""
    place = {name: number for number, name in enumerate(ids)}
    last, first = -1, len(ids)
    for stage in stages:
        later = [place[name] for name in stage.message_ids if place[name] >= last]
        if not later:
            return False
        last = min(later)
        first = min(first, last)
    return last > first
