"""``undersong formats``: what can be read."""

from __future__ import annotations

import json

import click

from undersong.cli.help import examples


@click.command(
    "formats",
    **examples(
        ("undersong formats", "what can be read"),
        ("undersong formats --json", "the same for a program, one format a line"),
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(as_json: bool) -> None:
    """List the input formats; the name goes after --from where detection by content is not wanted."""
    from undersong.formats import all_formats

    formats = list(all_formats())
    width = max(len(entry.name) for entry in formats)
    for entry in formats:
        if as_json:
            facts = {key: getattr(entry, key) for key in ("name", "title", "detected", "export")}
            click.echo(json.dumps(facts, ensure_ascii=False))
            continue
        click.echo(f"{entry.name:<{width}}  {entry.title}; known by {entry.detected}")
        if entry.export:
            click.echo(f"{'':<{width}}  get it: {entry.export}")
