"""How many planted sequences are routed whole, without and with reading backwards, and what it costs.

python bench/backwards.py --data DIR     (DIR holds folders with blind.jsonl.gz and truth.jsonl.gz)

The planted sets hold scores and no text. So a message that their router read deeper than standard counts as flagged,
every other one is hidden, and what reading backwards would route is looked at.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from undersong.models import Conversation, Message, Scan, ThreadScan
from undersong.routing.budget import TRIAGE
from undersong.routing.lookback import LookBackIndex
from undersong.routing.route import Policy, load_policy, propose

World = dict[str, Any]
FLAGS = {"standard": 0, "focused": 1, "deep": 4, "deep_with_context": 4}


class Outcome(NamedTuple):
    """Sequences routed whole, sequences, their messages routed, their messages, messages routed, messages."""

    whole: int = 0
    sequences: int = 0
    parts: int = 0
    of: int = 0
    routed: int = 0
    messages: int = 0

    def plus(self, other: Outcome) -> Outcome:
        """The sum of both."""
        return Outcome(*(a + b for a, b in zip(self, other, strict=True)))


def main() -> None:
    """Route every world three ways, and for other bounds than the policy's."""
    arguments = _arguments()
    shipped = load_policy()
    folders = sorted(path for path in arguments.data.iterdir() if (path / "blind.jsonl.gz").exists())
    pairs = [
        pair
        for folder in folders
        for pair in zip(_lines(folder / "blind.jsonl.gz"), _lines(folder / "truth.jsonl.gz"), strict=True)
    ]
    print(f"{len(pairs)} worlds of {', '.join(folder.name for folder in folders)}")
    print(f"{'':34}{'sequences whole':>16}{'their messages':>16}{'messages routed':>17}")
    for look_back in sorted({0, 3, shipped.look_back, 8, 12}):
        policy = msgspec.structs.replace(shipped, look_back=look_back)
        for name, elsewhere in (("in the thread", False), ("and to the same target", True)):
            outcome = Outcome()
            for world, truth in pairs:
                outcome = outcome.plus(measured(world, truth, policy, elsewhere=elsewhere))
            mark = " *" if look_back == shipped.look_back else ""
            label = f"back {look_back} {name}{mark}" if look_back else "flags alone"
            shares = (outcome.whole / outcome.sequences, outcome.parts / outcome.of, outcome.routed / outcome.messages)
            print(f"{label:34}" + "".join(f"{share:>16.1%}" for share in shares))
            if not look_back:
                break
    print("* as shipped")


def measured(world: World, truth: World, policy: Policy, *, elsewhere: bool) -> Outcome:
    """One world: which of its messages are routed, and which planted sequences that covers."""
    routed = routed_ids(world, policy, elsewhere=elsewhere)
    sequences = [set(each["read_ids"]) for each in truth["truth"]]
    return Outcome(
        whole=sum(ids <= routed for ids in sequences),
        sequences=len(sequences),
        parts=sum(len(ids & routed) for ids in sequences),
        of=sum(map(len, sequences)),
        routed=len(routed),
        messages=len(world["messages"]),
    )


def routed_ids(world: World, policy: Policy, *, elsewhere: bool) -> set[str]:
    """The ids of what flags and reading backwards route."""
    threads: dict[str, list[World]] = {}
    for message in world["messages"]:
        threads.setdefault(message["thread"], []).append(message)
    earlier, routed = LookBackIndex(policy.look_back), set()
    conversations = [_conversation(name, said) for name, said in threads.items()]
    for conversation, scans in conversations:
        ranks = propose(conversation, scans, ThreadScan(conversation=conversation.id), policy).ranks
        for place, (message, scan, rank) in enumerate(zip(conversation.messages, scans, ranks, strict=True)):
            earlier.add(
                conversation.id, place, message, flagged=bool(scan.total), score=0.0 if rank == TRIAGE else None
            )
            if rank != TRIAGE:
                routed.add(message.id)
    if elsewhere:
        by_id = {conversation.id: conversation for conversation, _ in conversations}
        routed |= {by_id[each.conversation].messages[each.place].id for each in earlier.look_back_messages()}
    return routed


def _conversation(name: str, world_messages: list[World]) -> tuple[Conversation, list[Scan]]:
    messages = tuple(
        Message(
            id=each["id"],
            conversation=name,
            position=position,
            author=each["agent"],
            agent=each["agent"],
            role="agent",
            target=each["target"],
            time=datetime.fromisoformat(each["ts"]),
            text="",
        )
        for position, each in enumerate(world_messages)
    )
    scans = [Scan(message_id=each["id"], total=FLAGS[each["tier"]]) for each in world_messages]
    return Conversation(id=name, source_format="jsonl", messages=messages), scans


def _lines(path: Path) -> Iterator[World]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("UNDERSONG_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None, help="folder of planted sets")
    return parser.parse_args()


if __name__ == "__main__":
    main()
