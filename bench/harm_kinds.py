"""How often each kind of harm is named, for speakers who do harm and for all others: python -m bench.harm_kinds.

Every speaker of the chats in ``train/labels/chats`` (of which half of the harmful ones were read for the words) and in
``bench/chats`` (of which none was), whether a lead or not; people are shown kinds under a lead alone.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from bench.talks.score import read_lines
from undersong.datafiles.verdict_config import harm_kinds_config
from undersong.models import Message
from undersong.verdict.detectors.harm_kinds import harm_kinds

ROOT = Path(__file__).parent.parent
SETS = {"train": ROOT / "train/labels/chats", "bench": ROOT / "bench/chats"}
ANY = "any kind"


def speakers(folder: Path) -> Iterator[tuple[bool, set[str]]]:
    """Of each speaker whether they do harm, and the kinds that are named."""
    chats: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in _messages(folder):
        chats[record["conversation"]].append(record)
    for truth in read_lines(folder / "truth.jsonl"):
        messages = [_message(place, record) for place, record in enumerate(chats[truth["conversation"]])]
        for agent in dict.fromkeys(message.agent for message in messages):
            does_harm = truth["kind"] == "harm" and agent == truth["who"]
            yield does_harm, {kind.kind for kind in harm_kinds(messages, agent)}


def _messages(folder: Path) -> list[dict[str, Any]]:
    packed = folder / "messages.jsonl.gz"
    if not packed.exists():
        return list(read_lines(folder / "messages.jsonl"))
    return [msgspec.json.decode(line) for line in gzip.decompress(packed.read_bytes()).splitlines()]


def _message(place: int, record: dict[str, Any]) -> Message:
    author, time = record["author"], record.get("time")
    return Message(
        id=str(place), conversation="c", position=place, author=author, agent=author,
        role=record.get("role") or "participant", text=record.get("text") or "",
        time=datetime.fromisoformat(time.replace("Z", "+00:00")) if time else None,
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    counts: Counter[tuple[str, bool, str]] = Counter()
    for name, folder in SETS.items():
        for does_harm, kinds in speakers(folder):
            counts.update((name, does_harm, kind) for kind in ("speakers", *kinds, *([ANY] if kinds else [])))
    columns = [(name, does_harm) for name in SETS for does_harm in (True, False)]
    print(f"{'kind':<16}" + "".join(f"{name} {'harm' if harm else 'others':<8}" for name, harm in columns))
    for kind in ("speakers", ANY, *harm_kinds_config().kinds, "unanswered"):
        if any(counts[name, harm, kind] for name, harm in columns):
            print(f"{kind:<16}" + "".join(f"{counts[name, harm, kind]:<14}" for name, harm in columns))


if __name__ == "__main__":
    main()
