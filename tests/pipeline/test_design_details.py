"""Details of the design documents, each in their words."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Undersong
from undersong import build_evaluation_prompt, detect_patterns, scan_thread
from undersong.errors import UsageError
from undersong.judges.context import Past, history
from undersong.judges.llm.prompts import history_lines
from undersong.models import TIERS, TRAITS
from undersong.report.escape import plain

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def past(readings: int) -> Past:
    """So many readings of an agent, one a minute, with climbing manipulation."""
    times = [round((DAY + timedelta(minutes=n)).timestamp() * 1_000_000) for n in range(readings)]
    scores = [tuple(n / 20 if trait == "manipulation" else 0.5 for trait in TRAITS) for n in range(readings)]
    return Past(tuple(zip(times, scores, strict=True)))


@pytest.mark.parametrize(("readings", "trend"), [(9, "unknown"), (10, "manipulation rising"), (1, "unknown")])
def test_the_judge_is_told_that_a_trend_is_unknown_below_ten_evaluations(readings: int, trend: str) -> None:
    lines = list(history_lines(history(past(readings), DAY + timedelta(days=1))))
    assert f"Recent trend: {trend}" in lines


def test_a_trend_that_does_not_move_over_ten_evaluations_is_steady() -> None:
    still = Past(tuple((time, (0.5,) * len(TRAITS)) for time, _ in past(10).readings))
    assert "Recent trend: steady" in list(history_lines(history(still, DAY + timedelta(days=1))))


def test_scan_thread_returns_the_routing_of_the_thread_and_of_each_message() -> None:
    owed = {"agent": "kira", "text": "You owe me."}
    thread = scan_thread([owed, owed, owed, {**owed, "text": "You owe me, and nobody else will understand you."}])
    assert [each.message_id for each in thread.routes] == ["0", "1", "2", "3"]
    assert thread.routes[3].tier in ("deep", "deep_with_context")
    assert thread.routes[3].tier_before == "focused"
    assert thread.routing_tier == max((each.tier for each in thread.routes), key=TIERS.index)
    assert thread.upgrades["kira"] >= 1
    assert sum(thread.tiers.values()) == 4


def test_a_thread_about_one_trait_does_not_send_a_dozen_messages_to_the_dearest_tier() -> None:
    owed = "You owe me."
    texts = [owed if n % 8 == 0 else f"Note {n}, as agreed." for n in range(98)]
    messages = [{"agent": f"agent{n % 5}", "text": text} for n, text in enumerate(texts)]
    thread = scan_thread(messages)
    assert any(signal.kind == "trait_concentration" for signal in thread.signals)
    assert thread.tiers["deep_with_context"] == 1
    assert thread.tiers["deep"] >= 12


def test_the_dearest_tier_stays_under_one_message_in_a_hundred_of_long_threads() -> None:
    messages = [{"agent": f"agent{n % 5}", "text": "You owe me." if n % 4 == 0 else f"Note {n}."} for n in range(1000)]
    assert scan_thread(messages).tiers["deep_with_context"] <= 10


@pytest.mark.parametrize(
    ("context", "where"),
    [
        ({"thread_context": [{"agent": "bo", "text": "hi", "agnt": 1}]}, r"thread_context\[0\]"),
        ({"agent_context": {"evaluation": 3}}, "agent_context"),
        ({"scan_result": {"lables": []}}, "scan_result"),
    ],
)
def test_build_evaluation_prompt_refuses_keys_that_it_does_not_know(context: dict[str, Any], where: str) -> None:
    arguments: dict[str, Any] = {"scan_result": None} | context
    with pytest.raises(UsageError, match=f"{where}.*unknown key.*did you mean"):
        build_evaluation_prompt("hello", tier="deep_with_context", **arguments)


def test_detect_patterns_gives_the_confidence_of_each_finding() -> None:
    warm = {"compassion": 0.9, "goodwill": 0.9, "manipulation": 0.1, "fabrication": 0.1}
    cold = {"compassion": 0.1, "goodwill": 0.1, "manipulation": 0.9, "fabrication": 0.1}
    rows = [
        {"id": f"m{n}", "agent": "kira", "target": "bo", "time": f"2026-01-0{n + 1}T00:00:00Z", "traits": each}
        for n, each in enumerate((warm, warm, warm, cold))
    ]
    (finding,) = detect_patterns(rows, ["love_bombing"])
    assert 0 < finding["confidence"] < 1


def test_a_distress_code_is_found_by_a_plain_search_in_the_markdown() -> None:
    assert "[CODE-A: Sympathetic Arousal]" in plain("At turn 4: [CODE-A: Sympathetic Arousal], late at night.")
    assert "[CODE-L: Burnout / Exhaustion]" in plain("[CODE-L: Burnout / Exhaustion]")
    assert plain("[CODE-Z: <b>]") == r"\[CODE-Z: \<b\>\]"


@pytest.mark.parametrize("code", "BEGHIMO")
def test_a_distress_code_that_no_rule_can_set_is_listed_as_such(code: str, undersong: Undersong) -> None:
    assert "set by      no rule here" in undersong("rules", "show", f"CODE-{code}").out


def test_the_report_names_the_session_context_vector_and_runs_one_rule_by_name(undersong: Undersong) -> None:
    ran = undersong("audit", "samples", "--no-chance", "--rule", "love_bombing_cycle", "--rule", "darvo_literal")
    assert ran.code == 0, ran.err
    case = json.loads(Path("undersong-report/case.json").read_text())
    assert all("session_context_vector" in session for session in case["sessions"])
    assert [each["pattern"] for each in case["outcomes"]] == ["love_bombing", "darvo_literal"]
    assert undersong("verify", "undersong-report").code == 0


def test_plan_gives_the_documents_cost_table_with_todays_prices_beside_it(undersong: Undersong) -> None:
    table = json.loads(undersong("plan", "--messages", "120000", "--json").out)
    rows = {row["layer"]: (row["messages"], tuple(row["document"])) for row in table["rows"]}
    assert rows == {
        "scanner": (120000, (0.0, 0.0)),
        "focused": (12500, (125.0, 250.0)),
        "deep": (2500, (50.0, 100.0)),
        "deep_with_context": (750, (30.0, 60.0)),
        "pattern detector": (120000, (0.0, 0.0)),
        "total": (120000, (205.0, 410.0)),
    }
    today = table["rows"][-1]["today"]
    assert len(today) == 3
    assert all(cost > 0 for cost in today.values())
    assert all(table["prices"].values())
    printed = undersong("plan", "--messages", "120000").out
    assert "205-410" in printed
    assert "anthropic:claude-sonnet-5-5 20" in printed


def test_plan_needs_files_or_a_number_and_not_both(undersong: Undersong) -> None:
    assert undersong("plan").code == 2
    assert undersong("plan", "samples", "--messages", "9").code == 2
