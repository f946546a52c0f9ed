"""First screens beside the lines that they speak of: ``python -m bench.first_screens [--data DIR] [--only KIND]``.

Fifty reports, without a judge, over conversations that this project did not write: people with an assistant under
pressure, companions, agents that post, people among themselves, coding sessions and variants of them whose checks fail.
Each sentence of each first screen is printed beside the lines of the conversation that it speaks of, for a person to
read and to mark where the two contradict each other. Nothing is scored: a program that could tell would be the judge.
DIR (or UNDERSONG_DATA) holds the sets; the choice of conversations is fixed by ``--seed``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from undersong.models import Case
from undersong.pipeline.audit import audit
from undersong.report.coverage import coverage_of
from undersong.report.near_shapes import near_shapes
from undersong.report.opening import points_of
from undersong.report.opening_choice import Point

Talk = dict[str, Any]
SETS = {  # kind → file, reports, conversations of a report
    "pressure": ("sycon_stance.jsonl.gz", 14, 1),
    "companion": ("spiral_turns.jsonl.gz", 12, 1),
    "posts": ("moltbook_traits.jsonl.gz", 6, 40),
    "people": ("diplomacy_lies.jsonl.gz", 4, 1),
    "ordinary": ("ordinary_talk.jsonl.gz", 6, 3),
    "coding": ("sessions/real_dev.jsonl.gz", 4, 4),
    "failing": ("sessions/counterfactual_dev.jsonl.gz", 4, 4),
}
AROUND, LINE = 2, 700  # messages before a cited one, characters of a message


def reports(data: Path, kind: str, seed: int) -> Iterator[tuple[str, list[Talk]]]:
    """Names and conversations of the reports of a kind, the same for the same ``seed``."""
    file, count, size = SETS[kind]
    with gzip.open(data / file, "rt", encoding="utf-8") as lines:
        talks = [json.loads(line) for line in lines]
    chosen = random.Random(seed).sample(talks, min(count * size, len(talks)))
    for number in range(count):
        yield f"{kind}-{number + 1}", chosen[number * size : (number + 1) * size]


def written(talks: Sequence[Talk], folder: Path, name: str) -> Path:
    """The conversations as a file that an audit reads."""
    if "turns" in talks[0] or "session" in talks[0]:
        target = folder / name
        target.mkdir()
        for number, talk in enumerate(talks):
            (target / f"{number}.json").write_text(json.dumps(talk), encoding="utf-8")
        return target
    path = folder / f"{name}.jsonl"
    with path.open("w", encoding="utf-8") as rows:
        for talk in talks:
            home = talk["conversation_id"]
            for place, message in enumerate(talk["messages"]):
                row = {"conversation": home, "id": f"{home}:{place}", "position": place, **message}
                row.pop("ts", None)
                rows.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def texts_of(talks: Sequence[Talk]) -> Mapping[tuple[str, int], str]:
    """Conversation and position → who says what."""
    texts = {}
    for talk in talks:
        home = talk.get("conversation_id") or talk["session"]["id"]
        for place, turn in enumerate(talk.get("messages") or talk["turns"]):
            texts[home, place] = f"{turn.get('author') or turn['role']}: {turn.get('text') or ''}"
    return texts


def lines_of(case: Case, point: Point, texts: Mapping[tuple[str, int], str]) -> Iterator[str]:
    """The cited message, and what came before it."""
    places = {(each.conversation, each.id): each.position for each in case.cited}
    at = places.get((point.conversation, point.message_id))
    if at is None:
        return
    for place in range(max(0, at - AROUND), at + 1):
        text = texts.get((point.conversation, place))
        if text:
            yield f"{place:>4} {' '.join(text.split())[:LINE]}"


def show(name: str, case: Case, talks: Sequence[Talk]) -> None:
    """One first screen with its lines."""
    texts, coverage = texts_of(talks), coverage_of(case)
    print(f"\n=== {name}: {case.messages} messages in {case.conversations} conversations")
    for number, point in enumerate(points_of(case), 1):
        print(f"{number}. [{point.kind}] {point.sentence}\n   “{point.quote}” – {point.speaker}\n   {point.sure}")
        for line in lines_of(case, point, texts):
            print(textwrap.indent(textwrap.fill(line, 150), "      | "))
    for shape in near_shapes(case):
        print(shape.sentence)
    print(f"   {coverage.looked} {coverage.missing}")


def main() -> None:
    """Every report of the kinds that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"), help="the folder with the sets")
    parser.add_argument("--only", choices=sorted(SETS), action="append", help="kinds of conversations; default all")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.data is None:
        parser.error("name the folder with --data or UNDERSONG_DATA")
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for kind in asked.only or SETS:
            for name, talks in reports(asked.data, kind, asked.seed):
                case, _ = audit([written(talks, Path(folder), name)])
                show(name, case, talks)


if __name__ == "__main__":
    main()
