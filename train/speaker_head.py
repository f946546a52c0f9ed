"""Trains the head that tells who does harm in a chat: ``python -m train.speaker_head --data DIR``.

The labels are of speakers, not of messages: language models wrote the chats of ``train/labels/chats`` for this project
and said who does harm in each; every message of that speaker counts as one of harm, every other as none, so that single
scores say little and the mean of a speaker much. A sixth of the dialogues of ordinary talk (DIR has them) stand beside
them, in which nobody does harm. Writes ``speaker_head.model`` and its card into the package; the figures are of writers
that took no part, and of the chats of ``bench/chats``, by others.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from bench.talks.score import read_lines
from undersong.datafiles.yaml_loader import RULES
from undersong.judges.offline import SHIPPED, SPEAKER_HEAD, SPEAKER_NAMES, TALK_HEADS
from undersong.ml import ngrams, trait_heads
from undersong.ml.trait_heads import Heads, Scores
from undersong.models import TRAITS
from undersong.training.datasets import LabelledMessage, numbered_lines
from undersong.training.trait_heads import RidgeHeads, TraitCorpus, calibration, out_of_fold

Json = dict[str, Any]
CHATS = Path(__file__).parent / "labels" / "chats"
BENCH = Path("bench/chats")
ORDINARY = "ordinary_talk.jsonl.gz"
CARD = RULES.parent / "cards" / "speaker_head.json"
PARTS = 6  # of ordinary talk, of which the first takes part in training
LEAST = 3  # messages below which a speaker is not counted


class SpokenMessage(NamedTuple):
    """A message of a chat: ``group`` is its writer, ``harm`` whether its speaker does harm in this chat."""

    group: str
    conversation: str
    author: str
    text: str
    harm: bool
    kind: str


def read_chats(folder: Path) -> Iterator[SpokenMessage]:
    """The messages of chats of which it is known who does harm, in order; those without text are left out."""
    truth = {row["conversation"]: row for row in read_lines(folder / "truth.jsonl")}
    packed, plain = folder / "messages.jsonl.gz", folder / "messages.jsonl"
    for _, line in numbered_lines(packed if packed.exists() else plain):
        row = json.loads(line)
        chat = truth[row["conversation"]]
        if row["text"].strip():
            who, group = row["author"], chat.get("writer", chat.get("part"))
            yield SpokenMessage(group, row["conversation"], who, row["text"], who == chat["who"], chat["kind"])


def read_ordinary(path: Path) -> Iterator[SpokenMessage]:
    """The messages of ordinary talk; the group is one of ``PARTS`` by the hash of the conversation's id."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            name = row["conversation_id"]
            part = hashlib.sha256(name.encode()).digest()[0] % PARTS
            for message in row["messages"]:
                if message["text"].strip():
                    yield SpokenMessage(f"ordinary {part}", name, message["author"], message["text"], False, "ordinary")


def corpus_of(messages: Sequence[SpokenMessage]) -> TraitCorpus:
    """The corpus of the head: what a speaker says in a chat is of one author, and writers are held out."""
    rows = [LabelledMessage(f"{each.conversation}/{each.author}", each.text, (float(each.harm),)) for each in messages]
    return TraitCorpus(rows, SPEAKER_NAMES, [each.group for each in messages])


def trained(messages: Sequence[SpokenMessage], seed: int) -> tuple[Heads, Scores]:
    """The head, and every message's level by a head that saw nothing of its writer."""
    corpus = corpus_of(messages)
    raw = out_of_fold(corpus)
    weights, scales, idf = RidgeHeads(corpus, np.arange(len(messages))).weights()
    meta = trait_heads.TraitHeadsMeta(
        features=ngrams.VERSION,
        heads=calibration(raw, corpus.labels, SPEAKER_NAMES),
        seed=seed,
        messages=len(messages),
        authors=len(set(corpus.authors.tolist())),
    )
    return Heads(meta, weights, scales, idf), trait_heads.Curves(meta.heads)(raw)[:, 0]


def levels(heads: Heads, messages: Sequence[SpokenMessage], head: int = 0) -> Scores:
    """The level of each message by one of the heads; one of which nothing is known has 0."""
    scorer = heads.scorer()
    raw = [scorer.raw(each.text) for each in messages]
    table = np.stack([np.full(scorer.size, np.nan) if each is None else each for each in raw])
    return np.nan_to_num(np.where(np.isnan(table), np.nan, scorer.calibrate(np.nan_to_num(table)))[:, head])


