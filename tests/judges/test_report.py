"""A report by a paid judge says what it took, and verifies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def test_tokens_and_cost_stand_per_run_tier_and_conversation(undersong: Undersong, served: Served) -> None:
    priced = ("--price-in", "1", "--price-out", "5")
    ran = undersong("audit", "samples", "--judge", served.spec(), "--json", "--double-check", "50", *priced)
    assert ran.code == 0, ran.err
    spent = json.loads(Path("undersong-report/case.json").read_text())["spent"]
    for parts in (spent["tiers"], spent["conversations"]):
        assert sum(each["calls"] for each in parts.values()) == spent["total"]["calls"]
        assert sum(each["cost"] for each in parts.values()) == pytest.approx(spent["total"]["cost"])
    assert set(spent["conversations"]) <= {"invoice-session", "memory-post"}
    assert spent["total"]["calls"] == len(served.server.seen)  # the second readings of the double check among them
    assert spent["tiers"]["double_check"]["calls"] > 0
    for name in ("details.md", "report.html"):
        page = Path("undersong-report", name).read_text()
        assert "from the provider" in page
        assert "in another framing" in page


def test_a_price_that_is_not_known_is_said_and_no_zero(undersong: Undersong, served: Served) -> None:
    ran = undersong("audit", "samples", "--judge", served.spec())
    assert "price not known" in ran.out
    assert "cost an unknown sum" in Path("undersong-report/details.md").read_text()


def test_a_report_by_a_paid_judge_verifies_without_key_or_server(
    undersong: Undersong, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    undersong("judge", "repeat", "samples", "--judge", served.spec(), "--all", "--sample", "3")
    undersong("audit", "samples", "--judge", served.spec(), "--json")
    for name in KEYS:
        monkeypatch.delenv(name)
    ran = undersong("verify", "undersong-report", "samples")
    assert ran.code == 0, ran.out


def test_a_judge_is_shown_what_the_tools_of_the_turn_answered(undersong: Undersong, served: Served) -> None:
    call = {"name": "save", "id": "c1", "input": {"path": "a.txt"}}
    rows = [
        {"id": "u", "author": "ann", "role": "user", "text": "Save it, please."},
        {"id": "a", "author": "bo", "role": "assistant", "text": "Saving now.", "tool_calls": [call]},
        {"id": "t", "author": "save", "role": "tool", "text": "HTTP 503", "tool_results": [{"text": "HTTP 503"}]},
        {"id": "b", "author": "bo", "role": "assistant", "text": "Everything is saved.", "tool_calls": [call]},
    ]
    Path("talk.jsonl").write_text("".join(json.dumps({"conversation": "c", **row}) + "\n" for row in rows))
    ran = undersong("audit", "talk.jsonl", "--judge", served.spec(), "--all", "--no-chance")
    assert ran.code == 0, ran.err
    (asked,) = (each.user for each in served.server.seen if each.text == "Everything is saved.")
    assert "Answers of tools in the same turn" in asked
    assert '"HTTP 503"' in asked
    assert 'Tool call: "save" "{' in asked


@pytest.mark.parametrize(
    ("second", "most", "code"), [("Well. fault=prose", "0.1", 4), ("Well.", "0.1", 4), ("Well.", "0.5", 0)]
)
def test_a_judge_that_fails_with_more_than_a_share_of_the_questions_has_failed(
    undersong: Undersong, served: Served, second: str, most: str, code: int
) -> None:
    texts = ("Good evening. fault=prose", second)
    rows = [{"id": f"m{n}", "conversation": "c", "author": "bo", "text": text} for n, text in enumerate(texts)]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for verb in ("audit", "evaluate"):
        out = ("--out", "rows.jsonl") if verb == "evaluate" else ("--no-chance",)
        ran = undersong(verb, "talk.jsonl", "--judge", served.spec(), "--all", "--max-failed", most, *out)
        assert ran.code == code, ran.err
        count = 2 if "fault" in second else 1
        failed = f"{count} of 2 questions failed: {count} × it is not one JSON object, also after one repair"
        assert failed in ran.err
        assert "`undersong judge forget --failed` has those asked again" in ran.err


def test_explain_shows_what_the_judge_quoted_and_its_reasons(undersong: Undersong, served: Served) -> None:
    undersong("audit", "samples", "--judge", served.spec(), "--all")
    shown = undersong("explain", "k13").out
    assert "  MAN-URGENCY: “" in shown
    assert ", in the judge's words: The words of the message carry " in shown


def test_a_model_that_answers_for_another_is_named(undersong: Undersong, served: Served) -> None:
    rows = [{"id": "m", "conversation": "c", "author": "bo", "text": "Good evening. fault=other_model"}]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = undersong("audit", "talk.jsonl", "--judge", served.spec(), "--all", "--no-chance")
    assert "answered by another model than was asked for: m-small ×1" in ran.out
    case = json.loads(Path("undersong-report/case.json").read_text())
    assert case["parameters"]["answered_by"] == {"m-small": 1}


def test_failures_that_were_kept_are_asked_again_on_demand(undersong: Undersong, served: Served) -> None:
    rows = [{"id": "m", "conversation": "c", "author": "bo", "text": "Good evening. fault=prose*2"}]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("audit", "talk.jsonl", "--judge", served.spec(), "--all", "--no-chance")
    assert [undersong(*arguments).code for _ in range(2)] == [4, 4]
    assert len(served.server.seen) == 2
    forgotten = undersong("judge", "forget", "--failed", "--judge", served.spec())
    assert forgotten.out.startswith("1 question of openai:m@")
    assert undersong(*arguments).code == 0
    assert len(served.server.seen) == 3
    assert undersong("judge", "forget", "--judge", served.spec()).code == 2  # says what is to be forgotten


def test_what_ends_a_run_is_said_with_how_many_failed_and_why(undersong: Undersong, served: Served) -> None:
    rows = [{"id": f"m{n}", "conversation": "c", "author": "bo", "text": f"{n} fault=400"} for n in range(60)]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = undersong("audit", "talk.jsonl", "--judge", served.spec(), "--all", "--no-chance", "--concurrency", "1")
    assert ran.code == 4
    assert len(served.server.seen) == 5
    assert "5 questions one after the other failed for the same reason: HTTP 400: error 400" in ran.err
    assert "4 of 4 questions failed: 4 × HTTP 400: error 400" in ran.err


def test_a_watch_whose_judge_fails_ends_with_its_exit_code(undersong: Undersong, served: Served) -> None:
    rows = [{"id": f"m{n}", "conversation": "c", "author": "bo", "text": f"{n} fault=prose"} for n in range(3)]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = undersong("watch", "talk.jsonl", "--judge", served.spec(), "--all", "--no-follow")
    assert ran.code == 4
    assert "questions failed: " in ran.err


def test_what_is_asked_otherwise_and_what_was_lost_is_said_at_the_end(undersong: Undersong) -> None:
    rows = [{"id": "m", "conversation": "c", "author": "bo", "text": "Good evening. fault=half_envelope*1"}]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    served = Served(refuses=["temperature"])
    try:
        arguments = ("audit", "talk.jsonl", "--judge", served.spec(), "--all", "--no-chance", "--price-in", "3")
        first, second = (undersong(*arguments, "--price-out", "15") for _ in range(2))
    finally:
        served.close()
    assert "is asked without temperature, since its server refused it otherwise" in first.err
    assert "1 request brought no answer and may have been paid all the same, $0." in first.err
    assert "note: judge" not in second.err  # nothing was asked
    assert first.out == second.out
