"""Checks readings and files them: ``python -m train.readings ANSWERS (--keys KEYS | --messages FILE)``.

ANSWERS are a reader's lines: ``{"id", "traits": [12 marks 0-4 or null], "indicators": [[quote, id, 1-4], ...], ...}``.
KEYS say which message of which source has an id; such readings go into ``readings.jsonl.gz`` (``--again``: a second
reading, ``readings_again.jsonl.gz``) by the place of the message, without its text. FILE has messages that were written
for this project; they go into ``labels/written`` with their readings. Nothing is filed unless every line is right: all
ids, once each, marks and confidences in range, quotes that are in the text where there is one.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.talks.score import read_lines
from undersong.datafiles.taxonomy import taxonomy
from undersong.models import TRAITS

Json = dict[str, Any]
LABELS = Path(__file__).parent / "labels"
STANCES = ("holds", "concedes", "neutral")
SURE = (1, 2, 3, 4)


def wrong(reading: Json, text: str | None) -> str:
    """What is wrong with one reading; "" for nothing."""
    traits = reading.get("traits", [])
    if len(traits) != len(TRAITS) or any(
        mark is not None and (type(mark) is not int or mark not in range(5)) for mark in traits
    ):
        return f"needs {len(TRAITS)} marks of 0-4 or null"
    if reading.get("stance") not in STANCES:
        return f"the stance {reading.get('stance')!r} is none of {', '.join(STANCES)}"
    names = {"indicators": set(taxonomy().indicators), "mechanisms": None}
    for kind, allowed in names.items():
        for quote, name, sure in reading.get(kind, []):
            if allowed is not None and name not in allowed:
                return f"unknown indicator {name}"
            if sure not in SURE:
                return f"confidence {sure} of {name}"
            if text is not None and quote not in text:
                return f"the quote of {name} is not in the text"
    return ""


def checked(readings: Iterable[Json], texts: Mapping[str, str | None]) -> dict[str, Json]:
    """The readings by id; raises SystemExit that names what is wrong. ``texts``: of all ids, None if unknown."""
    by_id: dict[str, Json] = {}
    problems = []
    for number, reading in enumerate(readings, 1):
        name = reading.get("id", "")
        if name not in texts or name in by_id:
            problems.append(f"line {number}: id {name!r} is unknown or there twice")
        elif what := wrong(reading, texts[name]):
            problems.append(f"line {number} ({name}): {what}")
        by_id[name] = reading
    problems += [f"no reading of {name}" for name in texts if name not in by_id]
    if problems:
        raise SystemExit("\n".join(problems))
    return by_id


def without_quotes(reading: Json) -> Json:
    """Marks and names without the words of a text that is not ours."""
    named = {kind: [[name, sure] for _, name, sure in reading.get(kind, [])] for kind in ("indicators", "mechanisms")}
    return {"traits": reading["traits"], **named, "stance": reading["stance"]}


def file_real(answers: Path, keys: Path, target: Path) -> int:
    """Add readings of messages of real sources; returns how many."""
    places = {key["id"]: key for key in read_lines(keys)}
    readings = checked(read_lines(answers), dict.fromkeys(places))
    earlier = gzip.decompress(target.read_bytes()).decode().splitlines()
    present = {(row["source"], row["conversation"], row["place"]) for row in map(json.loads, earlier)}
    lines = []
    for name, key in places.items():
        place = (key["source"], key["conversation"], key["place"])
        if place in present:
            raise SystemExit(f"{name}: {place} was filed before")
        head = {
            "source": key["source"],
            "conversation": key["conversation"],
            "place": key["place"],
            "kind": key["kind"],
        }
        lines.append(json.dumps(head | without_quotes(readings[name]), separators=(",", ":"), ensure_ascii=False))
    data = "".join(f"{line}\n" for line in (*earlier, *lines)).encode()
    target.write_bytes(gzip.compress(data, mtime=0))
    return len(lines)


def file_written(answers: Path, messages: Path, folder: Path) -> int:
    """Add messages that were written for this project with their readings; returns how many."""
    rows = read_lines(messages)
    readings = checked(read_lines(answers), {row["id"]: row["text"] for row in rows})
    folder.mkdir(exist_ok=True)
    for name, lines in (("messages", rows), ("readings", [readings[row["id"]] for row in rows])):
        with (folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return len(rows)


def main() -> None:
    """Check, and file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--keys", type=Path)
    chosen.add_argument("--messages", type=Path)
    parser.add_argument("--again", action="store_true", help="a second reading of messages that were read before")
    arguments = parser.parse_args()
    if arguments.messages:
        count = file_written(arguments.answers, arguments.messages, LABELS / "written")
    else:
        target = LABELS / ("readings_again.jsonl.gz" if arguments.again else "readings.jsonl.gz")
        count = file_real(arguments.answers, arguments.keys, target)
    print(f"{count} readings filed")


if __name__ == "__main__":
    main()
