"""The first seed's tiers, from counts alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from undersong.datafiles.scan_config import ROUTING, routing_rules, tier_of
from undersong.errors import RuleError


@pytest.mark.parametrize(
    ("flags", "hard_constraint", "tier"),
    [
        (0, False, "standard"),
        (1, False, "focused"),
        (3, False, "focused"),
        (4, False, "deep"),
        (40, False, "deep"),
        (1, True, "deep_with_context"),
        (9, True, "deep_with_context"),
    ],
)
def test_flags_give_a_tier(flags: int, hard_constraint: bool, tier: str) -> None:
    assert tier_of(flags, hard_constraint) == tier


def test_the_thresholds_are_data(tmp_path: Path) -> None:
    path = tmp_path / "routing.yaml"
    path.write_text(ROUTING.read_text(encoding="utf-8").replace("deep: 4", "deep: 2"), encoding="utf-8")
    assert tier_of(2, False, routing_rules(path)) == "deep"


def test_a_misspelt_threshold_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "routing.yaml"
    path.write_text(ROUTING.read_text(encoding="utf-8").replace("focused: 1", "focussed: 1"), encoding="utf-8")
    with pytest.raises(RuleError, match=r"routing\.yaml:\d+"):
        routing_rules(path)
