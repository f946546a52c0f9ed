"""The live detector: exactness, and time per row: ``python -m bench.live`` (from the project's folder).

    --cases N       random rules, rows and arrivals: after every part live is the reference; any difference ends the run
    --messages N    rows of one agent within 21 days, all rules: the time of each of the last 200
    --agents N      agents whose rows come together, one of each: rows a second; 0 leaves all but the first part out
    --histories N,N the time of a row for an agent with so many rows, over years

Times are CPU times of this process, and of a fixed loop in between.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime, timedelta
from random import Random

import msgspec

from tests.patterns.live import worlds
from undersong.models import TRAITS, Finding, Indicator, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.live import LiveDetector
from undersong.patterns.live.detector import FEW

START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = 200_000  # per sequence: beyond it neither engine says what follows
TIMED = 200  # rows of which each is timed
WINDOW = timedelta(days=21)
INDICATORS = (
    "MAN-URGENCY", "MAN-FLATTERY", "EXP-FEAR", "FAB-NARRATIVE", "DEC-HIDDEN", "MAN-SABOTAGE", "MAN-ESCALATION",
)  # fmt: skip


def main() -> None:
    """Every part that was asked for."""
    arguments = _arguments()
    if arguments.cases:
        exact(arguments.cases, arguments.seed)
    if arguments.agents:
        one_agent(arguments.messages, arguments.seed)
        groups(arguments.agents, arguments.messages, arguments.seed)
        for messages in arguments.histories:
            history(messages, arguments.messages, arguments.seed)


def exact(cases: int, seed: int) -> None:
    """After every part of the arrivals live finds what the reference finds in the rows so far."""
    prefixes = findings = open_findings = gave_up = 0
    for case in range(cases):
        chance, kind = Random(f"{seed}:{case}"), worlds.ARRIVALS[case % len(worlds.ARRIVALS)]
        chosen = [worlds.some_rule(chance)]
        arrivals, parts = worlds.arrivals(chance, kind)
        few = FEW if case // len(worlds.ARRIVALS) % 2 else 0  # every other time the arrays, too, have few rows
        live, count = LiveDetector(chosen, steps=STEPS, few=few), 0
        for part in parts:
            live.extend(part)
            count += len(part)
            batch = detect(arrivals[:count], chosen, steps=STEPS)
            if any(outcome.status == "gave_up" for outcome in batch.outcomes):
                gave_up += 1
                break
            if _comparable(live.findings()) != _comparable(batch.findings):
                raise SystemExit(f"difference in case {seed}:{case} ({kind}) after {count} rows: {chosen[0].file}")
            prefixes, findings = prefixes + 1, findings + len(batch.findings)
            open_findings += sum(finding.status == "open" for finding in batch.findings)
    print(
        f"exact: {cases} worlds, {prefixes} prefixes, {findings} findings ({open_findings} open), no difference "
        f"({gave_up} worlds in which a search gave up)"
    )


def _comparable(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.finding_id: msgspec.structs.replace(finding, balance={}) for finding in findings}


def one_agent(messages: int, seed: int) -> None:
    """The time of each further row of an agent with so many rows within three weeks."""
    rows, live = agent_rows("a", messages + TIMED, messages, seed), LiveDetector(load_rules())
    live.extend(rows[:messages])
    times = sorted(_timed(live, [row]) for row in rows[messages:])
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(f"one agent, {messages} rows in 21 days, {len(live.rules)} rules: p50 {p50:.1f} ms, p99 {p99:.1f} ms a row")
    print(f"  {len(live.findings())} findings; in between, 1,000,000 additions took {_loop():.0f} ms")


def groups(agents: int, messages: int, seed: int) -> None:
    """The rows a second where one row of each agent comes at a time."""
    rows = [agent_rows(f"a{number}", messages + 5, messages, seed) for number in range(agents)]
    live = LiveDetector(load_rules())
    live.extend(row for own in rows for row in own[:messages])
    times = [_timed(live, [own[place] for own in rows]) for place in range(messages, messages + 5)]
    speed = agents * 5e3 / sum(times)
    print(f"groups of {agents} rows over {agents} agents with {messages} rows: {speed:.0f} rows a second")


def history(messages: int, within: int, seed: int) -> None:
    """The time of each further row of an agent with so many rows, ``within`` of them every three weeks."""
    rows, live = agent_rows("a", messages + TIMED, within, seed), LiveDetector(load_rules())
    live.extend(rows[:messages])
    times = sorted(_timed(live, [row]) for row in rows[messages:])
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(f"an agent with {messages} rows, {within} in 21 days: p50 {p50:.1f} ms, p99 {p99:.1f} ms a row")


def _timed(live: LiveDetector, rows: list[Row]) -> float:
    began = time.process_time()
    live.extend(rows)
    return (time.process_time() - began) * 1e3


def _loop() -> float:
    began, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number
    return (time.process_time() - began) * 1e3


def agent_rows(agent: str, count: int, within: int, seed: int) -> list[Row]:
    """Rows of one agent to three targets and to nobody, ``within`` of them in three weeks, with its usual scores."""
    chance = Random(f"{seed}:{agent}")
    usual = [chance.betavariate(2, 3) for _ in TRAITS]
    return [
        Row(
            id=f"{agent}-{number:05}",
            conversation=f"{agent}/{number // 50}",
            position=number,
            time=START + number * WINDOW / within,
            agent=agent,
            target=None if chance.random() < 0.3 else f"x{chance.randrange(3)}",
            **_read(chance, usual),
        )
        for number in range(count)
    ]


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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--histories", type=_numbers, default=[500, 2_000, 8_000])
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


if __name__ == "__main__":
    main()
