"""A real llama.cpp server: transport, schema, tokens and timeouts end to end. It says nothing about judgement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import make_message as said_by
from tests.judges.dialogue import question
from tests.judges.tiny_llm import serve, write_model
from undersong.judges.ledger import SQLiteLedger
from undersong.judges.limits import CUT, LedgerEntry, MemoryLedger, RunLimits
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.providers.anthropic import parse_completion as of_anthropic
from undersong.judges.llm.providers.openai import parse_completion
from undersong.judges.llm.response import checked
from undersong.judges.protocol import Segment, open_judge


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path)
    server = serve(path)
    yield str(server.listening_address)
    del server


def answered() -> bool:
    """Whether any message got an answer that could be used: one that knows nothing may miss each control question."""
    return "scored" in json.loads(Path("undersong-report/case.json").read_text())["states"]


def test_an_audit_by_a_local_model_gets_answers_of_the_asked_form_and_counts_their_tokens(
    undersong: Undersong, address: str
) -> None:
    text = "You owe me this after everything I did for you."
    Path("talk.jsonl").write_text(json.dumps({"id": "m", "conversation": "c", "author": "kira", "text": text}) + "\n")
    spec = f"openai:tiny@{address}/v1"
    ran = undersong("audit", "talk.jsonl", "--judge", spec, "--all", "--json", "--no-chance", "--timeout", "600")
    assert ran.code == (0 if answered() else 4), ran.err
    with SQLiteLedger(Path("undersong-report.db")) as ledger:
        paid = list(ledger.all([spec]))
    assert paid
    for paid_answer in paid:  # a model that knows nothing may miss the control question; the form it cannot miss
        raw = parse_completion(paid_answer.body).text
        control = msgspec.json.decode(raw)["control"]
        assert set(checked(raw, text, control).traits.values()) <= {0, 0.25, 0.5, 0.75, 1}
        assert paid_answer.input >= 0.9 * (paid_answer.fixed + paid_answer.sent)  # its tokens are bytes
        assert 0 < paid_answer.output <= shipped_prompts().limits.answer_tokens["standard"]
    lines = Path("undersong-report/evaluations.jsonl").read_text().splitlines()
    states = {row["state"]: row["reason"] for row in map(json.loads, lines)}
    assert states.keys() <= {"scored", "failed"}
    assert all("control question" in states[state] for state in states if state == "failed")


def test_an_answer_that_takes_too_long_is_a_failed_message(address: str) -> None:
    judge = open_judge(f"openai:tiny@{address}/v1", RunLimits(timeout=0.3, attempts=1))
    (evaluation,) = judge.evaluate([question("hello")])
    assert (evaluation.state, evaluation.traits) == ("failed", None)
    assert "no whole answer within" in (evaluation.reason or "")


def test_a_server_that_ignores_the_schema_breaks_the_contract_and_is_told_so(address: str) -> None:
    paid: list[LedgerEntry] = []

    class Ledger(MemoryLedger):
        def keep(self, answers: Iterable[LedgerEntry]) -> None:
            paid.extend(answers)

    spec = f"anthropic:claude-haiku-4-5@{address}"  # a name that says that it does not think: it would think for long
    judge = open_judge(spec, RunLimits(timeout=600, ledger=Ledger()))
    (confirmation,) = judge.confirm(
        [Segment(mechanism="fault_admission", messages=(said_by("I made that figure up."),))]
    )
    assert (confirmation.state, confirmation.yes, confirmation.quotes) == ("failed", None, ())
    assert "it was cut off at 5,000 tokens" in (confirmation.reason or "")
    assert [each.attempt for each in paid] == [CUT, CUT + 1]  # it was asked, and asked once more with twice the room
    assert [each.output for each in paid] == [2_500, 5_000]
    for paid_answer in paid:  # what came back is an answer of the interface, and none of the form that was asked for
        answer = of_anthropic(paid_answer.body).text
        assert answer
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(answer, type=dict)
    assert confirmation.usage.calls == 2
    assert confirmation.usage.output > 0


def test_an_audit_puts_a_flagged_place_to_a_local_model_and_keeps_what_it_said(
    undersong: Undersong, address: str
) -> None:
    row = {"id": "m", "conversation": "c", "author": "bo", "role": "assistant"}
    asking = {"id": "u", "conversation": "c", "author": "ann", "role": "user", "text": "the export is empty"}
    lines = [asking, row | {"text": "You must have misconfigured something."}]
    Path("talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    spec = f"openai:tiny@{address}/v1"
    one_at_a_time = ("--concurrency", "1")  # so that the server has the instructions in its cache
    ran = undersong("audit", "talk.jsonl", "--judge", spec, "--no-chance", "--timeout", "600", *one_at_a_time)
    assert ran.code == (0 if answered() else 4), ran.err
    (session,) = json.loads(Path("undersong-report/case.json").read_text())["sessions"]
    (answer,) = session["confirmations"]
    assert (answer["mechanism"], answer["at"], answer["judge"]) == ("liability_shifting", "m", spec)
    assert (answer["yes"] is not None) == (answer["state"] == "scored")
    assert answer["state"] in ("scored", "failed")  # a model that knows nothing may miss the control question
    assert answer["usage"]["input"] > 0 < answer["usage"]["output"]
    with SQLiteLedger(Path("undersong-report.db")) as ledger:
        assert [each.depth for each in ledger.all([spec])].count("confirm") == answer["usage"]["calls"]
    assert undersong("verify", "undersong-report", "talk.jsonl").code == 0
