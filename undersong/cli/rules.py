"""``undersong rules``: what is looked for, shown, checked and tested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from undersong.cli.options import echo, folder_rules, show_problems
from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.errors import UsageError

LONGEST = 2000  # characters of one remark
SUGGESTED = 20  # names that a remedy chooses from
TAXONOMY_KINDS = (
    "dimensions", "traits", "indicators", "combinations", "pathways", "constraints", "codes", "mechanisms", "labels"
)  # fmt: skip
LISTED = ("patterns", "phrases", *TAXONOMY_KINDS)


@click.group("rules")
def command() -> None:
    """The rules are YAML files: patterns over scores, and phrases; each has its cases beside it."""


@command.command("list")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--kind", type=click.Choice(LISTED), help="Only this kind; the default is patterns and phrases.")
def list_(folder: str | None, kind: str | None) -> None:
    """List the patterns and the phrase files, or the entries of the taxonomy."""
    kinds = (kind,) if kind else ("patterns",) if folder else ("patterns", "phrases")
    rows = [row for each in kinds for row in _rows(each, folder)]
    width = max(len(name) for name, _ in rows)
    echo(f"{name:<{width}}  {text}" for name, text in rows)


def _rows(kind: str, folder: str | None) -> list[tuple[str, str]]:
    from undersong.cli.taxonomy import names
    from undersong.patterns.catalog import all_rules
    from undersong.scan.phrases import signal_files

    if kind == "patterns":
        return [
            (rule.id, f"{rule.file.level:<13} {'on ' if rule.file.enabled else 'off'}  {rule.file.title}")
            for rule in all_rules(folder_rules(folder))
        ]
    if kind == "phrases":
        return [(path.stem, "phrases") for path in signal_files(None)]
    return list(names(kind).items())


@command.command("show")
@click.argument("name", metavar="ID")
def show(name: str) -> None:
    """Show a pattern's file, or explain what else has a name: see the kinds of `undersong rules list`.

    Where a pattern and something else have the same name, both are shown, each under a line that says what it is.
    """
    from undersong.cli.taxonomy import canonical, explain, names
    from undersong.patterns.catalog import FOLDER, all_rules

    entry = canonical(name)
    if entry is not None:
        rule = next((rule for rule in all_rules() if entry.lower() in (rule.id, *rule.file.aliases)), None)
        if rule is not None:
            click.echo(f"# {entry} names two things. The pattern, {rule.id}.yaml:")
            click.echo((FOLDER / f"{rule.id}.yaml").read_text(encoding="utf-8"))
            click.echo("# And this:")
        click.echo(explain(entry), nl=False)
        return
    pattern, phrases = _locate(name, [each for kind in TAXONOMY_KINDS for each in names(kind)])
    path = phrases or FOLDER / f"{pattern}.yaml"
    click.echo(path.read_text(encoding="utf-8"), nl=False)


@command.command("check")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to check instead of the shipped rules.")
def check(folder: str | None) -> None:
    """Report every problem of every file, with file, line and remedy; exit code 2 if there is an error."""
    from undersong.patterns.tools.lint import check_rules
    from undersong.scan.lint import check_signals

    lints = check_rules(folder_rules(folder))
    problems = [] if folder else check_signals()
    for problem in (*lints, *problems):
        click.echo(one_line(str(problem), LONGEST))
    errors = len(problems) + sum(lint.severity == "error" for lint in lints)
    click.echo(f"{counted(errors, 'error')}, {counted(len(lints) + len(problems) - errors, 'warning')}")
    raise SystemExit(2 if errors else 0)


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of pattern files, for editors."""
    from undersong.patterns.language.rulefile import schema_text

    click.echo(schema_text(), nl=False)


@command.command("explain")
@click.argument("name", metavar="RULE")
@click.argument("rows", metavar="ROWS", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--agent", metavar="NAME", help="Only the sequences of this agent.")
@click.option("--target", metavar="NAME", help="Only what is directed at NAME, with the public messages.")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
def explain_(name: str, rows: Path, agent: str | None, target: str | None, folder: str | None) -> None:
    """Show row by row what RULE saw in ROWS (JSON Lines): why it matched or where it stopped."""
    from undersong.patterns.catalog import all_rules, named
    from undersong.patterns.detect import rows_with_set_indicators
    from undersong.patterns.tools.explain import explain
    from undersong.pipeline.audit import rows_in

    rule = named(all_rules(folder_rules(folder)), name)
    problems, read = rows_in(rows)
    show_problems(problems)
    _require_row_name("agent", agent, (row.agent for row in read))
    _require_row_name("target", target, (row.target for row in read))
    echo(explain(rule, rows_with_set_indicators(read, rule), agent=agent, target=target))


def _require_row_name(what: str, name: str | None, names: Iterable[str | None]) -> None:
    """Raise UsageError for a name that no row has."""
    from undersong.datafiles.yaml_loader import did_you_mean

    row_names = {each for each in names if each is not None}
    if name is not None and name not in row_names:
        remedy = did_you_mean(name, sorted(row_names)[:SUGGESTED]) if row_names else f"no row names a {what}"
        raise UsageError(f"no row has the {what} '{name}'", remedy=remedy)


@command.command("test")
@click.argument("name", metavar="[ID]", required=False)
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to test instead of the shipped rules.")
def test(name: str | None, folder: str | None) -> None:
    """Run the cases beside every rule, or those of one; exit code 2 if one fails."""
    results = [*_chosen_cases(name, folder)]
    echo(text for passed, text in results if not passed)
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
        pattern, phrases = _locate(name)
        yield from _signal_cases(phrases) if phrases else _pattern_cases(None, pattern)


def _locate(name: str, others: Sequence[str] = ()) -> tuple[str, Path | None]:
    """The id of a shipped pattern, or the file of a phrase list; raises UsageError with the nearest name.

    ``others`` are further names that the command takes.
    """
    from difflib import get_close_matches

    from undersong.patterns.catalog import all_rules
    from undersong.scan.phrases import signal_files

    files = {path.stem: path for path in signal_files(None)}
    ids = {name: rule.id for rule in all_rules() for name in (rule.id, *rule.file.aliases)}
    if name not in files and name not in ids:
        taken = {each.lower(): each for each in (*ids, *files, *others)}
        near = [f"did you mean '{taken[close]}'?" for close in get_close_matches(name.lower(), taken, n=1)]
        where = f"; its --kind may be {', '.join(LISTED)}" if others else ""
        remedy = near[0] if near else f"`undersong rules list` names them{where}"
        kinds = "pattern, no phrase list and no other entry" if others else "pattern and no phrase list"
        raise UsageError(f"no {kinds} is named '{name}'", remedy=remedy)
    return ids.get(name, ""), files.get(name)


def _pattern_cases(folder: str | None, name: str | None) -> Iterator[tuple[bool, str]]:
    from undersong.patterns.catalog import all_rules, named
    from undersong.patterns.tools.rule_tests import run_rule_tests

    rules = all_rules(folder_rules(folder))
    for rule in rules if name is None else (named(rules, name),):
        for case in run_rule_tests(rule):
            what = f"{case.rule}: {case.kind} '{case.name}': expected {case.expected or 'nothing'}, found {case.actual}"
            yield case.passed, what


def _signal_cases(file: Path | None) -> Iterator[tuple[bool, str]]:
    from undersong.scan.lint import test_signals

    for case in test_signals(file):
        expected = case.expected or "nothing"
        yield case.ok, f"{case.where}: {case.kind} “{case.text}”: expected {expected}, found {case.labels}"
