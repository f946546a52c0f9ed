"""Observes worlds through the public monitor: ``observe.py FOLDER``; prints what each observation says, as JSON lines.

Two worlds of three are read by the tests' judge, which gives levels and so findings; the third by the offline judge.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import msgspec

import undersong

sys.path.insert(0, str(Path(__file__).parent))
from names import load


def show(kind: str, value: Any) -> None:
    """One line, sets in order; class names are no part of it."""
    plain = msgspec.json.decode(msgspec.json.encode(value, order="sorted"))
    print(json.dumps({kind: plain}, sort_keys=True))


def judge_of(number: int) -> Any:
    """Whose judge a world has."""
    return load("monitor worlds").Reader(free=bool(number % 2)) if number % 3 else "offline"


def observe(store: Path, number: int, messages: list[dict[str, Any]]) -> Iterable[Any]:
    """What is said of a world that comes in pieces, with a restart now and then."""
    dice, rest = Random(number), messages
    monitor = undersong.SyncMonitor(store, judge_of(number))
    while rest:
        size = dice.choice((1, 1, 2, 5))
        yield from (("observed", each) for each in monitor.extend(rest[:size]))
        rest = rest[size:]
        if dice.random() < 0.1:
            monitor.close()
            monitor = undersong.SyncMonitor(store, judge_of(number))
    for agent in sorted({message["author"] for message in messages}):
        yield "emerging", monitor.emerging(agent)
    yield "finished", monitor.finish()
    for talk in sorted({message["conversation"] for message in messages}):
        yield "session", monitor.session(talk)
        yield "rows", monitor.rows(talk)
    yield "signals", monitor.signals()
    monitor.close()


def main() -> None:
    """Every world, each with a store of its own."""
    folder = Path(sys.argv[1])
    for path in sorted(folder.glob("*.json")):
        number = int(path.stem)
        for kind, value in observe(folder / f"{path.stem}.db", number, json.loads(path.read_text(encoding="utf-8"))):
            show(f"{number} {kind}", value)


if __name__ == "__main__":
    main()
