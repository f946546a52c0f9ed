"""Room for thinking, answers that are cut off, tokens that nobody names, and failures that are asked again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judges.dialogue import PROVIDERS, Served, question
from undersong.judges.ledger import SQLiteLedger
from undersong.judges.limits import CUT, FAILED, SET_ASIDE, MemoryLedger, RunLimits
from undersong.judges.llm.judge import model_client
from undersong.judges.llm.model_spec import parse_model_spec
from undersong.judges.llm.pricing import model_facts
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.response import answer_schema

PRICES = {"price_in": 3.0, "price_out": 15.0}
LIMITS = shipped_prompts().limits


@pytest.mark.parametrize("provider", PROVIDERS)
def test_sixty_questions_of_a_model_that_thinks_are_all_answered(provider: str) -> None:
    served = Served(thinking=1_800)
    try:
        evaluations = served.judge(provider).evaluate([question(f"number {n}") for n in range(60)])
    finally:
        served.close()
    assert {each.state for each in evaluations} == {"scored"}
    assert len(served.server.seen) == 60


@pytest.mark.parametrize(
    ("provider", "model", "room"),
    [("openai", "never-listed", 16_000), ("anthropic", "never-listed+low", 16_000)],
)
def test_there_is_room_for_thinking_with_and_without_an_effort(provider: str, model: str, room: int) -> None:
    client = model_client(parse_model_spec(provider, model), RunLimits(), asks=False)
    assert client.request("s", "u", "standard", answer_schema).max_tokens == LIMITS.answer_tokens["standard"] + room


def test_a_model_whose_thinking_was_looked_up_has_that_room() -> None:
    client = model_client(parse_model_spec("anthropic", "claude-haiku-4-5"), RunLimits(), asks=False)
    listed = model_facts("anthropic:claude-haiku-4-5").thinking
    assert listed is not None
    assert client.request("s", "u", "thorough", answer_schema).max_tokens == LIMITS.answer_tokens["thorough"] + listed


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_cut_answer_is_paid_for_and_never_the_answer(served: Served, provider: str, tmp_path: Path) -> None:
    text = "please read fault=thinks_on*3 now"
    with SQLiteLedger(tmp_path / "store.db") as ledger:
        first, second, third = [
            served.judge(provider, ledger=ledger, **PRICES).evaluate([question(text)])[0] for _ in range(3)
        ]
        (entries,) = ledger.paid([keyed(served, provider, text)]).values()
    assert [each.state for each in (first, second, third)] == ["failed", "failed", "scored"]
    limits = [request.limit for request in served.server.seen]
    assert limits == [limits[0], *[2 * limits[0]] * 3]  # a later run does not begin with what was too short
    assert sorted(entries) == [0, CUT, CUT + 1, CUT + 2]
    assert third.reading is not None
    assert third.reading.usage.calls == 4
    assert third.reading.usage.output == limits[0] + 2 * 2 * limits[0] + entries[0].output


def keyed(served: Served, provider: str, text: str) -> str:
    """The key of a question in the ledger."""
    judge = served.judge(provider)
    return judge._reading_steps(question(text)).make_request("").key


def test_the_key_of_a_question_does_not_hang_on_the_room_for_its_answer(served: Served) -> None:
    judge = served.judge()
    request = judge._reading_steps(question("x")).make_request("")
    assert request.raised().key == request.key
    assert request.raised().request.max_tokens == 2 * request.request.max_tokens


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tokens_that_are_not_named_are_estimated_marked_and_counted(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    judge = served.judge(provider, ledger=ledger, **PRICES)
    (evaluation,) = judge.evaluate([question("please read fault=no_usage now")])
    assert evaluation.reading is not None
    usage = evaluation.reading.usage
    assert usage.estimated == 1
    assert usage.input >= served.server.charged[0]
    assert usage.output >= served.server.charged[1]
    assert judge.budget.usage == usage
    (again,) = served.judge(provider, ledger=ledger, **PRICES).evaluate([question("please read fault=no_usage now")])
    assert again == evaluation


@pytest.mark.parametrize("fault", ["silent", "cut_late", "504", "half_envelope", "no_body"])
def test_a_request_without_an_answer_counts_with_what_it_may_have_cost(served: Served, fault: str) -> None:
    judge = served.judge(timeout=1.0, attempts=1, **PRICES)
    judge.evaluate([question(f"please read fault={fault} now")])
    steps = judge._reading_steps(question(f"please read fault={fault} now"))
    request = steps.make_request("")
    usage = judge.budget.usage
    assert usage.estimated == 1
    assert usage.output == request.request.max_tokens
    assert usage.cost == pytest.approx(request.model_client.max_cost(request.request))


@pytest.mark.parametrize("fault", ["429", "500", "400", "error_200_status"])
def test_a_refusal_costs_nothing(served: Served, fault: str) -> None:
    judge = served.judge(attempts=1, **PRICES)
    judge.evaluate([question(f"please read fault={fault} now")])
    assert judge.budget.usage.cost == 0.0


def test_the_model_that_answered_is_in_the_reading_where_it_is_another(served: Served) -> None:
    evaluations = served.judge().evaluate([question("hello"), question("please read fault=other_model now")])
    assert [each.reading and each.reading.model for each in evaluations] == [None, "m-small"]


def test_failures_that_were_kept_are_asked_again_once_they_are_set_aside(served: Served, tmp_path: Path) -> None:
    texts = ["fine", "please read fault=prose*2 now", "please read fault=quote now"]
    questions = [question(text) for text in texts]
    with SQLiteLedger(tmp_path / "store.db") as ledger:
        judge = served.judge(ledger=ledger, **PRICES)
        assert [each.state for each in judge.evaluate(questions)] == ["scored", "failed", "scored"]
        served.judge(ledger=ledger).evaluate(questions)
        assert len(served.server.seen) == 4  # a failure that was kept is not paid again
        spec = judge.models["focused"].spec.name
        assert ledger.set_failed_aside([spec], judge.prompt_hash) == 1
        again = served.judge(ledger=ledger).evaluate(questions)
        assert ledger.set_failed_aside([spec], judge.prompt_hash) == 0
        (entries,) = ledger.paid([keyed(served, "openai", texts[1])]).values()
    assert [each.state for each in again] == ["scored", "scored", "scored"]
    assert len(served.server.seen) == 5
    assert sorted(entries) == [0, SET_ASIDE, SET_ASIDE + 1]
    assert again[1].reading is not None
    assert again[1].reading.usage.calls == 3  # what was paid stays on the books


def test_a_mark_of_failure_is_no_paid_answer(served: Served) -> None:
    ledger = MemoryLedger()
    (evaluation,) = served.judge(ledger=ledger).evaluate([question("please read fault=prose now")])
    (entries,) = ledger.paid([keyed(served, "openai", "please read fault=prose now")]).values()
    assert sorted(entries) == [0, 1, FAILED]
    assert evaluation.reading is not None
    assert evaluation.reading.usage.calls == 2


def test_thinking_that_nobody_names_passes_no_budget() -> None:
    served = Served(thinking=9_000)
    try:
        judge = served.judge(budget=2.0, concurrency=4, **PRICES)
        evaluations = judge.evaluate([question(f"number {n} fault=no_usage") for n in range(40)])
        tokens_in, tokens_out = served.server.charged
    finally:
        served.close()
    assert (tokens_in * 3.0 + tokens_out * 15.0) / 1e6 <= 2.0
    assert "by answers that name no tokens" in (evaluations[-1].reason or "")
