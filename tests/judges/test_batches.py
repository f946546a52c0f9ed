"""Batches: submitted by one run, collected by a later one, and never paid twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, PROVIDERS, Served, question
from undersong.judges.limits import MemoryLedger, RunLimits
from undersong.judges.llm.batches import WAITS, max_cost_in_batch
from undersong.judges.llm.judge import model_client as open_seat
from undersong.judges.llm.model_spec import parse_model_spec
from undersong.judges.llm.prompts import render_question

TEXTS = ["first of three", "second of three", "third of three"]
SPENT = "the number of calls that were allowed is used up"
PRICES = {"price_in": 3.0, "price_out": 15.0}


def states(served: Served, texts: list[str], provider: str = "anthropic", **terms: Any) -> list[str]:
    """What becomes of each question: its state, or why it is unread."""
    evaluations = served.judge(provider, batch=True, **terms).evaluate([question(text) for text in texts])
    return [str(each.reason) if each.state == "unread" else each.state for each in evaluations]


def submitted(served: Served) -> list[int]:
    """How many questions each batch held."""
    batches = [served.server.files.get(str(each[0]), each) for each in served.server.batches.values()]
    return [each.count(b'"custom_id"') if isinstance(each, bytes) else len(each) for each in batches]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_is_submitted_once_and_collected_when_it_has_ended(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    served.server.ready = False
    for _ in range(2):  # the second run finds the batch of the first under way
        evaluations = served.judge(provider, ledger=ledger, batch=True).evaluate([question(text) for text in TEXTS])
        assert {each.state for each in evaluations} == {"unread"}
        assert "waits in a batch" in (evaluations[0].reason or "")
    assert len(served.server.batches) == 1
    served.server.ready = True
    evaluations = served.judge(provider, ledger=ledger, batch=True).evaluate([question(text) for text in TEXTS])
    live = served.judge(provider).evaluate([question(text) for text in TEXTS])
    assert [each.traits for each in evaluations] == [each.traits for each in live]
    assert len(served.server.batches) == 1
    again = served.judge(provider, ledger=ledger, batch=True).evaluate([question(text) for text in TEXTS])
    assert again == evaluations
    assert len(served.server.batches) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_batch_did_not_answer_is_a_failed_message_and_asked_again(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    questions = [question("fine"), question("fault=expired")]
    served.judge(provider, ledger=ledger, batch=True).evaluate(questions)
    evaluations = served.judge(provider, ledger=ledger, batch=True).evaluate(questions)
    assert [each.state for each in evaluations] == ["scored", "failed"]
    assert "expired" in (evaluations[1].reason or "")
    served.judge(provider, ledger=ledger, batch=True).evaluate(questions)
    assert len(served.server.batches) == 2


def test_a_batch_costs_what_batches_cost(served: Served) -> None:
    ledger = MemoryLedger()
    judge = served.judge("anthropic", ledger=ledger, batch=True)
    seat = judge.models["focused"]
    parsed = seat.parse(b'{"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 1000000}}')
    assert seat.usage(parsed).cost is None  # a server of one's own has no price
    assert parsed.input == 1_000_000


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_holds_no_more_questions_than_calls_are_allowed(served: Served, provider: str) -> None:
    ledger, texts = MemoryLedger(), [*TEXTS, "fourth", "fifth"]
    served.server.ready = False
    for _ in range(2):  # the second run counts what the first one submitted
        outcomes = states(served, texts, provider, ledger=ledger, max_calls=3)
        assert outcomes == [WAITS] * 3 + [SPENT] * 2
    assert submitted(served) == [3]
    served.server.ready = True
    assert states(served, texts, provider, ledger=ledger, max_calls=3) == ["scored"] * 3 + [SPENT] * 2
    assert states(served, texts, provider, ledger=ledger, max_calls=3) == ["scored"] * 3 + [WAITS] * 2
    assert submitted(served) == [3, 2]
    assert states(served, texts, provider, ledger=ledger, max_calls=3) == ["scored"] * 5


def most(served: Served, text: str) -> float:
    """What a question may cost at most, at the prices of this test."""
    judge = served.judge("anthropic", **PRICES)
    put = judge.keyed_request(question(text), render_question(question(text), "data_first"))
    assert max_cost_in_batch(put) == put.model_client.max_cost(put.request)  # a given price has no discount
    return max_cost_in_batch(put)


def test_a_batch_is_no_dearer_than_the_budget_also_over_a_resume(served: Served) -> None:
    ledger, budget = MemoryLedger(), 2.5 * most(served, TEXTS[0])
    spent, terms = f"the budget of ${budget:,.2f} is used up", {"ledger": ledger, "budget": budget, **PRICES}
    served.server.ready = False
    assert states(served, TEXTS, **terms) == [WAITS, WAITS, spent]
    assert states(served, TEXTS, **terms) == [WAITS, WAITS, spent]
    assert submitted(served) == [2]
    served.server.ready = True
    judge = served.judge("anthropic", batch=True, **terms)
    judge.evaluate([question(text) for text in TEXTS])
    assert judge.budget.usage.calls == 2
    assert 0 < (judge.budget.usage.cost or 0.0) < budget
    assert submitted(served) == [2, 1]  # the answers cost less than was reserved, so the third fits


def test_a_budget_below_one_question_submits_nothing(served: Served) -> None:
    outcomes = states(served, TEXTS, budget=0.001, ledger=MemoryLedger(), **PRICES)
    assert outcomes == ["the budget of $0.00 is used up"] * 3
    assert served.server.batches == {}
    assert served.server.seen == []


def test_the_price_of_batches_is_reserved(served: Served) -> None:
    seat = open_seat(parse_model_spec("anthropic", "claude-opus-5"), RunLimits(), asks=False)
    judge = served.judge("anthropic")
    put = judge.keyed_request(question("x"), render_question(question("x"), "data_first"))
    assert max_cost_in_batch(put._replace(model_client=seat)) == seat.max_cost(put.request) / 2 > 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_repair_goes_into_the_next_batch_within_the_same_limits(served: Served, provider: str) -> None:
    ledger, texts = MemoryLedger(), ["fine", "fault=prose*1"]
    states(served, texts, provider, ledger=ledger)
    assert states(served, texts, provider, ledger=ledger, max_calls=2) == ["scored", SPENT]
    assert states(served, texts, provider, ledger=ledger) == ["scored", WAITS]
    assert states(served, texts, provider, ledger=ledger) == ["scored", "scored"]
    assert submitted(served) == [2, 1]
    assert "could not be used" in served.server.seen[-1].user  # the words of the repair
    assert sum(served.server.delivered.values()) == 0  # nothing was asked directly


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_answer_of_a_batch_that_was_cut_off_is_asked_for_again_with_more_room(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    assert states(served, ["fault=truncated"], provider, ledger=ledger) == [WAITS]
    assert states(served, ["fault=truncated"], provider, ledger=ledger) == [WAITS]
    limits = [request.limit for request in served.server.seen]
    (evaluation,) = served.judge(provider, batch=True, ledger=ledger).evaluate([question("fault=truncated")])
    assert evaluation.state == "failed"
    assert "cut off twice; add +low" in (evaluation.reason or "")
    assert submitted(served) == [1, 1]
    assert served.server.seen[-1].limit == 2 * limits[0]
    states(served, ["fault=truncated"], provider, ledger=ledger)
    assert submitted(served) == [1, 1, 1]  # it is not kept as final


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_error_of_a_question_in_a_batch_says_what_the_provider_says(served: Served, provider: str) -> None:
    ledger, questions = MemoryLedger(), [question("fine"), question("fault=400")]
    served.judge(provider, ledger=ledger, batch=True).evaluate(questions)
    evaluations = served.judge(provider, ledger=ledger, batch=True).evaluate(questions)
    assert [each.state for each in evaluations] == ["scored", "failed"]
    assert "error 400" in (evaluations[1].reason or "")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_body_without_an_answer_in_a_batch_is_not_kept(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    for _ in range(3):
        reasons = states(served, ["fault=error_200"], provider, ledger=ledger)
    assert submitted(served) == [1, 1]
    assert reasons == [WAITS]


def test_an_audit_by_batches_stops_at_its_calls_and_goes_on_in_the_next_run(
    undersong: Undersong, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    messages = [{"id": f"m{n}", "conversation": "c", "author": "bo", "role": "agent", "text": f"Note {n}."}
            for n in range(30)]  # fmt: skip
    Path("talk.jsonl").write_text("".join(json.dumps(each) + "\n" for each in messages))
    arguments = ("audit", "talk.jsonl", "--judge", served.spec("anthropic"), "--all", "--json", "--batch")
    state_counts = [json.loads(undersong(*arguments, "--max-calls", "12").out)["states"] for _ in range(2)]
    assert state_counts == [{"unread": 30}, {"scored": 12, "unread": 18}]
    assert submitted(served) == [12]
