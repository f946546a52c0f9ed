"""Confidence fitted to reviews: not before there are enough, towards what was decided, and only where it helps."""

from __future__ import annotations

import random

import pytest

from tests.stores.deeds import make_finding
from undersong.models import Finding
from undersong.patterns.significance.refit import (
    SHIPPED,
    ConfidenceMap,
    DecidedFinding,
    fit_confidence,
    refitted,
    shipped_confidence,
)


def decided(number: int, true_share: float, confidence: float = 0.9, seed: int = 0) -> list[DecidedFinding]:
    rng = random.Random(seed)
    return [DecidedFinding(confidence, f"a{n}", rng.random() < true_share) for n in range(number)]


@pytest.mark.parametrize("cases", [decided(29, 0.5), decided(60, 1.0), []])
def test_with_few_decisions_or_of_one_kind_nothing_is_fitted(cases: list[DecidedFinding]) -> None:
    assert "at least 30 are needed, and 5 of each kind" in str(fit_confidence(cases))


def test_confidence_moves_to_what_was_decided() -> None:
    high, low = decided(100, 0.4), decided(100, 0.1, 0.6, 1)
    fitted = fit_confidence([*high, *low])
    assert isinstance(fitted, ConfidenceMap)
    for cases in (high, low):
        assert fitted.of(cases[0].confidence) == pytest.approx(sum(each.right for each in cases) / 100, abs=0.08)
    assert fitted.after < fitted.before
    assert fitted.of(0.0) < fitted.of(0.6) < fitted.of(1.0)


def test_where_confidence_holds_already_it_stays() -> None:
    cases = [*decided(40, 0.9, 0.9, 2), *decided(40, 0.6, 0.6, 3), *decided(40, 0.2, 0.2, 4)]
    fitted = fit_confidence(cases)
    if isinstance(fitted, ConfidenceMap):
        assert fitted.of(0.9) == pytest.approx(0.9, abs=0.08)
    else:
        assert "not clearly better" in fitted


def with_share(confidence: float | None) -> Finding:
    import msgspec

    return msgspec.structs.replace(make_finding("f", "c1"), confidence=confidence)


def test_what_a_finding_had_before_stays_beside_it() -> None:
    line = ConfidenceMap(slope=1.0, intercept=-2.0, reviews=40, right=20, before=1.0, after=0.5)
    low, unknown = refitted([with_share(0.9), with_share(None)], line)
    assert (low.confidence, low.measures[SHIPPED], shipped_confidence(low)) == (line.of(0.9), 0.9, 0.9)
    assert unknown == with_share(None)
    assert refitted([with_share(0.9)], None) == (with_share(0.9),)
