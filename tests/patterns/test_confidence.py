"""The confidence of what a reader of sequences names."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from undersong.models import TRAITS, Finding, Row
from undersong.models.finding import UNMEASURED_READER
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.significance.confidence import (
    ReadingCounts,
    as_of_unmeasured_reader,
    confidence,
    doubted,
    reference_figures,
    rule_kind,
    usual_prevalence,
    with_confidence,
)
from undersong.patterns.significance.finding_features import finding_features

COUNTS = ReadingCounts(planted=40, innocent=254, right=(1, 4, 15, 20), wrong=(6, 2, 1, 0))


@pytest.mark.parametrize("prevalence", [0.01, 0.05, 0.2, 0.5])
def test_more_certain_is_never_less_confident(prevalence: float) -> None:
    values = [confidence(certainty, prevalence, COUNTS) for certainty in range(1, 5)]
    assert values == sorted(value for value in values if value is not None)
    assert all(value is not None and 0 < value < 1 for value in values)


def test_confidence_is_the_share_of_true_ones_where_the_counts_stand() -> None:
    share = COUNTS.planted / (COUNTS.planted + COUNTS.innocent)
    counted = (20 + 0.5) / (20 + 0.5 + (254 + 1) / 255 * 0.5)
    assert confidence(4, share, COUNTS) == pytest.approx(counted, abs=0.01)


def test_rarer_is_less_confident() -> None:
    values = [confidence(3, prevalence, COUNTS) or 0.0 for prevalence in (0.001, 0.01, 0.1, 0.5)]
    assert values == sorted(values)
    assert values[0] < 0.5 < values[-1]


def test_what_was_never_seen_has_no_confidence() -> None:
    unseen = ReadingCounts(planted=40, innocent=254, right=(0, 1, 1, 1), wrong=(0, 0, 0, 0))
    assert confidence(1, 0.2, unseen) is None


def test_the_shipped_counts_are_those_of_the_benchmark() -> None:
    from bench.talks.__main__ import HERE
    from train.confidence import counted

    assert counted(HERE / "dev") == reference_figures().readings


def test_a_finding_that_a_reader_of_the_sequence_does_not_see_is_doubted() -> None:
    assert doubted(None) is None
    values = [doubted(value) for value in (0.1, 0.5, 0.9, 0.99)]
    assert values == sorted(value for value in values if value is not None)
    assert all(
        value is not None and value < before for value, before in zip(values, (0.1, 0.5, 0.9, 0.99), strict=True)
    )


@pytest.mark.skipif("UNDERSONG_DATA" not in os.environ, reason="needs the labelled data")
def test_the_shipped_weights_of_indicators_are_those_of_the_benchmark_and_the_posts() -> None:
    from bench.talks.__main__ import HERE
    from train.confidence import OF_TALK, fitted, joined, of_posts, of_talks

    talks, posts = of_talks(HERE / "dev", HERE / "more"), of_posts(Path(os.environ["UNDERSONG_DATA"]))
    labelled = joined(talks, posts)
    assert fitted(labelled, OF_TALK, offsets=False) == reference_figures().indicators


WARM, COLD = {"compassion": 0.9, "goodwill": 0.9, "manipulation": 0.1}, {"compassion": 0.1, "goodwill": 0.1}


def _rows(role: Literal["user", "agent"]) -> list[Row]:
    kinds = [WARM] * 5 + [COLD | {"manipulation": 0.9, "exploitation": 0.7}] * 2
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Row(id=str(n), conversation="c", agent="kira", target="bo", role=role, position=n, state="scored", tier="deep",
            time=start + timedelta(days=n), traits={**dict.fromkeys(TRAITS, 0.1), **scores})
        for n, scores in enumerate(kinds)
    ]  # fmt: skip


def test_the_same_finding_is_less_likely_of_an_agent_of_a_platform_than_in_ones_own_export() -> None:
    rules = load_rules(names=["love_bombing"])
    own, platform = ((_rows(role)) for role in ("user", "agent"))
    (mine,), (theirs,) = (with_confidence(detect(rows, rules).findings, rows, rules) for rows in (own, platform))
    assert mine.confidence is not None
    assert theirs.confidence is not None
    assert theirs.confidence < mine.confidence
    (asked,) = with_confidence(detect(platform, rules).findings, platform, rules, 0.2)
    assert asked.confidence == mine.confidence


def test_a_pattern_that_was_not_measured_has_no_confidence_and_is_a_lead() -> None:
    rules = load_rules(names=["love_bombing_literal"])
    rows = _rows("user")
    findings = detect(rows, rules).findings
    unmeasured = [each for each in with_confidence(findings, rows, rules) if each.pattern == "love_bombing_literal"]
    assert unmeasured
    assert all(each.confidence is None and each.is_lead for each in unmeasured)


def test_a_second_rule_that_sees_the_same_is_an_echo_and_another_pattern_over_the_same_messages_takes_odds() -> None:
    rows = _rows("user")
    rules = load_rules(names=["love_bombing", "love_bombing_by_sums"])
    findings = detect(rows, rules).findings
    assert {finding.rule_hash for finding in findings} == {rule.hash for rule in rules}
    strengths = [finding.strength for finding in findings]
    assert [features["echo"] for features in finding_features(findings, rows)] == strengths[::-1]
    alone = [with_confidence(detect(rows, [rule]).findings, rows, rules)[0] for rule in rules]
    both = {each.rule_hash: each.confidence for each in with_confidence(findings, rows, rules)}
    for each in alone:
        value = both[each.rule_hash]
        assert value is not None
        assert each.confidence is not None
        assert value > each.confidence
    rival = msgspec.structs.replace(findings[0], pattern="con_game", finding_id="x")
    disputed = with_confidence([*findings, rival], rows, rules)
    assert all((one.confidence or 0) < (both[one.rule_hash] or 0) for one in disputed[:2])


def test_kinds_of_rules() -> None:
    names = ("darvo", "darvo_by_sums", "darvo_by_indicators")
    assert [rule_kind(rule) for rule in load_rules(names=names)] == ["scores", "sums", "indicators"]


@pytest.mark.parametrize(
    ("role", "profile", "named", "share"),
    [
        ("assistant", "coding", False, 0.01),
        ("assistant", "companion", False, 0.2),
        ("assistant", None, False, 0.2),
        ("participant", "messenger", False, 0.2),
        ("agent", "companion", False, 0.01),
        ("agent", "companion", True, 0.2),
        ("agent", None, True, 0.01),
    ],
)
def test_the_usual_prevalence_is_that_of_the_profile(role: str, profile: str | None, named: bool, share: float) -> None:
    rows = [Row(id="m", conversation="c", agent="a", role=role)]  # type: ignore[arg-type]
    assert usual_prevalence(rows, {"c": profile} if profile else {}, named=named) == {"a": share}


def test_a_reading_of_a_reader_that_was_not_measured_says_so_in_its_notes() -> None:
    finding = Finding(
        finding_id="f", pattern="darvo", title="DARVO", level="high", rule_hash="h", agent="a", target="b",
        message_ids=("1", "2", "3"), measures={"certainty": 4.0}, judges=("reader",), confidence=0.9,
    )  # fmt: skip
    measured = msgspec.structs.replace(COUNTS, readers=("reader",))
    assert as_of_unmeasured_reader(finding, measured) == finding
    noted = as_of_unmeasured_reader(finding, COUNTS)
    assert noted.notes == (UNMEASURED_READER,)
    assert as_of_unmeasured_reader(noted, COUNTS) == noted
    unknown = msgspec.structs.replace(finding, confidence=None)
    assert as_of_unmeasured_reader(unknown, COUNTS) == unknown
