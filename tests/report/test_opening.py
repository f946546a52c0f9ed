"""The first screen: what it names, in which order, and that it says no more than was seen."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest

from tests.report.conftest import build
from undersong.models import Case, Finding, Row
from undersong.patterns.significance.confidence import reference_figures
from undersong.report.narrative import certainty_words
from undersong.report.opening import points_of
from undersong.report.sureness import sure_words

Make = Callable[..., tuple[Case, list[Row]]]


def a_finding(**changes: object) -> Finding:
    case, _ = build()
    return msgspec.structs.replace(case.findings[0], **changes)


@pytest.mark.parametrize("certainty", [2, 3, 4])
def test_of_a_reading_the_counts_are_told_and_no_share_of_a_hundred(certainty: int) -> None:
    finding = a_finding(confidence=0.987, measures={"certainty": float(certainty), "prevalence": 0.2})
    counts = reference_figures().readings
    words = sure_words(finding)
    assert words.startswith("very likely: ")
    assert "conversations that we wrote" in words
    assert str(counts.times(certainty)) in words or (counts.times(certainty) == 1 and "the one reading" in words)
    assert not re.search(r"of 100 such|98|99", words + "; ".join(certainty_words(finding)))


def test_a_certainty_that_was_never_given_was_not_measured() -> None:
    assert "not measured" in sure_words(a_finding(confidence=None, measures={"certainty": 1.0}))


@pytest.mark.parametrize(
    ("confidence", "share"),
    [(0.61, "about 6 in 10"), (0.987, "more than 9 in 10"), (0.03, "fewer than 1 in 10"), (0.949, "about 9 in 10")],
)
def test_of_rules_tenths_are_told_and_where_they_were_measured(confidence: float, share: str) -> None:
    words = sure_words(a_finding(confidence=confidence))
    assert share in words
    assert "made for this project" in words
    assert "share of bad speakers" in words
    assert not re.search(r"\d{3}|\d\.\d", words)
    assert share in certainty_words(a_finding(confidence=confidence))[0]


def test_the_first_screen_tells_a_finding_so(make_case: Make) -> None:
    case, _ = make_case()
    (point, *_) = points_of(case)
    assert point.kind == "finding"
    assert "about 8 in 10" in point.sure
