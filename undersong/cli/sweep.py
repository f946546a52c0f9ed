"""``undersong sweep``: patterns over every agent's whole history, for a scheduler."""

from __future__ import annotations

import click

from undersong.cli.options import chance_options, check_existing, effort_of
from undersong.core.text import counted
from undersong.models import LEVELS


@click.command("sweep", short_help="Patterns over all agents of a store that changed since the last sweep.")
@click.option("--store", default="undersong.db", show_default=True, metavar="FILE|URL", help="Whose histories.")
@click.option(
    "--min-evaluations",
    "least",
    default=5,
    show_default=True,
    type=click.IntRange(1),
    help="Scored messages, at least.",
)
@click.option("--judge", metavar="NAME|HASH", help="Whose scores; needed where the store holds those of several.")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@click.option("--slow/--no-slow", default=True, show_default=True, help="Also the variants that take months.")
@click.option("--emerging", "warn", is_flag=True, help="Also warn of sequences past the middle of a pattern.")
@click.option("--again", is_flag=True, help="Read every agent, changed or not.")
@chance_options
@click.option("--seed", default=0, show_default=True, help="Seed of the shuffles.")
@click.option("--json", "as_json", is_flag=True, help="Print each new finding as one JSON line.")
@click.option("--fail-on", type=click.Choice(LEVELS), help="Exit with 1 at a new finding of this level or above.")
def command(
    store: str,
    least: int,
    judge: str | None,
    folder: str | None,
    names: tuple[str, ...],
    slow: bool,
    warn: bool,
    again: bool,
    with_chance: bool,
    draws: int,
    block: int,
    seed: int,
    as_json: bool,
    fail_on: str | None,
) -> None:
    """Search the histories of all agents with enough scores, across conversations and months.

    Only agents that changed since the last sweep are read, and a rule that changed reads all of them again. New
    findings are printed; what was found before is not said twice.
    """
    import json

    import msgspec

    from undersong.cli.summary import outcome_lines
    from undersong.core.sanitize import one_line
    from undersong.models import encode
    from undersong.patterns.catalog import all_rules, load_rules
    from undersong.pipeline.history_sweep import chosen_judge, sweep
    from undersong.stores.protocol import open_store

    rules = load_rules([folder] if folder else None, names)
    if slow and not names and not folder:
        rules += tuple(rule for rule in all_rules() if "slow" in rule.file.tags and rule not in rules)
    effort = effort_of(with_chance, draws, block, seed)
    check_existing(store)
    with open_store(store) as opened_store:
        done = sweep(
            opened_store,
            rules,
            chosen_judge(opened_store, judge).judge_hash,
            least=least,
            effort=effort,
            again=again,
            warn=warn,
        )
    for finding in done.new_findings:
        aim = f" towards {finding.target}" if finding.target else ""
        line = f"{finding.finding_id[:12]}  {finding.level:<8} {finding.pattern}: {finding.agent}{aim}"
        click.echo(encode(finding).decode() if as_json else one_line(f"{line}, strength {finding.strength:.2f}", 160))
    for sequence in done.emerging:
        aim = f" towards {sequence.target}" if sequence.target else ""
        stages = f"{', '.join(sequence.seen)} seen, {', '.join(sequence.missing)} missing"
        line = one_line(f"emerging      {sequence.level:<8} {sequence.pattern}: {sequence.agent}{aim}, {stages}", 160)
        click.echo(json.dumps({"emerging": msgspec.to_builtins(sequence)}) if as_json else line)
    parts = [
        counted(done.agents, "agent"),
        counted(done.rows, "row"),
        f"{counted(len(done.new_findings), 'new finding')}",
    ]
    parts += [f"{len(done.retracted)} that no longer hold"] if done.retracted else []
    click.echo(f"swept {', '.join(parts)}", err=as_json)
    if not done.agents:
        asked = f"no agent with at least {counted(least, 'scored message')}"
        click.echo(asked if again else f"{asked} has changed since the last sweep; --again reads all", err=True)
    for line in outcome_lines(done.outcomes):
        click.echo(line, err=True)
    failing = fail_on and any(LEVELS.index(f.level) >= LEVELS.index(fail_on) for f in done.new_findings)
    raise SystemExit(1 if failing else 0)
