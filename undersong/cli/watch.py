"""``undersong watch``: patterns over rows that are still being written."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from undersong.cli.options import show_problems

if TYPE_CHECKING:
    from undersong.patterns.live import Changes


@click.command("watch", short_help="Patterns over rows as they are written: findings as JSON lines.")
@click.argument("rows", metavar="ROWS.jsonl")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more at the end of the file.")
@click.option("--poll", default=1.0, show_default=True, type=click.FloatRange(0.01), help="Seconds between two looks.")
def command(rows: str, folder: str | None, names: tuple[str, ...], follow: bool, poll: float) -> None:
    """Print findings of rows that `undersong evaluate` (or anybody) is still writing, each once it is sure.

    A finding is a line as of `undersong detect`; one that a late row takes back is a line {"retracted": ID}, and one
    with an id that was printed before takes its place. - reads standard input up to its end.
    """
    from undersong.cli.summary import outcome_lines
    from undersong.models import Problem
    from undersong.patterns import load_rules
    from undersong.patterns.live import Live
    from undersong.watch import watch

    live = Live(load_rules([folder] if folder else None, names))
    pause = (lambda: time.sleep(poll)) if follow else None
    with suppress(KeyboardInterrupt):
        for item in watch(rows, live, pause):
            if isinstance(item, Problem):
                show_problems([item])
            else:
                _show(item)
    for line in outcome_lines(live.outcomes()):
        click.echo(line, err=True)


def _show(changes: Changes) -> None:
    from undersong.models import encode

    for name in changes.retracted:
        click.echo(json.dumps({"retracted": name}))
    for finding in changes.found:
        click.echo(encode(finding))
