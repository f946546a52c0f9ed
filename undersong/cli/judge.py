"""``undersong judge``: how far a judge can be relied on, and the answers that were paid for."""

from __future__ import annotations

from pathlib import Path

import click

from undersong.cli.options import check_store, check_targets, output


@click.group("judge", short_help="Measure a judge, or export the answers that were paid for.")
def command() -> None:
    """How far a judge can be relied on, and the answers that were paid for."""


@command.command("export", short_help="Write paid answers as a file for --judge replay:FILE.")
@click.option("--judge", required=True, metavar="NAME", help="Whose answers, as in the run.")
@click.option("--store", default="undersong.db", show_default=True, metavar="FILE", help="The store that holds them.")
@click.option("--out", default="-", show_default=True, metavar="FILE", help="Where they go.")
def export(judge: str, store: str, out: str) -> None:
    """Write every answer that a store keeps of a judge, raw, under the prompts of this version."""
    from undersong.judges.llm.book import book
    from undersong.judges.llm.replay import written
    from undersong.judges.llm.tiered import named
    from undersong.stores.ledger import SQLiteLedger

    check_store(store)
    check_targets([store], out)
    names = [spec.name for spec in named(judge).values()]
    count = -1  # the first line is the header
    with SQLiteLedger(Path(store)) as ledger, output(out) as file:
        for line in written(judge, book().hash, ledger.all(names, book().hash)):
            file.write(line)
            count += 1
    click.echo(f"{count:,} answers of {judge}", err=True)
