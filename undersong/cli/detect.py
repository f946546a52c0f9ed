"""``undersong detect``: patterns over rows of scores."""

from __future__ import annotations

import click

from undersong.cli.options import chance_options, check_targets, effort_of, output, show_problems
from undersong.models import LEVELS


@click.command("detect", short_help="Patterns over rows of scores: one JSON finding per line.")
@click.argument("rows", metavar="ROWS.jsonl")
@click.option("--out", default="-", show_default=True, metavar="FILE", help="Where the findings go.")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@chance_options
@click.option("--seed", default=0, show_default=True, help="Seed of the shuffles.")
@click.option("--fail-on", type=click.Choice(LEVELS), help="Exit with 1 at a finding of this level or above.")
def command(
    rows: str,
    out: str,
    folder: str | None,
    names: tuple[str, ...],
    with_chance: bool,
    draws: int,
    block: int,
    seed: int,
    fail_on: str | None,
) -> None:
    """Find patterns in the rows that `undersong evaluate` wrote (- for stdin), or in any rows with the same keys."""
    from undersong.cli.summary import outcome_lines
    from undersong.models import encode
    from undersong.patterns.catalog import load_rules
    from undersong.pipeline.audit import detect_rows
    from undersong.report.narrative import basis_words

    check_targets([rows], out)
    rules = load_rules([folder] if folder else None, names)
    effort = effort_of(with_chance, draws, block, seed)
    problems, detection, significance = detect_rows(rows, rules, effort)
    with output(out) as findings:
        for finding in significance.findings:
            findings.write(encode(finding) + b"\n")
    show_problems(problems)
    for line in outcome_lines(detection.outcomes):
        click.echo(line, err=True)
    for words in basis_words(draws, significance.family, significance.tested):
        click.echo(words, err=True)
    failing = fail_on and any(LEVELS.index(f.level) >= LEVELS.index(fail_on) for f in detection.findings)
    raise SystemExit(1 if failing else 0)
