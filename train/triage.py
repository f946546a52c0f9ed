"""Trains the triage model and writes it with its model card.

python -m train.triage --data DIR                   the two models that ship in the package
python -m train.triage --labels FILE --out DIR      one on your own labels
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from undersong.errors import UndersongError, UsageError
from undersong.ml.triage import FILE, SHIPPED, TALK_FILE, Triage, triage_bytes
from undersong.training.datasets import LabelledMessage, read_labels

try:
    from train.talk_heads import EARLIER, read_messages
    from train.triage_report import (
        cross_calibrated,
        figures,
        ranked,
        recall_at,
        reliability,
        reliability_table,
        triage_card,
    )
    from undersong.training.evaluation import HARMFUL, NEGATIVE, auc
    from undersong.training.model_card import card_template
    from undersong.training.triage import TriageCorpus, out_of_fold, recall_points, train
except ModuleNotFoundError as error:
    raise SystemExit(f"error: {error.name} is not installed; pip install 'undersong[train]'") from error

MOLTBOOK = "moltbook_traits.jsonl.gz"
TALK_ALPHA = 1.5  # ridge of the model for talk: .3, .6 and 1.5 were compared out of fold


def labels_file(data: Path | None, labels: Path | None) -> Path:
    """The labels that the options, or UNDERSONG_DATA, point to."""
    if labels:
        return labels
    folder = data or (Path(os.environ["UNDERSONG_DATA"]) if "UNDERSONG_DATA" in os.environ else None)
    if folder is None:
        raise UsageError("no labels given", remedy="use --labels FILE, --data DIR or the variable UNDERSONG_DATA")
    return folder / MOLTBOOK


def write_model(labels: Path, out: Path, seed: int) -> str:
    """Train, write ``triage.model`` and ``MODEL_CARD.md`` into ``out``, and return the figures."""
    rows = read_labels(labels)
    model, unseen = train(rows)
    corpus = TriageCorpus(rows)
    bins = reliability(cross_calibrated(out_of_fold(corpus), corpus), corpus.harmful)
    ranking = ranked(rows, unseen, seed)
    data = triage_bytes(model)
    out.mkdir(parents=True, exist_ok=True)
    (out / FILE).write_bytes(data)
    text = triage_card(rows, model.meta, ranking, bins, hashlib.sha256(data).hexdigest(), len(data))
    (out / "MODEL_CARD.md").write_text(text, encoding="utf-8")
    return f"{figures({'triage': ranking})}\n\n{reliability_table(bins)}\n\n{out / FILE}: {len(data)} bytes"


def write_talk_model(data: Path, out: Path) -> str:
    """Train the model for people and assistants, write it, and return what both models reach together."""
    posts, unseen_posts = train(read_labels(data / MOLTBOOK))
    by_text = dict(zip((row.text for row in read_labels(data / MOLTBOOK)), unseen_posts.tolist(), strict=True))
    rows = [row for row in read_messages(data) if row.kind != EARLIER]
    labelled = [LabelledMessage(row.conversation, row.text, row.marks) for row in rows]
    model, unseen = train(labelled, TALK_ALPHA)
    written = [place for place, row in enumerate(rows) if row.agent and row.text not in by_text]
    for place, score in zip(written, posts([rows[place].text for place in written]).tolist(), strict=True):
        unseen[place] = score  # written talk of agents, of which the model for posts saw nothing
    for place, row in enumerate(rows):
        unseen[place] = by_text.get(row.text, unseen[place]) if row.agent else unseen[place]
    harmful = np.array(labelled_harm(labelled))
    agents = np.array([row.agent for row in rows])
    meta = msgspec.structs.replace(model.meta, reached=recall_points(unseen, harmful))
    data_ = triage_bytes(Triage(meta, model.weights, model.idf))
    (out / TALK_FILE).write_bytes(data_)
    lines = [f"{TALK_FILE}: {len(data_)} bytes, SHA-256 {hashlib.sha256(data_).hexdigest()}"]
    lines.append(f"trained on {len(rows)} messages in {meta.authors} conversations, {int(harmful.sum())} harmful")
    for name, own in (("all", agents | ~agents), ("people and assistants", ~agents), ("agents", agents)):
        figures_ = auc(harmful[own], unseen[own]), recall_at(harmful[own], unseen[own])
        lines.append(f"{name}: {own.sum()} messages, AUC {figures_[0]:.3f}, recall at 47 % routed {figures_[1]:.3f}")
    card = out / "MODEL_CARD.md"
    card.write_text(card.read_text(encoding="utf-8") + talk_card(lines), encoding="utf-8")
    return "\n".join(lines)


def talk_card(lines: Sequence[str]) -> str:
    """The end of the model card: the second model, and what both reach together."""
    return f"{card_template('triage_talk.md')}{''.join(f'- {line}{chr(10)}' for line in lines)}"


def labelled_harm(rows: Sequence[LabelledMessage]) -> list[bool]:
    """Whether each has a negative trait of HARMFUL or more."""
    return [max(row.scores[k] for k in NEGATIVE) >= HARMFUL for row in rows]


@click.command(help=__doc__)
@click.option("--data", type=click.Path(path_type=Path), help=f"Directory with {MOLTBOOK}.")
@click.option("--labels", type=click.Path(path_type=Path), help="JSON Lines of your own: author, text, traits.")
@click.option("--out", type=click.Path(path_type=Path), default=SHIPPED, help="Directory for the model.")
@click.option("--seed", default=0, show_default=True, help="Seed of the intervals.")
def main(data: Path | None, labels: Path | None, out: Path, seed: int) -> None:
    try:
        file = labels_file(data, labels)
        print(write_model(file, out, seed))
        if labels is None:
            print(write_talk_model(file.parent, out))
    except UndersongError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from error


if __name__ == "__main__":
    main()
