"""``undersong evaluate``: scores of the routed messages, one row a message."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from undersong.cli.help import SectionedCommand, examples
from undersong.cli.options import (
    DEFAULT_STORE,
    LEDGER,
    CountingWriter,
    budget_options,
    check_store,
    check_targets,
    corpus_options,
    finish,
    judge_options,
    options_of,
    output,
    require_messages,
)
from undersong.cli.progress import progress_bar
from undersong.stores.protocol import open_store

BANDS = ".bands.json"  # beside the rows: signal → reference range


@click.command(
    "evaluate",
    cls=SectionedCommand,
    **examples(
        ("undersong evaluate logs/ --out rows.jsonl", "rows that `undersong detect` reads"),
    ),
)
@corpus_options
@budget_options
@judge_options
@click.option("--judge", default="offline", show_default=True, metavar="NAME", help="Who scores the messages.")
@click.option("--all", "read_all", is_flag=True, help="Read every message, whatever the router says.")
@click.option(
    "--store",
    metavar="FILE|URL",
    help="Keep and reuse answers here; default for a paid judge: as an audit.",
)
@click.option("--out", default="-", show_default=True, metavar="FILE", help="Where the rows go.")
@click.option("--text/--no-text", default=True, show_default=True, help="Keep the messages' text in the rows.")
def command(
    paths: tuple[str, ...], judge: str, read_all: bool, store: str | None, out: str, text: bool, **chosen: Any
) -> None:
    """Scan, route and evaluate; the rows are what `undersong detect` reads.

    Where the judge gives signals, FILE.bands.json holds the reference range of each in this corpus; the rows name it.
    """
    from undersong.judges.protocol import is_paid
    from undersong.pipeline.audit import evaluate_rows
    from undersong.stores.sqlite import temporary_store

    store = store or (DEFAULT_STORE if is_paid(judge) else None)
    check_targets(paths, out, store)
    if store:
        check_store(store)
    options = options_of(judge=judge, read_all=read_all, ledger=LEDGER, **chosen)
    with open_store(store) if store else temporary_store() as opened_store, output(out) as rows_file:
        write = CountingWriter(rows_file.write)
        with progress_bar() as progress:
            beside = None if out == "-" else partial(_write_bands, Path(f"{out}{BANDS}"))
            problems = evaluate_rows(
                paths, options, write, store=opened_store, progress=progress, text=text, write_bands=beside
            )
        require_messages(write.size, problems)
    finish(problems)


def _write_bands(path: Path, table: bytes) -> None:
    with output(str(path)) as file:
        file.write(table)
