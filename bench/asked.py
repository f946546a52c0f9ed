"""How often requests together are noted where somebody does harm, and where nobody does: python -m bench.asked.

Written talk with plants (``bench/talks``, dev and more; their planted speakers were written to be faint) and, with
--data or UNDERSONG_DATA, talk in which nothing is planted. A speaker counts once a conversation.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.talks.score import Share, read_lines
from undersong.models import Message
from undersong.verdict.detectors.requests import requests

TALKS = Path(__file__).with_name("talks")
ORDINARY = ("ordinary_talk", "diplomacy_lies", "sycon_stance", "spiral_turns", "moltbook_traits")
Speaker = tuple[str, str]
MONEY_SHAPES = ("con_game", "classic_con_sequence")


def noted(talk: dict[str, list[dict[str, Any]]]) -> tuple[set[Speaker], set[Speaker]]:
    """All speakers, and those whose requests are noted; messages have ``author``, ``text`` and maybe ``role``."""
    everybody, named = set(), set()
    for name, records in talk.items():
        messages = tuple(
            Message(
                id=str(place), conversation=name, position=place, author=one["author"], agent=one["author"],
                role=one.get("role") or "agent", text=one.get("text") or "",
            )
            for place, one in enumerate(records)
        )  # fmt: skip
        everybody |= {(name, message.agent) for message in messages}
        named |= {(name, moment.agent) for moment in requests(messages)}
    return everybody, named


def talks(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The messages of a set by conversation."""
    talk: dict[str, list[dict[str, Any]]] = {}
    for message in read_lines(folder / "messages.jsonl"):
        talk.setdefault(message["conversation"], []).append(message)
    return talk


def written() -> Iterator[str]:
    """Lines of the table for written talk."""
    planted, money, innocent = [0, 0], [0, 0], [0, 0]
    for name in ("dev", "more"):
        everybody, named = noted(talks(TALKS / name))
        truth = {one["conversation"]: one for one in read_lines(TALKS / name / "truth.jsonl")}
        for speaker in sorted(everybody):
            one, is_named = truth[speaker[0]], speaker in named
            is_planted = one["kind"] == "planted" and one["agent"] == speaker[1]
            count(planted if is_planted else innocent, is_named)
            if is_planted and one["shape"] in MONEY_SHAPES:
                count(money, is_named)
    yield f"planted speakers noted            {Share(*planted)}"
    yield f"  of con games                    {Share(*money)}"
    yield f"other speakers noted              {Share(*innocent)}"


def count(pair: list[int], is_named: bool) -> None:
    """One more speaker, and whether it is named."""
    pair[0] += is_named
    pair[1] += 1


def ordinary(data: Path) -> Iterator[str]:
    """Lines of the table for talk in which nothing is planted."""
    for name in ORDINARY:
        with gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            everybody, named = noted(_conversations(lines))
        yield f"{name:<33} {Share(len(named), len(everybody))}"


def _conversations(lines: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    records = (json.loads(line) for line in lines)
    return {record["conversation_id"]: record["messages"] for record in records}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    chosen = parser.parse_args()
    for line in written():
        print(line)
    for line in ordinary(Path(chosen.data)) if chosen.data else ():
        print(line)


if __name__ == "__main__":
    main()
