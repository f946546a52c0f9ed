"""The labels of the heads for ordinary talk, and the figures of their card."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from train.talk_heads import CARD, ORDINARY, figures, marks_of, read_messages
from undersong.judges.offline import SHIPPED, TALK_HEADS
from undersong.models import NEGATIVE_TRAITS, TRAITS


def test_a_trait_that_does_not_apply_has_the_mark_of_an_ordinary_message() -> None:
    marks = dict(zip(TRAITS, marks_of([None] * 12), strict=True))
    assert {marks[trait] for trait in NEGATIVE_TRAITS} == {0.0}
    assert all(marks[trait] == score for trait, score in ORDINARY.items())
    assert marks_of([4] * 12) == (1.0,) * 12


def test_scores_in_the_order_of_the_labels_are_perfect_and_their_reverse_the_opposite() -> None:
    labels = np.tile(np.linspace(0, 1, 20)[:, None], (1, 12))
    assert figures(labels, labels)["spearman"] == 1.0
    assert figures(labels, labels)["auc"] == 1.0
    assert figures(labels, -labels)["spearman"] == -1.0


def test_the_card_is_that_of_the_shipped_model() -> None:
    card = json.loads(CARD.read_text(encoding="utf-8"))
    assert card["sha256"] == hashlib.sha256((SHIPPED / TALK_HEADS).read_bytes()).hexdigest()
    assert sum(card["messages_by_kind"].values()) == card["out_of_fold_by_conversation"]["all"]["messages"]


@pytest.mark.skipif("UNDERSONG_DATA" not in os.environ, reason="needs the labelled data")
def test_every_label_has_the_text_of_its_message() -> None:
    rows = read_messages(Path(os.environ["UNDERSONG_DATA"]))
    card = json.loads(CARD.read_text(encoding="utf-8"))
    assert len(rows) == card["out_of_fold_by_conversation"]["all"]["messages"]
    assert all(row.text.strip() and len(row.marks) == len(TRAITS) for row in rows)
