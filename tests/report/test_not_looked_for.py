"""The line on what was not looked for names only patterns of which that is true."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from undersong.models import Case, Row, RuleOutcome
from undersong.report.coverage import BEST_KNOWN, coverage_of

ESTIMATE = {"usd": 1.0, "judge": "anthropic:m", "read": "messages"}


@pytest.mark.parametrize("ran", [(), ("love_bombing",), ("love_bombing", "con_game"), tuple(BEST_KNOWN)])
def test_no_pattern_that_was_looked_for_is_named(
    make_case: Callable[..., tuple[Case, list[Row]]], ran: tuple[str, ...]
) -> None:
    case, _ = make_case()
    outcomes = tuple(
        RuleOutcome(pattern=name, rule_hash=name, status="ran" if name in ran else "not_applicable")
        for name in (*BEST_KNOWN, "darvo")
    )
    parameters = {**case.parameters, "llm_estimate": ESTIMATE}
    missing = coverage_of(msgspec.structs.replace(case, outcomes=outcomes, parameters=parameters)).missing
    assert missing.startswith("Not looked for: ")
    left = [words for pattern, words in BEST_KNOWN.items() if pattern not in ran][:2]
    assert (f", such as {' or '.join(left)}," in missing) if left else ("such as" not in missing)
