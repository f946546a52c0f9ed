"""Live against batch: the same findings however the rows come, told as soon as they are sure and taken back if need be."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import pytest

from tests.patterns.live import worlds
from tests.patterns.rulebox import rule
from undersong.detect import detect
from undersong.models import Finding, Row
from undersong.patterns import all_rules, load_rules
from undersong.patterns.cases import table
from undersong.patterns.live import Changes, Live
from undersong.patterns.rules import PatternRule

LOW, HIGH = "manipulation < 0.3", "manipulation > 0.5"
SEEDS = range(25)


def followed(live: Live, parts: Sequence[Sequence[Row]]) -> dict[str, Finding]:
    """What somebody knows who reads nothing but the changes."""
    known: dict[str, Finding] = {}
    for change in (*map(live.extend, parts), live.finish()):
        known |= {finding.finding_id: finding for finding in change.found}
        for name in change.retracted:
            del known[name]
    return known


def agree(chosen: Sequence[PatternRule], arrivals: Sequence[Row], parts: Sequence[Sequence[Row]]) -> None:
    """Batch, live and the reader of live's changes say the same, and the same became of every rule."""
    batch, live = detect(arrivals, chosen), Live(chosen)
    known = followed(live, parts)
    assert known == {finding.finding_id: finding for finding in live.findings()}
    if any(outcome.status == "gave_up" for outcome in batch.outcomes):
        return  # live has no such limit where nothing is open for long
    assert known == {finding.finding_id: finding for finding in batch.findings}
    for one, other in zip(live.outcomes(), batch.outcomes, strict=True):
        assert (one.status, one.partitions, one.reason) == (other.status, other.partitions, other.reason)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_one_by_one_in_chunks_late_and_twice_give_what_batch_gives(seed: int) -> None:
    for case in range(10):
        chance = Random(f"{seed}:{case}")
        chosen = [worlds.some_rule(chance)]
        arrivals = worlds.in_order(worlds.some_rows(chance))
        agree(chosen, arrivals, [[row] for row in arrivals])
        arrivals = worlds.in_order(worlds.some_rows(chance))
        agree(chosen, arrivals, worlds.chunks(chance, arrivals))
        arrivals = worlds.some_rows(chance)
        chance.shuffle(arrivals)
        agree(chosen, arrivals, worlds.chunks(chance, arrivals))
        arrivals = worlds.with_earlier_versions(chance, worlds.in_order(worlds.some_rows(chance)))
        agree(chosen, arrivals, [[row] for row in arrivals])
