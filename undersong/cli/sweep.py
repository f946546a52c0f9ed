"""``undersong sweep``: patterns over every agent's whole history, for a scheduler."""

from __future__ import annotations

import json
from typing import Any

import click
import msgspec

from undersong.cli.gates import confidence_option, level_option
from undersong.cli.help import SectionedCommand, examples
from undersong.cli.options import (
    DEFAULT_STORE,
    existing_store,
    failing,
    folder_rules,
    prevalence_option,
    seeded_chance_options,
)
from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import Emerging, Finding, encode

_LEAST = click.IntRange(1)


@click.command(
    "sweep",
    cls=SectionedCommand,
    **examples(
        ("undersong sweep --store agents.db --min-evaluations 20", "each night, from a scheduler"),
    ),
)
@click.option("--store", default=DEFAULT_STORE, show_default=True, metavar="FILE|URL", help="Whose histories.")
@click.option(
    "--min-evaluations", "least", default=5, show_default=True, type=_LEAST, help="Scored messages, at least."
)
@click.option("--judge", metavar="NAME|HASH", help="Whose scores; needed where the store holds those of several.")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@click.option("--slow/--no-slow", default=True, show_default=True, help="Also the variants that take months.")
@click.option("--emerging", "warn", is_flag=True, help="Also warn of sequences past the middle of a pattern.")
@click.option("--again", is_flag=True, help="Read every agent, changed or not.")
@seeded_chance_options
@prevalence_option
@click.option("--json", "as_json", is_flag=True, help="Print each new finding as one JSON line.")
@level_option
@confidence_option
def command(
    store: str,
    judge: str | None,
    folder: str | None,
    names: tuple[str, ...],
    slow: bool,
    as_json: bool,
    fail_on: str | None,
    fail_confidence: float | None,
    **chosen: Any,
) -> None:
    """Search the histories of all agents with enough scores, across conversations and months.

    Only agents that changed since the last sweep are read, and a rule that changed reads all of them again. New
    findings are printed; what was found before is not said twice.
    """
    from undersong.cli.summary import outcome_lines
    from undersong.patterns.catalog import all_rules, load_rules
    from undersong.pipeline.history_sweep import chosen_judge, sweep

    rules = load_rules(folder_rules(folder), names)
    if slow and not names and not folder:
        rules += tuple(rule for rule in all_rules() if "slow" in rule.file.tags and rule not in rules)
    with existing_store(store, read_only=False) as opened_store:
        done = sweep(opened_store, rules, chosen_judge(opened_store, judge).judge_hash, **chosen)
    for finding in done.new_findings:
        click.echo(encode(finding).decode() if as_json else _finding_line(finding))
    for sequence in done.emerging:
        warning = {"emerging": msgspec.to_builtins(sequence)}
        click.echo(json.dumps(warning) if as_json else _emerging_line(sequence))
    parts = [counted(done.agents, "agent"), counted(done.rows, "row"), counted(len(done.new_findings), "new finding")]
    parts += [f"{len(done.retracted)} that no longer hold"] if done.retracted else []
    click.echo(f"swept {', '.join(parts)}", err=as_json)
    if not done.agents:
        asked = f"no agent with at least {counted(chosen['least'], 'scored message')}"
        unchanged = f"{asked} has changed since the last sweep; --again reads all"
        click.echo(asked if chosen["again"] else unchanged, err=True)
    for line in outcome_lines(done.outcomes):
        click.echo(line, err=True)
    raise SystemExit(failing(done.new_findings, fail_on, fail_confidence))


def _finding_line(finding: Finding) -> str:
    aim = f" towards {finding.target}" if finding.target else ""
    line = f"{finding.finding_id[:12]}  {finding.level:<8} {finding.pattern}: {finding.agent}{aim}"
    return one_line(f"{line}, strength {finding.strength:.2f}", 160)


def _emerging_line(sequence: Emerging) -> str:
    aim = f" towards {sequence.target}" if sequence.target else ""
    stages = f"{', '.join(sequence.seen)} seen, {', '.join(sequence.missing)} missing"
    return one_line(f"emerging      {sequence.level:<8} {sequence.pattern}: {sequence.agent}{aim}, {stages}", 160)
