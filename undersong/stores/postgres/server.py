"""A PostgreSQL server: its address, a connection that takes SQLite's words, transactions, and errors in words."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.string import StrDumperUnknown, TextLoader

from undersong.core.signals import uninterrupted
from undersong.errors import StoreError, UsageError
from undersong.stores.addresses import without_password
from undersong.stores.codec import listed_statements
from undersong.stores.sql.database import Parameters, SQLCursor, SQLDatabase

FOLDER = Path(__file__).parent
SCHEMA = FOLDER / "schema.sql"
MIGRATIONS = (FOLDER / "2_lists.sql",)  # what brings version 1 to 2, and so on
VERSION = 1 + len(MIGRATIONS)
OLDEST = 14  # PostgreSQL before 14 gets no corrections any more
CONNECT_SECONDS = 10
RETRY_SECONDS = 60.0  # how long a connection that was lost is tried again: a server restarts
LOCK_SECONDS = 60  # how long a write waits for others
_PAUSE_SECONDS = 0.5
_MAKING = 0x756E64657273  # the advisory lock under which the tables are made
_SESSION = (
    "SET search_path = undersong",
    f"SET lock_timeout = '{LOCK_SECONDS}s'",
    "SET tcp_keepalives_idle = 60",  # a machine that is gone gives its locks back
)
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
IN_TURN = "LOCK TABLE cursors IN EXCLUSIVE MODE"  # one transaction that writes at a time; readers go on


def parameters_of(address: str) -> dict[str, Any]:
    """The parts of an address as psycopg takes them; raises UsageError where it is none."""
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if port == -1 or parts.fragment or "@" in parts.path + parts.query:
        remedy = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE; in a password / is written as %2F, # as %23, ? as %3F"
        raise UsageError("is no address of a PostgreSQL server", where=without_password(address), remedy=remedy)
    named = {
        "host": parts.hostname,
        "port": port,
        "user": unquote(parts.username or "") or None,
        "password": unquote(parts.password or "") or None,
        "dbname": unquote(parts.path.lstrip("/")) or None,
    }
    defaults = {"connect_timeout": CONNECT_SECONDS, "application_name": "undersong"}
    return defaults | dict(parse_qsl(parts.query)) | {name: value for name, value in named.items() if value is not None}


class _EscapedDumper(StrDumperUnknown):
    """Text without NUL, which PostgreSQL does not take: ^A^A stands for it, and ^A^B for ^A; the order is the same."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01"))


class _EscapedLoader(TextLoader):
    """Text as it was before ``_EscapedDumper``."""

    def load(self, data: Any) -> str | bytes:
        text = super().load(data)
        if isinstance(text, bytes) or "\x01" not in text:
            return text
        return re.sub("\x01(.)", lambda match: "\x00" if match[1] == "\x01" else "\x01", text)


@cache
def columns_of() -> dict[str, tuple[str, ...]]:
    """Table → its columns but those that the server works out, from the schema."""
    tables: dict[str, tuple[str, ...]] = {}
    for statement in (part for path in (SCHEMA, *MIGRATIONS) for part in listed_statements(path)):
        if match := re.fullmatch(r"CREATE TABLE (\w+) \((.*)\)", statement):
            parts = re.split(r", (?![^(]*\))", match[2])
            tables[match[1]] = tuple(part.split()[0] for part in parts if not part.startswith("PRIMARY KEY"))
        elif match := re.match(r"ALTER TABLE (\w+) ADD COLUMN rowid ", statement):
            tables[match[1]] = (*tables[match[1]], "rowid")
    return tables


_WORDS = (  # SQLite's → PostgreSQL's
    (r"%", "%%"),
    (r"\?", "%s"),
    (r"CAST\((\w+(?:\.\w+)?) AS TEXT\)", r"convert_from(\1, 'UTF8')"),  # of columns: bytes that are JSON
    (r"\(json, ", "(convert_from(body, 'UTF8'), "),  # a column of findings with their body
    (r" INDEXED BY \w+", ""),
    (r" IS json_extract", " IS NOT DISTINCT FROM json_extract"),
    (r"CAST\(group_concat\((\w+), ''\) AS BLOB\)", r"string_agg(\1, '')"),
    (r"^INSERT OR IGNORE (.*)$", r"INSERT \1 ON CONFLICT DO NOTHING"),
)


@cache
def translated(statement: str) -> str:
    """A statement of the tables in PostgreSQL's words."""
    for theirs, ours in _WORDS:
        statement = re.sub(theirs, ours, statement)
    if match := re.match(r"INSERT OR REPLACE INTO (\w+)", statement):
        renewed = ", ".join(f"{name} = excluded.{name}" for name in columns_of()[match[1]])
        rest = statement.removeprefix("INSERT OR REPLACE ")
        return f"INSERT {rest} ON CONFLICT ON CONSTRAINT {match[1]}_pkey DO UPDATE SET {renewed}"
    return statement


