"""``undersong scan``: the free signals and the routes, one row a message."""

from __future__ import annotations

import os
from typing import Any

import click

from undersong.cli.help import SectionedCommand, examples
from undersong.cli.options import (
    CountingWriter,
    budget_options,
    check_targets,
    corpus_options,
    finish,
    options_of,
    output,
    processes_option,
    require_messages,
)
from undersong.cli.progress import progress_bar
from undersong.errors import UsageError
from undersong.models import SIGNALS


@click.command(
    "scan",
    cls=SectionedCommand,
    **examples(
        ("undersong scan logs/ --out rows.jsonl --threads threads.jsonl", "flags and routes, one row a message"),
    ),
)
@corpus_options
@budget_options
@click.option("--out", default="-", show_default=True, metavar="FILE", help="Where the rows go.")
@click.option("--threads", metavar="FILE", help="Write one row per conversation here: signals, agents, context.")
@click.option("--text/--no-text", default=True, show_default=True, help="Keep the messages' text in the rows.")
@click.option(
    "--signals",
    default=",".join(SIGNALS),
    show_default=True,
    metavar="LIST",
    help="Which free signals; the others stay empty. 'phrases,threads' is the fastest.",
)
@processes_option
def command(paths: tuple[str, ...], out: str, threads: str | None, text: bool, signals: str, **chosen: Any) -> None:
    """Scan every message and route it; nothing is evaluated, nothing is stored."""
    from undersong.pipeline.scan_export.stream import scan_rows

    check_targets(paths, out, threads)
    options = options_of(signals=_signals(signals), **chosen)
    with output(out) as rows_file, output(threads or os.devnull) as threads_file:
        write = CountingWriter(rows_file.write)
        with progress_bar() as progress:
            write_thread = threads_file.write if threads else None
            problems = scan_rows(paths, options, write, write_thread=write_thread, progress=progress, text=text)
        require_messages(write.size, problems)
    finish(problems)


def _signals(signal_list: str) -> tuple[str, ...]:
    """The names in a list; raises UsageError for an unknown one, or where the phrases are missing."""
    names = tuple(dict.fromkeys(name.strip() for name in signal_list.split(",") if name.strip()))
    unknown = next((name for name in names if name not in SIGNALS), None)
    if unknown is not None:
        raise UsageError(f"unknown signal '{unknown}'", remedy=f"known are {', '.join(SIGNALS)}")
    if "phrases" not in names:
        raise UsageError("--signals without phrases", remedy="name them too: everything else rests on them")
    return names
