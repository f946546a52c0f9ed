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
    from undersong.patterns import FOLDER

    pattern, phrases = _found(name)
    path = phrases or FOLDER / f"{pattern}.yaml"
    click.echo(path.read_text(encoding="utf-8"), nl=False)


@command.command("check")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to check instead of the shipped rules.")
def check(folder: str | None) -> None:
    """Report every problem of every file, with file, line and remedy; exit code 2 if there is an error."""
    from undersong.patterns.lint import check_rules
    from undersong.scan.cases import check_signals
    from undersong.wording import counted

    lints = check_rules([folder] if folder else None)
    problems = [] if folder else check_signals()
    for each in (*lints, *problems):
        click.echo(str(each))
    errors = len(problems) + sum(lint.severity == "error" for lint in lints)
    click.echo(f"{counted(errors, 'error')}, {counted(len(lints) + len(problems) - errors, 'warning')}")
    raise SystemExit(2 if errors else 0)


@command.command("test")
@click.argument("name", metavar="[ID]", required=False)
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to test instead of the shipped rules.")
def test(name: str | None, folder: str | None) -> None:
    """Run the cases beside every rule, or those of one; exit code 2 if one fails."""
    from undersong.wording import counted

    results = [*_chosen_cases(name, folder)]
    for failure in (text for passed, text in results if not passed):
        click.echo(failure)
    passed = sum(each for each, _ in results)
    passing = f"{counted(passed, 'case')} {'passes' if passed == 1 else 'pass'}"
    click.echo(f"{passing}, {len(results) - passed} {'fails' if len(results) - passed == 1 else 'fail'}")
    raise SystemExit(0 if passed == len(results) else 2)


def _chosen_cases(name: str | None, folder: str | None) -> Iterator[tuple[bool, str]]:
    if folder is not None or name is None:
        yield from _pattern_cases(folder, name)
    if folder is None and name is None:
        yield from _signal_cases(None)
    elif folder is None and name is not None:
        pattern, phrases = _found(name)
        yield from _signal_cases(phrases) if phrases else _pattern_cases(None, pattern)


def _found(name: str) -> tuple[str, Path | None]:
    """The id of a shipped pattern, or the file of a phrase list; raises UsageError with the nearest of both."""
    from undersong.errors import UsageError
    from undersong.patterns import all_rules
    from undersong.rulebook import did_you_mean
    from undersong.scan.phrases import signal_files

    files = {path.stem: path for path in signal_files(None)}
    ids = {known: rule.id for rule in all_rules() for known in (rule.id, *rule.file.aliases)}
    if name not in files and name not in ids:
        what = f"no pattern and no phrase list is named '{name}'"
        raise UsageError(what, remedy=did_you_mean(name, [*ids, *files]))
    return ids.get(name, ""), files.get(name)


def _pattern_cases(folder: str | None, name: str | None) -> Iterator[tuple[bool, str]]:
    from undersong.patterns import all_rules, named
    from undersong.patterns.cases import run_cases

    rules = all_rules([Path(folder)] if folder else None)
    for rule in rules if name is None else (named(rules, name),):
        for case in run_cases(rule):
            what = f"{case.rule}: {case.kind} '{case.name}': expected {case.expected or 'nothing'}, found {case.found}"
            yield case.passed, what


def _signal_cases(file: Path | None) -> Iterator[tuple[bool, str]]:
    from undersong.scan.cases import test_signals

    for case in test_signals(file):
        expected = case.expected or "nothing"
        yield case.ok, f"{case.where}: {case.kind} “{case.text}”: expected {expected}, found {case.labels}"
