"""The live core: exactness, time per row and target, and memory: ``python -m bench.live`` (from the project's folder).

    --cases N       random rules, rows and arrivals against the batch search; any difference ends the run
    --data DIR      planted worlds (see bench/planted.py): live = batch on each, and the time of every row
    --worlds N      of each planted set at most so many (0: all)
    --stream N      rows of a generated stream (agents and targets with Zipf-like shares): the time of every row
    --pairs N       (agent, target) pairs whose state is weighed, rows kept for replay apart
    --sample N      of the agents of these pairs, the state of every Nth is built and weighed; no agent's depends on
                    another's but for the states of automata, which all share and which are told apart

Times are CPU times of this process. "Per row and target": the time of a row shared by the sequences that it belongs to.
A part is left out where its number is 0.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from sys import getsizeof
from types import BuiltinFunctionType, FunctionType, ModuleType

from planted import _lines as worlds_of
from planted import rows_of

from tests.patterns.live import worlds
from undersong.models import TRAITS, Indicator, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.live import LiveDetector
from undersong.patterns.live.row_log import RowLog

TARGETS = 12  # half of those whom an agent of the stream may address
START = datetime(2026, 1, 1, tzinfo=UTC)
INDICATORS = (
    "MAN-URGENCY",
    "MAN-FLATTERY",
    "EXP-FEAR",
    "FAB-NARRATIVE",
    "DEC-HIDDEN",
    "MAN-SABOTAGE",
    "MAN-ESCALATION",
)


def main() -> None:
    """Every part that was asked for."""
    arguments = _arguments()
    rules = load_rules()
    if arguments.pairs:  # first: the peak of another part would hide what is weighed
        weigh(arguments.pairs, rules, arguments.seed, arguments.sample)
    if arguments.cases:
        exact(arguments.cases, arguments.seed)
    if arguments.data:
        planted(arguments.data, rules, arguments.seed, arguments.worlds)
    if arguments.stream:
        stream(arguments.stream, rules, arguments.seed)


def exact(cases: int, seed: int) -> None:
    """Random rules, rows and arrivals: live after ``finish`` is batch, or the run ends."""
    done = gave_up = findings = 0
    while done < cases:
        chance = Random(f"{seed}:{done}")
        chosen = [worlds.some_rule(chance)]
        for kind in range(4):
            arrivals, parts = _arrivals(chance, kind)
            batch, live = detect(arrivals, chosen), LiveDetector(chosen)
            for part in parts:
                live.extend(part)
            live.finish()
            done += 1
            if batch.outcomes[0].status == "gave_up":
                gave_up += 1
            elif {f.finding_id: f for f in live.findings()} != {f.finding_id: f for f in batch.findings}:
                raise SystemExit(f"difference in case {seed}:{done}, arrival {kind}: {chosen[0].file}")
            findings += len(batch.findings)
    print(f"exact: {done} cases, {findings} findings, no difference ({gave_up} where batch gave up were not compared)")


def planted(folder: Path, rules: Sequence[PatternRule], seed: int, most: int) -> None:
    """Live = batch on planted worlds, in order and with 5 % of the rows up to 50 rows late; the time of each row."""
    clock, late_clock, chance = Clock(), Clock(), Random(seed)
    count = batch_rows = 0
    batch_time = 0.0
    for data in sorted(path for path in folder.iterdir() if (path / "blind.jsonl.gz").exists()):
        for world in islice(worlds_of(data / "blind.jsonl.gz"), most or None):
            rows = worlds.in_order(rows_of(world))
            began = time.process_time()
            batch = {finding.finding_id: finding for finding in detect(rows, rules).findings}
            batch_time, batch_rows = batch_time + time.process_time() - began, batch_rows + len(rows)
            for arrivals, watch in ((rows, clock), (delayed(chance, rows), late_clock)):
                live = LiveDetector(rules)
                watch.follow(live, arrivals)
                live.finish()
                if {finding.finding_id: finding for finding in live.findings()} != batch:
                    raise SystemExit(f"{data.name}, {world['world_id']}: live is not batch")
            count += len(batch)
    print(f"planted: live = batch, {count} findings; batch takes {batch_time / batch_rows * 1e6:.0f} µs a row")
    clock.show()
    print("  with late rows:")
    late_clock.show()


def delayed(chance: Random, rows: Sequence[Row], share: float = 0.05, most: int = 50) -> list[Row]:
    """The rows, a share of them up to ``most`` rows later."""
    places = [i + (chance.uniform(0, most) if chance.random() < share else 0) for i in range(len(rows))]
    return [rows[i] for i in sorted(range(len(rows)), key=places.__getitem__)]


def stream(rows: int, rules: Sequence[PatternRule], seed: int) -> None:
    """The time of each row of one long stream."""
    live, clock = LiveDetector(rules), Clock()
    findings = clock.follow(live, generated(rows, rows // 60, TARGETS, seed))
    print(f"stream: {rows} rows, {len(live.timelines)} agents, {findings} findings")
    clock.show()


def weigh(pairs: int, rules: Sequence[PatternRule], seed: int, share: int) -> None:
    """The bytes of state per (agent, target) when a tenth, half and all of so many pairs are there; by peak memory."""
    live = LiveDetector(rules)
    empty = _reached(live.setup)
    agents, own, others = pairs // 10, 0, 0
    rows, seen = generated(10**9, agents, TARGETS, seed, share), bytearray(2 * TARGETS * agents)
    live.observe(next(rows))  # what the generator holds is there before the first look at the memory
    gc.collect()
    before, pairs_seen = _memory(), 0
    milestones = [max(1, pairs // part) for part in (10, 2, 1)]
    for number, row in enumerate(rows, 1):
        if row.tier is None:
            others += 1
        else:
            live.observe(row)
        if row.target is not None:
            agent = int(row.agent[1:])
            place = 2 * TARGETS * agent + int(row.target[1:]) - agent
            pairs_seen, own = pairs_seen + (not seen[place]), own + (not seen[place] and row.tier is not None)
            seen[place] = 1
        if pairs_seen >= milestones[0]:
            gc.collect()
            _show_weight(live, own, pairs_seen, number - others, _memory() - before, empty)
            del milestones[0]
            if not milestones:
                break


def _show_weight(live: LiveDetector, own: int, pairs: int, rows: int, whole: int, empty: int) -> None:
    """What is held so far: what each pair has for itself, and its share of the states of automata."""
    archive, shared = _size(live.archive), _reached(live.setup) - empty
    machines = sum(len(plan.machine.states) for plan in live.setup.plans)
    state = (whole - archive - shared) / own
    print(f"memory: {pairs} pairs, of which {own} of {len(live.timelines)} agents are held, {rows} rows of theirs")
    print(f"  rows kept for replay: {archive / own:.0f} bytes a pair ({archive / rows:.0f} a row)")
    print(f"  {machines} states of automata: {shared / 2**20:.1f} MiB, {shared / pairs:.0f} bytes a pair")
    print(f"  state: {state:.0f} bytes a pair of its own, {state + shared / pairs:.0f} with its share", flush=True)


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _reached(root: object) -> int:
    """The bytes of all objects that an object holds, directly or not; classes, functions and modules left out."""
    visited, todo, size = set[int](), [root], 0
    while todo:
        item = todo.pop()
        if id(item) not in visited and not isinstance(item, type | FunctionType | BuiltinFunctionType | ModuleType):
            visited.add(id(item))
            size += getsizeof(item)
            todo += gc.get_referents(item)
    return size


def _size(archive: RowLog) -> int:
    """The bytes of the rows kept for replay, with their keys and tables."""
    tables = [archive.conversations, archive.timelines, *archive.timelines.values()]
    size = sum(map(getsizeof, tables))
    for conversation in archive.conversations.values():
        size += getsizeof(conversation) + getsizeof(conversation.rows)
        size += sum(
            getsizeof(name) + getsizeof(kept) + getsizeof(kept.packed) for name, kept in conversation.rows.items()
        )
    integers = 3 * getsizeof(1 << 50)
    return size + sum(getsizeof(key) + integers for keys in archive.timelines.values() for key in keys)


class Clock:
    """CPU time per row, and per row and sequence; ``yardstick`` is a fixed loop, timed in between."""

    def __init__(self) -> None:
        self.yardstick: list[float] = []
        self.rows: list[float] = []
        self.shares: list[float] = []

    def follow(self, live: LiveDetector, rows: Iterable[Row]) -> int:
        """Feed rows one by one; how many findings they made."""
        targets: dict[str, set[str]] = {}
        findings = 0
        for row in rows:
            own_targets = targets.setdefault(row.agent, set())
            own_targets |= {row.target} if row.target is not None else set()
            began = time.process_time_ns()
            findings += len(live.observe(row).findings)
            took = (time.process_time_ns() - began) / 1000
            if len(self.rows) % 200 == 0:
                self.yardstick.append(_loop())
            self.rows.append(took)
            self.shares.append(took / (1 if row.target is not None else 1 + len(own_targets)))
        return findings

    def show(self) -> None:
        """Percentiles in microseconds."""
        loop = sorted(self.yardstick)[len(self.yardstick) // 2]
        print(f"  in between, 10,000 additions took {loop:.0f} µs (median)")
        for name, times in (("a row", self.rows), ("a row and target", self.shares)):
            ordered = sorted(times)
            p50, p99, p999 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99, 0.999))
            mean = sum(ordered) / len(ordered)
            print(f"  {name}: p50 {p50:.0f}, p99 {p99:.0f}, p99.9 {p999:.0f}, mean {mean:.0f} µs ({len(ordered)} rows)")


def _loop() -> float:
    began, total = time.process_time_ns(), 0
    for number in range(10_000):
        total += number
    return (time.process_time_ns() - began) / 1000


def generated(rows: int, agents: int, targets: int, seed: int, share: int = 1) -> Iterator[Row]:
    """A stream in order of time: agents with Zipf-like shares, each with its usual scores and some targets.

    Only the rows of every ``share``-th agent say more than who spoke to whom: those of the others have no tier.
    """
    chance = Random(seed)
    shares = list(accumulate(1 / (rank + 1) ** 0.8 for rank in range(agents)))
    usual = [[chance.betavariate(2, 3) for _ in TRAITS] for _ in range(agents)]
    minutes = 0.0
    for number in range(rows):
        minutes += chance.expovariate(agents / 600)
        agent = chance.choices(range(agents), cum_weights=shares)[0]
        public = chance.random() < 0.3
        yield Row(
            id=f"{number:08}",
            conversation=f"t{agent // 5}",
            position=number,
            time=START + timedelta(minutes=minutes),
            agent=f"a{agent}",
            target=None if public else f"a{int(targets * 2 * chance.random() ** 2) + agent}",
            **(_read(chance, usual[agent]) if agent % share == share // 2 else {}),
        )


def _read(chance: Random, usual: list[float]) -> dict[str, object]:
    if chance.random() < 0.15:
        return {"state": "unread", "tier": "standard"}
    scores = [round(min(1.0, max(0.0, chance.gauss(mean, 0.18))), 3) for mean in usual]
    names = [name for name in INDICATORS if chance.random() < 0.03]
    return {
        "state": "scored",
        "tier": chance.choices(("standard", "focused", "deep"), (14, 3, 3))[0],
        "traits": dict(zip(TRAITS, scores, strict=True)),
        "indicators": tuple(Indicator(id=name) for name in names),
    }


def _arrivals(chance: Random, kind: int) -> tuple[list[Row], Sequence[Sequence[Row]]]:
    rows = worlds.some_rows(chance)
    if kind == 2:
        chance.shuffle(rows)
        return rows, worlds.chunks(chance, rows)
    rows = worlds.in_order(rows)
    if kind == 3:
        rows = worlds.with_earlier_versions(chance, rows)
    return rows, worlds.chunks(chance, rows) if kind == 1 else [[row] for row in rows]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_PLANTED"), help="folder of planted sets")
    parser.add_argument("--stream", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--worlds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
