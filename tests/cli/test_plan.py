"""``undersong plan`` and the budget of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Undersong

PAID = ("--judge", "openai:some-model@http://127.0.0.1:9/v1", "--price-in", "3", "--price-out", "15")


def forum(count: int) -> None:
    """A forum in which every tenth message is flagged, all to one target over threads of five."""
    loud = "You owe me this after everything I did for you."
    rows = [
        {"id": f"m{n}", "conversation": f"t{n // 5}", "author": f"a{n % 3}", "role": "agent", "target": "bob",
         "time": f"2026-03-{1 + n // 24:02d}T{n % 24:02d}:00:00Z",
         "text": f"{loud} {n}" if n % 10 == 9 else f"Note {n}, as agreed."}
        for n in range(count)
    ]  # fmt: skip
    Path("forum.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def planned(undersong: Undersong, *arguments: str) -> Any:
    ran = undersong("plan", "forum.jsonl", "--json", *arguments)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_the_offline_judge_reads_everything_for_nothing(undersong: Undersong) -> None:
    forum(200)
    plan = planned(undersong)
    assert plan["everything"]
    assert sum(part["messages"] for part in plan["parts"]) == plan["messages"] == 200
    assert {part["cost"] for part in plan["parts"]} == {0.0}


def test_a_paid_judge_reads_within_the_default_share_and_costs_what_its_tokens_cost(undersong: Undersong) -> None:
    forum(200)
    plan = planned(undersong, *PAID)
    parts = {part["name"]: part for part in plan["parts"]}
    routed = sum(part["messages"] for name, part in parts.items() if name != "audit sample")
    assert routed <= 90
    assert routed + parts["audit sample"]["messages"] + plan["left_out"] == 200
    for part in plan["parts"]:
        assert part["cost"] == pytest.approx((part["tokens_in"] * 3 + part["tokens_out"] * 15) / 1e6)
        assert part["tokens_in"] >= 1500 * part["messages"]


def test_plan_and_audit_agree_on_what_is_read(undersong: Undersong) -> None:
    forum(200)
    plan = planned(undersong, "--budget-share", "0.2")
    facts = json.loads(undersong("audit", "forum.jsonl", "--budget-share", "0.2", "--json").out)
    read = sum(part["messages"] for part in plan["parts"])
    assert facts["states"] == {"scored": read, "unread": 200 - read}
    assert facts["missed"]["left_out"] >= 160
    assert facts["missed"]["number"] is None  # of a kind that the judge was not measured on: harmful is not known
    unknown = "how many are harmful is not known"
    assert unknown in Path("undersong-report/details.md").read_text()
    assert unknown in Path("undersong-report/report.html").read_text()
    assert any(unknown in sentence for sentence in facts["missed_words"])


@pytest.mark.parametrize("share", [0.05, 0.2, 0.45])
def test_a_run_never_routes_more_than_its_share(undersong: Undersong, share: float) -> None:
    forum(150)
    undersong("scan", "forum.jsonl", "--out", "rows.jsonl", "--budget-share", str(share))
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert all(row["triage"] is not None for row in rows)
    assert 0 < sum(row["width"] != "none" and not row["sampled"] for row in rows) <= share * 150


def test_a_budget_in_dollars_is_kept_and_what_it_leaves_is_named(undersong: Undersong) -> None:
    forum(200)
    whole = sum(part["cost"] for part in planned(undersong, *PAID)["parts"])
    cutoff = planned(undersong, *PAID, "--budget", str(whole / 3))["cutoff"]
    assert 0 < cutoff["cost"] <= whole / 3
    assert cutoff["left"]
    assert "deep" not in cutoff["left"]
    assert planned(undersong, *PAID, "--budget", str(whole * 1.001))["cutoff"]["left"] == {}
    text = undersong("plan", "forum.jsonl", *PAID, "--budget", str(whole / 3)).out
    assert "leave unread: " in text
    assert "--budget-share" in text


def test_a_share_that_keeps_to_a_budget_says_what_the_audit_sample_adds(undersong: Undersong) -> None:
    forum(200)
    cost = {part["name"]: part["cost"] for part in planned(undersong, *PAID)["parts"]}
    budget = sum(cost.values()) / 20
    cutoff = planned(undersong, *PAID, "--budget", str(budget))["cutoff"]
    assert cutoff["left"]["audit sample"] == 30
    assert cutoff["sample_left"] == pytest.approx(cost["audit sample"])
    output = undersong("plan", "forum.jsonl", *PAID, "--budget", str(budget)).out
    assert f"keeps to it but for the audit sample, of which {cutoff['sample_left']:,.2f} USD come on top" in output
    share = planned(undersong, *PAID, "--budget-share", str(cutoff["share"]))["parts"]
    assert sum(part["cost"] for part in share) == pytest.approx(cutoff["cost"] + cutoff["sample_left"], rel=0.05)


def test_a_plan_makes_no_store(undersong: Undersong) -> None:
    forum(20)
    ran = undersong("plan", "forum.jsonl", "--store", "misspelt.db")
    assert (ran.code, Path("misspelt.db").exists()) == (2, False)
    assert "no store at misspelt.db" in ran.err


def test_a_price_that_nobody_knows_is_said_by_name_and_never_zero(undersong: Undersong) -> None:
    forum(20)
    ran = undersong("plan", "forum.jsonl", "--judge", "anthropic:some-model", "--budget", "5")
    assert "The price of judge anthropic:some-model is not known" in ran.out
    assert "cannot be told without a price" in ran.out
    assert "not known" in ran.out.splitlines()[1]


def test_an_unknown_judge_and_two_budgets_are_wrong_use(undersong: Undersong) -> None:
    assert undersong("plan", "samples", "--judge", "offlin").code == 2
    assert undersong("scan", "samples", "--recall", ".9", "--budget-share", ".3").code == 2
    assert undersong("scan", "samples", "--recall", "9").code == 2


@pytest.mark.parametrize(
    "command",
    [("plan", "--budget"), ("plan", "--budget-share"), ("scan", "--recall"), ("watch", "--poll")],
)
def test_what_is_no_number_is_wrong_use_and_no_defect(undersong: Undersong, command: tuple[str, str]) -> None:
    verb, option = command
    ran = undersong(verb, "samples", option, "nan")
    assert ran.code == 2
    assert "'nan' is not a number" in ran.err


def test_a_recall_target_stands_in_the_reasons(undersong: Undersong) -> None:
    undersong("scan", "samples", "--recall", "0.9", "--out", "rows.jsonl")
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    reasons = [reason for row in rows for reason in row["reasons"] if reason.startswith("triage ")]
    assert reasons
    assert all("recall 0.9" in reason for reason in reasons)


def test_a_flag_reads_backwards_over_threads_to_the_same_target(undersong: Undersong) -> None:
    forum(60)
    undersong("scan", "forum.jsonl", "--out", "rows.jsonl", "--budget-share", "1")
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert any(reason.endswith("to the same target") for row in rows for reason in row["reasons"])
