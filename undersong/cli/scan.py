"""``undersong scan``: the free signals and the routes, one row a message."""

from __future__ import annotations

import os
from typing import Any

import click

from undersong.cli.options import (
    Counted,
    check_targets,
    corpus_options,
    exit_code,
    options_of,
    output,
    progress_bar,
    refuse_nothing,
    show_problems,
)


@click.command("scan", short_help="Free signals and routes: one JSON row per message.")
@corpus_options
@click.option("--out", default="-", show_default=True, metavar="FILE", help="Where the rows go.")
@click.option("--threads", metavar="FILE", help="Write one row per conversation here: signals, agents, context.")
@click.option("--text/--no-text", default=True, show_default=True, help="Keep the messages' text in the rows.")
def command(paths: tuple[str, ...], out: str, threads: str | None, text: bool, **chosen: Any) -> None:
    """Scan every message and route it; nothing is evaluated, nothing is stored."""
    from undersong.pipeline import scan_rows

    check_targets(paths, out, threads)
    options = options_of(**chosen)
    with output(out) as rows_file, output(threads or os.devnull) as threads_file:
        write = Counted(rows_file.write)
        with progress_bar() as progress:
            problems = scan_rows(paths, options, write, write_thread=threads_file.write, progress=progress, text=text)
        refuse_nothing(write.rows, problems)
    show_problems(problems)
    raise SystemExit(exit_code(problems))
