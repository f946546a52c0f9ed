"""Answers are paid once: kept before they count, found again after a stop, a budget, a change of context."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, PROVIDERS, Served, question
from undersong.errors import UsageError
from undersong.judges.ledger import SQLiteLedger
from undersong.models import Finding
from undersong.stores.sqlite import SQLiteStore


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def conversation(count: int, *, loud: int = 3) -> None:
    """A thread in which every third message is flagged, so that all depths are read."""
    rows = [
        {"id": f"m{n}", "conversation": "c", "author": "kira" if n % loud == 0 else "bo", "role": "agent",
         "time": f"2026-03-01T{n // 60:02d}:{n % 60:02d}:00Z",
         "text": f"You owe me this after everything I did for you, number {n}." if n % loud == 0 else f"Note {n}."}
        for n in range(count)
    ]  # fmt: skip
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def warned(count: int) -> None:
    """A thread in which every message is read in the widest context."""
    conversation(count)
    lines = Path("talk.jsonl").read_text().replace("Note", "Nobody should have weapons-grade plutonium. Note")
    Path("talk.jsonl").write_text(lines)


def rows() -> list[dict[str, object]]:
    return [json.loads(line) for line in Path("undersong-report/evaluations.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_audit_by_a_paid_judge_is_free_the_second_time(undersong: Undersong, served: Served, provider: str) -> None:
    conversation(30)
    spec = served.spec(provider)
    first = json.loads(undersong("audit", "talk.jsonl", "--judge", spec, "--all", "--json").out)
    asked, report = len(served.server.seen), Path("undersong-report/evaluations.jsonl").read_bytes()
    again = json.loads(undersong("audit", "talk.jsonl", "--judge", spec, "--all", "--json").out)
    assert first["states"] == {"scored": 30}
    assert len(served.server.seen) == asked == 30
    assert again["digest"] == first["digest"]
    assert Path("undersong-report/evaluations.jsonl").read_bytes() == report
    assert all(json.loads(row["reading"]["raw"])["traits"] for row in rows())  # type: ignore[index]


def test_a_run_stops_cleanly_at_its_calls_and_the_next_goes_on(undersong: Undersong, served: Served) -> None:
    conversation(30)
    arguments = ("audit", "talk.jsonl", "--judge", served.spec(), "--all", "--json", "--concurrency", "4")
    first = undersong(*arguments, "--max-calls", "12")
    assert first.code == 0
    facts = json.loads(first.out)
    assert facts["states"] == {"scored": 12, "unread": 18}
    assert facts["missed"]["routed_unread"] > 0
    assert "that the router called for got no scores" in facts["missed_words"][-1]
    left = {row["reason"] for row in rows() if row["state"] == "unread"}
    assert left == {"the number of calls that were allowed is used up"}
    assert json.loads(undersong(*arguments).out)["states"] == {"scored": 30}
    assert len(served.server.seen) == 30


def test_a_budget_is_never_passed(undersong: Undersong, served: Served) -> None:
    conversation(30)
    priced = ("--price-in", "3", "--price-out", "15")
    whole = undersong("audit", "talk.jsonl", "--judge", served.spec(), "--all", "--json", *priced, "--store", "a.db")
    cost = json.loads(whole.out)["cost_usd"]
    assert cost > 0
    part = undersong(
        "audit", "talk.jsonl", "--judge", served.spec(), "--all", "--json", *priced, "--budget", str(cost / 2),
        "--store", "b.db",
    )  # fmt: skip
    facts = json.loads(part.out)
    assert 0 < facts["cost_usd"] <= cost / 2
    assert facts["states"]["unread"] > 0


def test_a_budget_over_a_model_without_a_price_is_refused(served: Served) -> None:
    with pytest.raises(UsageError, match=r"price of .* not known"):
        served.judge(budget=1.0)


def test_another_context_is_another_question_and_the_old_answer_stays_paid(served: Served, tmp_path: Path) -> None:
    with SQLiteLedger(tmp_path / "store.db") as ledger:
        one, other = question("x", "deep", prior=["one"]), question("x", "deep", prior=["two"])
        for query in (one, other, one):
            served.judge(ledger=ledger).evaluate([query])
    assert len(served.server.seen) == 2


def test_a_recorded_run_replays_without_a_key_or_a_server(
    undersong: Undersong, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation(12)
    spec = served.spec("anthropic")
    live = json.loads(undersong("audit", "talk.jsonl", "--judge", spec, "--all", "--json").out)
    assert (
        undersong("judge", "export", "--judge", spec, "--store", "undersong-report.db", "--out", "run.replay").code == 0
    )
    asked = len(served.server.seen)
    for name in KEYS:
        monkeypatch.delenv(name)
    ran = undersong("audit", "talk.jsonl", "--judge", "replay:run.replay", "--all", "--json", "--store", "other.db")
    again = json.loads(ran.out)
    assert again["states"] == live["states"] == {"scored": 12}
    assert again["digest"] == live["digest"]
    assert len(served.server.seen) == asked


def test_a_replay_says_what_it_does_not_hold(undersong: Undersong, served: Served) -> None:
    conversation(6)
    undersong("audit", "talk.jsonl", "--judge", served.spec(), "--all", "--json")
    undersong("judge", "export", "--judge", served.spec(), "--store", "undersong-report.db", "--out", "run.replay")
    conversation(7)
    facts = undersong("audit", "talk.jsonl", "--judge", "replay:run.replay", "--all", "--json", "--store", "other.db")
    assert json.loads(facts.out)["states"] == {"failed": 1, "scored": 6}
    Path("run.replay").write_text("{}\n")
    assert undersong("audit", "talk.jsonl", "--judge", "replay:run.replay").code == 4


def test_a_model_per_tier_is_asked_and_recorded(undersong: Undersong, served: Served) -> None:
    conversation(30)
    spec = ",".join(
        f"{tier}={served.spec(model=name)}"
        for tier, name in (("focused", "small"), ("deep", "large"), ("deep_with_context", "largest"))
    )
    undersong("audit", "talk.jsonl", "--judge", spec, "--all", "--json")
    models = {json.loads(request.raw)["model"] for request in served.server.seen}
    assert {(row["tier"], str(row["judge"]).split("@")[0]) for row in rows()} <= {
        ("standard", "openai:small"), ("focused", "openai:small"), ("deep", "openai:large"),
        ("deep_with_context", "openai:largest"),
    }  # fmt: skip
    assert len(models) > 1


def test_history_is_that_of_the_runs_start_however_often_it_is_run(undersong: Undersong, served: Served) -> None:
    warned(40)
    arguments = ("audit", "talk.jsonl", "--judge", served.spec(), "--json")
    first = undersong(*arguments)
    asked = len(served.server.seen)
    assert undersong(*arguments).out == first.out
    assert len(served.server.seen) == asked
    warned(41)  # another file: another run, which knows what the first one read
    undersong(*arguments)
    later = [request.user for request in served.server.seen[asked:] if "# Agent history" in request.user]
    assert later
    assert not all("  Evaluations: 0\n" in user for user in later)


def test_what_is_asked_does_not_depend_on_how_many_are_asked_at_a_time(undersong: Undersong, served: Served) -> None:
    warned(30)
    undersong("audit", "talk.jsonl", "--judge", served.spec(), "--json", "--store", "first.db")
    asked: list[list[str]] = []
    for concurrency in ("1", "64"):
        store = f"at-{concurrency}.db"
        shutil.copy("first.db", store)
        with SQLiteStore(Path(store)) as database:
            database.append((), [_finding()])
        warned(42)
        before = len(served.server.seen)
        arguments = ("--judge", served.spec(), "--json", "--concurrency", concurrency, "--store", store)
        assert undersong("audit", "talk.jsonl", *arguments).code == 0
        asked.append(sorted(request.user for request in served.server.seen[before:]))
    assert asked[0] == asked[1]
    wide = [user for user in asked[0] if "# Agent history" in user]
    assert any("Prior pattern flags: darvo (1x)" in user for user in wide)
    assert any("Recent trend: " in user and "Evaluations: 0" not in user for user in wide)


def _finding() -> Finding:
    """A finding about bo that ends before the messages that are new."""
    return Finding(
        finding_id="f", pattern="darvo", title="DARVO", level="high", rule_hash="r", agent="bo", target=None,
        message_ids=("m0",), message_conversations=("c",), conversations=("c",),
        end=datetime(2026, 3, 1, 0, 20, tzinfo=UTC),
    )  # fmt: skip
