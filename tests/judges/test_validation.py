"""How far a judge can be relied on: against labels, against itself, with less context, in another framing."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served
from undersong.judges.measurement import noise_of, shift
from undersong.judges.offline import SHIPPED
from undersong.ml import model_file
from undersong.models import TRAITS, Evaluation
from undersong.training import bootstrap
from undersong.training.evaluation import MEASURES, _of_given, alpha, calibrated, kappa, label_auc, spearman


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def array(*values: float) -> Any:
    return np.array(values, dtype=float)


def test_the_measures_of_hand_worked_cases() -> None:
    one, same, turned = array(0, 0.25, 0.5, 1), array(0, 0.25, 0.5, 1), array(1, 0.5, 0.25, 0)
    assert spearman(one, same) == pytest.approx(1)
    assert spearman(one, turned) == pytest.approx(-1)
    assert np.isnan(spearman(one, array(1, 1, 1, 1)))
    assert label_auc(array(0, 0, 1, 1), array(0.1, 0.4, 0.4, 0.8)) == pytest.approx(0.875)
    assert np.isnan(label_auc(array(0, 0), array(0, 1)))
    assert kappa(one, same) == pytest.approx(1)
    # marks (0, 4) against (4, 0): observed 16, expected by chance 8
    assert kappa(array(0, 1), array(1, 0)) == pytest.approx(-1)
    assert alpha(one, same) == pytest.approx(1)
    # two observers, 0 against 1 on both units: observed 1, expected 2/3
    assert alpha(array(0, 1), array(1, 0)) == pytest.approx(-0.5)
    assert np.isnan(alpha(array(0, 0), array(0, 0)))


def test_intervals_hold_the_figure_and_follow_the_seed() -> None:
    dice = np.random.default_rng(1)
    labels = dice.random((60, 12))
    scores = np.clip(labels + dice.normal(0, 0.2, labels.shape), 0, 1)
    groups = [f"a{n % 20}" for n in range(60)]
    figures, harmful = calibrated(labels, scores, groups, seed=3)
    for of_trait in figures.values():
        assert of_trait.keys() == set(TRAITS)
        for figure in of_trait.values():
            assert figure.value is not None
            assert figure.low is not None
            assert figure.high is not None
            assert figure.low <= figure.value <= figure.high
    assert calibrated(labels, scores, groups, seed=3) == (figures, harmful)


def test_figures_are_over_the_scores_that_there_are() -> None:
    dice = np.random.default_rng(1)
    labels = dice.random((60, 12))
    scores = np.clip(labels + dice.normal(0, 0.2, labels.shape), 0, 1)
    groups = [f"a{n % 20}" for n in range(60)]
    some, none = scores.copy(), scores.copy()
    some[1::2, 4], none[:, 4] = np.nan, np.nan
    figures, _ = calibrated(labels, some, groups, seed=3)
    everything, _ = calibrated(labels, scores, groups, seed=3)
    assert figures["spearman"]["accuracy"].value == round(spearman(labels[::2, 4], scores[::2, 4]), 3)
    assert {name: figures[name]["virtue"] for name in figures} == {n: everything[n]["virtue"] for n in everything}
    without, harmful = calibrated(labels, none, groups, seed=3)
    assert {without[name]["accuracy"].value for name in without} == {None}
    assert harmful.value is not None


@pytest.mark.parametrize("kind", ["numbers", "marks", "one value", "some missing", "most missing", "none"])
def test_the_measures_of_all_samples_at_once_are_those_of_each(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(7)
    labels, scores = dice.random(30), dice.random(30)
    if kind == "marks":
        labels, scores = np.rint(labels * 4) / 4, np.rint(scores * 4) / 4
    if kind == "one value":
        scores[:] = 0.25
    missing = {"some missing": 0.3, "most missing": 0.93, "none": 1.0}.get(kind, 0)
    scores[dice.random(30) < missing] = np.nan
    draws = [rows[: dice.integers(1, 40)] for rows in dice.integers(30, size=(60, 40))]
    for size in (30 * 7, 10**6):
        monkeypatch.setattr(bootstrap, "BLOCK", size)
        for one, of_samples in MEASURES.values():
            own = _of_given(one) if missing else one
            each = np.array([own(labels[rows], scores[rows]) for rows in draws])
            np.testing.assert_allclose(bootstrap.sampled(of_samples, labels, scores, draws), each, atol=1e-12)


def reading(width: str, **traits: float | None) -> Evaluation:
    return Evaluation(
        message_id="m", state="scored", judge="j", judge_hash="h", message_hash="", width=width,  # type: ignore[arg-type]
        traits=dict.fromkeys(TRAITS, 0.0) | traits,
    )  # fmt: skip


def test_shifts_are_told_by_width_with_their_sign() -> None:
    pairs = [(reading("message"), reading("message", manipulation=0.5)), (reading("message"), reading("message"))]
    (repeated,) = shift("repeat", "j", "h", pairs)
    assert (repeated.apart["manipulation"], repeated.moved["manipulation"], repeated.flips) == (0.25, 0.25, 1)
    (context,) = shift("context", "j", "h", [(reading("prior_messages", virtue=1), reading("message"))])
    assert context.moved["virtue"] == -1
    assumed = dict.fromkeys(TRAITS, 0.3)
    assert noise_of([], assumed) == {}
    assert noise_of([repeated, context], assumed)["virtue"] == 1.0
    assert noise_of([repeated, context], assumed)["manipulation"] == 0.25
    assert noise_of([context], assumed) == {**assumed, "virtue": 1.044}  # what nobody measured is assumed beside it


def test_two_readings_are_compared_where_both_have_a_score() -> None:
    pairs = [
        (reading("message", accuracy=None), reading("message", accuracy=1.0)),
        (reading("message", accuracy=0.5, manipulation=None), reading("message", accuracy=0.75, manipulation=0.75)),
        (reading("message", reasoning=None), reading("message", reasoning=None)),
    ]
    (repeated,) = shift("repeat", "j", "h", pairs)
    assert (repeated.messages, repeated.flips, repeated.apart["accuracy"]) == (3, 1, 0.125)
    nothing = [(reading("message", accuracy=None), reading("message"))]
    (lacking,) = shift("repeat", "j", "h", nothing)
    assert "accuracy" not in lacking.apart
    assert noise_of([lacking], dict.fromkeys(TRAITS, 0.3))["accuracy"] == 0.3


def test_validation_prints_figures_and_reports_carry_them(undersong: Undersong, served: Served) -> None:
    labels = [
        {"author": f"a{n % 5}", "text": f"text number {n}", "traits": dict.fromkeys(TRAITS, n % 5 / 4)}
        for n in range(25)
    ]
    Path("labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    spec = served.spec()
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", spec, "--json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert (report["messages"], report["groups"]) == (25, 5)
    assert set(report["figures"]) == {"spearman", "auc", "kappa", "alpha"}
    assert undersong("audit", "samples", "--judge", spec, "--json").code == 0
    parameters = json.loads(Path("undersong-report/case.json").read_text())["parameters"]
    assert parameters["calibrated"] is True
    assert parameters["calibration"]["labels_sha256"] == report["labels_sha256"]
    figure = report["figures"]["spearman"]["manipulation"]
    shown = f"{figure['value']:.2f} [{figure['low']:.2f}, {figure['high']:.2f}]"
    for page in ("details.md", "report.html"):
        text = Path("undersong-report", page).read_text()
        assert "Calibrated on 25 labelled messages of labels.jsonl" in text
        assert "weighted kappa" in text
        assert shown.replace("[", "\\[") in text or shown in text
    undersong("audit", "samples", "--judge", served.spec(model="other"), "--json")
    assert json.loads(Path("undersong-report/case.json").read_text())["parameters"]["calibrated"] is False


def test_a_judge_that_says_the_same_twice_has_no_noise_and_stability_uses_that(
    undersong: Undersong, served: Served
) -> None:
    spec = served.spec()
    ran = undersong("judge", "repeat", "samples", "--judge", spec, "--all", "--sample", "10", "--json")
    assert ran.code == 0, ran.err
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert sum(each["messages"] for each in lines) == 10
    assert {value for each in lines for value in each["apart"].values()} == {0.0}
    assert len(served.server.seen) == 20
    undersong("audit", "samples", "--judge", spec, "--json")
    assert set(json.loads(Path("undersong-report/case.json").read_text())["parameters"]["judge_noise"].values()) == {
        0.0
    }


def test_context_and_framing_are_measured_without_paying_the_first_reading_again(
    undersong: Undersong, served: Served
) -> None:
    spec = served.spec()
    undersong("audit", "samples", "--judge", spec, "--json", "--double-check", "20")
    double = json.loads(Path("undersong-report/case.json").read_text())["parameters"]["double_check"]
    assert sum(each["messages"] for each in double) > 0
    asked = len(served.server.seen)
    ran = undersong("judge", "context", "samples", "--judge", spec, "--sample", "4", "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert lines
    assert {each["width"] for each in lines} <= {"prior_messages", "thread_and_history"}
    assert len(served.server.seen) - asked == sum(each["asked"] for each in lines)
    undersong("audit", "samples", "--judge", spec, "--json")
    assert json.loads(Path("undersong-report/case.json").read_text())["parameters"]["judge_noise"]
    for page in ("details.md", "report.html"):
        assert "Thread and history move its scores (width" in Path("undersong-report", page).read_text()
    assert undersong("verify", "undersong-report", "samples").code == 0


def learnt_folder(tmp_path: Path, *texts: str) -> Path:
    """The shipped model, as if it had been trained on these messages."""
    folder = tmp_path / "own"
    shutil.copytree(SHIPPED, folder)
    (folder / model_file.FILE).write_bytes(model_file.dump(texts))
    return folder


def labelled(name: str, *texts: str) -> None:
    rows = [
        {"author": f"a{n}", "text": text, "traits": dict.fromkeys(TRAITS, n % 5 / 4)} for n, text in enumerate(texts)
    ]
    Path(name).write_text("".join(json.dumps(each) + "\n" for each in rows))


def test_labels_that_a_judge_was_trained_on_are_refused(undersong: Undersong, tmp_path: Path) -> None:
    spec = f"offline:{learnt_folder(tmp_path, 'The boat leaves at nine.')}"
    labelled("labels.jsonl", "The  BOAT leaves at nine.", "You owe me that much.", "Bring bread on Sunday.")
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", spec)
    assert ran.code == 3
    assert "labels.jsonl: the judge was trained on 1 of these 3 messages" in ran.err
    assert "--learnt" in ran.err
    labelled("others.jsonl", "The boat leaves at ten.", "You owe me that much.", "Bring bread on Sunday.")
    ran = undersong("judge", "validate", "others.jsonl", "--judge", spec, "--json")
    assert (ran.code, json.loads(ran.out)["learnt_from"]) == (0, 0)


def test_figures_on_training_labels_are_marked_and_do_not_calibrate(undersong: Undersong, tmp_path: Path) -> None:
    spec = f"offline:{learnt_folder(tmp_path, 'You owe me that much.')}"
    labelled("labels.jsonl", "The boat leaves at nine.", "You owe me that much.", "Bring bread on Sunday.")
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", spec, "--learnt")
    assert ran.code == 0
    assert "WARNING: the judge was trained on 1 of them" in ran.out
    undersong("audit", "samples", "--judge", spec)
    parameters = json.loads(Path("undersong-report/case.json").read_text())["parameters"]
    assert parameters["calibrated"] is False
    for page in ("details.md", "report.html"):
        assert "No measurement: the judge was trained on 1 of these" in Path("undersong-report", page).read_text()


def test_the_shipped_judge_knows_what_it_learnt_from() -> None:
    learnt_hashes = model_file.load(SHIPPED)
    assert learnt_hashes is not None
    assert 800 < len(learnt_hashes) <= 852


def test_a_judge_that_does_not_say_what_it_learnt_from_is_measured_as_of_unknown_origin(
    undersong: Undersong, tmp_path: Path
) -> None:
    folder = learnt_folder(tmp_path)
    (folder / model_file.FILE).unlink()
    labelled("labels.jsonl", "The boat leaves at nine.", "You owe me that much.", "Bring bread on Sunday.")
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", f"offline:{folder}", "--json")
    assert (ran.code, json.loads(ran.out)["learnt_from"]) == (0, None)
    (folder / model_file.FILE).write_text(f"{model_file.HEAD}\nno hash\n")
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", f"offline:{folder}")
    assert ran.code == 4
    assert "learnt_from.txt:2: is no hash" in ran.err


@pytest.mark.parametrize("verb", ["repeat", "framing"])
def test_files_that_cannot_be_read_are_named_and_change_the_exit_code(
    undersong: Undersong, served: Served, verb: str
) -> None:
    Path("broken.jsonl").write_text("{no json\n")
    for name in ("broken.jsonl", "nowhere.jsonl"):
        ran = undersong("judge", verb, name, "--judge", served.spec())
        assert ran.code == 3
        assert name in ran.err


@pytest.mark.parametrize("verb", ["context", "framing"])
def test_a_judge_that_is_asked_no_question_has_neither_context_nor_framing(undersong: Undersong, verb: str) -> None:
    ran = undersong("judge", verb, "samples", "--judge", "offline")
    assert ran.code == 2
    assert f"has no {verb}; name an LLM judge" in ran.err


def test_an_audit_and_its_double_check_have_one_budget_together(undersong: Undersong, served: Served) -> None:
    spec = served.spec()
    ran = undersong(
        "audit", "samples", "--judge", spec, "--all", "--double-check", "100", "--max-calls", "29", "--json"
    )
    assert ran.code == 0, ran.err
    assert len(served.server.seen) == 29
    case = json.loads(Path("undersong-report/case.json").read_text())
    assert case["states"] == {"scored": 25}
    assert sum(each["messages"] for each in case["parameters"]["double_check"]) < 4
    assert (
        undersong("judge", "repeat", "samples", "--judge", served.spec(model="n"), "--all", "--max-calls", "30").code
        == 0
    )
    assert len(served.server.seen) == 59


def test_a_double_check_of_a_judge_that_is_asked_nothing_is_wrong_use(undersong: Undersong) -> None:
    ran = undersong("audit", "samples", "--double-check", "10")
    assert ran.code == 2
    assert not Path("undersong-report").exists()


def test_validating_without_the_extra_says_so_before_anything_is_paid(
    undersong: Undersong, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled("labels.jsonl", "The boat leaves at nine.")
    monkeypatch.setitem(sys.modules, "undersong.training.evaluation", None)
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", "offline")
    assert ran.code == 2
    assert "pip install 'undersong[train]'" in ran.err


@pytest.mark.parametrize("verb", ["repeat", "framing", "context"])
def test_a_verb_that_pays_says_first_what_it_will_cost_and_keeps_to_its_budget(
    undersong: Undersong, served: Served, verb: str
) -> None:
    lines = [{"id": f"m{n}", "conversation": "c", "author": "kira", "text": f"You owe me, {n}."} for n in range(12)]
    Path("talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    priced = ("--judge", served.spec(), "--price-in", "1", "--price-out", "2", "--all")
    ran = undersong("judge", verb, "talk.jsonl", *priced)
    first, *_ = ran.err.splitlines()
    pattern = rf"will ask {re.escape(served.spec())} (\d+) questions, about [\d,]+ tokens in and [\d,]+ out, for about "
    match = re.match(pattern, first)
    assert match is not None, ran.err
    assert int(match[1]) == len(served.server.seen)
    before = len(served.server.seen)
    poor = undersong("judge", verb, "talk.jsonl", *priced, "--store", "other.db", "--budget", "0.000001")
    assert ", within 0.00 USD" in poor.err
    assert len(served.server.seen) == before


def test_validation_says_first_what_it_will_cost(undersong: Undersong, served: Served) -> None:
    marks = dict.fromkeys(TRAITS, 0.5)
    rows = [{"author": f"a{n % 5}", "text": f"You owe me, {n}.", "traits": marks} for n in range(10)]
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", served.spec())
    assert f"will ask {served.spec()} 10 questions" in ran.err
    assert "at a price that is not known" in ran.err
