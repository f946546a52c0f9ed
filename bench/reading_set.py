#!/usr/bin/env python3
"""Draws messages of the development data for blind readings: 25 of each of six kinds of talk, in whole prefixes.

usage: reading_set.py --data DIR --out DIR --key FILE [--seed 11]

Writes ``reading.txt`` (what readers see: conversations in random order, one message a line as a judge's prompt shows
it, neutral names, no scanner lines, no labels; lines that begin with an id are to be read, the others are context),
``items.jsonl`` (the messages to be read) and, outside of that folder, the key: which message of which file each is.
One conversation serves several messages, since its context is read once. Texts longer than the prompt shows of an
earlier message are shortened as there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from undersong.judges.llm.prompts import encoded, render_message, shipped_prompts
from undersong.models import Message, Role, Scan, ToolCall, ToolResult

LONGEST_PREFIX = 60  # turns of a coding session: longer ones would be mostly context
MOST_BYTES = 40_000  # of a prefix, as shown


class Sample(NamedTuple):
    """A prefix of a conversation, and the places in it that are to be read."""

    source: str
    conversation: str
    messages: tuple[Message, ...]
    places: tuple[int, ...]


def draw(data: Path, seed: int) -> list[Sample]:
    """The samples in random order: 25 messages of each kind."""
    dice = random.Random(seed)
    samples = [*_ordinary(data, dice), *_posts(data, dice), *_spirals(data, dice), *_pressed(data, dice)]
    samples += [*_user_sides(data, dice), *_sessions(data, dice)]
    dice.shuffle(samples)
    return samples


def _ordinary(data: Path, dice: random.Random) -> Iterator[Sample]:
    name = "ordinary_talk.jsonl.gz"
    rows = [row for row in _rows(data / name) if len(row["messages"]) >= 6]
    kinds = sorted({row["kind"] for row in rows})
    for kind in [*kinds, dice.choice(kinds)][:5]:
        yield _first(name, dice.choice([row for row in rows if row["kind"] == kind]), 5)


def _posts(data: Path, dice: random.Random) -> Iterator[Sample]:
    name = "moltbook_traits.jsonl.gz"
    for row in dice.sample(_rows(data / name), 25):
        yield _first(name, row, 1)


def _spirals(data: Path, dice: random.Random) -> Iterator[Sample]:
    name = "spiral_turns.jsonl.gz"
    for row, count in zip(dice.sample(_rows(data / name), 3), (8, 8, 9), strict=True):
        yield _last(name, row["conversation_id"], _messages(row["messages"][: 4 + count]), count)


def _pressed(data: Path, dice: random.Random) -> Iterator[Sample]:
    name = "sycon_stance.jsonl.gz"
    rows = _rows(data / name)
    for kind, count in zip(sorted({row["labels"]["set"] for row in rows}), (8, 8, 9), strict=True):
        row = dice.choice([row for row in rows if row["labels"]["set"] == kind])
        yield _last(name, row["conversation_id"], _messages(row["messages"]), count)


def _user_sides(data: Path, dice: random.Random) -> Iterator[Sample]:
    name = "psychosis_user_turns.jsonl"
    for row, count in zip(dice.sample(_rows(data / name), 3), (8, 8, 9), strict=True):
        yield _first(name, row, count)


def _sessions(data: Path, dice: random.Random) -> Iterator[Sample]:
    """Two sessions from their beginnings, and two of claims whose last check before was replaced by a failing run."""
    name = "sessions/real_dev.jsonl.gz"
    rows = _rows(data / name)
    dice.shuffle(rows)
    yield from _fitting((_until(name, row, 8) for row in rows), 2)
    name = "sessions/counterfactual_dev.jsonl.gz"
    claims = {row["id"]: row for row in _rows(data / "sessions" / "counterfactual_dev.labels.jsonl")}
    rows = [row for row in _rows(data / name) if claims[row["session"]["id"]]["truth"] == "contradicted"]
    dice.shuffle(rows)
    ends = ((row, claims[row["session"]["id"]]["claim_turn"]) for row in rows)
    samples = (_last(name, row["session"]["id"], _messages(row["turns"][: end + 1]), 5) for row, end in ends)
    first, second = _fitting((sample for sample in samples if len(sample.places) == 5), 2)
    yield first
    yield second._replace(places=second.places[1:])


def _fitting(samples: Iterator[Sample | None], count: int) -> list[Sample]:
    chosen: list[Sample] = []
    for sample in samples:
        if sample is not None and len(sample.messages) <= LONGEST_PREFIX and _size(sample) <= MOST_BYTES:
            chosen.append(sample)
        if len(chosen) == count:
            return chosen
    raise SystemExit(f"error: fewer than {count} conversations of at most {LONGEST_PREFIX} turns")


def _size(sample: Sample) -> int:
    return sum(len(line(message).encode()) for message in sample.messages)


def _first(source: str, row: dict[str, Any], count: int) -> Sample:
    return _last(source, row["conversation_id"], _messages(row["messages"][:count]), count)


def _until(source: str, row: dict[str, Any], count: int) -> Sample | None:
    """The shortest prefix with ``count`` messages of words."""
    messages = _messages(row["turns"][: LONGEST_PREFIX + 1])
    places = [n for n, message in enumerate(messages) if _has_words(message)][:count]
    if len(places) < count:
        return None
    return Sample(source, row["session"]["id"], messages[: places[-1] + 1], tuple(places))


def _last(source: str, conversation: str, messages: tuple[Message, ...], count: int) -> Sample:
    places = [n for n, message in enumerate(messages) if _has_words(message)]
    return Sample(source, conversation, messages, tuple(places[-count:]))


def _has_words(message: Message) -> bool:
    return bool(message.text.strip()) and message.role != "tool"


def _messages(turns: list[dict[str, Any]]) -> tuple[Message, ...]:
    names: dict[str, str] = {}
    return tuple(_message(place, turn, names) for place, turn in enumerate(turns))


def _message(place: int, turn: dict[str, Any], names: dict[str, str]) -> Message:
    role: Role = turn["role"]
    own = turn["author"] if role == "tool" else names.setdefault(turn["author"], chr(ord("A") + len(names)))
    return Message(
        id=str(place),
        conversation="c",
        position=place,
        author=own,
        agent=own,
        role=role,
        text=turn["text"],
        tool_calls=tuple(ToolCall(name=call["name"], input=call["input"]) for call in turn.get("tool_calls", ())),
        tool_results=tuple(
            ToolResult(text=result["text"], is_error=bool(result.get("is_error")))
            for result in turn.get("tool_results", ())
        ),
    )


def line(message: Message) -> str:
    """The message and its tools as the prompt shows them, without the scanner's line."""
    limits = shipped_prompts().limits
    most = limits.tool_bytes if message.role == "tool" else limits.prior_bytes
    shown = render_message(message, Scan(message_id=message.id), most)
    return f"[{shown.speaker}: {encoded(shown.author)}] {encoded(shown.text)}\n" + "".join(shown.tools)


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        return [json.loads(row) for row in lines]


def write(samples: list[Sample], out: Path, key: Path) -> int:
    """The three files; returns how many messages are to be read."""
    if key.resolve().parent == out.resolve():
        raise SystemExit("error: the key must not lie where readers look")
    out.mkdir(parents=True, exist_ok=True)
    number, texts, items, keys = 0, [], [], []
    for count, sample in enumerate(samples, 1):
        texts.append(f"\n=== Conversation c{count:02}\n")
        for place, message in enumerate(sample.messages):
            head = "      "
            if place in sample.places:
                number += 1
                head = f"m{number:03}  "
                items.append({"id": head.strip(), "conversation": f"c{count:02}", "position": place})
                items[-1] |= {"speaker": message.author, "role": message.role, "text": message.text}
                keys.append({"id": head.strip(), "source": sample.source, "conversation": sample.conversation})
                keys[-1]["position"] = place
            texts.append(head + line(message))
    (out / "reading.txt").write_text("".join(texts), encoding="utf-8")
    for path, rows in ((out / "items.jsonl", items), (key, keys)):
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    samples = draw(options.data, options.seed)
    print(f"{write(samples, options.out, options.key)} messages of {len(samples)} conversations")


if __name__ == "__main__":
    main()
