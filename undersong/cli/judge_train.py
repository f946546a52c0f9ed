"""``undersong judge train``: labels of one's own → a folder for ``--judge offline:DIR``."""

from __future__ import annotations

from pathlib import Path

import click

from undersong.errors import UsageError


@click.command("train", short_help="Labels of your own → a judge for --judge offline:DIR.")
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where the judge goes.")
@click.option("--seed", default=0, show_default=True, help="Seed of the intervals.")
def train(labels: Path, out: Path, seed: int) -> None:
    """Train trait heads and their domain check on LABELS, and write them with a model card into DIR.

    A line of LABELS (.jsonl or .jsonl.gz) is {"author": "...", "text": "...", "traits": {"virtue": 0.7, ...}} with all
    twelve traits, 0 to 1. Authors are held out to measure it: give at least 4, better 50. Prototype phrases of your own
    go into DIR/prototypes.
    """
    try:
        from undersong.judges.maker import build_own
    except ModuleNotFoundError as error:
        what = f"training needs {error.name}, which is not installed"
        raise UsageError(what, remedy="pip install 'undersong[train]'") from error
    click.echo(build_own(labels, out, seed).summary())
    click.echo(f"use it with --judge offline:{out}")
