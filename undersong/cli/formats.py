"""``undersong formats``: what can be read."""

from __future__ import annotations

import click


@click.command("formats", short_help="List the input formats.")
def command() -> None:
    """List the input formats; the name goes after --from where detection by content is not wanted."""
    from undersong.formats import FORMATS

    width = max(len(each.name) for each in FORMATS)
    for entry in FORMATS:
        click.echo(f"{entry.name:<{width}}  {entry.title}; known by {entry.detected}")
