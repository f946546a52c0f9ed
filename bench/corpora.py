"""Corpora for the benchmarks: labelled data as our JSONL, and generated ones."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

TEXT = """
the archive index was late again and nobody had looked at the log since monday so I wrote a small check that counts
open entries every hour thank you for the review it helped me see the gap between plan and result please send the
numbers when you have them I think we should wait for a second opinion before we change the schedule
"""
OPENINGS = (
    "Thank you so much, this is wonderful work.",
    "I have fixed it now.",
    "Actually, the second figure is wrong.",
    "You owe me this after everything I did.",
    "I apologize, you are right.",
)


SETS = ("spiral_turns.jsonl.gz", "moltbook_traits.jsonl.gz")


def development(data: Path, out: Path, names: tuple[str, ...] = SETS) -> int:
    """Write the labelled conversations of ``data`` as our JSONL, one message a line; returns the number of messages."""
    count = 0
    with out.open("w", encoding="utf-8") as rows:
        for name in names:
            with gzip.open(data / name, "rt", encoding="utf-8") as lines:
                for line in lines:
                    conversation = json.loads(line)
                    for place, message in enumerate(conversation["messages"]):
                        ids = {"id": f"{conversation['conversation_id']}:{place}", "position": place}
                        row = {"conversation": conversation["conversation_id"], **ids, **message}
                        rows.write(json.dumps(row, ensure_ascii=False) + "\n")
                        count += 1
    return count


def generated(messages: int, seed: int, out: Path, *, length: int = 40, agents: int = 50) -> None:
    """Write a corpus of agents that answer each other, about 1.1 KB a message; the same seed gives the same bytes."""
    dice, vocabulary = random.Random(seed), TEXT.split()
    with out.open("w", encoding="utf-8") as rows:
        for number in range(messages):
            thread, place = divmod(number, length)
            agent = f"agent{dice.randrange(agents)}"
            words = " ".join(dice.choices(vocabulary, k=dice.randrange(150, 260)))
            opening = dice.choice(OPENINGS) if dice.random() < 0.2 else ""
            row = {
                "id": f"g{number}",
                "conversation": f"thread{thread}",
                "position": place,
                "author": agent,
                "role": "agent",
                "time": f"2026-03-{1 + thread % 28:02d}T{place // 60:02d}:{place % 60:02d}:00Z",
                "text": f"{opening} {words}".strip(),
            }
            rows.write(json.dumps(row) + "\n")


def natural(data: Path, messages: int, seed: int, out: Path, *, changed: float = 0.03) -> None:
    """Write the labelled conversations of ``data`` again and again, a share of the words changed each time."""
    dice = random.Random(seed)
    once = out.with_suffix(".once")
    development(data, once)
    messages_read = [json.loads(line) for line in once.read_text(encoding="utf-8").splitlines()]
    once.unlink()
    with out.open("w", encoding="utf-8") as rows:
        for number in range(messages):
            again, place = divmod(number, len(messages_read))
            message = messages_read[place]
            words = message["text"].split(" ")
            for _ in range(int(len(words) * changed)):
                words[dice.randrange(len(words))] = dice.choice(words)
            ids = {name: f"{message[name]}-{again}" for name in ("conversation", "id")}
            rows.write(json.dumps({**message, **ids, "text": " ".join(words)}, ensure_ascii=False) + "\n")


def interleaved(messages: int, seed: int, out: Path, *, open_at_once: int = 500) -> None:
    """As ``generated``, with so many conversations that take turns, line by line."""
    ordered = out.with_suffix(".ordered")
    generated(messages, seed, ordered)
    length = messages // open_at_once + 1
    with ordered.open("rb") as lines, out.open("wb") as mixed:
        places, at = [], 0
        for number, line in enumerate(lines):
            if number % length == 0:
                places.append(at)
            at += len(line)
        readers = [ordered.open("rb") for _ in places]
        for reader, place in zip(readers, places, strict=True):
            reader.seek(place)
        for _ in range(length):
            for reader, end in zip(readers, [*places[1:], at], strict=True):
                if reader.tell() < end:
                    mixed.write(reader.readline())
        for reader in readers:
            reader.close()
    ordered.unlink()