class ServerConnection:
    """A connection that is made again where the server was away between two transactions."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        """Connect; raises psycopg.Error where the server does not take us."""
        self._parameters = parameters
        self._connection = self._connect()

    def _connect(self) -> psycopg.Connection:
        made = psycopg.connect(**self._parameters, autocommit=True, client_encoding="utf8")
        made.adapters.register_dumper(str, _EscapedDumper)
        made.adapters.register_loader("text", _EscapedLoader)
        for statement in _SESSION:
            made.execute(statement)
        return made

    def _connect_again(self) -> None:
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            try:
                self._connection = self._connect()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    @property
    def info(self) -> psycopg.ConnectionInfo:
        """What the server says of itself."""
        return self._connection.info

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and not ended, or nobody knows."""
        return self._connection.info.transaction_status != TransactionStatus.IDLE

    def execute(self, statement: str, parameters: Parameters = (), /) -> SQLCursor:
        """See SQLConnection."""
        begun = self.in_transaction and not self._connection.closed
        try:
            return self._connection.execute(translated(statement).encode(), parameters)
        except psycopg.OperationalError:
            if begun or not self._connection.closed:
                raise
            self._connect_again()
            return self._connection.execute(translated(statement).encode(), parameters)

    def executemany(self, statement: str, rows: Iterable[Parameters], /) -> None:
        """See SQLConnection; the rows are read first, as they may come from the same connection."""
        values = list(rows)
        if values:
            with self._connection.cursor() as cursor:
                cursor.executemany(translated(statement).encode(), values)

    def run_file(self, path: Path) -> None:
        """Run the statements of a file as they are, within a transaction."""
        self._connection.execute(path.read_bytes())

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """A transaction that begins with this statement; an error takes all of it back."""
        try:
            self.execute(begin)
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction and not self._connection.closed:
                self.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close it; every transaction that has ended is durable."""
        self._connection.close()


class PostgresDatabase(SQLDatabase):
    """A database of a server; any number of processes read and write it, one transaction a time."""

    _db: ServerConnection

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        """Connect and make the tables where they are missing; raises StoreError where the server does not take us."""
        self._address, self._read_only = address, read_only
        parameters = parameters_of(address)
        with self._translated():
            self._db = ServerConnection(parameters)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    @property
    def where(self) -> str:
        """See SQLDatabase."""
        return without_password(self._address)

    def close(self) -> None:
        """Close the connection; every write is durable when it returns."""
        self._db.close()

    def _begin_audit(self) -> None:
        """Nothing to do: any number of audits put conversations at once."""

    def _prepare(self) -> None:
        info = self._db.info
        if info.server_version < OLDEST * 10_000:
            remedy = f"use PostgreSQL {OLDEST} or later"
            raise StoreError(f"PostgreSQL {info.server_version // 10_000} is too old", where=self.where, remedy=remedy)
        if info.parameter_status("server_encoding") != "UTF8":
            remedy = "make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
            raise StoreError("the database is not in UTF-8", where=self.where, remedy=remedy)
        version = self.version()
        if version is None:
            self._make()
        elif version > VERSION:
            what = f"version {version} is newer than this program"
            raise StoreError(what, where=self.where, remedy="upgrade undersong")
        elif version < VERSION:
            self._migrate(version)

    def version(self) -> int | None:
        """The version of the tables, None where there are none."""
        if self._db.execute("SELECT to_regclass('undersong.store_version')").fetchone()[0] is None:
            return None
        number: int = self._db.execute("SELECT number FROM undersong.store_version").fetchone()[0]
        return number

    def _make(self) -> None:
        if self._read_only:
            raise StoreError("there is no such store", where=self.where, remedy="run `undersong audit` first")
        self._db.execute("SELECT pg_advisory_lock(?)", (_MAKING,))  # before the transaction: within it, a backend may
        try:  # still remember that the schema is missing, after waiting for another that made it
            with self._db.transaction(WRITE):
                version = self.version()
                if version is None:
                    self._db.execute("CREATE SCHEMA undersong")
                    self._db.run_file(SCHEMA)
                for path in MIGRATIONS[(version or 1) - 1 :]:
                    self._db.run_file(path)
        finally:
            self._db.execute("SELECT pg_advisory_unlock(?)", (_MAKING,))

    def _migrate(self, version: int) -> None:
        """Bring the tables of an older version up to date."""
        if self._read_only:
            what = f"version {version} is older than this program's {VERSION}"
            raise StoreError(what, where=self.where, remedy=f"run `undersong store migrate --store {self.where}`")
        self._make()

    @contextmanager
    def _writing(self) -> Iterator[ServerConnection]:
        if self._read_only:
            raise StoreError("is open for reading only", where=self.where, remedy="open it for writing")
        with self._translated(), uninterrupted(), self._db.transaction(WRITE):
            self._db.execute(IN_TURN)
            yield self._db

    @contextmanager
    def _reading(self) -> Iterator[ServerConnection]:
        with self._translated(), nullcontext() if self._db.in_transaction else self._db.transaction(READ):
            yield self._db

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise StoreError(_first_line(error), where=self.where, remedy=_remedy(error)) from error
        except msgspec.DecodeError as error:
            remedy = "audit the files again into another store"
            raise StoreError(f"a stored record is damaged: {error}", where=self.where, remedy=remedy) from error


def _first_line(error: psycopg.Error) -> str:
    return " ".join((str(error).splitlines() or [type(error).__name__])[0].split())


def _remedy(error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return "GRANT CREATE ON DATABASE to this user, or name a database of its own"
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return f"another process has been writing for {LOCK_SECONDS} seconds: end it, or wait and try again"
    return (
        "see that the server runs, and user, password (in the address, PGPASSWORD or ~/.pgpass) and database are right;"
        " the same command goes on"
    )
