"""Early warning: past the middle stage and still open, with what is missing; never where the pattern cannot go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.patterns.rulebox import rule
from undersong.models import Row
from undersong.patterns.catalog import all_rules, load_rules, named
from undersong.patterns.detect import detect
from undersong.patterns.tools.partial_match import emerging
from undersong.patterns.tools.rule_tests import table

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
DENY = {"deception": 0.8}
ATTACK = {"manipulation": 0.8, "dismissal": 0.8}
REVERSE = {"exploitation": 0.9}
OTHER: dict[str, float] = {}


def rows(*stages: dict[str, float] | None, every: float = 1.0, target: str | None = "bo") -> list[Row]:
    quiet = dict.fromkeys(("deception", "manipulation", "dismissal", "exploitation"), 0.1)
    return [
        Row(
            id=str(n), agent="kira", target=target, time=NEW_YEAR + timedelta(days=every * n),
            state="scored" if scores is not None else "unread", traits=None if scores is None else quiet | scores,
        )
        for n, scores in enumerate(stages)
    ]  # fmt: skip


def test_two_of_three_stages_are_a_warning_with_the_missing_one_named() -> None:
    (warning,) = emerging(load_rules(names=["darvo"]), rows(OTHER, DENY, OTHER, ATTACK))
    assert (warning.pattern, warning.agent, warning.target) == ("darvo", "kira", "bo")
    assert (warning.seen, warning.missing) == (("DENY", "ATTACK"), ("REVERSE",))
    assert warning.message_ids == ("1", "3")


@pytest.mark.parametrize(
    "stages",
    [
        pytest.param(rows(DENY), id="one stage is not past the middle"),
        pytest.param(rows(ATTACK, DENY), id="the stages in another order"),
        pytest.param(rows(DENY, ATTACK, REVERSE), id="a whole match is a finding"),
        pytest.param(rows(DENY, ATTACK, *[OTHER] * 7), id="too many other rows since"),
        pytest.param(rows(DENY, ATTACK, every=30), id="the first stage is out of time"),
        pytest.param(rows(DENY, *[None] * 9, ATTACK), id="too many unread rows between"),
        pytest.param(rows(DENY, ATTACK, target=None)[:0], id="no row"),
    ],
)
def test_what_cannot_become_a_match_is_no_warning(stages: list[Row]) -> None:
    assert emerging(load_rules(names=["darvo"]), stages) == ()


def test_a_warning_comes_before_its_finding_and_is_none_itself() -> None:
    rules = load_rules(names=["darvo"])
    whole = rows(DENY, ATTACK, REVERSE)
    assert detect(whole[:2], rules).findings == ()
    (finding,) = detect(whole, rules).findings
    (warning,) = emerging(rules, whole[:2])
    assert finding.message_ids[:2] == warning.message_ids


def test_a_rule_of_two_single_messages_has_no_middle() -> None:
    chosen = rule("LOW ANY*? HIGH", LOW="manipulation < 0.3", HIGH="manipulation > 0.5")
    assert emerging([chosen], table("id who manipulation\n1 kira .1\n2 kira .2\n")) == ()


def test_love_bombing_warns_after_its_praise_and_no_longer_when_it_is_complete() -> None:
    chosen = named(all_rules(), "love_bombing")
    rows = table(chosen.file.cases.hits[0].rows, chosen.file.cases.hits[0].base)
    seen = [[(each.seen, each.missing) for each in emerging([chosen], rows[:end])] for end in range(1, len(rows) + 1)]
    assert seen[0] == []
    assert (("PRAISE",), ("TURN",)) in seen[1] + seen[2]
    assert seen[-1] == []
