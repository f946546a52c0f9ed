"""The second question: one mechanism, one message or two, at any distance."""

from __future__ import annotations

import json

import pytest

from tests.judges.dialogue import PROVIDERS, Served, make_message
from undersong.errors import UsageError
from undersong.judges.limits import MemoryLedger
from undersong.judges.protocol import Segment

FLIP = (
    make_message("No, the moon is not made of cheese.", 1),
    make_message("You are right, it is made of cheese.", 50),
)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_turn_one_against_turn_fifty_is_confirmed_with_both_quotes(served: Served, provider: str) -> None:
    ledger = MemoryLedger()
    drift = Segment(mechanism="epistemic_drift", messages=FLIP, around=(make_message("It is, believe me.", 2, "user"),))
    (confirmation,) = served.judge(provider, ledger=ledger).confirm([drift])
    assert (confirmation.state, confirmation.yes) == ("scored", True)
    assert all(quote.text in message.text for quote, message in zip(confirmation.quotes, FLIP, strict=True))
    assert confirmation.usage.calls == 1
    assert served.judge(provider, ledger=ledger).confirm([drift]) == [confirmation]
    assert len(served.server.seen) == 1


def test_another_mechanism_is_another_question(served: Served) -> None:
    judge = served.judge(ledger=MemoryLedger())
    judge.confirm([Segment(mechanism=name, messages=FLIP[:1]) for name in ("false_promise", "fault_admission")])
    asked = {json.loads(request.raw)["messages"][0]["content"] for request in served.server.seen}
    assert len(asked) == 1
    assert len(served.server.seen) == 2


def test_a_segment_that_makes_no_question_is_wrong_use(served: Served) -> None:
    with pytest.raises(UsageError, match="unknown mechanism"):
        served.judge().confirm([Segment(mechanism="false_promises", messages=FLIP)])
    with pytest.raises(UsageError, match="one message or two"):
        served.judge().confirm([Segment(mechanism="false_promise", messages=())])


def test_a_segment_that_gets_no_answer_is_in_a_state_and_no_no(served: Served) -> None:
    (confirmation,) = served.judge().confirm(
        [Segment(mechanism="false_promise", messages=(make_message("fault=prose"),))]
    )
    assert (confirmation.state, confirmation.yes) == ("failed", None)
