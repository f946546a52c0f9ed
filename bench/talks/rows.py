"""The messages of a set with what its blind readers gave each, as rows that `undersong detect` takes.

python -m bench.talks.rows SET > rows.jsonl
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench.talks.score import read_lines
from undersong.models import TRAITS, Row, encode
from undersong.rows.jsonl import row_of

Json = dict[str, Any]
JUDGE = "blind readers"


def main() -> None:
    """Write the rows of a set to standard output."""
    for row in rows(Path(sys.argv[1])):
        sys.stdout.buffer.write(encode(row) + b"\n")


def rows(folder: Path) -> list[Row]:
    """The rows in the order of the messages; a message without a reading is unread."""
    readings = {each["id"]: each for each in read_lines(folder / "readings.jsonl")}
    messages = read_lines(folder / "messages.jsonl")
    return [row_of(_row(message, readings.get(message["id"])), place) for place, message in enumerate(messages)]


def agent(conversation: str, author: str, role: str) -> str:
    """The identity that patterns follow: agents hold across conversations, other speakers do not."""
    return author if role == "agent" else f"{conversation}/{author}"


def _row(message: Json, reading: Json | None) -> Json:
    name, role = message["conversation"], message["role"]
    row: Json = {key: message[key] for key in ("id", "conversation", "time", "role")}
    row |= {"agent": agent(name, message["author"], role), "tier": "deep", "judge": JUDGE, "judge_hash": JUDGE}
    if "target" in message:
        row["target"] = agent(name, message["target"], role)
    if reading is None:
        return row | {"state": "unread", "traits": None}
    marks = zip(TRAITS, reading["traits"], strict=True)
    return row | {
        "state": "scored",
        "traits": {trait: None if mark is None else mark / 4 for trait, mark in marks},
        "indicators": [
            {"id": name, "quote": quote, "confidence": sure / 4} for quote, name, sure in reading["indicators"]
        ],
    }


if __name__ == "__main__":
    main()
