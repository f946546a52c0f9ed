"""``undersong agents``: who is in a store."""

from __future__ import annotations

from collections import Counter

import click

from undersong.cli.options import check_existing

_COLUMNS = ("agent", "messages", "levels", "ranks", "threads", "findings", "last")


@click.command("agents", short_help="The agents of a store: messages, scores, findings.")
@click.option("--store", default="undersong.db", show_default=True, metavar="FILE|URL", help="Whose agents.")
@click.option("--judge", metavar="NAME|HASH", help="Whose scores; needed where the store holds those of several.")
@click.option("--min-evaluations", "least", default=0, type=click.IntRange(0), help="Only agents with so many scores.")
@click.option("--json", "as_json", is_flag=True, help="Print each agent as one JSON line.")
def command(store: str, judge: str | None, least: int, as_json: bool) -> None:
    """List the agents, those with the most findings first; the names are what `undersong agent NAME` takes.

    levels: messages with scores; ranks: messages whose scores are only ranks within their corpus, since the judge was
    not measured on such text.
    """
    import msgspec

    from undersong.core.sanitize import one_line
    from undersong.pipeline.history_sweep import chosen_judge
    from undersong.stores.protocol import open_store

    check_existing(store)
    with open_store(store, read_only=True) as opened_store:
        entries = [
            each for each in opened_store.agents(chosen_judge(opened_store, judge).judge_hash) if each.read >= least
        ]
        findings = Counter(finding.agent for finding in opened_store.findings())
    entries.sort(key=lambda entry: (-findings[entry.agent], -entry.read, entry.agent))
    if as_json:
        for entry in entries:
            facts = msgspec.to_builtins(entry) | {"findings": findings[entry.agent]}
            click.echo(msgspec.json.encode(facts).decode())
        return
    table = [_COLUMNS] + [
        (
            one_line(each.agent, 40),
            *(
                f"{number:,}"
                for number in (each.messages, each.read - each.ranked, each.ranked, each.threads, findings[each.agent])
            ),
            f"{each.last:%Y-%m-%d}" if each.last else "no time",
        )
        for each in entries
    ]
    widths = [max(len(row[i]) for row in table) for i in range(len(_COLUMNS))]
    for row in table:
        cells = (
            f"{row[0]:<{widths[0]}}",
            *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)),
        )
        click.echo("  ".join(cells))
