"""``undersong mcp``: a store for programs that speak the Model Context Protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from undersong.cli.explain import explanation
from undersong.cli.help import examples
from undersong.cli.options import DEFAULT_STORE, check_existing
from undersong.stores.addresses import without_password


@click.command(
    "mcp",
    **examples(
        ("undersong mcp", "serve undersong-report.db over stdio"),
        ("undersong mcp --http 8765", "the same at http://127.0.0.1:8765/mcp"),
        ("undersong mcp --allow-path ~/exports", "also audit files below that folder"),
    ),
)
@click.option("--store", default=DEFAULT_STORE, show_default=True, metavar="FILE|URL", help="The store of an audit.")
@click.option("--http", "port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve over HTTP on 127.0.0.1.")
@click.option(
    "--allow-path",
    "allowed",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="Offer to audit files below DIR; repeatable.",
)
@click.option("--write", "reviewer", metavar="NAME", help="Offer to keep reviews, as decided by this person.")
def command(store: str, port: int | None, allowed: tuple[Path, ...], reviewer: str | None) -> None:
    """Serve what an audit found to a program that speaks MCP: over stdio, or over HTTP to this machine alone.

    The tools read: conversations, messages, agents, findings, leads, claims, rules, explain, search. Without --write
    nothing is written, and no judge with a price is asked. Every text of a conversation is cut, made visible and
    marked as quoted.
    """
    from undersong.bridges.extras import require

    require("mcp", "mcp", where="undersong mcp")
    from undersong.bridges.mcp_server import HOST, Served, mcp_server, serve

    check_existing(store)
    server = mcp_server(Served(store, allowed, reviewer), partial(explanation, scores=True))
    if port is not None:
        click.echo(f"serving {without_password(store)} at http://{HOST}:{port}/mcp", err=True)
    serve(server, port)
