"""Reading packs: conversations as blind readers get them, a folder a reader.

    python -m bench.talks.pack SET OUT [--size 300] [--again .15] [--sequences]

``SET`` is a folder with ``messages.jsonl``; of it nothing but speakers, addressees and texts is shown, and times for
readers of sequences. Each pack has whole conversations of about ``--size`` messages; ``--again`` adds packs ``again1``,
``again2``, … with so many of the conversations, drawn with a fixed seed, for second readers.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.talks.score import read_lines
from undersong.judges.llm.prompts import shipped_prompts

Json = dict[str, Any]
FORM = """One JSON object a message, one a line, in the order of the file, evidence first:
{"id":"…","indicators":[["quote","ID",1-4],…],"mechanisms":[["quote","id",1-4],…],
"reasons":[["trait","at most 15 words"],…],"traits":[12 integers 0-4 or null, in the order of the rubric],
"stance":"holds|concedes|neutral"}
Write each object on one line. Leave `control` and `acts` out. Every message is scored, with only what stands
before it in its conversation.
"""


def main() -> None:
    """Write the packs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--again", type=float, default=0.0)
    parser.add_argument("--sequences", action="store_true")
    arguments = parser.parse_args()
    rows = read_lines(arguments.set / "messages.jsonl")
    talks = [list(group) for _, group in groupby(rows, key=lambda row: row["conversation"])]
    draw = random.Random(f"packs/{arguments.set.name}")
    draw.shuffle(talks)
    packs = {f"pack{n}": part for n, part in enumerate(_parts(talks, arguments.size), 1)}
    twice = draw.sample(talks, round(arguments.again * len(talks)))
    packs |= {f"again{n}": part for n, part in enumerate(_parts(twice, arguments.size), 1)}
    for name, part in packs.items():
        folder = arguments.out / name
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(_shown(talk, times=arguments.sequences) for talk in part)
        (folder / "reading.txt").write_text(text, encoding="utf-8")
        if not arguments.sequences:
            (folder / "rubric.txt").write_text(shipped_prompts().rubric, encoding="utf-8")
            (folder / "form.txt").write_text(FORM, encoding="utf-8")
        print(name, len(part), "conversations,", sum(map(len, part)), "messages")


def _parts(talks: Sequence[list[Json]], size: int) -> Iterator[list[list[Json]]]:
    """Whole conversations, in packs of about the same number of messages."""
    total = sum(map(len, talks))
    count = max(1, round(total / size)) if total else 0
    part: list[list[Json]] = []
    done = number = 0
    for talk in talks:
        part.append(talk)
        done += len(talk)
        if done >= total * (number + 1) / count:
            yield part
            part, number = [], number + 1
    if part:
        yield part


def _shown(talk: Sequence[Json], *, times: bool) -> str:
    first = datetime.fromisoformat(talk[0]["time"]).date()
    lines = [f"=== {talk[0]['conversation']}"]
    for row in talk:
        time = datetime.fromisoformat(row["time"])
        when = f" day {(time.date() - first).days} {time:%H:%M}" if times else ""
        whom = f" -> {row['target']}" if "target" in row else ""
        lines.append(
            f"{row['id']}{when} [{row['author']} ({row['role']}){whom}] {json.dumps(row['text'], ensure_ascii=False)}"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
