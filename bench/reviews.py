"""What to review next: ``python bench/reviews.py --data DIR [--seeds N] [--worlds N] [--prevalence P]``.

DIR holds folders with ``blind.jsonl.gz`` and ``truth.jsonl.gz``: worlds of agents, scored messages, planted patterns.
Somebody who knows the truth reviews findings in the order of `undersong review next`, drawn alike (``random``) or the
uncertain ones more often (``least_certain``), again and again with another seed. For each number of reviews:

error   how far the share of right ones by the reviews lies from the share in the whole pool, on average
width   of its 95 % interval
holds   in how many of the seeds the interval holds the share
loss    mean log loss of confidence on the findings of the other half of the agents, of whom nothing is reviewed, once
        it is fitted to the reviews where that is possible (``fitted``: in how many seeds)

What is ambiguous by the truth is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from calibration import what_of
from planted import _lines, rows_of

from undersong.models import Finding, Review, evidence_hash
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.significance.confidence import with_confidence
from undersong.patterns.significance.refit import ConfidenceMap, DecidedFinding, fit_confidence
from undersong.report.review_figures import LEAST, UnreviewedItem, figures
from undersong.stores.review_queue import Order, clock, weight

NUMBERS = (10, 20, 30, 60, 100)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Known(NamedTuple):
    """A finding and whether it is right."""

    finding: Finding
    right: bool


class Outcome(NamedTuple):
    """What so many reviews say, and the loss of the confidence that is fitted to them."""

    value: float
    low: float
    high: float
    loss: float
    fitted: bool


def main() -> None:
    """Review every pool in both orders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--worlds", type=int, help="So many of each folder.")
    parser.add_argument("--prevalence", type=float, default=0.2)
    arguments = parser.parse_args()
    findings = list(findings_of(arguments.data, arguments.worlds, arguments.prevalence))
    likely = [each for each in findings if not each.finding.is_lead]
    for name, every in (("likely", likely), ("all with a confidence", findings)):
        pool, rest = [each for each in every if in_pool(each)], [each for each in every if not in_pool(each)]
        share = fmean(each.right for each in pool)
        print(f"\n{name}: {len(pool)} findings, {share:.3f} right; log loss of the others {loss(rest, None):.3f}")
        print(f"{'order':<16}{'reviews':>8}{'error':>8}{'width':>8}{'holds':>8}{'loss':>8}{'fitted':>8}")
        for number in (each for each in NUMBERS if each < len(pool)):
            for order in ("random", "least_certain"):
                outcomes = [reviewed(pool, rest, order, number, seed) for seed in range(arguments.seeds)]
                print(f"{order:<16}{number:>8}{_row(outcomes, share)}")


def findings_of(data: Path, worlds: int | None, prevalence: float) -> Iterator[Known]:
    """The findings of the shipped rules in all worlds, with their confidence and what they are."""
    rules = load_rules()
    for folder in sorted(path.parent for path in data.glob("*/blind.jsonl.gz")):
        truth = {world["world_id"]: world for world in _lines(folder / "truth.jsonl.gz")}
        for world in islice(_lines(folder / "blind.jsonl.gz"), worlds):
            rows = rows_of(world)
            for finding in with_confidence(detect(rows, rules).findings, rows, rules, prevalence):
                what = what_of(finding, truth[world["world_id"]])
                if what != "ambiguous" and finding.confidence is not None:
                    yield Known(finding, what.startswith("true"))


def in_pool(entry: Known) -> bool:
    """Whether the agent is of the half that is reviewed."""
    return hashlib.sha256(entry.finding.agent.encode()).digest()[0] < 128


def reviewed(pool: Sequence[Known], rest: Sequence[Known], order: Order, number: int, seed: int) -> Outcome:
    """The outcome of the first reviews in an order."""
    weights = [weight(each.finding, order) for each in pool]
    places = sorted(
        range(len(pool)),
        key=lambda place: clock(("finding", pool[place].finding.finding_id), weights[place], seed, order),
    )
    left, reviews = math.fsum(weights), []
    for minute, place in enumerate(places[:number]):
        propensity = min(1.0, weights[place] / left)
        reviews.append(_review(pool[place], place, order, propensity, len(pool) - minute, minute))
        left -= weights[place]
    (figure, *_) = figures(reviews, [UnreviewedItem(pool=name, pattern="") for name in ("likely", "unlikely")]).pools
    seen = [pool[place] for place in places[:number]]
    line = fit_confidence([DecidedFinding(f.confidence or 0.0, f.agent, right) for f, right in seen])
    fitted = line if isinstance(line, ConfidenceMap) else None
    assert number >= LEAST
    return Outcome(figure.value or 0.0, figure.low or 0.0, figure.high or 0.0, loss(rest, fitted), fitted is not None)


def _review(entry: Known, place: int, order: Order, propensity: float, pool: int, minute: int) -> Review:
    """``confidence`` is the same for all, so that they are one pool, of whatever confidence."""
    return Review(
        kind="finding", id=str(place), evidence=evidence_hash(()), verdict="confirmed" if entry.right else "rejected",
        at=START + timedelta(minutes=minute), drawn=order, propensity=propensity, pool=pool, confidence=1.0,
    )  # fmt: skip


def loss(pool: Sequence[Known], line: ConfidenceMap | None) -> float:
    """The mean log loss of confidence, through a line or as shipped."""
    total = 0.0
    for finding, right in pool:
        stated = finding.confidence or 0.0
        share = min(0.9999, max(0.0001, line.of(stated) if line else stated))
        total -= math.log(share if right else 1 - share)
    return total / max(1, len(pool))


def _row(outcomes: Sequence[Outcome], share: float) -> str:
    error = fmean(abs(each.value - share) for each in outcomes)
    width = fmean(each.high - each.low for each in outcomes)
    holds = fmean(each.low <= share <= each.high for each in outcomes)
    fitted = fmean(each.fitted for each in outcomes)
    return f"{error:>8.3f}{width:>8.3f}{holds:>8.2f}{fmean(each.loss for each in outcomes):>8.3f}{fitted:>8.2f}"


if __name__ == "__main__":
    main()
