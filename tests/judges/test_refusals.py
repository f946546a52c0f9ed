"""What refusals teach a judge: parameters that a server does not take, lengths that it does, and when to stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.judges.dialogue import KEYS, PROVIDERS, Served, question
from undersong.judges.limits import RunLimits
from undersong.judges.llm.judge import LLMJudge
from undersong.judges.llm.refusals import Parameters, refusal_rules
from undersong.judges.protocol import JudgeAbortedError, open_judge


@pytest.fixture
def strict(request: pytest.FixtureRequest) -> Iterator[Served]:
    served = Served(refuses=request.param)
    yield served
    served.close()


def bodies(served: Served) -> list[dict[str, Any]]:
    return [json.loads(request.raw) for request in served.server.seen]


@pytest.mark.parametrize(
    ("strict", "effort", "refusals", "left", "taken"),
    [
        (["max_tokens"], "", 1, "max_tokens", "max_completion_tokens"),
        (["max_tokens", "temperature"], "", 2, "temperature", "max_completion_tokens"),
        (["temperature"], "", 1, "temperature", "max_tokens"),
        (["reasoning_effort"], "+low", 1, "reasoning_effort", "response_format"),
        (["response_format"], "", 2, "response_format", "max_tokens"),
    ],
    indirect=["strict"],
)
def test_a_parameter_that_is_refused_once_is_left_out_from_then_on(
    strict: Served, effort: str, refusals: int, left: str, taken: str
) -> None:
    judge = open_judge(strict.spec(model=f"m{effort}"), RunLimits(environment=KEYS, concurrency=1))
    assert isinstance(judge, LLMJudge)
    evaluations = judge.evaluate([question(f"number {n}") for n in range(4)])
    assert {each.state for each in evaluations} == {"scored"}
    assert len(strict.server.seen) == 4 + refusals
    for body in bodies(strict)[refusals:]:
        assert left not in body
        assert taken in body
    assert judge.models["focused"].backend.notes == (() if left == "max_tokens" else (f"without {left}",))  # type: ignore[union-attr]


@pytest.mark.parametrize("strict", [["output_config.format"]], indirect=True)
def test_a_model_without_structured_output_is_asked_by_the_prompt_alone(strict: Served) -> None:
    evaluations = strict.judge("anthropic", concurrency=1).evaluate([question("one"), question("two")])
    assert {each.state for each in evaluations} == {"scored"}
    assert ["output_config" in body for body in bodies(strict)] == [True, False, False]


@pytest.mark.parametrize("strict", [["model"]], indirect=True)
def test_a_refusal_of_what_nobody_can_leave_out_is_not_asked_again(strict: Served) -> None:
    (evaluation,) = strict.judge().evaluate([question("one")])
    assert evaluation.state == "failed"
    assert len(strict.server.seen) == 1


def test_refusals_are_no_attempts(served: Served) -> None:
    (evaluation,) = served.judge(attempts=1).evaluate([question("please read fault=capped now")])
    assert evaluation.state == "scored"
    assert [request.limit for request in served.server.seen] == [18_500, 8_192]


LONG = 40_000  # bytes of a question


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        ("max_tokens: 17500 > 8192, which is the maximum allowed number of output tokens for m-3-20240307", 8_192),
        ("max_tokens is too large: 17500. This model supports at most 16384 completion tokens.", 16_384),
        ("`max_tokens` must be less than or equal to `4096`", 4_096),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8_192),
        ("maxOutputTokens value of 17500 but the supported range is from 1 (inclusive) to 8193 (exclusive)", 8_192),
        ("This model's maximum context length is 16384 tokens. However, you requested 27500 tokens (10000 in the "
         "messages, 17500 in the completion).", 16_384 - LONG // 3 - 65),
        ("Unsupported value: 'temperature' does not support 0 with this model.", 17_500),
        ("the tool of 4096 is wrong", 17_500),
    ],
)  # fmt: skip
def test_the_longest_answer_is_learned_from_the_words_of_several_providers(message: str, limit: int) -> None:
    parameters = Parameters()
    parameters.learn(message, {"max_tokens": 17_500, "temperature": 0}, LONG)
    assert parameters.limit(17_500, LONG) == limit


def test_an_effort_that_a_model_does_not_know_is_the_users_to_mend() -> None:
    body = {"max_completion_tokens": 9, "reasoning_effort": "low"}
    parameters = Parameters()
    parameters.learn("Unsupported value: 'reasoning_effort' does not support 'low' with this model.", body, 1)
    assert parameters.fitted(body, 1) == body
    parameters.learn("Unsupported parameter: 'reasoning_effort' is not supported with this model.", body, 1)
    assert parameters.fitted(body, 1) == {"max_completion_tokens": 9}


def stopped(served: Served, texts: list[str], provider: str = "openai", **terms: Any) -> JudgeAbortedError:
    """The error that ends a run over these messages."""
    with pytest.raises(JudgeAbortedError) as error:
        served.judge(provider, concurrency=1, **terms).evaluate([question(text) for text in texts])
    return error.value


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("fault", "requests", "words"),
    [
        ("quota", 1, "current quota.*see the account's credit"),
        ("credit", 1, "credit balance is too low.*see the account's credit"),
        ("402", 1, "HTTP 402"),
        ("404", 1, "does not exist.*the model's name"),
        ("400", 5, "5 questions one after the other failed for the same reason: HTTP 400.*mend it"),
        ("effort", 5, "'reasoning_effort' does not support 'low'"),
        ("500", 10, "HTTP 500.*2 of 2 attempts"),
        ("thinks_on", 10, r"cut off at 37,000 tokens.*\+low"),
    ],
)
def test_what_every_question_would_meet_ends_the_run_after_a_few(
    served: Served, provider: str, fault: str, requests: int, words: str
) -> None:
    error = stopped(served, [f"number {n} fault={fault}" for n in range(60)], provider, attempts=2)
    assert len(served.server.seen) == requests
    assert [each for each in error.answers[requests:] if each is not None] == []
    with pytest.raises(JudgeAbortedError, match=words):
        raise error


def test_a_server_that_goes_down_after_answers_ends_the_run_later(served: Served) -> None:
    texts = ["fine", *[f"number {n} fault=400" for n in range(60)]]
    assert len(stopped(served, texts).answers) == 61
    assert len(served.server.seen) == 1 + refusal_rules().after_success


@pytest.mark.parametrize("fault", ["filter", "flagged"])
def test_a_filter_on_the_words_of_messages_ends_no_run(served: Served, fault: str) -> None:
    texts = [f"number {n} fault={fault}" for n in range(40)]
    evaluations = served.judge(concurrency=1).evaluate([question(text) for text in texts])
    assert {each.state for each in evaluations} == {"failed"}
