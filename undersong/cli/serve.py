"""``undersong serve``: a web page and an HTTP API over a store."""

from __future__ import annotations

from urllib.parse import quote

import click

from undersong.cli.help import examples
from undersong.cli.options import DEFAULT_STORE, map_option
from undersong.errors import UsageError


@click.command(
    "serve",
    **examples(
        ("undersong serve", "the store of the last audit here, on http://127.0.0.1:8477"),
        ("undersong serve undersong-report", "a finished report"),
        ("undersong serve postgresql://undersong@db/undersong", "the store of a team, in PostgreSQL"),
        ("undersong serve team.db --host 0.0.0.0 --allow-host review.local", "for others, with a token"),
    ),
)
@click.argument("target", metavar="[STORE|REPORT]", default=DEFAULT_STORE)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8477, show_default=True, type=click.IntRange(0, 65535), help="0: any free port.")
@click.option(
    "--token", metavar="TEXT", envvar="UNDERSONG_TOKEN", show_envvar=True,
    help="Ask everybody for this token; one is made, and shown, for any host but loopback.",
)  # fmt: skip
@click.option("--allow-host", "allowed", multiple=True, metavar="NAME", help="Answer to this name too; repeatable.")
@click.option("--read-only", is_flag=True, help="Show, and take nothing: no decisions, files or messages.")
@click.option("--judge", default="offline", show_default=True, metavar="NAME", help="Who scores what comes in.")
@map_option
@click.option(
    "--upload-limit", default=1024, show_default=True, type=click.IntRange(1, 1 << 20), metavar="MB",
    help="The largest file that may be dropped.",
)  # fmt: skip
def command(
    target: str,
    host: str,
    port: int,
    token: str | None,
    allowed: tuple[str, ...],
    read_only: bool,
    judge: str,
    fields: dict[str, str] | None,
    upload_limit: int,
) -> None:
    """Serve STORE or REPORT as pages: look at findings, decide on them, drop a file to audit it.

    STORE is a file, or the address of a PostgreSQL database.

    Only this machine can reach it, unless --host says otherwise; then a token is asked for. The API is described at
    /api/v1/openapi.json.
    """
    try:
        from undersong.serve.server import bound, run, store_for
    except ModuleNotFoundError as error:
        raise UsageError(f"serve needs the package {error.name}", remedy="pip install 'undersong[serve]'") from error
    from undersong.report.commands import map_words
    from undersong.serve.settings import ServeSettings, hosts_for, places_of, token_for

    store, report = places_of(target)
    needed = token_for(host, token)
    with store_for(store, report, read_only=read_only) as (path, copied):
        settings = ServeSettings(
            store=path,
            report=report,
            copied=copied,
            read_only=read_only,
            token=needed,
            hosts=hosts_for(host, allowed),
            upload_limit=upload_limit << 20,
            judge=judge,
            map=map_words(fields or {}),
        )
        opened = bound(host, port)
        name = f"[{host}]" if ":" in host and not host.startswith("[") else host
        address = f"http://{name}:{opened.getsockname()[1]}/"
        if copied:
            click.echo("the report has no store beside it: it can be read, and decisions cannot be kept", err=True)
        made = needed if token is None else None  # a token that somebody chose stays out of logs
        click.echo(f"{address}{f'?token={quote(made)}' if made else ''}")
        run(settings, opened)
