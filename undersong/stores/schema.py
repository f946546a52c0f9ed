"""The tables of the SQLite store: opening a file, telling whose it is, and bringing it up to date."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec

from undersong.errors import StoreError
from undersong.models import Row
from undersong.stores.lock import LockQueue
from undersong.stores.packed import pack
from undersong.stores.records import decoded

BUSY_SECONDS = 30.0
FIRST_TABLES = ("conversations", "messages", "evaluations", "findings")  # a file with these is ours


def _corpus(db: sqlite3.Connection) -> None:
    """Version 1. Times are integer microseconds UTC; ``body`` is the noun's JSON."""
    for statement in (
        "CREATE TABLE conversations (id TEXT PRIMARY KEY, body BLOB NOT NULL, scans BLOB NOT NULL, routes BLOB)",
        "CREATE TABLE messages (conversation TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL,"
        " agent TEXT NOT NULL, target TEXT, time INTEGER, body BLOB NOT NULL, PRIMARY KEY (conversation, id))",
        "CREATE INDEX messages_id ON messages (id)",
        "CREATE INDEX messages_agent ON messages (agent, time, position, id)",
        "CREATE TABLE evaluations (conversation TEXT NOT NULL, message TEXT NOT NULL, judge_hash TEXT NOT NULL,"
        " state TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (conversation, judge_hash, message))",
        "CREATE TABLE findings (id TEXT PRIMARY KEY, pattern TEXT NOT NULL, agent TEXT NOT NULL, target TEXT,"
        " body BLOB NOT NULL)",
    ):
        db.execute(statement)


def _histories(db: sqlite3.Connection) -> None:
    """Version 2. ``history`` holds one row per message and judge, ``agents`` the number of each agent's last change.

    ``time`` is the event time: where a message has none, its predecessor's. ``cursors`` says up to which change a rule
    has seen the agents, ``graves`` what was forgotten.
    """
    for statement in (
        "CREATE TABLE judges (number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL)",
        "CREATE TABLE history (conversation TEXT NOT NULL, id TEXT NOT NULL, judge INTEGER NOT NULL,"
        " agent TEXT NOT NULL, time INTEGER, position INTEGER NOT NULL, state TEXT NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (conversation, id, judge))",
        "CREATE INDEX history_agent ON history (agent, judge, time, position, id, conversation, state)",
        "CREATE TABLE agents (judge INTEGER NOT NULL, agent TEXT NOT NULL, changed INTEGER NOT NULL,"
        " PRIMARY KEY (judge, agent)) WITHOUT ROWID",
        "CREATE INDEX agents_changed ON agents (judge, changed, agent)",
        "CREATE TABLE cursors (name TEXT PRIMARY KEY, change INTEGER NOT NULL, agent TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE graves (kind TEXT NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (kind, digest)) WITHOUT ROWID",
        "CREATE INDEX findings_agent ON findings (agent, pattern)",
    ):
        db.execute(statement)


def _ledger(db: sqlite3.Connection) -> None:
    """Version 3: answers of paid judges as they came, batches under way, and agents' histories as of a run's start."""
    for statement in (
        "CREATE TABLE paid (key TEXT NOT NULL, attempt INTEGER NOT NULL, judge TEXT NOT NULL, model TEXT NOT NULL,"
        " prompt_hash TEXT NOT NULL, message_hash TEXT NOT NULL, context_hash TEXT NOT NULL, depth TEXT NOT NULL,"
        " body BLOB NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL, written INTEGER NOT NULL,"
        " output INTEGER NOT NULL, cost REAL, sent INTEGER NOT NULL, fixed INTEGER NOT NULL)",
        "CREATE UNIQUE INDEX paid_key ON paid (key, attempt)",
        "CREATE INDEX paid_judge ON paid (judge, prompt_hash)",
        "CREATE TABLE batches (id TEXT PRIMARY KEY, judge TEXT NOT NULL, body BLOB NOT NULL)",
        "CREATE TABLE snapshots (run TEXT PRIMARY KEY)",
        "CREATE TABLE histories (run TEXT NOT NULL, agent TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, agent))",
        "CREATE TABLE calibrations (judge_hash TEXT PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE shifts (judge_hash TEXT NOT NULL, kind TEXT NOT NULL, width TEXT NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (judge_hash, kind, width))",
    ):
        db.execute(statement)


def _live(db: sqlite3.Connection) -> None:
    """Version 4: conversations that grow by a message at a time.

    ``version`` is another one after every write. Where ``live`` is set, ``messages.live`` has the scan and the route of
    each message, and the columns of the conversation have none.
    """
    for statement in (
        "ALTER TABLE conversations ADD COLUMN version INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE conversations ADD COLUMN live INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE messages ADD COLUMN live BLOB",
    ):
        db.execute(statement)


def _packed(db: sqlite3.Connection) -> None:
    """Version 5: the cells of a row at a fixed width (``packed``), in the index by agent, which a sweep reads alone."""
    db.create_function("cells_of", 1, _cells, deterministic=True)
    for statement in (
        "ALTER TABLE history ADD COLUMN cells BLOB",
        "UPDATE history SET cells = cells_of(body)",
        "DROP INDEX history_agent",
        "CREATE INDEX history_agent ON history (agent, judge, time, position, id, conversation, state, cells)",
    ):
        db.execute(statement)


def _cells(body: object) -> bytes | None:
    try:
        return pack(decoded(body, Row))
    except msgspec.DecodeError:
        return None  # whoever reads the row says so


def _swept(db: sqlite3.Connection) -> None:
    """Version 6: the packed histories that sweeps have read. They hold where ``changed`` is that of the agent."""
    db.execute(
        "CREATE TABLE swept (judge INTEGER NOT NULL, agent TEXT NOT NULL, changed INTEGER NOT NULL,"
        " cells BLOB NOT NULL, PRIMARY KEY (judge, agent))"
    )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_corpus, _histories, _ledger, _live, _packed, _swept)


def open_database(path: Path) -> tuple[sqlite3.Connection, LockQueue]:
    """The file opened, made where it is missing, its tables up to date; a file of another program is not changed."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    # a judge that is called inside a running event loop works in another thread while this one waits
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        version_of(db, path)
        queue = LockQueue(path)
        with queue.exclusive():
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")  # only in turn
            _migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db, queue


def open_to_read(path: Path) -> sqlite3.Connection:
    """The file opened for reading only; raises StoreError where it is missing or of an older version."""
    if not path.is_file():
        raise StoreError("there is no such store", where=str(path), remedy="run `undersong audit` first")
    place = f"{path.absolute().as_uri()}?mode=ro"
    db = sqlite3.connect(place, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        version = version_of(db, path)
        if version < len(MIGRATIONS):
            what = f"version {version} is older than this program's {len(MIGRATIONS)}"
            raise StoreError(what, where=str(path), remedy=f"run `undersong store migrate --store {path}`")
    except BaseException:
        db.close()
        raise
    return db


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """The version of the tables, 0 for an empty file; only reads. Raises StoreError where they are not for us."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    if not (names >= set(FIRST_TABLES) if version else not names):
        raise StoreError("is a database of another program", where=str(path), remedy="name another file with --store")
    if version > len(MIGRATIONS):
        raise StoreError(f"version {version} is newer than this program", where=str(path), remedy="upgrade undersong")
    return version


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")
    version = version_of(db, path)
    for number, migrate in enumerate(MIGRATIONS[version:], start=version + 1):
        migrate(db)
        db.execute(f"PRAGMA user_version = {number}")
    db.execute("COMMIT")
