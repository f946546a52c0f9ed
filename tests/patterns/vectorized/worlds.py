"""Random rules and random rows, made from a seed: what the engine and the reference are compared on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tests.patterns.rulebox import MINIMAL, document
from undersong.models import Row, TraitScores
from undersong.patterns.language.compile import PatternRule, try_rule
from undersong.patterns.reference.partitions import Timeline
from undersong.patterns.reference.search import SearchResult

NAMES = ("A", "B", "C")
DAY = datetime(2026, 1, 1, tzinfo=UTC)
SCORED = ("manipulation", "compassion", "virtue", "goodwill", "deception")
MISSING = (0.0, 0.05, 0.05, 0.3, 0.6)  # shares of rows without a score of a trait
CONDITIONS = (
    "manipulation > 0.5", "manipulation <= 0.5", "compassion > 0.4 or manipulation > 0.8", "not (compassion > 0.4)",
    "compassion is null or manipulation < 0.3", 'tier = "deep"', 'tier in ("deep", "standard") and directed',
    'indicator("MAN-URGENCY")', 'not indicator("MAN-URGENCY")', 'flag("apology") or flag("agreement")', "true",
    'signal("pulse") > 2', "usual > 0.4", "manipulation - usual > 0", "coalesce(others, 0.3) < manipulation",
    "abs(compassion - manipulation) < 0.3", "least(compassion, manipulation) > 0.2", "gap_hours < 30", "day > 20460",
    "seen >= 2", "run = 1", "latency_drop = true", "tier != tier_before", "position / (total - 1) > 1", "warm",
    "observed = \"yes\" or state = \"scored\" and sampled != true", "ethos > 0.5", "compassion in (0.1, 0.5, 0.9)",
    "not (ethos > 0.5)", "pathos is null or ethos < 0.4", "not (compassion in (0.1, 0.5))", "not (manipulation != 0.5)",
    "not (manipulation > 0.5 and goodwill < 0.5)", "coalesce(compassion, 0) < 0.3",
)  # fmt: skip
COLUMNS = (
    "mean(manipulation, so far, over agent)", "coalesce(sum(manipulation, so far, over agent, at least 2), 0.2)",
    "mean(compassion, last 3)", "mean(manipulation, last 2, lag 1)", "std(compassion, last 3 rows)",
    "sum(manipulation, last 2 days)", "max(compassion, so far)", "slope(manipulation, last 3)",
    "ewma(compassion, last 3)",
    "rank(manipulation, last 4)", "delta(compassion, so far, at least 2)", "min(manipulation, last 3, at least 1)",
    "mean(manipulation, so far, at least 2)", "mean(compassion + gap_hours / 100, last 2)",
    "count_distinct(tier, last 4)",
    "mean(ethos, last 3, at least 1)",
    "mean(manipulation, last 3, where directed)", "mean(compassion, so far, over agent, where manipulation < 0.5)",
)  # fmt: skip
OTHERS = (
    "mean(manipulation, so far, over others)", "coalesce(mean(manipulation, so far, over others, at least 2), 0.4)",
    "sum(compassion, so far, over others)", "max(manipulation, last 3, over others)",
)  # fmt: skip
SEEN = (
    "count(manipulation > 0.3, so far)",
    "count(manipulation > 0.3, last 3)",
    "count(compassion < 0.5, last 36 hours)",
)
MEASURES = (
    "mean(A.manipulation)", "clip(mean(MATCH.compassion) + count(ANY) / 10)", "last(MATCH.manipulation)",
    "std(MATCH.manipulation)", "abs(slope(MATCH.compassion))", "sum(ANY.manipulation) / 3", "first(A.compassion)",
    "max(B.manipulation) - min(B.manipulation)", "mean(MATCH.usual)", "count(MATCH.warm) / count(MATCH)",
    "coalesce(mean(B.manipulation), 0.5)", "mean(MATCH.ethos)",
    "count_distinct(MATCH.tier) / 4", "coalesce(mean(ANY.others), 0.1)",
)  # fmt: skip
HAVING = (
    "count(MATCH) >= 2", "count(A) > 1", "strength > 0.3", "absent(C)", "mean(MATCH.manipulation) > 0.4",
    "slope(MATCH.manipulation) > 0", "std(MATCH.compassion) > 0.1 or count(B) = 0", 'last(MATCH.tier) = "deep"',
    "count(MATCH.warm) >= 1", "count(ANY) <= 3",
)  # fmt: skip
WHERE = ('role = "assistant"', "directed", 'tier != "standard"', "manipulation < 0.8")
WITHIN = ("1 day", "2 days", "36 hours", "5 days")


def random_rule(dice: random.Random) -> PatternRule:
    """A rule that compiles, over A, B and C, whose conditions overlap."""
    while True:
        keys: dict[str, Any] = {**MINIMAL, "pattern": _pattern(dice), "columns": _columns(dice)}
        keys["define"] = {name: " and ".join(dice.sample(CONDITIONS, dice.choice((1, 1, 2)))) for name in NAMES}
        keys["partition_by"] = dice.choice((["agent"], ["agent", "target"], ["agent", "conversation"],
                                            ["agent", "target"], ["agent", "conversation", "target"]))  # fmt: skip
        keys["measures"] = {"strength": dice.choice(MEASURES)}
        keys["after_match"] = dice.choice(
            ("skip past last row", "skip past last row", "skip to next row", "skip to first B", "skip to last A")
        )
        keys["having"] = dice.sample(HAVING, dice.choice((0, 0, 1, 2)))
        for name, values in (
            ("within", WITHIN),
            ("where", WHERE),
            ("until", CONDITIONS[:4]),
            ("max_unread", (0, 1, 2)),
        ):
            if dice.random() < (0.4 if name in ("within", "max_unread") else 0.15):
                keys[name] = dice.choice(values)
        if dice.random() < 0.3:
            keys |= {"keep": "strongest", "after_match": "skip to next row"}
        rule, _ = try_rule(document(keys))
        if rule is not None:
            return rule


def _columns(dice: random.Random) -> dict[str, str]:
    return {
        "usual": dice.choice(COLUMNS),
        "others": dice.choice(OTHERS),
        "seen": dice.choice(SEEN),
        "warm": "compassion > 0.4 and coalesce(usual, 0) < 0.9",
        "run": "count(true, last 1)",
    }


def _pattern(dice: random.Random, depth: int = 3) -> str:
    kind = dice.random()
    if depth == 0 or kind < 0.3:
        return dice.choice(("A", "B", "C", "A", "B", "ANY", "{- B -}", "{- ANY{0,2}? -}"))
    if kind < 0.6:
        return " ".join(_pattern(dice, depth - 1) for _ in range(dice.choice((2, 2, 3))))
    if kind < 0.75:
        return "(" + " | ".join(_pattern(dice, depth - 1) for _ in range(2)) + ")"
    quantifier = dice.choice(("*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{1,}", "{2,}?", "{1,2}"))
    anchored = dice.random()
    inner = f"({_pattern(dice, depth - 1)}){quantifier}"
    return f"^ {inner}" if anchored < 0.05 else f"{inner} $" if anchored < 0.1 else inner


def random_rows(dice: random.Random, most: int = 30, missing: Sequence[float] = MISSING) -> list[Row]:
    """Rows of two agents, with holes, public rows, ties in time and what rules ask for; some without times.

    Each trait has a rate of its own, drawn of ``missing``, at which it has no score.
    """
    timed, grid = dice.random() < 0.85, dice.choice((1, 2, 3))
    rates = {name: dice.choice(missing) for name in SCORED}
    return [_row(dice, place, timed, grid, rates) for place in range(dice.randint(1, most))]


def with_missing(dice: random.Random, traits: Mapping[str, float], rates: Mapping[str, float]) -> TraitScores:
    """Some scores are missing: null, as where a trait does not apply, or not given at all."""
    scores: TraitScores = dict(traits)
    for name, rate in rates.items():
        if dice.random() < rate:
            scores[name] = None
            if dice.random() < 0.3:
                del scores[name]
    return scores


def _row(dice: random.Random, place: int, timed: bool, grid: int, rates: Mapping[str, float]) -> Row:
    read = dice.random() < 0.85
    score = lambda: round(dice.random(), grid)  # noqa: E731
    traits = with_missing(dice, {name: score() for name in SCORED}, rates)
    values = {
        "id": f"m{place:03}",
        "agent": dice.choice(("kira", "kira", "bo")),
        "target": dice.choice((None, None, "al", "cy")),
        "conversation": dice.choice(("t", "t", "u")),
        "position": dice.randint(0, 40),
        "time": DAY + timedelta(hours=dice.randint(0, 20) * 6) if timed else None,
        "role": dice.choice(("agent", "assistant")),
        "tier": dice.choice(("standard", "deep", None)),
        "tier_before": dice.choice(("standard", "deep")),
        "observed": dice.choice(("yes", "no", "unknown")),
        "sampled": dice.random() < 0.3,
        "latency_drop": dice.choice((None, True, False)),
        "total": dice.randint(0, 3),
        "state": "scored" if read else "unread",
        "traits": traits if read else None,
        "indicators": dice.choice((None, [], [{"id": "MAN-URGENCY"}])) if read else None,
        "flags": dice.choice(({}, {"apology": 1}, {"agreement": 2})),
        "signals": dice.choice(({}, {"pulse": 1.0}, {"pulse": 3.5})),
    }
    return msgspec.convert(values, Row)


def plain_result(result: SearchResult) -> list[Any]:
    """Everything that a search says, in plain values; a number's text tells 0.0 from -0.0."""
    matches = [
        (
            _name(match.partition.timeline),
            match.partition.key(("agent", "target", "conversation")),
            [(name, entry.row.id, entry.place, entry.time) for name, entry in match.stages],
            match.unread_ids,
            {
                name: value if isinstance(value, str) else repr(value and float(value))
                for name, value in match.measures.items()
            },
        )
        for match in result.matches
    ]
    return [matches, result.partitions, result.gave_up]


def _name(timeline: Timeline) -> tuple[str, str | None]:
    return timeline.agent, timeline.conversation
