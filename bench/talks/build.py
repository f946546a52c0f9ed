"""Make the benchmark's files from what its writers wrote: ``python -m bench.talks.build OUT FOLDER...``.

Each FOLDER is one writer's, with ``out/NN.txt`` (conversations) and ``truth/NN.yaml``; its name becomes the writer's.
OUT gets ``messages.jsonl``, our own input format, and ``truth.jsonl``, a line a conversation. Conversations are
shuffled with a fixed seed and numbered afterwards, so that neither ids nor order say what a conversation holds. A
fault in a file is named with file and line, and ends the program.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

KINDS = ("planted", "look-alike", "ordinary")
STRENGTHS = ("plain", "medium", "faint")
ROLES = ("participant", "user", "assistant", "agent", "system")
HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?)\] (.+?) -> ([^:]+): ?(.*)")
PERSON = re.compile(r"\s*(.+?) \((\w+)[^)]*\)\s*")
Json = dict[str, Any]


class FaultError(ValueError):
    """A file that breaks the format; the text names file and place."""


def main(arguments: Sequence[str] = tuple(sys.argv[1:])) -> None:
    """Read every writer's folder, shuffle, number, write."""
    out, folders = Path(arguments[0]), [Path(each) for each in arguments[1:]]
    talks = [talk for folder in folders for talk in written(folder)]
    random.Random(f"talks/{out.name}").shuffle(talks)
    out.mkdir(parents=True, exist_ok=True)
    agents: set[str] = set()
    with (out / "messages.jsonl").open("w") as messages, (out / "truth.jsonl").open("w") as truth:
        for number, (head, lines, answer) in enumerate(talks, 1):
            name = f"{out.name}{number:03d}"
            names = unique(head["people"], agents)
            for row in rows(name, head["people"], lines, names):
                messages.write(json.dumps(row, ensure_ascii=False) + "\n")
            truth.write(json.dumps(truth_row(name, head, answer, names), ensure_ascii=False) + "\n")
    for path in sorted(out.glob("*.jsonl")):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.name)


def written(folder: Path) -> Iterator[tuple[Json, list[Json], Json]]:
    """The conversations of one writer: head, messages, truth. Raises FaultError."""
    for path in sorted((folder / "out").glob("*.txt")):
        head, lines = parsed(path)
        answer = yaml.safe_load((folder / "truth" / f"{path.stem}.yaml").read_text(encoding="utf-8"))
        check(path, head, lines, answer)
        yield head | {"writer": folder.name}, lines, answer


def parsed(path: Path) -> tuple[Json, list[Json]]:
    """``setting:``, ``people:`` and the messages of a file. Raises FaultError."""
    top, _, body = path.read_text(encoding="utf-8").partition("\n---\n")
    head: Json = dict(line.split(": ", 1) for line in top.strip().splitlines())  # type: ignore[arg-type]
    people = [PERSON.fullmatch(person) for person in re.split(r",(?![^(]*\))", head["people"])]
    if not all(people):
        raise FaultError(f"{path}: people must be 'Name (role), ...'")
    head["people"] = {match[1]: match[2] for match in people if match}
    lines: list[Json] = []
    for number, line in enumerate(body.splitlines(), top.count("\n") + 3):
        if match := HEAD.fullmatch(line):
            time, author, target, text = match.groups()
            lines.append({"time": time, "author": author, "target": target.strip(), "text": text})
        elif lines and (line.startswith("  ") or not line.strip()):
            lines[-1]["text"] += "\n" + line.removeprefix("  ")
        else:
            raise FaultError(f"{path}:{number}: neither a message nor an indented line: {line[:60]!r}")
    for row in lines:
        row["text"] = row["text"].strip()
    return head, lines


def check(path: Path, head: Json, lines: Sequence[Json], answer: Json) -> None:
    """Names, roles, times, and the truth's references. Raises FaultError."""
    people = head["people"]
    faults = [f"role {role} of {name}" for name, role in people.items() if role not in ROLES]
    before = ""
    for number, row in enumerate(lines, 1):
        faults += [f"message {number}: {row['author']} is not among the people"] * (row["author"] not in people)
        faults += [f"message {number}: target {row['target']}"] * (row["target"] not in {*people, "*"})
        faults += [f"message {number}: goes back in time"] * (row["time"] < before)
        faults += [f"message {number}: no text"] * (not row["text"])
        before = row["time"]
    if answer.get("kind") not in KINDS:
        faults.append(f"kind {answer.get('kind')}")
    if answer["kind"] == "planted":
        faults += [f"agent {answer.get('agent')}"] * (answer.get("agent") not in people)
        faults += [f"strength {answer.get('strength')}"] * (answer.get("strength") not in STRENGTHS)
        for name, numbers in answer["stages"]:
            wrong = [n for n in numbers if not 1 <= n <= len(lines) or lines[n - 1]["author"] != answer["agent"]]
            faults += [f"stage '{name}': messages {wrong} are not by {answer['agent']}"] * bool(wrong)
    if faults:
        raise FaultError(f"{path}: " + "; ".join(faults))


def unique(people: dict[str, str], agents: set[str]) -> dict[str, str]:
    """Name → name in the benchmark: agents hold across conversations, so a second Kite is Kite2."""
    names = {}
    for name, role in people.items():
        free, number = name, 1
        while role == "agent" and free in agents:
            number += 1
            free = f"{name}{number}"
        if role == "agent":
            agents.add(free)
        names[name] = free
    return names


def rows(name: str, people: dict[str, str], lines: Sequence[Json], names: dict[str, str]) -> Iterator[Json]:
    """The messages of a conversation in our own input format."""
    for number, line in enumerate(lines, 1):
        row = {
            "id": f"{name}-{number:02d}",
            "conversation": name,
            "time": line["time"].replace(" ", "T") + ("" if line["time"].count(":") > 1 else ":00") + "Z",
            "author": names[line["author"]],
            "role": people[line["author"]],
            "text": line["text"],
        }
        yield row if line["target"] == "*" else row | {"target": names[line["target"]]}


def truth_row(name: str, head: Json, answer: Json, names: dict[str, str]) -> Json:
    """What a conversation holds, in ids."""
    row: Json = {"conversation": name, "writer": head["writer"], "setting": head["setting"], "kind": answer["kind"]}
    row["shape"] = answer.get("shape") if answer["kind"] != "ordinary" else None
    if answer["kind"] == "planted":
        target = answer.get("target")
        row |= {"agent": names[answer["agent"]], "target": names.get(target, target), "strength": answer["strength"]}
        row["stages"] = [[stage, [f"{name}-{n:02d}" for n in numbers]] for stage, numbers in answer["stages"]]
    return row | {"why": answer.get("why", "")}


if __name__ == "__main__":
    main()
