"""Trains the triage model and writes it with its model card.

python train/triage.py --data DIR                   the model that ships in the package
python train/triage.py --labels FILE --out DIR      one on your own labels
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from undersong.errors import UndersongError, UsageError
from undersong.ml.triage import FILE, SHIPPED, triage_bytes
from undersong.training.datasets import read_labels

try:
    from train.triage_report import cross_calibrated, figures, ranked, reliability, reliability_table, triage_card
    from undersong.training.triage import TriageCorpus, out_of_fold, train
except ModuleNotFoundError as error:
    raise SystemExit(f"error: {error.name} is not installed; pip install 'undersong[train]'") from error

MOLTBOOK = "moltbook_traits.jsonl.gz"


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


@click.command(help=__doc__)
@click.option("--data", type=click.Path(path_type=Path), help=f"Directory with {MOLTBOOK}.")
@click.option("--labels", type=click.Path(path_type=Path), help="JSON Lines of your own: author, text, traits.")
@click.option("--out", type=click.Path(path_type=Path), default=SHIPPED, help="Directory for the model.")
@click.option("--seed", default=0, show_default=True, help="Seed of the intervals.")
def main(data: Path | None, labels: Path | None, out: Path, seed: int) -> None:
    try:
        print(write_model(labels_file(data, labels), out, seed))
    except UndersongError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from error


if __name__ == "__main__":
    main()
