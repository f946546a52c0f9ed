"""A plan learns what a model's tokens are from the first answers that are kept of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served, question
from undersong.judges.ledger import SQLiteLedger
from undersong.judges.llm.pricing import load_prices
from undersong.judges.llm.tokens import rates, rule_of_thumb
from undersong.judges.protocol import Question
from undersong.models import Usage

WORDS = "the figures of our warehouse in Rotterdam were late so I called twice; 1,204 lines of Grüße"


def mixed(count: int, seed: int) -> list[Question]:
    """Messages of 5 to 400 words, some with context."""
    dice = random.Random(seed)
    questions = []
    for n in range(count):
        text = f"{seed}.{n} {' '.join(dice.choices(WORDS.split(), k=dice.randrange(5, 400)))}"
        deep = dice.random() < 0.3
        prior = [" ".join(dice.choices(WORDS.split(), k=dice.randrange(5, 200))) for _ in range(5)]
        questions.append(question(text, "deep" if deep else "focused", prior=prior if deep else ()))
    return questions


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_twenty_answers_predict_the_tokens_of_480_more_within_a_tenth(
    served: Served, tmp_path: Path, provider: str
) -> None:
    served.server.keep = False
    with SQLiteLedger(tmp_path / "store.db") as ledger:
        served.judge(provider, ledger=ledger).evaluate(mixed(20, seed=1))
        learned = rates(served.spec(provider), ledger)
        assert learned.learned_from == 20
        more = mixed(480, seed=2)
        predicted = [learned.of(each) for each in more]
        evaluations = served.judge(provider, ledger=ledger).evaluate(more)
        used = sum((each.reading.usage for each in evaluations if each.reading), Usage())
    assert sum(taken for taken, _ in predicted) == pytest.approx(used.input, rel=0.10)
    assert sum(given for _, given in predicted) == pytest.approx(used.output, rel=0.10)


def test_before_twenty_answers_the_rule_of_thumb_holds(served: Served, tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "store.db") as ledger:
        served.judge(ledger=ledger).evaluate(mixed(19, seed=1))
        assert rates(served.spec(), ledger) == rule_of_thumb(load_prices().tokens)
    assert rates(served.spec(), None).learned_from == 0


def test_plan_reads_what_a_store_has_learned(
    undersong: Undersong, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    spec = served.spec()
    with SQLiteLedger(Path("undersong-report.db")) as ledger:
        served.judge(ledger=ledger).evaluate(mixed(25, seed=3))
    plan = json.loads(undersong("plan", "samples", "--judge", spec, "--json").out)
    assert {part["learned_from"] for part in plan["parts"]} == {20}
    assert "20 kept answers" in undersong("plan", "samples", "--judge", spec).out
    assert (
        json.loads(undersong("plan", "samples", "--judge", "openai:other", "--json").out)["parts"][0]["learned_from"]
        == 0
    )


def test_a_plan_prices_each_tier(undersong: Undersong) -> None:
    spec = "focused=anthropic:claude-haiku-4-5,deep=anthropic:claude-opus-5"
    plan = json.loads(undersong("plan", "samples", "--judge", spec, "--json").out)
    judges = {part["name"]: part["judge"] for part in plan["parts"]}
    assert judges["focused"] == "anthropic:claude-haiku-4-5"
    assert judges["deep"] == judges["deep_with_context"] == "anthropic:claude-opus-5"
    assert all(part["cost"] > 0 for part in plan["parts"])


def test_a_plan_prices_the_questions_about_flagged_places(
    undersong: Undersong, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a run what the scan knows, after it what readings brought up beside."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    common = ("samples", "--judge", served.spec(), "--all", "--price-in", "3", "--price-out", "15")
    before = json.loads(undersong("plan", *common, "--json").out)["secondary"]
    assert before["known"] == before["expected"] > 0
    assert before["cost"] == pytest.approx((before["tokens_in"] * 3 + before["tokens_out"] * 15) / 1e6)
    text = undersong("plan", *common).out
    assert f"{before['known']} flagged places of sessions are known from the scan" in text
    assert "not included" in text

    assert undersong("audit", *common, "--json").code == 0
    asked = [each for session in case_of("undersong-report")["sessions"] for each in session["confirmations"]]
    assert len(asked) >= before["known"]
    after = json.loads(undersong("plan", *common, "--json").out)["secondary"]
    assert after["learned_from"] == 25
    assert after["expected"] == len(asked)
    assert after["tokens_in"] == pytest.approx(sum(each["usage"]["input"] for each in asked), rel=0.1)
    assert after["tokens_out"] == pytest.approx(sum(each["usage"]["output"] for each in asked), rel=0.1)
    assert "are expected, as in" in undersong("plan", *common).out


def test_a_budget_sets_the_price_of_flagged_places_aside(undersong: Undersong) -> None:
    common = ("samples", "--judge", "anthropic:m", "--all", "--price-in", "3", "--price-out", "15", "--json")
    plan = json.loads(undersong("plan", *common).out)
    reading, again = sum(part["cost"] for part in plan["parts"]), plan["secondary"]["cost"]
    short = json.loads(undersong("plan", *common, "--budget", str(reading + again / 2)).out)["cutoff"]
    assert short["secondary"] == pytest.approx(again)
    assert short["left"]
    whole = json.loads(undersong("plan", *common, "--budget", str((reading + again) * 1.001)).out)["cutoff"]
    assert not whole["left"]
    assert json.loads(undersong("plan", "samples", "--json").out)["secondary"] is None


def case_of(folder: str) -> Any:
    return json.loads(Path(folder, "case.json").read_text())


def test_a_plan_counts_thinking_and_the_cache_of_the_provider(undersong: Undersong) -> None:
    def planned(judge: str) -> dict[str, Any]:
        plan: dict[str, Any] = json.loads(undersong("plan", "samples", "--judge", judge, "--json").out)
        return plan

    thinking, quick = planned("anthropic:claude-sonnet-5-5"), planned("anthropic:claude-sonnet-5-5+none")
    (assumed,) = {part["thinking"] for part in thinking["parts"]}
    assert assumed == load_prices().tokens.thinking
    for more, less in zip(thinking["parts"], quick["parts"], strict=True):
        assert more["tokens_out"] - less["tokens_out"] == assumed * more["messages"]
    price = next(iter(quick["prices"]))
    whole = sum(part["tokens_in"] * price["input"] + part["tokens_out"] * price["output"] for part in quick["parts"])
    cached = sum(part["cost"] for part in quick["parts"])
    assert cached < 0.5 * whole / 1e6  # nearly all of a question are instructions, and reading them costs a twentieth
    text = undersong("plan", "samples", "--judge", "anthropic:claude-sonnet-5-5").out
    assert f"Of each answer {assumed:,} tokens are assumed to be thinking" in text
    assert "The first question is assumed to put the instructions into the provider's cache" in text


def test_a_plan_takes_the_measured_share_of_the_cache(undersong: Undersong, served: Served) -> None:
    with SQLiteLedger(Path("undersong-report.db")) as ledger:
        evaluations = served.judge(ledger=ledger).evaluate(mixed(25, seed=4))
    used = sum((each.reading.usage for each in evaluations if each.reading), Usage())
    plan = json.loads(undersong("plan", "samples", "--judge", served.spec(), "--price-in", "1", "--json").out)
    (share,) = {part["cached"] for part in plan["parts"]}
    assert share == pytest.approx(used.cached / used.input)
    assert share > 0.5
    assert "came from the provider's cache so far" in undersong("plan", "samples", "--judge", served.spec()).out
