"""An agent's traits over time, with the matched stages marked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from tests.report.conftest import build
from tests.report.pages import written
from undersong.models import Case, Finding, Row
from undersong.patterns.catalog import all_rules
from undersong.report.finding_view import rule_words
from undersong.report.trait_chart import MOST, TraitReading, trait_chart

Make = Callable[..., tuple[Case, list[Row]]]


def a_finding() -> Finding:
    case, _ = build()
    return case.findings[0]


def readings(count: int, **scores: float) -> list[TraitReading]:
    return [TraitReading("forum", f"forum-{n}", n, None, scores) for n in range(count)]


def test_the_matched_messages_are_numbered_and_named_in_words() -> None:
    finding = a_finding()
    chart = trait_chart(finding, ("manipulation",), readings(8, manipulation=0.5))
    assert chart is not None
    assert [stage.number for stage in chart.stages] == [str(n + 1) for n in range(len(finding.message_ids))]
    assert [strip.name for strip in chart.strips] == ["manipulation"]
    assert "1 PRAISE (turn 1)" in chart.label
    assert "1 PRAISE (turn 1)" in chart.caption
    (strip,) = chart.strips
    assert len(strip.stages) == len(finding.message_ids)
    assert len(strip.stages) + len(strip.dots) == 8
    assert {strip.base - y for _, y, _ in strip.dots} == {17.0}  # half of a strip


def test_a_message_without_a_score_is_a_gap_and_no_zero() -> None:
    course = readings(3, manipulation=0.2)
    course[1] = TraitReading("forum", "forum-1", 1, None, None)
    chart = trait_chart(a_finding(), ("manipulation",), course)
    assert chart is not None
    assert chart.strips[0].lines == ()
    assert len(chart.strips[0].dots) + len(chart.strips[0].stages) == 2


def test_what_the_rule_does_not_ask_for_or_nobody_scored_is_not_drawn() -> None:
    assert trait_chart(a_finding(), ("deception",), readings(8, manipulation=0.5)) is None
    assert trait_chart(a_finding(), (), readings(8, manipulation=0.5)) is None
    elsewhere = [TraitReading("other", f"o{n}", n, None, {"manipulation": 0.5}) for n in range(8)]
    assert trait_chart(a_finding(), ("manipulation",), elsewhere) is None


def test_of_a_long_course_the_part_around_the_match_is_drawn() -> None:
    chart = trait_chart(a_finding(), ("manipulation",), readings(5000, manipulation=0.5))
    assert chart is not None
    assert len(chart.strips[0].dots) + len(chart.strips[0].stages) <= MOST


def test_the_chart_stands_in_its_finding_as_an_image_with_words(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    rule = next(rule for rule in all_rules() if any(rule_words([rule])[rule.hash].asked.values()))
    finding = msgspec.structs.replace(case.findings[0], rule_hash=rule.hash)
    _, html, _, _ = written(msgspec.structs.replace(case, findings=(finding,)), rows, tmp_path / "out")
    start = html.index('<svg class="chart traits"')
    picture = ElementTree.fromstring(html[start : html.index("</svg>", start) + 6])
    assert picture.attrib["role"] == "img"
    assert "the matched ones numbered" in picture.attrib["aria-label"]
    assert picture.find("title") is not None
