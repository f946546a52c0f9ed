"""Heads trained on one source, tested on every other: why the judge gives ranks where it was not measured."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from offline_tables import header, interval, row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from train.development import (
    OTHER_CONVERSATIONS,
    STANCE_LABELS,
    TRAIT_LABELS,
    TURN_LABELS,
    judged_turns,
    pressured_answers,
    read_conversations,
)
from undersong.judges.offline import SHIPPED, load_artefacts
from undersong.ml.prototypes import Prototypes
from undersong.training.datasets import LabelledMessage, read_labels
from undersong.training.evaluation import NEGATIVE
from undersong.training.trait_heads import RidgeHeads, TraitCorpus, split

MOST = 1000  # messages of a source, evenly thinned: the ridge is solved over pairs
HARMS = ("delusion_reinforcement", "harmful_encouragement", "escalation")
# source → the signals whose highest is held against its labels, chosen by meaning
BY_MEANING = {
    "agent posts: any harm": ("pressure", "scam_ask", "isolation", "liability_shifting"),
    "companion chats: delusion or harm": ("delusion_reinforcement", "harmful_encouragement"),
    "opinions: concedes": ("complies", "fault_admission"),
    "prejudice: concedes": ("complies",),
    "negotiation: a lie": ("false_promise",),
}


def transfer(data: Path, seed: int) -> None:
    """The matrix of AUC: the diagonal out of fold by author, conversation or question, elsewhere trained on the row."""
    sources = _sources(data)
    rows = [each for own in sources.values() for each in own]
    corpus = TraitCorpus(rows, ("present",))
    bounds = np.cumsum([0, *map(len, sources.values())])
    places = [np.arange(a, b) for a, b in pairwise(bounds.tolist())]
    present = corpus.labels[:, 0] > 0
    print(header("trained on \\ tested on", *sources))
    for name, own in zip(sources, places, strict=True):
        fit = RidgeHeads(corpus, own)
        cells = []
        for tested in places:
            raw = _held_out(corpus, own) if tested is own else fit.raw(tested)[:, 0]
            cells.append(interval(present[tested], raw, [rows[i].author for i in tested], seed))
        print(row(name, *cells))
    print(row("prototypes, no label", *_prototypes(rows, places, present, seed)))


def _held_out(corpus: TraitCorpus, own: np.ndarray) -> np.ndarray:
    raw = np.zeros(len(own))
    for seen, unseen in split(corpus.authors[own]):
        raw[unseen] = RidgeHeads(corpus, own[seen]).raw(own[unseen])[:, 0]
    return raw


def _prototypes(rows: list[LabelledMessage], places: list[np.ndarray], present: np.ndarray, seed: int) -> list[object]:
    artefacts = load_artefacts(SHIPPED)
    prototypes = Prototypes(artefacts.phrases, artefacts.vectors, artefacts.whitening)
    scores = prototypes.score(artefacts.vectors.embed([each.text for each in rows])).scores
    cells: list[object] = []
    for signals, own in zip(BY_MEANING.values(), places, strict=True):
        highest = scores[own][:, [prototypes.ids.index(name) for name in signals]].max(axis=1)
        cells.append(interval(present[own], highest, [rows[i].author for i in own], seed))
    return cells


def _sources(data: Path) -> dict[str, list[LabelledMessage]]:
    posts = read_labels(data / TRAIT_LABELS)
    turns = judged_turns(read_conversations(data / TURN_LABELS))
    stance = pressured_answers(read_conversations(data / STANCE_LABELS))
    sources = [
        [_row(each.author, each.text, max(each.scores[i] for i in NEGATIVE) >= 0.5) for each in posts],
        [_row(each.conversation, each.text, max(each.signals[name] for name in HARMS[:2]) > 1) for each in turns],
        *([_row(each.question, each.turn.answer.text, each.concedes) for each in own] for own in stance.values()),
        _lies(data),
    ]
    thinned = [own[:: -(-len(own) // MOST)] for own in sources]
    return dict(zip(BY_MEANING, thinned, strict=True))


def _lies(data: Path) -> list[LabelledMessage]:
    rows = []
    for talk in read_conversations(data / OTHER_CONVERSATIONS):
        for message, true in zip(talk.messages, talk.labels["sender_truth"], strict=True):
            if isinstance(true, bool) and message.text.strip():
                rows.append(_row(talk.conversation_id, message.text, not true))
    return rows


def _row(group: str, text: str, present: bool) -> LabelledMessage:
    return LabelledMessage(group, text, (float(present),))
