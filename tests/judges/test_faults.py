"""Every fault over real HTTP ends in a state; nothing is lost, and nothing is paid for twice."""

from __future__ import annotations

import pytest

from tests.judges.dialogue import KEYS, PROVIDERS, Served, question
from undersong.judges.limits import MemoryLedger, RunLimits
from undersong.judges.protocol import JudgeAbortedError, open_judge

# fault → state, requests, words of the reason
TABLE = [
    ("429_after*1", "scored", 2, ""),
    ("429*2", "scored", 3, ""),
    ("429", "failed", 3, "HTTP 429"),
    ("500*1", "scored", 2, ""),
    ("500", "failed", 3, "HTTP 500"),
    ("529*2", "scored", 3, ""),
    ("529", "failed", 3, "HTTP 529"),
    ("504", "failed", 3, "HTTP 504"),
    ("400", "failed", 1, "HTTP 400: error 400"),
    ("422", "failed", 1, "Input should be a valid string"),
    ("filter", "failed", 1, "content management policy"),
    ("flagged", "failed", 1, "flagged by moderation"),
    ("moved*2", "scored", 3, ""),
    ("moved", "failed", 21, "its address leads in a circle"),
    ("cut*1", "scored", 2, ""),
    ("cut", "failed", 3, "broke off"),
    ("cut_late*1", "scored", 2, ""),
    ("drip", "failed", 2, "no whole answer within"),
    ("silent", "failed", 2, "no whole answer within"),
    ("slow", "scored", 1, ""),
    ("truncated*1", "scored", 2, ""),
    ("truncated", "failed", 2, "tokens, thinking included; add +low to the judge's name"),
    ("thinks", "scored", 1, ""),
    ("thinks_much", "scored", 2, ""),
    ("thinks_on", "failed", 2, "it was cut off at 37,000 tokens, thinking included"),
    ("runs_on", "failed", 2, "it runs on to its longest, also after one repair"),
    ("broken_envelope*1", "scored", 2, ""),
    ("broken_envelope", "failed", 3, "not what the interface documents"),
    ("half_envelope*2", "scored", 3, ""),
    ("no_body", "failed", 3, "no answer came: it is empty"),
    ("no_choices", "failed", 3, "no answer came: it holds no answer"),
    ("error_200*1", "scored", 2, ""),
    ("error_200", "failed", 3, "Provider returned error"),
    ("error_200_status", "failed", 3, "HTTP 429: Rate limited upstream"),
    ("html", "failed", 3, "not what the interface documents"),
    ("no_usage", "scored", 1, ""),
    ("prose*1", "scored", 2, ""),
    ("prose", "failed", 2, "not one JSON object"),
    ("fenced", "scored", 1, ""),
    ("around", "scored", 1, ""),
    ("fractions", "scored", 1, ""),
    ("schema*1", "scored", 2, ""),
    ("schema", "failed", 2, "traits are missing"),
    ("range", "failed", 2, "virtue has neither an integer"),
    ("refusal", "refused", 1, "I cannot help with that"),
    ("empty*1", "scored", 2, ""),
    ("empty", "failed", 2, "empty"),
    ("quote", "scored", 1, ""),
    ("unknown", "scored", 1, ""),
    ("control*1", "scored", 2, ""),
    ("control", "failed", 2, "control question"),
    ("giant", "failed", 2, "longer than"),
    ("capped", "scored", 2, ""),
    ("window", "scored", 2, ""),
    ("narrow", "failed", 2, "maximum context length is 4000 tokens"),
    ("other_model", "scored", 1, ""),
    ("limit", "scored", 1, ""),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("fault", "state", "requests", "words"), TABLE, ids=[row[0] for row in TABLE])
def test_each_fault_ends_in_a_state(
    served: Served, provider: str, fault: str, state: str, requests: int, words: str
) -> None:
    ends_as_told(served, provider, fault, state, requests, words)


@pytest.mark.parametrize(("fault", "state", "requests", "words"), TABLE, ids=[row[0] for row in TABLE])
def test_each_fault_ends_in_the_same_state_through_a_proxy(
    served: Served, monkeypatch: pytest.MonkeyPatch, fault: str, state: str, requests: int, words: str
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{served.port}")
    ends_as_told(served, "openai", fault, state, requests, words)
    assert {request.target[:7] for request in served.server.seen} == {"http://"}


def ends_as_told(served: Served, provider: str, fault: str, state: str, requests: int, words: str) -> None:
    timeout = 1.0 if fault in ("drip", "silent") else 60.0
    (evaluation,) = served.judge(provider, timeout=timeout).evaluate([question(f"please read fault={fault} now")])
    assert evaluation.state == state
    assert words in (evaluation.reason or "")
    assert (evaluation.traits is None) == (state != "scored")
    assert len(served.server.seen) == requests


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_was_delivered_is_kept_and_not_asked_again(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    texts = [f"text {n} fault={fault}" for n, fault in enumerate(("refusal", "prose", "truncated*1", "quote", "giant"))]
    first = served.judge(provider, ledger=ledger).evaluate([question(text) for text in texts])
    asked = len(served.server.seen)
    again = served.judge(provider, ledger=ledger).evaluate([question(text) for text in texts])
    assert again == first
    assert len(served.server.seen) == asked


@pytest.mark.parametrize("fault", ["quote", "unknown"])
def test_what_nobody_wrote_is_dropped_and_counted(served: Served, fault: str) -> None:
    (evaluation,) = served.judge().evaluate([question(f"please read fault={fault} now")])
    assert evaluation.indicators == ()
    assert evaluation.reading is not None
    assert sum(evaluation.reading.rejected.values()) == 1


def test_a_failed_control_question_is_a_signal_of_its_own(served: Served) -> None:
    (evaluation,) = served.judge().evaluate([question("please read fault=control now")])
    assert evaluation.signals["control_failed"] == 1.0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_key_that_is_turned_away_ends_the_run_and_keeps_what_was_answered(served: Served, provider: str) -> None:
    questions = [question("one"), question("two"), question("fault=401"), question("four")]
    with pytest.raises(JudgeAbortedError, match="HTTP 401") as broken:
        served.judge(provider, concurrency=1).evaluate(questions)
    assert [each and each.state for each in broken.value.answers] == ["scored", "scored", None, None]


def test_a_server_that_is_not_there_ends_the_run_in_place_of_failing_message_by_message() -> None:
    terms = RunLimits(backoff=0.001, attempts=2, concurrency=1, environment=KEYS)
    judge = open_judge("openai:m@http://127.0.0.1:9/v1", terms)
    with pytest.raises(
        JudgeAbortedError, match=r"no connection.*\(2 of 2 attempts\).*see that its server runs"
    ) as broken:
        judge.evaluate([question("one"), question("two")])
    assert broken.value.answers == (None, None)


def test_the_same_question_asked_at_the_same_time_is_paid_once(served: Served) -> None:
    evaluations = served.judge(concurrency=8).evaluate([question("the very same words")] * 8)
    assert {each.state for each in evaluations} == {"scored"}
    assert len(served.server.seen) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_keys_stay_where_they_belong(served: Served, provider: str) -> None:
    judge = served.judge(provider)
    (evaluation,) = judge.evaluate([question("hello")])
    (request,) = served.server.seen
    sent = " ".join([*request.headers.values(), request.raw.decode()])
    assert "own-secret" in sent
    assert "sk-" not in sent  # a provider's key never goes to another host
    assert "secret" not in repr(evaluation) + judge.name + judge.hash
