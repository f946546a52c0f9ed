"""Trains the offline judge's heads for ordinary talk: ``python -m train.talk_heads --data DIR [--kinds]``.

The labels are readings of single messages by a language model under the product's rubric: of real text, which is not
copied into ``train/labels`` (DIR has it), of text that was written for this project (``train/labels/written``), of
``bench/talks``, dev and more, and of some of the chats of ``train/labels/chats``. Writes ``talk_heads.model`` and its
card into the package. ``--kinds`` also leaves out each kind of talk in turn, which takes some minutes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from bench.talks.score import read_lines
from train.development import TRAIT_LABELS
from undersong.datafiles.yaml_loader import RULES
from undersong.judges.offline import SHIPPED, TALK_HEADS
from undersong.ml import ngrams, trait_heads
from undersong.ml.trait_heads import Heads
from undersong.models import NEGATIVE_TRAITS, TRAITS
from undersong.training.datasets import LabelledMessage, numbered_lines, read_labels
from undersong.training.trait_heads import (
    ALPHA,
    FEWEST_AUTHORS,
    Array,
    RidgeHeads,
    TraitCorpus,
    calibration,
    out_of_fold,
    rarity,
    targets,
    tfidf,
)

Json = dict[str, Any]
FOLDER = Path(__file__).parent / "labels"
LABELS = FOLDER / "readings.jsonl.gz"
AGAIN = FOLDER / "readings_again.jsonl.gz"
CHATS = FOLDER / "chats"
TALKS = Path("bench/talks")
CARD = RULES.parent / "cards" / "talk_heads.json"
# what stands for a trait that does not apply to a message: the mark of an ordinary message in talk where it does
ORDINARY = {"virtue": 0.5, "goodwill": 0.5, "accuracy": 0.5, "reasoning": 0.5, "recognition": 0.5, "compassion": 0.375}
EARLIER = "agent posts, earlier labels"
HARMFUL = 0.5  # a mark of 2 of 4
NEGATIVE = [TRAITS.index(trait) for trait in TRAITS if trait in NEGATIVE_TRAITS]


class ReadMessage(NamedTuple):
    """A message with its marks, its kind of talk and its conversation, which is held out as a whole."""

    kind: str
    conversation: str
    text: str
    marks: tuple[float, ...]
    applies: tuple[bool, ...] = (True,) * len(TRAITS)
    agent: bool = False  # whether the role is agent


def read_messages(data: Path) -> list[ReadMessage]:
    """The labelled messages of all kinds that have a text."""
    written = (
        *_of_folder(TALKS / "dev"), *_of_folder(TALKS / "more"), *_of_folder(FOLDER / "written"), *_of_chats(CHATS)
    )  # fmt: skip
    rows = [*_of_data(data), *written, *_of_posts(data)]
    return [row for row in rows if row.text.strip()]


def _of_posts(data: Path) -> Iterator[ReadMessage]:
    """The labels that the trait heads learn from, by another judge and rubric: they hold more scams and insults."""
    for row in read_labels(data / TRAIT_LABELS):
        yield ReadMessage(EARLIER, f"author {row.author}", row.text, row.scores, agent=True)


def _of_data(data: Path) -> Iterator[ReadMessage]:
    labels = [json.loads(line) for _, line in numbered_lines(LABELS)]
    texts: dict[tuple[str, str], list[str]] = {}
    for source in sorted({row["source"] for row in labels}):
        for conversation, messages in _texts(data / source):
            texts[source, conversation] = messages
    authors = {row.text: f"author {row.author}" for row in read_labels(data / TRAIT_LABELS)}
    for row in labels:
        text = texts[row["source"], row["conversation"]][row["place"]]
        message = read_message(row["kind"], authors.get(text, row["conversation"]), text, row["traits"])
        yield message._replace(agent=row["kind"].startswith("agent "))


def _texts(path: Path) -> Iterator[tuple[str, list[str]]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if "turns" in row:
                turns = [turn for turn in row["turns"] if turn.get("role") in ("user", "assistant")]
                yield row["session"]["id"], [turn.get("text") or "" for turn in turns]
            else:
                yield row["conversation_id"], [message["text"] for message in row["messages"]]


def _of_folder(folder: Path) -> Iterator[ReadMessage]:
    """Messages that were written for this project, with their readings."""
    readings = {row["id"]: row for row in read_lines(folder / "readings.jsonl")}
    for row in read_lines(folder / "messages.jsonl"):
        kind = f"written: {row['kind']}" if "kind" in row else "written conversations"
        message = read_message(kind, row["conversation"], row["text"], readings[row["id"]]["traits"])
        yield message._replace(agent=row["role"] == "agent")


def _of_chats(folder: Path) -> Iterator[ReadMessage]:
    """Messages of chats that were written for this project, those of them that were read one by one."""
    chats: dict[str, list[Json]] = {}
    for _, line in numbered_lines(folder / "messages.jsonl.gz"):
        message = json.loads(line)
        chats.setdefault(message["conversation"], []).append(message)
    for _, line in numbered_lines(folder / "readings.jsonl.gz"):
        row = json.loads(line)
        message = chats[row["conversation"]][row["place"]]
        kind = "written: chats with a chatbot" if "role" in message else "written: chats of two over months"
        yield read_message(kind, row["conversation"], message["text"], row["traits"])


def read_message(kind: str, conversation: str, text: str, marks: Sequence[int | None]) -> ReadMessage:
    """A message with the marks that a reader gave."""
    return ReadMessage(kind, conversation, text, marks_of(marks), tuple(mark is not None for mark in marks))


def marks_of(marks: Sequence[int | None]) -> tuple[float, ...]:
    """Marks 0 to 4 as scores 0 to 1; what does not apply has the ordinary one."""
    return tuple(
        ORDINARY.get(trait, 0.0) if mark is None else mark / 4 for trait, mark in zip(TRAITS, marks, strict=True)
    )


def trained(labelled: Sequence[LabelledMessage], applies: npt.NDArray[np.bool_], seed: int) -> tuple[Heads, Array]:
    """The heads, and every message's scores by heads that never saw its conversation.

    The scores are calibrated on the messages to which a trait applies: what it would be where it does.
    """
    corpus = TraitCorpus(labelled)
    raw = out_of_fold(corpus)
    weights, scales, idf = RidgeHeads(corpus, np.arange(len(labelled))).weights()
    curves = tuple(
        calibration(raw[own][:, [k]], corpus.labels[own][:, [k]], [trait])[0]
        for k, (trait, own) in enumerate(zip(TRAITS, applies.T, strict=True))
    )
    meta = trait_heads.TraitHeadsMeta(
        features=ngrams.VERSION,
        heads=curves,
        seed=seed,
        messages=len(labelled),
        authors=len(set(corpus.authors.tolist())),
    )
    return Heads(meta, weights, scales, idf), trait_heads.Curves(curves)(raw)


def figures(labels: Array, scores: Array) -> Json:
    """Mean Spearman over the traits that vary, and the AUC of the mean negative score for any negative mark."""
    varied = [k for k in range(len(TRAITS)) if np.ptp(labels[:, k]) and np.ptp(scores[:, k])]
    ranks = [float(spearmanr(scores[:, k], labels[:, k])[0]) for k in varied]
    harmful = (labels[:, NEGATIVE] >= HARMFUL).any(axis=1)
    both = 0 < harmful.sum() < len(harmful)
    auc = float(roc_auc_score(harmful, scores[:, NEGATIVE].mean(axis=1))) if both else None
    return {
        "messages": len(labels),
        "harmful": int(harmful.sum()),
        "spearman": round(float(np.mean(ranks)), 3) if ranks else None,
        "auc": None if auc is None else round(auc, 3),
    }


def by_kind(rows: Sequence[ReadMessage], labels: Array, scores: Array) -> Json:
    """The figures of each kind, and of all together."""
    kinds = np.array([row.kind for row in rows])
    table = {kind: figures(labels[kinds == kind], scores[kinds == kind]) for kind in sorted(set(kinds.tolist()))}
    return {"all": figures(labels, scores), **table}


def of_length(rows: Sequence[ReadMessage], labels: Array) -> Json:
    """The trivial baseline: how far the length of a text alone goes, whichever way it points."""
    lengths = np.log1p([len(row.text) for row in rows])
    kinds = np.array([row.kind for row in rows])
    chosen = {"all": kinds != ""} | {kind: kinds == kind for kind in sorted(set(kinds.tolist()))}
    table: Json = {}
    for kind, own in chosen.items():
        varied = [k for k in range(len(TRAITS)) if np.ptp(labels[own, k])]
        ranks = [abs(float(spearmanr(lengths[own], labels[own, k])[0])) for k in varied]
        auc = figures(labels[own], np.tile(lengths[own, None], len(TRAITS)))["auc"]
        spearman = round(float(np.mean(ranks)), 3) if ranks else None
        table[kind] = {"spearman": spearman, "auc": None if auc is None else max(auc, round(1 - auc, 3))}
    return table


def source_of(kind: str) -> str:
    """What is left out with a kind: posts and comments of agents are of one source, and some were read twice."""
    return "agents" if kind.startswith("agent ") else kind


def mean_of_kinds(table: Json) -> Json:
    """The plain mean of the kinds, each as one, of those that have the figure."""
    kinds = [row for kind, row in table.items() if kind != "all"]
    return {
        name: round(float(np.mean([row[name] for row in kinds if row[name] is not None])), 3)
        for name in ("spearman", "auc")
    }


def agreement() -> Json:
    """How second readers agree with the first, per trait: quadratic kappa and Spearman where both gave a mark."""
    first, again = (
        {(row["source"], row["conversation"], row["place"]): row["traits"] for row in map(json.loads, lines)}
        for lines in ((line for _, line in numbered_lines(path)) for path in (LABELS, AGAIN))
    )
    pairs = [(first[place], marks) for place, marks in again.items() if place in first]
    table: Json = {"messages": len(pairs)}
    for k, trait in enumerate(TRAITS):
        both = np.array([(a[k], b[k]) for a, b in pairs if a[k] is not None and b[k] is not None])
        same = sum((a[k] is None) == (b[k] is None) for a, b in pairs) / len(pairs)
        table[trait] = {
            "marked_by_both": len(both),
            "same_view_of_whether_it_applies": round(same, 3),
            "kappa": round(float(cohen_kappa_score(*both.T, weights="quadratic", labels=range(5))), 3),
            "spearman": round(float(spearmanr(*both.T)[0]), 3),
        }
    for name in ("kappa", "spearman"):
        table[f"mean_{name}"] = round(float(np.mean([table[trait][name] for trait in TRAITS])), 3)
    return table


def left_out(corpus: TraitCorpus, names: Sequence[str]) -> Array:
    """Raw scores of every message by heads that saw no label of its group; ``names`` has the group of each message.

    By the closed form of a ridge with a group left out, ``y_g - inv(G_gg) (G y)_g`` with ``G = inv(K + alpha)``: how
    rare an n-gram is was counted over all groups, so that one kernel serves for every group.
    """
    pairs = zip(corpus.blocks, FEWEST_AUTHORS, strict=True)
    features = [tfidf(block, rarity(block, corpus.authors, fewest)) for block, fewest in pairs]
    kernel = sum((block @ block.T).toarray() for block in features)
    inverse = np.linalg.inv(kernel + ALPHA * np.eye(len(names)))
    wanted = targets(corpus.labels)
    dual = inverse @ wanted
    groups = np.array(names)
    raw = np.zeros_like(corpus.labels)
    for group in sorted(set(names)):
        own = np.flatnonzero(groups == group)
        raw[own] = wanted[own] - np.linalg.solve(inverse[np.ix_(own, own)], dual[own])
    return raw


def main() -> None:
    """Train, write, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("UNDERSONG_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None, help="labelled data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", action="store_true", help="leave out each kind in turn, too")
    parser.add_argument("--agreement", action="store_true", help="only how second readers agree, into the card")
    arguments = parser.parse_args()
    if arguments.agreement:
        card = json.loads(CARD.read_text(encoding="utf-8")) | {"second_readings": agreement()}
        CARD.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    rows = read_messages(arguments.data)
    labelled = [LabelledMessage(row.conversation, row.text, row.marks) for row in rows]
    labels: Array = np.array([row.marks for row in rows])
    applies = np.array([row.applies for row in rows])
    heads, unseen = trained(labelled, applies, arguments.seed)
    model = trait_heads.dump(heads)
    (SHIPPED / TALK_HEADS).write_bytes(model)
    card = {
        "file": TALK_HEADS,
        "sha256": hashlib.sha256(model).hexdigest(),
        "labels": "read by a language model under the rubric of the product, not by people",
        "messages_by_kind": dict(sorted(Counter(row.kind for row in rows).items())),
        "out_of_fold_by_conversation": by_kind(rows, labels, unseen),
        "length_alone": of_length(rows, labels),
        "second_readings": agreement(),
    }
    card["mean_of_kinds"] = mean_of_kinds(card["out_of_fold_by_conversation"])
    if arguments.kinds:
        unseen_kind = left_out(TraitCorpus(labelled), [source_of(row.kind) for row in rows])
        card["kind_left_out"] = by_kind(rows, labels, unseen_kind)
        card["mean_of_kinds_left_out"] = mean_of_kinds(card["kind_left_out"])
    CARD.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(card, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
