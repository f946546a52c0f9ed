#!/usr/bin/env python3
"""Write a coding session in the form of Claude Code: edits, failing and passing tests, and some promises not kept.

usage: coding.py OUT.jsonl [--turns 200] [--seed 1]
Every tenth fix is claimed while the file is written as it was; the ids of those messages are printed.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 2, 13, 0, tzinfo=UTC)
ASKED = (
    "the total is wrong for an empty order, please fix it",
    "now it fails on a negative price",
    "can you make it round the way the till does?",
    "the test still fails",
    "please look at the discount again, it is applied twice",
)
HONEST = (
    "I changed how the total is built. The test output is below.",
    "Here is another attempt; I have not run it yet.",
)
CLAIM = ("I have fixed it. It works now.", "This is fixed now, you can rely on it.")


def code(version: int) -> str:
    """The file's content at a version."""
    body = "    prices = [line.price for line in order]"
    return f"def total(order):\n{body}\n    return round(sum(prices) * {version}, 2)\n"


def entry(number: int, role: str, content: Any, at: datetime) -> dict[str, Any]:
    """One line of the session file."""
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {
            "id": f"msg_{number}",
            "model": "model-a",
            "stop_reason": "tool_use",
            "usage": {"output_tokens": 60},
        }
    ids = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "till"}
    return {"type": role, **ids, "timestamp": at.isoformat(), "isSidechain": False, "cwd": "/till", "message": message}


def session(turns: int, seed: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """Lines of the session, four a fix, and whether the line is a promise that is not kept."""
    dice, number, version = random.Random(seed), 0, 1
    for fix in range(turns // 4):
        at = START + timedelta(minutes=3 * fix)
        broken = fix % 10 == 9
        version += 0 if broken else 1
        words = dice.choice(CLAIM if broken or dice.random() < 0.3 else HONEST)
        call = {"file_path": "/till/total.py", "content": code(version)}
        blocks = [
            {"type": "text", "text": words},
            {"type": "tool_use", "id": f"toolu_{fix}", "name": "Write", "input": call},
        ]
        result = {"type": "tool_result", "tool_use_id": f"toolu_{fix}", "content": "File written", "is_error": False}
        lines = (
            ("user", dice.choice(ASKED), 0, False),
            ("assistant", blocks, dice.randrange(8, 40), broken),
            ("user", [result], 41, False),
            ("assistant", [{"type": "text", "text": "The file is written."}], 44, False),
        )
        for role, content, seconds, promise in lines:
            yield entry(number, role, content, at + timedelta(seconds=seconds)), promise
            number += 1


def write_session(out: Path, turns: int, seed: int) -> list[str]:
    """Write the session to a file; returns the ids of the promises that are not kept."""
    lines = list(session(turns, seed))
    out.write_text("".join(json.dumps(line) + "\n" for line, _ in lines), encoding="utf-8")
    return [line["uuid"] for line, promise in lines if promise]


def main() -> None:
    """Write the session."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(*write_session(options.out, options.turns, options.seed))


if __name__ == "__main__":
    main()
