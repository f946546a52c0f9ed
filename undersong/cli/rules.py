"""``undersong rules``: what is looked for, shown, checked and tested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click


@click.group("rules", short_help="List, show, check and test the rules.")
def command() -> None:
    """The rules are YAML files: patterns over scores, and phrases; each has its cases beside it."""


@command.command("list")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
def list_(folder: str | None) -> None:
    """List the patterns and the phrase files."""
    from undersong.patterns import all_rules
    from undersong.scan.phrases import signal_files

    rules = all_rules([folder] if folder else None)
    width = max(len(rule.id) for rule in rules)
    for rule in rules:
        click.echo(
            f"{rule.id:<{width}}  {rule.file.level:<13} {'on ' if rule.file.enabled else 'off'}  {rule.file.title}"
        )
    for path in () if folder else signal_files(None):
        click.echo(f"{path.stem:<{width}}  phrases")


@command.command("show")
@click.argument("name", metavar="ID")
def show(name: str) -> None:
    """Show the file of a pattern or of a phrase list."""
    from undersong.patterns import FOLDER, all_rules, named
    from undersong.scan.phrases import signal_files

    files = {path.stem: path for path in signal_files(None)}
    path = files.get(name) or FOLDER / f"{named(all_rules(), name).id}.yaml"
    click.echo(path.read_text(encoding="utf-8"), nl=False)


@command.command("check")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to check instead of the shipped rules.")
def check(folder: str | None) -> None:
    """Report every problem of every file, with file, line and remedy; exit code 2 if there is an error."""
    from undersong.patterns.lint import check_rules
    from undersong.scan.cases import check_signals

    lints = check_rules([folder] if folder else None)
    problems = [] if folder else check_signals()
    for each in (*lints, *problems):
        click.echo(str(each))
    errors = len(problems) + sum(lint.severity == "error" for lint in lints)
    notes = sum(lint.severity == "note" for lint in lints)
    warnings = len(lints) + len(problems) - errors - notes
    click.echo(f"{errors} errors, {warnings} warnings, {notes} notes")
    raise SystemExit(2 if errors else 0)


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of pattern files, for editors."""
    from undersong.patterns.schema import schema_text

    click.echo(schema_text(), nl=False)


@command.command("explain")
@click.argument("name", metavar="RULE")
@click.argument("rows", metavar="ROWS", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--agent", metavar="NAME", help="Only the sequences of this agent.")
@click.option("--target", metavar="NAME", help="Only what is directed at NAME, with the public messages.")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
def explain_(name: str, rows: Path, agent: str | None, target: str | None, folder: str | None) -> None:
    """Show row by row what RULE saw in ROWS (JSON Lines): why it matched or where it stopped."""
    from undersong.models import Problem
    from undersong.patterns import all_rules, named
    from undersong.patterns.explain import explain
    from undersong.rows import read_rows
    from undersong.visible import visible

    rule = named(all_rules([folder] if folder else None), name)
    read = []
    with rows.open("rb") as lines:
        for row in read_rows(lines, name=str(rows)):
            if isinstance(row, Problem):
                click.echo(visible(f"{row.where}: {row.what}"), err=True)
            else:
                read.append(row)
    for line in explain(rule, read, agent=agent, target=target):
        click.echo(visible(line))


@command.command("test")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to test instead of the shipped rules.")
def test(folder: str | None) -> None:
    """Run the cases beside every rule; exit code 2 if one fails."""
    results = [*_pattern_cases(folder), *(() if folder else _signal_cases())]
    for failure in (text for passed, text in results if not passed):
        click.echo(failure)
    passed = sum(each for each, _ in results)
    click.echo(f"{passed} cases pass, {len(results) - passed} fail")
    raise SystemExit(0 if passed == len(results) else 2)


def _pattern_cases(folder: str | None) -> Iterator[tuple[bool, str]]:
    from undersong.patterns import all_rules
    from undersong.patterns.cases import run_cases

    for rule in all_rules([Path(folder)] if folder else None):
        for case in run_cases(rule):
            what = f"{case.rule}: {case.kind} '{case.name}': expected {case.expected or 'nothing'}, found {case.found}"
            yield case.passed, what


def _signal_cases() -> Iterator[tuple[bool, str]]:
    from undersong.scan.cases import test_signals

    for case in test_signals():
        expected = case.expected or "nothing"
        yield case.ok, f"{case.where}: {case.kind} “{case.text}”: expected {expected}, found {case.labels}"
