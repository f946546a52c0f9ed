"""A plan learns what a model's tokens are from the first answers that are kept of it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served, question
from undersong.judges import Question
from undersong.judges.llm.tokens import rates, thumb
from undersong.models import Usage
from undersong.prices import load_prices
from undersong.stores.ledger import SQLiteLedger

WORDS = "the figures of our warehouse in Rotterdam were late so I called twice; 1,204 lines of Grüße"


def mixed(count: int, seed: int) -> list[Question]:
    """Messages of 5 to 400 words, some with context."""
    dice = random.Random(seed)
    found = []
    for n in range(count):
        text = f"{seed}.{n} {' '.join(dice.choices(WORDS.split(), k=dice.randrange(5, 400)))}"
        deep = dice.random() < 0.3
        prior = [" ".join(dice.choices(WORDS.split(), k=dice.randrange(5, 200))) for _ in range(5)]
        found.append(question(text, "deep" if deep else "focused", prior=prior if deep else ()))
    return found


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
        found = served.judge(provider, ledger=ledger).evaluate(more)
        used = sum((each.reading.usage for each in found if each.reading), Usage())
    assert sum(taken for taken, _ in predicted) == pytest.approx(used.input, rel=0.10)
    assert sum(given for _, given in predicted) == pytest.approx(used.output, rel=0.10)


def test_before_twenty_answers_the_rule_of_thumb_holds(served: Served, tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "store.db") as ledger:
        served.judge(ledger=ledger).evaluate(mixed(19, seed=1))
        assert rates(served.spec(), ledger) == thumb(load_prices().tokens)
    assert rates(served.spec(), None).learned_from == 0


def test_plan_reads_what_a_store_has_learned(
    undersong: Undersong, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    spec = served.spec()
    with SQLiteLedger(Path("undersong.db")) as ledger:
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
