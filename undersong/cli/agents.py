"""``undersong agents``: who is in a store."""

from __future__ import annotations

from collections import Counter

import click

from undersong.cli.help import examples
from undersong.cli.options import DEFAULT_STORE, existing_store
from undersong.core.sanitize import one_line
from undersong.stores.protocol import AgentEntry

_COLUMNS = ("agent", "messages", "levels", "ranks", "threads", "findings", "last")


@click.command(
    "agents",
    **examples(
        ("undersong agents --store agents.db", "who is in a store"),
    ),
)
@click.option("--store", default=DEFAULT_STORE, show_default=True, metavar="FILE|URL", help="Whose agents.")
@click.option("--judge", metavar="NAME|HASH", help="Whose scores; needed where the store holds those of several.")
@click.option("--min-evaluations", "least", default=0, type=click.IntRange(0), help="Only agents with so many scores.")
@click.option("--json", "as_json", is_flag=True, help="Print each agent as one JSON line.")
def command(store: str, judge: str | None, least: int, as_json: bool) -> None:
    """List the agents, those with the most findings first; the names are what `undersong agent NAME` takes.

    levels: messages with scores; ranks: messages whose scores are only ranks within their corpus, since the judge was
    not measured on such text.
    """
    import msgspec

    from undersong.pipeline.history_sweep import chosen_judge

    with existing_store(store) as opened_store:
        agents = opened_store.agents(chosen_judge(opened_store, judge).judge_hash)
        entries = [entry for entry in agents if entry.read >= least]
        findings = Counter(finding.agent for finding in opened_store.findings())
    entries.sort(key=lambda entry: (-findings[entry.agent], -entry.read, entry.agent))
    if as_json:
        for entry in entries:
            facts = msgspec.to_builtins(entry) | {"findings": findings[entry.agent]}
            click.echo(msgspec.json.encode(facts).decode())
        return
    table = [_COLUMNS, *(_cells(entry, findings[entry.agent]) for entry in entries)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *numbers in table:
        columns = (f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True))
        click.echo("  ".join((f"{name:<{widths[0]}}", *columns)))


def _cells(entry: AgentEntry, findings: int) -> tuple[str, ...]:
    numbers = (entry.messages, entry.read - entry.ranked, entry.ranked, entry.threads, findings)
    last = f"{entry.last:%Y-%m-%d}" if entry.last else "no time"
    return one_line(entry.agent, 40), *(f"{number:,}" for number in numbers), last
