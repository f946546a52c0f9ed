"""Maps from a judge's scores to labels: fitted, recorded, used on later scores, verified, and taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served
from undersong.judges.measurement import ScoreMap, mapped_traits
from undersong.models import TRAITS
from undersong.training.score_maps import fit_maps


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def test_a_map_is_linear_between_its_knots_and_flat_outside() -> None:
    bent = ScoreMap(knots=((0.25, 0.1), (0.75, 0.5)), labels=30, before=0.0, after=0.0)
    assert [bent(score) for score in (0.0, 0.25, 0.5, 0.75, 1.0)] == [0.1, 0.1, 0.3, 0.5, 0.5]
    traits: dict[Any, Any] = {"virtue": None, "deception": 0.5, "accuracy": 0.5}
    assert mapped_traits(traits, {"virtue": bent, "deception": bent}) == traits | {"deception": 0.3}


def test_a_map_needs_thirty_labels_and_undoes_a_shift_on_other_authors() -> None:
    dice = np.random.default_rng(2)
    scores = dice.integers(0, 5, (200, 12)) / 4
    labels = np.clip(scores**2 * 0.6 + dice.normal(0, 0.02, scores.shape), 0, 1)
    labels[29:, 3], scores[:, 4] = np.nan, np.nan
    maps = fit_maps(labels, scores, [f"a{n % 20}" for n in range(200)])
    assert set(maps) == {*TRAITS} - {TRAITS[3], TRAITS[4]}
    for fitted in maps.values():
        assert fitted.after < 0.03 < fitted.before
        heights = [y for _, y in fitted.knots]
        assert heights == sorted(heights)


def test_maps_are_used_on_later_scores_verified_and_taken_back(undersong: Undersong, served: Served) -> None:
    labels = [
        {"author": f"a{n % 8}", "text": f"text number {n}", "traits": {"manipulation": (n % 3) / 10}} for n in range(40)
    ]
    Path("labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))

    def audited() -> tuple[dict[str, Any], list[Any]]:
        ran = undersong("audit", "samples", "--judge", served.spec(), "--all")
        assert ran.code == 0, ran.err
        rows = [json.loads(line) for line in Path("undersong-report/evaluations.jsonl").read_text().splitlines()]
        return json.loads(Path("undersong-report/case.json").read_text()), [row for row in rows if row["traits"]]

    _, own = audited()
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", served.spec(), "--json")
    assert ran.code == 0, ran.err
    assert set(json.loads(ran.out)["fitted"]) == {"manipulation"}
    case, rows = audited()
    assert "score_maps" not in case["parameters"]  # measured, not asked for
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", served.spec(), "--apply")
    assert "later scores go through the maps: manipulation" in ran.out
    sent = len(served.server.seen)
    case, rows = audited()
    assert len(served.server.seen) <= sent + 5  # flagged places at most: what was read is read from the store
    assert case["hashes"]["score_maps"]
    assert [row["reading"]["unmapped"] for row in rows] == [row["traits"] for row in own]
    assert max(row["traits"]["manipulation"] for row in rows) <= 0.2
    assert [row["traits"]["virtue"] for row in rows] == [row["traits"]["virtue"] for row in own]
    assert "Scores went through maps" in Path("undersong-report/details.md").read_text()
    ran = undersong("verify", "undersong-report", "samples")
    assert ran.code == 0, ran.out
    Path("rows.jsonl").write_text(undersong("evaluate", "samples", "--judge", served.spec(), "--all").out)
    evaluated = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [row["traits"] for row in evaluated if row["traits"]] == [row["traits"] for row in rows]
    assert "1 map removed" in undersong("judge", "validate", "--forget", "--judge", served.spec()).out
    _, again = audited()
    assert [row["traits"] for row in again] == [row["traits"] for row in own]
    assert undersong("judge", "validate", "--judge", served.spec()).code == 2
