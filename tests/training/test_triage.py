"""Training triage, through the same program that made the shipped model, on a few rows of our own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.training.test_trait_heads import labelled, write
from train.triage_report import cross_calibrated, recall_at, reliability
from undersong.errors import InputError
from undersong.ml.triage import load_triage, triage_bytes
from undersong.training.datasets import LabelledMessage
from undersong.training.triage import TriageCorpus, TriageRidge, out_of_fold, platt, probability, train

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "train" / "triage.py"
ENV = {"PATH": "", "PYTHONPATH": str(ROOT)}  # the package beside this test, and no data folder


def test_the_program_trains_a_model_that_tells_harsh_from_kind(tmp_path: Path) -> None:
    labels = write(tmp_path / "own.jsonl", labelled())
    command = [sys.executable, "-W", "error", str(PROGRAM), "--labels", str(labels), "--out", str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENV, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    model, sha256 = load_triage(tmp_path / "model")
    assert triage_bytes(model) == triage_bytes(train(labelled())[0])  # the same every time
    kind, harsh = model(["Thank you for telling us. Rest first.", "Obey or leave. You owe me for this."])
    assert kind < 0.3 < 0.5 < harsh
    assert sha256 in (tmp_path / "model" / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_the_written_model_scores_as_the_ridge_that_it_came_from() -> None:
    rows = labelled()
    model, _ = train(rows)
    everyone = np.arange(len(rows))
    assert (
        np.abs(model.raw([row.text for row in rows]) - TriageRidge(TriageCorpus(rows), everyone).raw(everyone)).max()
        < 0.02
    )


def test_a_score_of_unseen_authors_does_not_depend_on_their_own_labels() -> None:
    rows = labelled()
    turned = [LabelledMessage(row.author, row.text, tuple(1 - score for score in row.scores)) for row in rows]
    changed = [other if row.author == "author 3" else row for row, other in zip(rows, turned, strict=True)]
    theirs = [i for i, row in enumerate(rows) if row.author == "author 3"]
    before, after = TriageCorpus(rows), TriageCorpus(changed)
    raw, other = out_of_fold(before), out_of_fold(after)
    assert np.array_equal(raw[theirs], other[theirs])


def test_calibration_gives_the_share_of_harmful_messages() -> None:
    rng = np.random.default_rng(2)
    raw = rng.normal(size=4000)
    harmful = rng.random(4000) < 1 / (1 + np.exp(-(2 * raw - 1)))
    calibrated = probability(raw, *platt(raw, harmful))
    assert abs(calibrated.mean() - harmful.mean()) < 0.01
    assert all(abs(each.expected - each.harmful) < 0.08 for each in reliability(calibrated, harmful))
    crossed = cross_calibrated(raw, Authors(harmful))  # type: ignore[arg-type]
    assert np.abs(crossed - calibrated).max() < 0.1


class Authors:
    """A corpus as far as calibration needs it: forty authors."""

    def __init__(self, harmful: np.ndarray) -> None:
        self.harmful, self.authors = harmful, np.arange(len(harmful)) % 40


@pytest.mark.parametrize(
    ("scores", "recall"),
    [
        ([0.9, 0.8, 0.1, 0.0], 1.0),
        ([0.1, 0.0, 0.9, 0.8], 0.0),
        ([0.5, 0.5, 0.5, 0.5], 0.5),
        ([0.9, 0.0, 0.5, 0.1], 0.5),
    ],
)
def test_recall_at_half_routed(scores: list[float], recall: float) -> None:
    assert recall_at(np.array([True, True, False, False]), np.array(scores), 0.5) == recall


def test_labels_of_too_few_authors_or_without_harm_are_refused() -> None:
    with pytest.raises(InputError, match="labels of 2 authors"):
        TriageCorpus(labelled(authors=2))
    quiet = [LabelledMessage(r.author, r.text, tuple(s / 4 for s in r.scores)) for r in labelled()]
    with pytest.raises(InputError, match="every message or none"):
        TriageCorpus(quiet)
