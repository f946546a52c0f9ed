"""``undersong scan``: the free signals and the routes, one row a message."""

from __future__ import annotations

import os
from typing import Any

import click

from undersong.cli.options import (
    budget_options,
    corpus_options,
    exit_code,
    options_of,
    output,
    progress_bar,
    show_problems,
)


@click.command("scan", short_help="Free signals and routes: one JSON row per message.")
@corpus_options
@budget_options
@click.option("--out", default="-", show_default=True, metavar="FILE", help="Where the rows go.")
@click.option("--threads", metavar="FILE", help="Write one row per conversation here: signals, agents, context.")
@click.option("--text/--no-text", default=True, show_default=True, help="Keep the messages' text in the rows.")
def command(paths: tuple[str, ...], out: str, threads: str | None, text: bool, **chosen: Any) -> None:
    """Scan every message and route it; nothing is evaluated, nothing is stored."""
    from undersong.pipeline import scan_rows

    options = options_of(**chosen)
    with progress_bar() as progress, output(out) as rows_file, output(threads or os.devnull) as threads_file:
        problems = scan_rows(
            paths, options, rows_file.write, write_thread=threads_file.write, progress=progress, text=text
        )
    show_problems(problems)
    raise SystemExit(exit_code(problems))
