"""Batches: submitted by one run, collected by a later one, and never paid twice."""

from __future__ import annotations

import pytest

from tests.judges.dialogue import PROVIDERS, Served, question
from undersong.judges.terms import MemoryLedger

TEXTS = ["first of three", "second of three", "third of three"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_is_submitted_once_and_collected_when_it_has_ended(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    served.server.ready = False
    for _ in range(2):  # the second run finds the batch of the first under way
        found = served.judge(provider, ledger=ledger, batch=True).evaluate([question(text) for text in TEXTS])
        assert {each.state for each in found} == {"unread"}
        assert "waits in a batch" in (found[0].reason or "")
    assert len(served.server.batches) == 1
    served.server.ready = True
    found = served.judge(provider, ledger=ledger, batch=True).evaluate([question(text) for text in TEXTS])
    live = served.judge(provider).evaluate([question(text) for text in TEXTS])
    assert [each.traits for each in found] == [each.traits for each in live]
    assert len(served.server.batches) == 1
    again = served.judge(provider, ledger=ledger, batch=True).evaluate([question(text) for text in TEXTS])
    assert again == found
    assert len(served.server.batches) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_batch_did_not_answer_is_a_failed_message_and_asked_again(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    questions = [question("fine"), question("fault=expired")]
    served.judge(provider, ledger=ledger, batch=True).evaluate(questions)
    found = served.judge(provider, ledger=ledger, batch=True).evaluate(questions)
    assert [each.state for each in found] == ["scored", "failed"]
    assert "expired" in (found[1].reason or "")
    served.judge(provider, ledger=ledger, batch=True).evaluate(questions)
    assert len(served.server.batches) == 2


def test_a_batch_costs_what_batches_cost(served: Served) -> None:
    ledger = MemoryLedger()
    judge = served.judge("anthropic", ledger=ledger, batch=True)
    seat = judge.seats["focused"]
    said = seat.said(b'{"content": [], "usage": {"input_tokens": 1000000}}')
    assert seat.used(said).cost is None  # a server of one's own has no price
    assert said.input == 1_000_000
