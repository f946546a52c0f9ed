"""What one server serves, to whom, and how much it takes."""

from __future__ import annotations

import ipaddress
import secrets
from pathlib import Path

from undersong.core.manifest import is_report
from undersong.errors import UsageError
from undersong.models import Record
from undersong.stores.addresses import without_password

UPLOAD_LIMIT = 1 << 30  # bytes of one file that is dropped on the page; exports of years are a few hundred MB
BODY_LIMIT = 16 << 20  # bytes of any other request; a batch of messages or traces is far below
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class ServeSettings(Record, frozen=True, kw_only=True):
    """One store, and who may do what with it.

    ``store`` is a path, or the address of a server. ``report`` is a finished report that is read beside it, None where
    there is none. ``copied``: the store is a copy that was made of a report for this run, so that decisions would be
    lost with it. ``token`` None: whoever reaches the port may read. ``hosts`` are the names, without port, by which the
    server may be called. ``map`` says what keys of somebody's own JSON mean, as ``--map`` does.
    """

    store: Path | str
    report: Path | None = None
    copied: bool = False
    read_only: bool = False
    token: str | None = None
    hosts: tuple[str, ...] = LOCAL_NAMES
    upload_limit: int = UPLOAD_LIMIT
    judge: str = "offline"
    map: str = ""

    @property
    def uploads(self) -> Path:
        """The folder with the reports of files that were dropped on the page: beside the store, or here."""
        if isinstance(self.store, str):
            return Path("undersong-uploads").absolute()
        return self.store.with_name(f"{self.store.name}-uploads")

    @property
    def title(self) -> str:
        """What is served, in a few words."""
        if self.copied and self.report is not None:
            return self.report.name
        return without_password(self.store) if isinstance(self.store, str) else self.store.name

    @property
    def writable(self) -> bool:
        """Whether decisions, uploads and messages are taken."""
        return not self.read_only and not self.copied


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def token_for(host: str, given_token: str | None) -> str | None:
    """The token of a server: the one that was chosen, a new one for any address but loopback, else none."""
    if given_token is not None and len(given_token) < 16:
        raise UsageError("a token of fewer than 16 characters", where="--token", remedy="leave it out to have one made")
    return given_token or (None if is_loopback(host) else secrets.token_urlsafe(24))


def hosts_for(host: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """The names by which the server may be called: those of this machine, the address, and what was allowed."""
    own = f"[{host}]" if ":" in host and not host.startswith("[") else host
    unspecified = own in ("0.0.0.0", "[::]")
    return tuple(dict.fromkeys((*LOCAL_NAMES, *(() if unspecified else (own,)), *(name.lower() for name in allowed))))


def places_of(target: str) -> tuple[Path | str | None, Path | None]:
    """The store and the report that STORE|REPORT names, each with its companion where that is there.

    Raises UsageError for a folder that is no report.
    """
    if "://" in target:
        return target, None
    path = Path(target)
    if path.is_dir():
        if not is_report(path):
            raise UsageError("is no report of undersong", where=target, remedy="name a report's folder, or a store")
        store = path.absolute().with_name(f"{path.absolute().name}.db")
        return (store if store.is_file() else None), path
    report = path.with_suffix("") if path.suffix == ".db" else None
    return path, report if report is not None and is_report(report) else None
