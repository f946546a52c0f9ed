"""Trains all artefacts of the offline judge from the development data and writes them into the package.

python train/offline_judge.py --data DIR

On labels of your own: undersong judge train LABELS --out MODEL_DIR
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from undersong.errors import UndersongError, UsageError
from undersong.judges import stance as stances
from undersong.judges.offline import SHIPPED, TURN_HEADS, TURN_SIGNALS, TURNS
from undersong.ml import static_vectors, trait_heads
from undersong.ml.static_vectors import load_vectors

try:
    from train import stance_heads
    from train.development import (
        OTHER_CONVERSATIONS,
        STANCE_LABELS,
        TRAIT_LABELS,
        TURN_LABELS,
        domain_texts,
        judged_turns,
        pressured_answers,
        read_conversations,
        turn_labels,
    )
    from undersong.training.build import BuildResult, build_trait_heads, write_file
    from undersong.training.datasets import read_labels
    from undersong.training.ood import DomainTexts, synthetic_sources
    from undersong.training.trait_heads import train
except ModuleNotFoundError as error:
    raise SystemExit(f"error: {error.name} is not installed; pip install 'undersong[train]'") from error


SENTENCES = 4000  # of each source that the whitening is fitted on


def build_shipped(data: Path, out: Path, seed: int) -> BuildResult:
    """All artefacts from the development data in a folder."""
    rows = read_labels(data / TRAIT_LABELS)
    conversations = {
        name: read_conversations(data / name) for name in (TURN_LABELS, STANCE_LABELS, OTHER_CONVERSATIONS)
    }
    posts = DomainTexts("agent_posts", tuple(row.text for row in rows), tuple(row.author for row in rows))
    measured = [posts, domain_texts(TURNS, conversations[TURN_LABELS], "assistant")]
    others = [
        domain_texts("companion_users", conversations[TURN_LABELS], "user"),
        domain_texts("pressed_answers", conversations[STANCE_LABELS], "assistant"),
        domain_texts("pressing_users", conversations[STANCE_LABELS], "user"),
        domain_texts("negotiation", conversations[OTHER_CONVERSATIONS]),
    ]
    whitening = _fit_whitening([*measured, *others])
    out.mkdir(parents=True, exist_ok=True)
    sizes = {
        static_vectors.WHITENING_FILE: write_file(
            out / static_vectors.WHITENING_FILE, static_vectors.dump_whitening(whitening)
        )
    }
    turns = judged_turns(conversations[TURN_LABELS])
    heads, _ = train(turn_labels(turns), seed, TURN_SIGNALS, groups=[turn.model for turn in turns])
    sizes[TURN_HEADS] = write_file(out / TURN_HEADS, trait_heads.dump(heads))
    stance, _ = stance_heads.train(dict(pressured_answers(conversations[STANCE_LABELS])), load_vectors())
    sizes[stances.FILE] = write_file(out / stances.FILE, stances.dump(stance))
    built = build_trait_heads(rows, measured, [*others, *synthetic_sources()], whitening, out, seed)
    return BuildResult(built.files | sizes, built.quality, built.domain)


def _fit_whitening(sources: list[DomainTexts]) -> static_vectors.Whitening:
    """From the sentences of all sources, each evenly thinned to the same number at most; no label is used."""
    parts = [load_vectors().embed(each.texts).parts for each in sources]
    return static_vectors.fit_whitening(np.vstack([each[:: -(-len(each) // SENTENCES)] for each in parts]))


def folder(data: Path | None) -> Path:
    """The folder that the option, or UNDERSONG_DATA, points to."""
    if data is None and "UNDERSONG_DATA" not in os.environ:
        raise UsageError("no data given", remedy="use --data DIR or the variable UNDERSONG_DATA")
    return data or Path(os.environ["UNDERSONG_DATA"])


@click.command(help=__doc__)
@click.option("--data", type=click.Path(path_type=Path), help="Directory with the development data.")
@click.option("--out", type=click.Path(path_type=Path), default=SHIPPED, help="Directory for the artefacts.")
@click.option("--seed", default=0, show_default=True, help="Seed of the intervals.")
def main(data: Path | None, out: Path, seed: int) -> None:
    try:
        print(build_shipped(folder(data), out, seed).summary())
    except UndersongError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from error


if __name__ == "__main__":
    main()
