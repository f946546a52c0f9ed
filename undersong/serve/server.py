"""Starting the server: the store opened or made, a report without a store copied into one, the port bound."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from undersong.errors import UsageError
from undersong.models import Conversation, Finding, Lead, LedgerClaim
from undersong.pipeline.audit import rows_in
from undersong.report.writer import CLAIMS, CONVERSATIONS, EVALUATIONS, FINDINGS, LEADS
from undersong.scan import load_book, scan_conversation
from undersong.serve.app import application
from undersong.serve.runs import records_in
from undersong.serve.settings import ServeSettings
from undersong.stores.browsing import open_browser
from undersong.stores.sqlite import SQLiteStore

BACKLOG = 128  # connections that wait to be taken
GRACE = 2  # seconds that open event streams are given when the server ends


@contextmanager
def store_for(store: Path | str | None, report: Path | None, *, read_only: bool) -> Iterator[tuple[Path | str, bool]]:
    """What to serve, and whether it is a copy: a report whose store is gone is copied into a file."""
    if store is not None:
        if not read_only or isinstance(store, str):
            open_browser(store, read_only=read_only).close()  # makes it, or brings its tables up to date
        yield store, False
        return
    assert report is not None
    with tempfile.TemporaryDirectory(prefix="undersong-serve-") as folder:
        path = Path(folder) / "report.db"
        with SQLiteStore(path) as copy:
            fill(copy, report)
        yield path, True


def fill(store: SQLiteStore, report: Path) -> None:
    """Put what a report holds into an empty store: conversations, rows, findings, leads and claims."""
    book = load_book()
    for conversation in records_in(report / CONVERSATIONS, Conversation):
        scans, thread = scan_conversation(conversation, book)
        store.put_conversation(conversation, scans, thread)
    rows = rows_in(report / EVALUATIONS)[1] if (report / EVALUATIONS).exists() else []
    store.append(rows, records_in(report / FINDINGS, Finding))
    store.put_leads((), list(records_in(report / LEADS, Lead)))
    store.put_claims((), list(records_in(report / CLAIMS, LedgerClaim)))


def bound(host: str, port: int) -> socket.socket:
    """A socket on the address; raises UsageError where it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host.strip("[]"), port))
        opened.listen(BACKLOG)  # from now on a browser waits for the server, and is not turned away
    except (OSError, OverflowError) as error:
        opened.close()
        what = getattr(error, "strerror", None) or str(error)
        raise UsageError(what, where=f"{host}:{port}", remedy="name another port with --port") from error
    return opened


def run(settings: ServeSettings, opened: socket.socket) -> None:
    """Serve until the process is told to end."""
    config = uvicorn.Config(
        application(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # nobody may say who a request is from
        timeout_graceful_shutdown=GRACE,
    )
    uvicorn.Server(config).run(sockets=[opened])
