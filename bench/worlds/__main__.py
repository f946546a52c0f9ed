"""Write rough score worlds: ``python -m bench.worlds OUT --data DIR [--worlds 40] [--seed 1] [--nothing-planted 0]``.

OUT gets ``blind.jsonl.gz`` and ``truth.jsonl.gz``, in the format of the planted sets, the same bytes for the same
arguments. DIR (or UNDERSONG_DATA) has ``moltbook_traits.jsonl.gz``.

A world is 5 to 8 rooms of 5 to 15 people. Everybody's messages are whole score vectors of real messages, drawn by
habit, mood, topic and favourites. Some 8 to 19 % of the people act one of eight plans at one target, as ``shapes.yaml``
describes them, at three strengths; a few others do what looks like it. Half of the plans are read by a judge that knows
the context. About ``--read`` of the messages are read, sooner those that look bad, and a judge's marks have noise.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.worlds.build import World, build_world
from bench.worlds.pool import BAD, NEGATIVE, TRAITS, load_vectors


def write_lines(path: Path, rows: Iterable[World]) -> None:
    """JSON lines, compressed, without a time or a name in the file's head."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.writelines((json.dumps(row) + "\n").encode() for row in rows)


def shares(blind: list[World], truth: list[World]) -> dict[str, Any]:
    """Counts and shares of what was written."""
    messages = [message for world in blind for message in world["messages"]]
    read = [message["traits"] for message in messages if message["scored"]]
    negative = [trait for trait, low in zip(TRAITS, NEGATIVE, strict=True) if low]
    agents = {(world["world_id"], message["agent"]) for world in blind for message in world["messages"]}
    plants = [plant for world in truth for plant in world["truth"]]
    return {
        "worlds": len(blind), "agents": len(agents), "messages": len(messages), "plants": len(plants),
        "by_pattern": dict(sorted(Counter(plant["pattern"] for plant in plants).items())),
        "by_difficulty": dict(sorted(Counter(plant["difficulty"] for plant in plants).items())),
        "look_alikes": sum(len(world["hard_negatives"]) for world in truth),
        "read_share": round(len(read) / len(messages), 3),
        "bad_share_of_read": round(sum(any((row[t] or 0) >= BAD for t in negative) for row in read) / len(read), 3),
        "messages_in_plants": sum(len(plant["message_ids"]) for plant in plants),
        "read_share_of_plants": round(
            sum(len(plant["read_ids"]) for plant in plants) / max(1, sum(len(p["message_ids"]) for p in plants)), 3),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.worlds", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--worlds", type=int, default=40, help="worlds with plants")
    parser.add_argument("--nothing-planted", type=int, default=0, help="further worlds without any plant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--read", type=float, default=0.47, help="share of messages that are read")
    chosen = parser.parse_args()
    if chosen.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    if not 0 < chosen.read < 1 or min(chosen.worlds, chosen.nothing_planted) < 0:
        sys.exit("--read must be between 0 and 1, and a number of worlds not below 0")
    if chosen.worlds + chosen.nothing_planted == 0:
        sys.exit("no world to write: give --worlds or --nothing-planted")
    vectors = load_vectors(chosen.data)
    made = [
        build_world(chosen.seed, number, vectors, chosen.read, planted=number < chosen.worlds)
        for number in range(chosen.worlds + chosen.nothing_planted)
    ]
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_lines(chosen.out / "blind.jsonl.gz", (blind for blind, _ in made))
    write_lines(chosen.out / "truth.jsonl.gz", (truth for _, truth in made))
    print(json.dumps(shares([blind for blind, _ in made], [truth for _, truth in made]), indent=1))


if __name__ == "__main__":
    main()
