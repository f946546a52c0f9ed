"""Trains all artefacts of the offline judge from the development data and writes them into the package.

python train/offline_judge.py --data DIR

On labels of your own: undersong judge train LABELS --out MODEL_DIR
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from undersong.errors import UndersongError, UsageError
from undersong.judges.offline import SHIPPED

try:
    from undersong.training.build import build_shipped
except ModuleNotFoundError as error:
    raise SystemExit(f"error: {error.name} is not installed; pip install 'undersong[train]'") from error


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
