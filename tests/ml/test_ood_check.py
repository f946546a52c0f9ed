"""The domain check: what it was shown is measured, other kinds of text are not, and no trait rule fires there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Undersong
from tests.judges.test_offline import JUDGE, ask
from undersong.errors import RuleError
from undersong.ml.ood_check import features
from undersong.training.ood import DomainTexts, load_genres, messages, synthetic_sources, train

RECIPES = [
    "Whisk three eggs with sugar, fold in the melted chocolate and bake for twenty minutes.",
    "Peel the potatoes, boil them until soft, then mash them with butter and warm milk.",
    "Marinate the chicken in lemon juice and garlic overnight, then grill until done.",
    "Rinse the lentils, add stock, a bay leaf and carrots, and simmer for half an hour.",
]
CLAUSES = [
    "The lessee shall pay the rent in advance on the first day of each month without deduction.",
    "This clause survives termination of the agreement for whatever reason.",
    "The parties submit to the exclusive jurisdiction of the courts of the seller's seat.",
]
REVIEWS = [
    "Could you extract this into a helper? The same five lines are in the other handler.",
    "This test passes without your change, so it does not cover the fix. Please assert on the status code.",
]


@pytest.mark.parametrize("text", [*RECIPES, *CLAUSES, *REVIEWS])
def test_other_kinds_of_text_are_unmeasured(text: str) -> None:
    assert JUDGE.evaluate([ask(text)])[0].domain == "unmeasured"


def test_no_trait_rule_runs_on_recipes(undersong: Undersong) -> None:
    lines = [
        json.dumps({"id": f"m{n}", "conversation": f"c{n // 4}", "author": f"cook{n % 2}", "text": RECIPES[n % 4]})
        for n in range(16)
    ]
    Path("recipes.jsonl").write_text("\n".join(lines))
    facts = json.loads(undersong("audit", "recipes.jsonl", "--json").out)
    assert facts["ranked"] == 16
    assert "love_bombing" in facts["rules"]["not_applicable"]
    assert "they are ranks" in facts["rules_not_run"]["love_bombing"]
    assert facts["findings"] == []


def test_a_check_of_ones_own_tells_its_texts_from_all_genres() -> None:
    genres = load_genres()
    own = DomainTexts("recipe", tuple(messages(genres["recipe"], 80, "own")), tuple(str(n % 8) for n in range(80)))
    others = [each for each in synthetic_sources() if each.name != "recipe"]
    artefacts = JUDGE.artefacts
    check = train([own], others, artefacts.vectors, artefacts.whitening)
    (kind,) = check.meta.kinds
    assert kind.kept >= 0.9
    assert kind.refused >= 0.9
    fresh = list(messages(genres["legal"], 40, "fresh")) + list(messages(genres["recipe"], 40, "fresh"))
    is_recipe = check.kinds(features(fresh, artefacts.vectors.embed(fresh).texts, artefacts.whitening))["recipe"]
    assert not is_recipe[:40].any()
    assert is_recipe[40:].mean() > 0.8


def test_a_genre_gives_the_same_text_for_the_same_seed_and_no_open_slot() -> None:
    for name, genre in load_genres().items():
        one = list(messages(genre, 20, "seed"))
        assert one == list(messages(genre, 20, "seed")), name
        assert not any("{" in text for text in one), name


def test_a_slot_without_words_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "genres.yaml"
    path.write_text("genres:\n  tale:\n    frames:\n      - Once upon a {when}.\n")
    with pytest.raises(RuleError, match=r"genres\.yaml:4: no words for the slot when"):
        load_genres(path)


def test_an_empty_text_has_features_without_meaning() -> None:
    artefacts = JUDGE.artefacts
    values = features([""], artefacts.vectors.embed([""]).texts, artefacts.whitening)
    assert not np.any(values[0, :256])
