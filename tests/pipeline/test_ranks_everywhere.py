"""A rank is no level: chance, warnings, explanations and profiles do not hold it against a threshold either."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from undersong.models import Row
from undersong.patterns.catalog import all_rules, load_rules, named
from undersong.patterns.detect import detect
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import estimate_significance
from undersong.patterns.tools.explain import explain
from undersong.patterns.tools.partial_match import emerging
from undersong.pipeline.agent_profile import TargetProfile, profile

START = datetime(2026, 1, 1, tzinfo=UTC)
WARM = {"compassion": 0.9, "goodwill": 0.9, "manipulation": 0.05, "fabrication": 0.1, "deception": 0.1}
COLD = {"compassion": 0.1, "goodwill": 0.1, "manipulation": 0.9, "fabrication": 0.1, "deception": 0.1}


def make_row(day: float, traits: dict[str, float] | None) -> Row:
    state = "unread" if traits is None else "scored"
    time = START + timedelta(days=day)
    return msgspec.convert(
        {"id": f"m{day}", "agent": "kira", "target": "bo", "time": time, "state": state, "traits": traits}, Row
    )


def ranked(row: Row) -> Row:
    return msgspec.structs.replace(row, scale="rank", domain="unmeasured")


def test_chance_and_stability_are_the_same_whatever_the_ranks_beside_the_levels_say() -> None:
    rules, effort = load_rules(names=["love_bombing"]), ResamplingConfig(draws=99, replicas=20)
    levels = [*(make_row(day, WARM) for day in range(4)), make_row(5, COLD)]
    results = []
    for traits in (WARM, COLD):
        rows = [*levels, *(ranked(make_row(day + 6, traits)) for day in range(8))]
        detection = detect(rows, rules)
        (finding,) = estimate_significance(detection.findings, detection.outcomes, rows, rules, effort).findings
        results.append((finding.chance, finding.stability))
    assert results[0] == results[1]


def test_ranks_warn_of_nothing_and_match_nothing_in_an_explanation() -> None:
    calm = dict.fromkeys(("deception", "manipulation", "dismissal", "exploitation"), 0.1)
    stages: list[dict[str, float]] = [{}, {}, {}, {"deception": 0.8}, {"manipulation": 0.8, "dismissal": 0.8}]
    rows = [make_row(day, calm | stage) for day, stage in enumerate(stages)]
    darvo = named(all_rules(), "darvo")
    assert emerging([darvo], rows)
    assert emerging([darvo], map(ranked, rows)) == ()
    bombing, turned = (
        named(all_rules(), "love_bombing"),
        [*(make_row(day, WARM) for day in range(4)), make_row(5, COLD)],
    )
    assert "PRAISE" in "\n".join(line for line in explain(bombing, turned) if "m0 " in line)
    assert "PRAISE" not in "\n".join(line for line in explain(bombing, map(ranked, turned)) if "m0 " in line)


def test_a_profile_has_no_means_and_trends_of_ranks() -> None:
    result = profile([ranked(make_row(day, WARM if day < 5 else COLD)) for day in range(10)])
    assert (result.verdict.traits, result.trends, result.months) == (None, {}, {})
    assert result.aims == (TargetProfile(target="bo", messages=10, compassion=None, manipulation=None),)
