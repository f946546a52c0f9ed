"""A panel of two judges over two servers: means, agreement, notes of disagreement, one budget."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served, question
from tests.report.test_verify import reseal
from undersong.errors import UsageError
from undersong.judges.limits import RunLimits
from undersong.judges.measurement import disagree, panel_agreement
from undersong.judges.panel import Panel
from undersong.judges.protocol import Judge, Segment, open_judge, panel_names
from undersong.models import TRAITS, PanelAnswer, Reading, Row

PRICED = ("--price-in", "1", "--price-out", "5")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def other() -> Iterator[Served]:
    served = Served(opinion="strict")
    yield served
    served.close()


def panel(served: Served, other: Served) -> str:
    return f"{served.spec()},{other.spec('anthropic', 'n')}"


def opened(spec: str, **limits: Any) -> Judge:
    return open_judge(spec, RunLimits(backoff=0.01, attempts=2, environment=KEYS, **limits))


def records(name: str) -> list[Any]:
    return [json.loads(line) for line in Path("undersong-report", name).read_text().splitlines()]


def report() -> Any:
    return json.loads(Path("undersong-report/case.json").read_text())


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("openai:a,anthropic:b", ("openai:a", "anthropic:b")),
        ("openai:a@http://h/v1?x=1,2,command:run it", ("openai:a@http://h/v1?x=1,2", "command:run it")),
        ("focused=openai:a,deep=openai:b", ("focused=openai:a,deep=openai:b",)),
        ("replay:one,two", ("replay:one,two",)),
        ("offline", ("offline",)),
    ],
)
def test_a_comma_before_a_judges_name_makes_a_panel(spec: str, names: tuple[str, ...]) -> None:
    assert panel_names(spec) == names


@pytest.mark.parametrize(
    "spec", ["openai:a,openai:a", "openai:a,offline", "openai:a,openai:b,openai:c", "openai:a,opnai:b"]
)
def test_a_panel_is_two_different_judges_that_ask_models(spec: str) -> None:
    with pytest.raises(UsageError):
        opened(spec)


def test_a_score_is_the_mean_of_those_that_apply(served: Served, other: Served) -> None:
    asked = [question(f"We met at {n} and said little.", place=n) for n in range(12)]
    judge = opened(panel(served, other))
    assert isinstance(judge, Panel)
    alone = [each.evaluate(asked) for each in judge.judges]
    sent = len(served.server.seen) + len(other.server.seen)
    pairs = set()
    for one, two, both in zip(*alone, judge.evaluate(asked), strict=True):
        assert one.traits is not None
        assert two.traits is not None
        assert both.traits is not None
        for trait in TRAITS:
            scores = [each for each in (one.traits[trait], two.traits[trait]) if each is not None]
            assert both.traits[trait] == (sum(scores) / len(scores) if scores else None)
            pairs.add(len(scores))
        assert both.reading is not None
        assert [each.judge for each in both.reading.panel] == [one.judge, two.judge]
        assert both.reading.raw is None
        assert both.tokens == (one.tokens or 0) + (two.tokens or 0) if one.tokens and two.tokens else True
    assert pairs >= {1, 2}
    assert len(served.server.seen) + len(other.server.seen) == sent  # what one was asked alone is not asked again


def test_what_one_saw_alone_has_half_its_confidence(served: Served, other: Served) -> None:
    asked = [question(f"Send it by {n} today, please.", place=n) for n in range(8)]
    judge = opened(panel(served, other))
    assert isinstance(judge, Panel)
    one, two, both = (each.evaluate(asked) for each in (*judge.judges, judge))
    acts = set()
    for answers in zip(one, two, both, strict=True):
        requests = [each.signals.get("act_request", 0.0) for each in answers]
        assert requests[2] == (requests[0] + requests[1]) / 2
        acts.add(requests[2])
        confidences = [(each.indicators or ())[0].confidence or 0.0 for each in answers]
        assert confidences[2] == (confidences[0] + confidences[1]) / 2
    assert 0.5 in acts


def test_a_message_that_one_alone_could_score_says_so_and_is_asked_again(
    undersong: Undersong, served: Served, other: Served
) -> None:
    texts = ("We met at noon. fault=prose", "We met at one.", "We met at two.")
    rows = [{"id": f"m{n}", "conversation": "c", "author": "bo", "text": text} for n, text in enumerate(texts)]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge = panel(served, other)
    ran = undersong("audit", "talk.jsonl", "--judge", judge, "--all", "--no-chance", "--store", "own.db", *PRICED)
    assert ran.code == 4, ran.err
    assert "1 of 6 questions failed" in ran.err
    first = records("evaluations.jsonl")[0]
    assert (first["state"], [each["state"] for each in first["reading"]["panel"]]) == ("scored", ["failed", "scored"])
    assert served.spec() in first["reason"]
    agreement = report()["parameters"]["judge_agreement"]
    assert (agreement["both"], agreement["one"]) == (2, 1)
    sent = len(served.server.seen)
    assert undersong("judge", "forget", "--failed", "--judge", judge, "--store", "own.db").code == 0
    undersong("audit", "talk.jsonl", "--judge", judge, "--all", "--no-chance", "--store", "own.db", *PRICED)
    assert len(served.server.seen) == sent + 2  # the question and its repair
    assert undersong("verify", "undersong-report", "talk.jsonl").code == 0


def test_a_report_states_how_far_two_judges_agree_and_verifies(
    undersong: Undersong, served: Served, other: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = panel(served, other)
    ran = undersong("audit", "samples", "--judge", judge, "--all", *PRICED)
    assert ran.code == 0, ran.err
    parameters = report()["parameters"]
    rows = [msgspec.convert(each, Row) for each in records("evaluations.jsonl")]
    assert parameters["judge_agreement"] == panel_agreement(rows)["judge_agreement"]
    assert max(parameters["judge_agreement"]["apart"].values()) > 0.2
    assert "Two judges read every question" in ran.out
    assert "Two judges read every question" in Path("undersong-report/details.md").read_text()
    assert report()["spent"]["total"]["calls"] == len(served.server.seen) + len(other.server.seen)
    noted = [each for each in records("findings.jsonl") if any("the two judges disagree" in n for n in each["notes"])]
    assert noted
    undersong("judge", "export", "--judge", judge, "--out", "run.replay")
    for name in KEYS:
        monkeypatch.delenv(name)
    assert undersong("verify", "undersong-report", "samples").code == 0
    before = records("evaluations.jsonl")
    assert undersong("audit", "samples", "--judge", "replay:run.replay", "--all", "--store", "r.db").code == 0
    assert [each["traits"] for each in records("evaluations.jsonl")] == [each["traits"] for each in before]


def test_agreement_is_over_the_messages_that_both_scored() -> None:
    def row(one: float | None, other: float | None) -> Row:
        traits = [None if each is None else dict.fromkeys(TRAITS, 0.25) | {"deception": each} for each in (one, other)]
        answers = [
            PanelAnswer(judge=name, state="failed" if scores is None else "scored", traits=scores)  # type: ignore[arg-type]
            for name, scores in zip("ab", traits, strict=True)
        ]
        return Row(id="m", reading=Reading(panel=tuple(answers)))

    rows = [row(0.0, 0.75), row(0.5, 0.75), row(1.0, None), row(None, None), Row(id="n")]
    agreement = panel_agreement(rows)["judge_agreement"]
    assert (agreement["both"], agreement["one"], agreement["flips"]) == (2, 1, 1)
    assert (agreement["apart"]["deception"], agreement["apart"]["virtue"]) == (0.5, 0.0)
    assert [disagree(each, ["deception", "act_request"]) for each in rows] == [True, False, False, False, False]
    assert not disagree(rows[0], ["virtue"])
    assert panel_agreement([Row(id="n")]) == {}


def test_verify_notices_another_agreement_and_a_note_that_is_gone(
    undersong: Undersong, served: Served, other: Served
) -> None:
    undersong("audit", "samples", "--judge", panel(served, other), "--all", *PRICED)
    path = Path("undersong-report/evaluations.jsonl")
    rows = records("evaluations.jsonl")
    for row in rows:
        if row["reading"] is not None:
            row["reading"]["panel"][1]["traits"] = row["reading"]["panel"][0]["traits"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = json.loads(Path("undersong-report/manifest.json").read_text())
    manifest["files"][path.name]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    reseal(Path("undersong-report"), files=manifest["files"])
    ran = undersong("verify", "undersong-report")
    assert ran.code != 0
    assert "agreement of the judges" in ran.out
    assert "notes" in ran.out


def test_a_yes_needs_both(served: Served, other: Served) -> None:
    segment = Segment(mechanism="false_promise", messages=(question("You should be ashamed.").message,))
    (apart,) = opened(panel(served, other)).confirm([segment])
    assert (apart.state, apart.yes, apart.quotes) == ("scored", False, ())
    assert apart.reason == f"the two judges disagree: {served.spec()} said yes"
    (agreed,) = opened(f"{served.spec()},{served.spec(model='n')}").confirm([segment])
    assert (agreed.yes, agreed.confidence, agreed.reason) == (True, 0.75, None)
    assert agreed.quotes


@pytest.mark.parametrize("agree", [True, False])
def test_a_shape_needs_both(undersong: Undersong, served: Served, other: Served, agree: bool) -> None:
    texts = ("You are the best thing that ever happened to me. shape=love_bombing", "Fine.", "You owe me a call.")
    rows = [{"id": f"m{n}", "conversation": "c", "author": "bo", "text": text} for n, text in enumerate(texts)]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge = f"{served.spec()},{served.spec(model='n')}" if agree else panel(served, other)
    ran = undersong("audit", "talk.jsonl", "--judge", judge, "--read", "sequences")
    assert ran.code == 0, ran.err
    (reading,) = records("sequence_readings.jsonl")
    assert bool(reading["shapes"]) == agree
    assert (reading["reason"] is None) == agree
    assert undersong("verify", "undersong-report", "talk.jsonl").code == 0


def test_both_spend_one_budget_and_read_the_same_messages(served: Served, other: Served) -> None:
    asked = [question(f"We met at {n}.", place=n) for n in range(200)]
    judge = opened(panel(served, other), max_calls=100, price_in=1.0, price_out=5.0)
    answers = judge.evaluate(asked)
    assert len(served.server.seen) + len(other.server.seen) == 100
    states = [[each.state for each in answer.reading.panel] for answer in answers if answer.reading is not None]
    assert states.count(["scored", "scored"]) == 36  # 64 of the first judge, then the rest of the calls


def test_a_judge_that_fails_as_a_whole_ends_both(undersong: Undersong, served: Served, other: Served) -> None:
    rows = [{"id": f"m{n}", "conversation": "c", "author": "bo", "text": f"{n} fault=401"} for n in range(400)]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = undersong("audit", "talk.jsonl", "--judge", panel(served, other), "--all", "--no-chance", *PRICED)
    assert ran.code == 4
    assert "HTTP 401" in ran.err
    assert {row["state"] for row in records("evaluations.jsonl")} <= {"unread", "failed", "scored"}
    assert len(other.server.seen) < len(rows)  # it would have answered them all


def test_a_plan_counts_both(undersong: Undersong, served: Served, other: Served) -> None:
    def costs(judge: str) -> Any:
        ran = undersong("plan", "samples", "--judge", judge, "--json", *PRICED)
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    one, two, both = (costs(each) for each in (served.spec(), other.spec("anthropic", "n"), panel(served, other)))
    cost = [sum(part["cost"] for part in each["parts"]) for each in (one, two, both)]
    assert cost[2] == pytest.approx(cost[0] + cost[1])
    assert both["left_out"] == one["left_out"]
    assert both["secondary"]["cost"] == pytest.approx(one["secondary"]["cost"] + two["secondary"]["cost"])
    assert [each["name"] for each in both["prices"]] == [served.spec(), other.spec("anthropic", "n")]
