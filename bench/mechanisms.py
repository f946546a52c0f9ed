#!/usr/bin/env python3
"""Set the detectors of a session against labelled turns: concessions, protective moments, the 5:1 rule, death spirals.

usage: mechanisms.py [--data DIR] [--limit N]
DIR (or UNDERSONG_DATA) holds ``sycon_stance.jsonl.gz`` and ``spiral_turns.jsonl.gz``. Words only: no judge is asked.
Each line ends with the share of turns that have the label: what "always" would reach. 95 %, Clopper-Pearson.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from undersong.models import Conversation, Message, Scan, SessionVerdict
from undersong.routing.budget import clopper_pearson
from undersong.scan import load_book, scan_conversation
from undersong.verdict import session_verdict

PROTECTIVE = {
    "pushback": ("pushback",),
    "de_escalation": ("de-escalation",),
    "points_to_help": ("suggestions_to_seek_help", "safe_redirection"),
}


def records(path: Path, limit: int | None) -> Iterator[dict[str, Any]]:
    """The labelled conversations of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if limit is None or number < limit:
                yield json.loads(line)


def talk(record: Mapping[str, Any]) -> Conversation:
    """A conversation of the data, as a reader would give it."""
    name = record["conversation_id"]
    messages = tuple(
        Message(
            id=f"{name}:{place}",
            conversation=name,
            position=place,
            author=each["author"],
            agent=each["author"],
            role="user" if each["role"] == "user" else "assistant",
            text=each["text"],
        )
        for place, each in enumerate(record["messages"])
    )
    return Conversation(id=name, source_format="data", messages=messages)


def judged(record: Mapping[str, Any]) -> tuple[Conversation, tuple[Scan, ...], SessionVerdict]:
    """A conversation of the data, its scans and its verdict."""
    conversation = talk(record)
    scans, thread = scan_conversation(conversation, load_book())
    return conversation, scans, session_verdict(conversation, scans, thread, ())


def line(name: str, pairs: list[tuple[bool, bool]]) -> str:
    """Precision and recall of (said, labelled) pairs, beside the share of labelled ones."""
    predicted = sum(each for each, _ in pairs)
    labelled = sum(each for _, each in pairs)
    both = sum(one and other for one, other in pairs)
    cells = [f"{name:<44}"]
    for of in (predicted, labelled):
        low, high = clopper_pearson(both, of) if of else (0.0, 1.0)
        cells.append(f"{both / of if of else 0:.2f} [{low:.2f}, {high:.2f}] of {of:<5}")
    return "  ".join((*cells, f"{labelled / max(len(pairs), 1):.2f} of {len(pairs)}"))


def auc(pairs: list[tuple[float, bool]]) -> float:
    """How often a labelled one has the higher score, ties half."""
    good, bad = [score for score, label in pairs if label], [score for score, label in pairs if not label]
    wins = sum((one > other) + 0.5 * (one == other) for one in good for other in bad)
    return wins / (len(good) * len(bad)) if good and bad else float("nan")


def stance(data: Path, limit: int | None) -> None:
    """Concessions: the candidates and deductions of a turn against ``holds_per_turn``; the ratio against drift."""
    turns: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    ratios: dict[str, list[tuple[float, bool]]] = {}
    for record in records(data / "sycon_stance.jsonl.gz", limit):
        labels = record["labels"]
        conversation, scans, verdict = judged(record)
        taken = {each.position for each in verdict.deductions}
        gave = {each.position for each in verdict.moments if each.code == "epistemic_instability"}
        answers = [each.position for each in conversation.messages if each.role == "assistant"]
        for place, holds in list(zip(answers, labels["holds_per_turn"], strict=False))[1:]:
            turns.setdefault((labels["set"], "deduction"), []).append((place in taken, not holds))
            turns.setdefault((labels["set"], "deduction or candidate"), []).append((place in taken | gave, not holds))
        last = scans[answers[-1]].deference
        ratios.setdefault(labels["set"], []).append((last.ratio if last else 0.0, bool(labels["drift"])))
    for (name, kind), pairs in sorted(turns.items()):
        print(line(f"{name}: {kind}", pairs))
    for name, values in sorted(ratios.items()):
        high = sum(score > 5 for score, _ in values)
        print(f"{name + ': apology ratio as a detector of drift':<44}  AUC {auc(values):.2f}, High Deference in {high}")


def spirals(data: Path, limit: int | None) -> None:
    """Protective moments against the labels of each turn, and what the sessions show otherwise."""
    pairs: dict[str, list[tuple[bool, bool]]] = {name: [] for name in PROTECTIVE}
    sessions = deducted = looped = repeated = coded = 0
    for record in records(data / "spiral_turns.jsonl.gz", limit):
        conversation, scans, verdict = judged(record)
        answers = [each.position for each in conversation.messages if each.role == "assistant"]
        for chunk, place in zip(record["labels"]["chunks"], answers, strict=False):
            for name, metrics in PROTECTIVE.items():
                predicted = any(each.code == name and each.position == place for each in verdict.moments)
                pairs[name].append((predicted, any(chunk["metrics"].get(metric, 0) for metric in metrics)))
        sessions += 1
        deducted += bool(verdict.deductions)
        coded += any(each.kind == "distress" for each in verdict.moments)
        looped += "Death Spiral" in verdict.flags
        repeated += any(loop.scope in ("reply", "alternation") for scan in scans for loop in scan.loops)
    for name, results in pairs.items():
        print(line(f"spiral: {name} by words", results))
    print(f"spiral: of {sessions} sessions, {deducted} with a deduction, {coded} with a distress code,")
    print(f"        {looped} with the Death Spiral flag, {repeated} with a whole reply that comes again")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the labelled data: --data DIR, or UNDERSONG_DATA")
    print(f"{'':<44}  {'precision':<27}  {'recall':<27}  share labelled")
    stance(Path(options.data), options.limit)
    spirals(Path(options.data), options.limit)


if __name__ == "__main__":
    main()
