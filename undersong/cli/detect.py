"""``undersong detect``: patterns over rows of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from undersong.cli.gates import confidence_option, level_option
from undersong.cli.help import SectionedCommand, examples
from undersong.cli.options import (
    check_targets,
    failing,
    folder_rules,
    output,
    prevalence_option,
    processes_option,
    seeded_chance_options,
    show_problems,
)
from undersong.models import encode

if TYPE_CHECKING:
    from undersong.patterns.significance import ResamplingConfig


@click.command(
    "detect",
    cls=SectionedCommand,
    **examples(
        ("undersong detect rows.jsonl --out findings.jsonl", "the shipped rules"),
        ("undersong detect rows.jsonl --rule darvo --fail-on high", "one rule, as a gate"),
    ),
)
@click.argument("rows", metavar="ROWS.jsonl")
@click.option("--out", default="-", show_default=True, metavar="FILE", help="Where the findings go.")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@seeded_chance_options
@level_option
@confidence_option
@prevalence_option
@processes_option
def command(
    rows: str,
    out: str,
    folder: str | None,
    names: tuple[str, ...],
    effort: ResamplingConfig | None,
    fail_on: str | None,
    fail_confidence: float | None,
    prevalence: float | None,
    processes: int,
) -> None:
    """Find patterns in the rows that `undersong evaluate` wrote (- for stdin), or in any rows with the same keys."""
    from undersong.cli.summary import outcome_lines
    from undersong.patterns.catalog import load_rules
    from undersong.pipeline.audit import detect_rows
    from undersong.report.narrative import basis_words

    check_targets([rows], out)
    rules = load_rules(folder_rules(folder), names)
    problems, detection, significance = detect_rows(rows, rules, effort, prevalence, processes)
    with output(out) as findings:
        for finding in significance.findings:
            findings.write(encode(finding) + b"\n")
    show_problems(problems)
    for line in outcome_lines(detection.outcomes):
        click.echo(line, err=True)
    draws = effort.draws if effort else 0
    for words in basis_words(draws, significance.family, significance.tested):
        click.echo(words, err=True)
    raise SystemExit(failing(significance.findings, fail_on, fail_confidence))
