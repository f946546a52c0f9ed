"""Training, through the same program that made the shipped model, on a few rows of our own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.judges.test_offline import ask
from undersong.errors import InputError
from undersong.judges.offline import SHIPPED, OfflineJudge, load_artefacts
from undersong.judges.protocol import open_judge
from undersong.ml import trait_heads as model
from undersong.ml.trait_heads import FILE, Curves, TraitHead
from undersong.models import NEGATIVE_TRAITS, TRAITS
from undersong.training.build import build_own
from undersong.training.datasets import LabelledMessage
from undersong.training.evaluation import auc, measure
from undersong.training.trait_heads import RidgeHeads, TraitCorpus, calibration, out_of_fold, split, train
from undersong.training.triage import train_stacked

PROGRAM = Path(__file__).parents[2] / "train" / "offline_judge.py"
COMMAND = (sys.executable, "-W", "error", "-m", "undersong", "judge", "train")
KIND = [
    "Thank you for telling us",
    "I hear how tired you are",
    "Rest first",
    "We are glad that you came",
    "No rush at all",
]
HARSH = ["You owe me for this", "Send the key now", "Do not tell the others", "Obey or leave", "Nobody else wants you"]
PLAIN = ["The build ran at noon", "Here is the log", "Three tests failed", "The disk is full", "See the second table"]


def labelled(authors: int = 8, per_author: int = 6) -> list[LabelledMessage]:
    """Messages of three kinds, mixed; every author writes all of them."""
    draw = random.Random(4)
    rows = []
    for author in range(authors):
        for number in range(per_author):
            kind, sentences, good = [("kind", KIND, 0.9), ("harsh", HARSH, 0.1), ("plain", PLAIN, 0.5)][number % 3]
            text = ". ".join(draw.sample(sentences, 3)) + "."
            low = 0.8 if kind == "harsh" else 0.1
            scores = tuple((low if trait in NEGATIVE_TRAITS else good) + draw.uniform(-0.1, 0.1) for trait in TRAITS)
            rows.append(LabelledMessage(f"author {author}", text, scores))
    return rows


def write(path: Path, rows: list[LabelledMessage]) -> Path:
    lines = [{"author": r.author, "text": r.text, "traits": dict(zip(TRAITS, r.scores, strict=True))} for r in rows]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    environment = {"PATH": "", "PYTHONPATH": str(PROGRAM.parents[1])}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)


def test_the_program_trains_a_model_that_the_judge_opens(tmp_path: Path) -> None:
    labels = write(tmp_path / "own.jsonl", labelled())
    done = run(labels, "--out", tmp_path / "model")
    assert (done.returncode, done.stderr) == (0, "")
    assert "**mean of the twelve**" in done.stdout
    assert (tmp_path / "model" / FILE).read_bytes() == model.dump(train_stacked(labelled(), 0)[0])  # the same

    judge = open_judge(f"offline:{tmp_path / 'model'}")
    kind, harsh = judge.evaluate(
        [ask("Thank you for telling us. Rest first."), ask("Obey or leave. You owe me for this.")]
    )
    assert kind.traits is not None
    assert harsh.traits is not None
    assert kind.traits["compassion"] > 0.6 > 0.4 > harsh.traits["compassion"]
    assert kind.traits["manipulation"] < 0.4 < 0.6 < harsh.traits["manipulation"]
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert judge.hashes[FILE] in card
    assert "48 labelled messages by 8 authors" in card


def test_a_broken_label_file_is_named_with_its_line(tmp_path: Path) -> None:
    labels = write(tmp_path / "own.jsonl", labelled())
    with labels.open("a", encoding="utf-8") as file:
        file.write('\n{"author": "x", "text": "y", "traits": {}}\n')
    done = run(labels, "--out", tmp_path / "out")
    assert done.returncode == 3
    assert done.stderr.startswith(f"undersong: error: {labels}:49: no score for virtue")
    assert not (tmp_path / "out").exists()


def test_the_program_of_the_shipped_model_says_how_to_give_it_data() -> None:
    command = [sys.executable, "-W", "error", str(PROGRAM)]
    environment = {"PATH": "", "PYTHONPATH": str(PROGRAM.parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 2
    assert "--data DIR or the variable UNDERSONG_DATA" in done.stderr


def test_a_text_of_nothing_that_the_model_knows_is_unread() -> None:
    heads, _ = train(labelled(), seed=0)
    silent = model.Heads(heads.meta, heads.weights, heads.scales, np.zeros_like(heads.idf))
    judge = OfflineJudge(msgspec.structs.replace(load_artefacts(SHIPPED), heads=silent, talk=silent))
    (evaluation,) = judge.evaluate([ask("Thank you")])
    assert (evaluation.state, evaluation.traits, evaluation.reason) == (
        "unread",
        None,
        "nothing in its text is known to the model",
    )


def test_the_written_model_scores_as_the_ridge_that_it_came_from() -> None:
    rows = labelled()
    heads, _ = train(rows, seed=0)
    exact = RidgeHeads(TraitCorpus(rows), np.arange(len(rows))).raw(np.arange(len(rows)))
    scorer = heads.scorer()
    written = np.stack([scores for row in rows if (scores := scorer.raw(row.text)) is not None])
    assert np.abs(written - exact).max() < 0.02


def test_no_author_is_on_both_sides_of_a_fold() -> None:
    corpus = TraitCorpus(labelled(authors=13))
    folds = list(split(corpus.authors))
    assert sorted(np.concatenate([unseen for _, unseen in folds]).tolist()) == list(range(len(corpus.labels)))
    for seen, unseen in folds:
        assert not set(corpus.authors[seen]) & set(corpus.authors[unseen])


def test_a_score_of_unseen_authors_does_not_depend_on_their_own_labels() -> None:
    rows = labelled()
    changed = [
        LabelledMessage(r.author, r.text, tuple(1 - s for s in r.scores)) if r.author == "author 3" else r for r in rows
    ]
    theirs = [i for i, row in enumerate(rows) if row.author == "author 3"]
    assert np.array_equal(out_of_fold(TraitCorpus(rows))[theirs], out_of_fold(TraitCorpus(changed))[theirs])


def test_calibration_gives_the_mean_label_and_only_rises() -> None:
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(400, 12))
    labels = np.clip(0.5 + 0.2 * raw + rng.normal(scale=0.1, size=raw.shape), 0, 1)
    curves = Curves(calibration(raw, labels))
    assert (np.diff(curves.expected(np.repeat(np.linspace(-4, 4, 200)[:, None], 12, axis=1)), axis=0) >= 0).all()
    assert (abs(curves.expected(raw).mean(axis=0) - labels.mean(axis=0)) < 0.01).all()


def test_scores_go_on_beyond_the_outer_knots_along_the_slope() -> None:
    head = TraitHead("virtue", ((-1.0, 0.2), (0.0, 0.4), (1.0, 0.8)), 0.1)
    scores = Curves([head]).expected(np.array([[-3.0], [-0.5], [0.5], [2.0]]))
    assert scores[:, 0].tolist() == pytest.approx([0.0, 0.3, 0.6, 0.9])


def test_the_judge_beats_the_baselines_where_words_carry_the_label() -> None:
    rows = labelled()
    _, unseen = train(rows, seed=0)
    quality = measure(rows, unseen, seed=0)
    assert quality.scorers["judge"].mean.value > quality.scorers["text form, no words"].mean.value
    assert quality.scorers["judge"].auc.value > 0.9
    assert quality.harmful == 16
    assert quality.within_month is None


@pytest.mark.parametrize(
    ("positive", "scores", "area"),
    [
        ([True, True, False, False], [0.9, 0.8, 0.2, 0.1], 1.0),
        ([True, False, True, False], [0.9, 0.8, 0.2, 0.1], 0.75),
        ([True, False], [0.5, 0.5], 0.5),
    ],
)
def test_auc_is_the_chance_of_the_right_order(positive: list[bool], scores: list[float], area: float) -> None:
    assert auc(np.array(positive), np.array(scores)) == area


def test_auc_of_one_kind_alone_is_not_a_number() -> None:
    assert np.isnan(auc(np.array([True, True]), np.array([0.1, 0.2])))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (labelled(authors=3), "labels of 3 authors"),
        ([LabelledMessage(r.author, r.text, (0.5, *r.scores[1:])) for r in labelled()], "the same score for virtue"),
    ],
)
def test_labels_that_cannot_teach_are_refused(rows: list[LabelledMessage], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        train(rows, seed=0)


def test_labels_of_too_few_authors_are_refused_with_the_name_of_their_file(tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    scores = dict.fromkeys(TRAITS, 0.5)
    lines = [json.dumps({"author": f"a{n}", "text": f"note {n}", "traits": scores}) + "\n" for n in range(3)]
    labels.write_text("".join(lines))
    with pytest.raises(InputError, match=r"labels\.jsonl: labels of 3 authors; give labels of at least 4"):
        build_own(labels, tmp_path / "out", 0)
    with pytest.raises(InputError, match=r"none\.jsonl: cannot be read: No such file or directory; check"):
        build_own(tmp_path / "none.jsonl", tmp_path / "out", 0)
    assert not (tmp_path / "out").exists()
