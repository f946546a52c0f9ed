"""``undersong verify``: does a report still say what it said when it was made?"""

from __future__ import annotations

from pathlib import Path

import click

from undersong.cli.help import examples
from undersong.core.sanitize import one_line
from undersong.core.text import counted


@click.command(
    "verify",
    **examples(
        ("undersong verify undersong-report", "does it still say what it said?"),
        ("undersong verify undersong-report logs/", "and does it follow from these inputs?"),
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("inputs", nargs=-1, metavar="[INPUT]...", type=click.Path(path_type=Path))
@click.option("--rules", "rules", metavar="DIR", help="The pattern files that the report was made with, if not ours.")
@click.option("--judge", metavar="offline:DIR", help="The offline model that the report was made with, if not ours.")
@click.option("--digest", metavar="HEX", help="The digest that audit printed, kept elsewhere: 16 digits or more of it.")
@click.option("--key", metavar="FILE", help="A public key, or allowed signers, by whom it must be signed.")
def command(
    folder: Path, inputs: tuple[Path, ...], rules: str | None, judge: str | None, digest: str | None, key: str | None
) -> None:
    """Recompute every hash of a report: its own files, the rules, the models, and the INPUT files where given.

    Where they agree, scan, verdict, detect, chance and the pages are done again from the folder's own data. The hashes
    show what changed; that nobody sealed the folder again, only a digest kept elsewhere or a signature (`undersong
    sign`) shows.

    Exit code 0: everything agrees; 1: something does not, and each line says what; 2: there is no such report.
    """
    from undersong.verify import check
    from undersong.verify.ssh_signature import read_public_keys

    keys = read_public_keys(Path(key).expanduser()) if key else None
    result = check(folder, inputs, rules=[rules] if rules else None, digest=digest, judge=judge, keys=keys)
    for discrepancy in result.discrepancies:
        click.echo(one_line(str(discrepancy), 400))
    if result.checked:
        click.echo(f"checked: {', '.join(result.checked)}")
    for reason in result.skipped:
        click.echo(f"not done again: {reason}")
    for reason in result.not_shown:
        click.echo(one_line(f"not shown: {reason}", 400))
    bad = counted(len(result.discrepancies), "discrepancy", "discrepancies")
    click.echo(bad if result.discrepancies else "everything agrees")
    raise SystemExit(1 if result.discrepancies else 0)
