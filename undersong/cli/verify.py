"""``undersong verify``: does a report still say what it said when it was made?"""

from __future__ import annotations

from pathlib import Path

import click

from undersong.wording import counted


@click.command("verify", short_help="Check a report folder against its manifest.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("inputs", nargs=-1, metavar="[INPUT]...", type=click.Path(path_type=Path))
@click.option("--rules", "rules", metavar="DIR", help="The pattern files that the report was made with, if not ours.")
def command(folder: Path, inputs: tuple[Path, ...], rules: str | None) -> None:
    """Recompute every hash of a report: its own files, the rules, the models, and the INPUT files where given.

    Exit code 0: everything agrees; 1: something does not, and each line says what; 2: there is no such report.
    """
    from undersong.verify import verify
    from undersong.visible import one_line

    discrepancies = verify(folder, inputs, rules=[rules] if rules else None)
    for each in discrepancies:
        click.echo(one_line(str(each), 400))
    click.echo(counted(len(discrepancies), "discrepancy", "discrepancies") if discrepancies else "everything agrees")
    raise SystemExit(1 if discrepancies else 0)
