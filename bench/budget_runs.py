"""Random runs of a judge within a budget, against a server that knows what it really charged.

python bench/budget_runs.py [--runs 500] [--seed 1]

A run draws provider, prices, questions, faults, concurrency (1-64), and whether questions go into batches (then it is
run four times over one ledger). What the server charged in a run may pass the budget by one reservation at most.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from judge_server import JudgeServer
from judges import question

from undersong.judges.limits import MemoryLedger, RunLimits
from undersong.judges.llm.judge import LLMJudge
from undersong.judges.protocol import JudgeAbortedError, Question, open_judge

# what a message may bring about: answers that are repaired, cut off, retried, lost on the way or without tokens
FAULTS = ("", "", "", "prose*1", "prose", "schema*1", "truncated*1", "thinks", "thinks_much", "empty*1", "cut*1", "cut",
          "half_envelope*1", "no_body*1", "504*1", "500*1", "429*1", "error_200*1", "no_usage", "refusal", "around",
          "capped", "silent*1", "control*1", "runs_on*1")  # fmt: skip
NOT_IN_BATCHES = frozenset({"cut*1", "cut", "half_envelope*1", "no_body*1", "silent*1"})  # no whole lines of a file
MILLION = 1_000_000


class Outcome(NamedTuple):
    """What became of a run: USD that were allowed, charged and booked, the largest reservation, states by number."""

    budget: float
    charged: float
    booked: float
    reservation: float
    states: Counter[str]
    mode: str

    @property
    def holds(self) -> bool:
        """Whether the budget was passed by one reservation at most."""
        return self.charged <= self.budget + self.reservation


@contextmanager
def serving(**how: Any) -> Iterator[JudgeServer]:
    """A judge server in a thread of its own."""
    server, loop = JudgeServer(**how), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_stopped(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _stopped(server: JudgeServer) -> None:
    await server.stop()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def random_run(seed: int) -> list[Outcome]:
    """The outcomes of one direct run, or of four over the same batches."""
    dice = random.Random(seed)
    batch, provider = dice.random() < 0.3, dice.choice(("openai", "anthropic"))
    faults = [fault for fault in FAULTS if not batch or fault not in NOT_IN_BATCHES]
    chosen = dice.sample(faults, k=dice.randint(1, len(faults)))
    texts = [f"{n} {dice.choice(chosen)}" for n in range(dice.randint(5, 60))]
    questions = [
        question(seed * 1000 + n, f"{words} fault={fault}" if fault else words)
        for n, (words, _, fault) in enumerate(text.partition(" ") for text in texts)
    ]
    price_in, price_out = dice.choice((0.1, 1.0, 5.0)), dice.choice((0.4, 5.0, 25.0))
    limits = RunLimits(
        budget=dice.uniform(0.5, 40.0) * (15_000 * price_in + 18_500 * price_out) / MILLION,  # so many reservations
        price_in=price_in,
        price_out=price_out,
        concurrency=dice.choice((1, 2, 8, 64)),
        attempts=dice.choice((1, 3)),
        timeout=30.0 if batch else 0.5,
        backoff=0.001,
        batch=batch,
        ledger=MemoryLedger(),
        environment={"UNDERSONG_JUDGE_KEY": "key"},
    )
    with serving(thinking=dice.choice((0, 0, 1_800)), keep=False) as server:
        path = "/v1" if provider == "openai" else ""
        name = f"{provider}:m@http://127.0.0.1:{server.port}{path}"
        return [_outcome(name, limits, questions, server) for _ in range(4 if batch else 1)]


def _outcome(name: str, limits: RunLimits, questions: list[Question], server: JudgeServer) -> Outcome:
    before = server.charged
    judge = open_judge(name, limits)
    assert isinstance(judge, LLMJudge)
    states: Counter[str] = Counter()
    with suppress(JudgeAbortedError):
        states.update(evaluation.state for evaluation in judge.evaluate(questions))
    tokens_in, tokens_out = (now - then for now, then in zip(server.charged, before, strict=True))
    charged = (tokens_in * (limits.price_in or 0.0) + tokens_out * (limits.price_out or 0.0)) / MILLION
    requests = [judge._reading_steps(each).make_request("").raised() for each in questions]
    reservation = max(judge.models["focused"].max_cost(request.request) for request in requests)
    mode = "batch" if limits.batch else f"direct, {limits.concurrency} at a time"
    return Outcome(limits.budget or 0.0, charged, judge.budget.usage.cost or 0.0, reservation, states, mode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    outcomes = [(seed, each) for seed in range(options.seed, options.seed + options.runs) for each in random_run(seed)]
    broken = [(seed, each) for seed, each in outcomes if not each.holds]
    passed = [each for _, each in outcomes if each.charged > each.budget]
    below = [each for _, each in outcomes if each.charged > each.booked + 1e-9]
    spent = sum(each.charged > 0 for _, each in outcomes)
    used_up = sum(each.states["unread"] > 0 for _, each in outcomes)
    print(f"{options.runs} random runs ({len(outcomes)} with those over batches), {spent} spent anything")
    print(f"{used_up} left questions unread at their limit; modes {dict(Counter(each.mode for _, each in outcomes))}")
    print(f"the budget was passed by {len(passed)}, by more than one reservation by {len(broken)}")
    print(
        f"more was charged than booked in {len(below)}; states {dict(sum((o.states for _, o in outcomes), Counter()))}"
    )
    for seed, outcome in broken[:10]:
        print(f"seed {seed}: {outcome}")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