class Speakers(NamedTuple):
    """The means of speakers with messages enough: of harm, of those beside them in a chat, of innocent chats."""

    harm: Scores
    beside: Scores
    innocent: Scores


def speakers_of(messages: Sequence[SpokenMessage], scores: Scores) -> Speakers:
    """The mean score of each speaker of a chat, by what the chat is."""
    own: dict[tuple[str, str], list[int]] = {}
    for place, message in enumerate(messages):
        own.setdefault((message.conversation, message.author), []).append(place)
    groups: dict[str, list[float]] = {"harm": [], "beside": [], "innocent": []}
    for places in own.values():
        first = messages[places[0]]
        name = "harm" if first.harm else "beside" if first.kind == "harm" else "innocent"
        if len(places) >= LEAST:
            groups[name].append(float(scores[places].mean()))
    return Speakers(*(np.array(groups[name]) for name in Speakers._fields))


def auc(harm: Scores, others: Scores) -> float:
    """How often one of the first stands above one of the others."""
    return round(float(roc_auc_score([1] * len(harm) + [0] * len(others), [*harm, *others])), 3)


def figures(messages: Sequence[SpokenMessage], scores: Scores, ordinary: Scores) -> Json:
    """AUC of a speaker's mean against innocent chats, against the others of the chat, against ordinary talk."""
    speakers = speakers_of(messages, scores)
    return {
        "speakers who do harm": len(speakers.harm),
        "speakers of innocent chats": len(speakers.innocent),
        "against innocent chats": auc(speakers.harm, speakers.innocent),
        "against the others of the chat": auc(speakers.harm, speakers.beside),
        "against ordinary talk": auc(speakers.harm, ordinary),
    }


def main() -> None:
    """Train, write, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("UNDERSONG_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None, help="labelled data")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chats, talk = [*read_chats(CHATS)], [*read_ordinary(arguments.data / ORDINARY)]
    seen = [each for each in talk if each.group == "ordinary 0"]
    heads, unseen = trained([*chats, *seen], arguments.seed)
    model = trait_heads.dump(heads)
    (SHIPPED / SPEAKER_HEAD).write_bytes(model)
    card = {
        "file": SPEAKER_HEAD,
        "sha256": hashlib.sha256(model).hexdigest(),
        "labels": "language models wrote the chats for this project and said who does harm; people labelled none of it",
        "chats": len({each.conversation for each in chats}),
        "messages": len(chats) + len(seen),
        **measured(heads, chats, unseen[: len(chats)], [each for each in talk if each.group != "ordinary 0"]),
    }
    CARD.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(card, indent=1, ensure_ascii=False))


def measured(heads: Heads, chats: Sequence[SpokenMessage], unseen: Scores, talk: Sequence[SpokenMessage]) -> Json:
    """The figures by writer and of other writers' chats, beside those of the trait head for manipulation."""
    old, trait = trait_heads.load(SHIPPED, TALK_HEADS)[0], TRAITS.index("manipulation")
    bench = [*read_chats(BENCH)]
    table: Json = {}
    for name, ours, others, here in (
        ("this head", lambda some: levels(heads, some), bench, unseen),
        ("manipulation, the trait head", lambda some: levels(old, some, trait), bench, levels(old, chats, trait)),
    ):
        ordinary = speakers_of(talk, ours(talk)).innocent
        writers = {each.group for each in chats}
        by_writer = {writer: figures(*of_writer(chats, here, writer), ordinary) for writer in sorted(writers)}
        table[name] = {
            "of other writers, bench/chats": figures(others, ours(others), ordinary),
            "writers left out in turn": figures(chats, here, ordinary),
            "each": by_writer,
        }
    return table


def of_writer(
    chats: Sequence[SpokenMessage], scores: npt.NDArray[np.float64], writer: str
) -> tuple[list[SpokenMessage], Scores]:
    """The messages of one writer's chats with their scores."""
    own = [place for place, each in enumerate(chats) if each.group == writer]
    return [chats[place] for place in own], scores[own]


if __name__ == "__main__":
    main()
