"""``undersong formats``: what can be read."""

from __future__ import annotations

import click

from undersong.cli.help import examples


@click.command(
    "formats",
    **examples(
        ("undersong formats", "what can be read"),
    ),
)
def command() -> None:
    """List the input formats; the name goes after --from where detection by content is not wanted."""
    from undersong.formats import all_formats

    formats = list(all_formats())
    width = max(len(entry.name) for entry in formats)
    for entry in formats:
        click.echo(f"{entry.name:<{width}}  {entry.title}; known by {entry.detected}")
        if entry.export:
            click.echo(f"{'':<{width}}  get it: {entry.export}")
