"""Seals of an SQLite file: what was stored of each conversation and agent as a hash, renewed with every write.

A write of this program changes rows and seals in one transaction; whatever else changes a row leaves its seal behind.
Who can run this program can seal anything again: only ``content_digest``, kept elsewhere, shows that.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

import msgspec

from undersong.core.text import counted

# table → the column by which its rows are sealed together; other tables have one seal each
GROUPS = {
    "conversations": "id", "messages": "conversation", "evaluations": "conversation", "history": "agent",
    "findings": "agent", "leads": "agent", "claims": "conversation", "paid": "judge", "histories": "run",
}  # fmt: skip
CACHES = frozenset(  # not sealed: all but the seals are compared with what they are made from
    {"swept", "texts", "seals", "speakers", "totals", "talks", "cited_words"}
)
WORDS = {  # what a seal is of, for people
    "conversations": "conversation {}",
    "messages": "messages of conversation {}",
    "evaluations": "answers about conversation {}",
    "history": "history of {}",
    "findings": "findings about {}",
    "leads": "leads about {}",
    "claims": "claims of conversation {}",
    "reviews": "what people decided",
    "paid": "answers that {} was paid for",
    "histories": "what a run knew of agents ({})",
    "agents": "which histories changed when",
    "cursors": "how far sweeps have come",
    "graves": "what was forgotten",
    "judges": "the judges",
    "": "the seals of the store",
}
_MODULUS = 1 << 256
_encode = msgspec.msgpack.Encoder().encode
Group = tuple[str, str]  # kind and name of a seal


class Seal(NamedTuple):
    """A number of rows, and the sum of their hashes modulo 2^256."""

    rows: int = 0
    total: int = 0

    def changed(self, rows: int, total: int) -> Seal:
        """The seal with so many rows more, whose hashes have this sum."""
        return Seal(self.rows + rows, (self.total + total) % _MODULUS)

    @property
    def digest(self) -> bytes:
        """The sum as 32 bytes."""
        return self.total.to_bytes(32, "big")


class Sealer:
    """The seals of a connection that writes: temporary triggers count what each transaction changes."""

    def __init__(self, db: sqlite3.Connection, triggers: Iterable[str]) -> None:
        """``triggers`` are those of its tables: the connection's own, nothing of them is in the file."""
        self._db = db
        self._changes: dict[Group, list[int]] = defaultdict(lambda: [0, 0])
        db.create_function("seal", -1, self._count)
        db.execute("PRAGMA recursive_triggers = ON")  # or rows that REPLACE takes away would go uncounted
        db.execute("BEGIN")  # one transaction for all takes half the time
        for statement in triggers:
            db.execute(statement)
        db.execute("COMMIT")

    def _count(self, table: str, sign: int, group: object, *columns: object) -> None:
        change = self._changes[table, str(group)]
        change[0] += sign
        change[1] += sign * _row_hash(table, columns)

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Within a transaction: after the block, the seals are those of what it changed."""
        self._changes.clear()
        yield
        if self._changes:
            _renew(self._db, self._changes)
            self._changes.clear()


def sealing_triggers(db: sqlite3.Connection) -> tuple[str, ...]:
    """The statements that make the triggers of a Sealer, for tables such as there are here."""
    return tuple(statement for table in sealed_tables(db) for statement in _triggers(db, table))


def seal_everything(db: sqlite3.Connection) -> None:
    """Make the seals of a store that has none yet, within a transaction."""
    db.execute("DELETE FROM seals")
    _renew(db, {group: list(seal) for group, seal in _present(db).items()})


def seal_errors(db: sqlite3.Connection) -> Iterator[str]:
    """What is not as it was stored, in words: reads every row."""
    stored, present = dict(_stored(db)), _present(db)
    root = stored.pop(("", ""), Seal())
    for group in sorted(stored.keys() | present.keys()):
        yield from _difference(_words(group), stored.get(group), present.get(group, Seal()))
    yield from _difference(_words(("", "")), root, _sum_of(stored))


def content_digest(db: sqlite3.Connection) -> str:
    """SHA-256 over every row in the order of the keys: another one after any change, whoever made it."""
    whole = sha256()
    for table in sealed_tables(db):
        for row in _rows(db, table):
            whole.update(_encode((table, *row)))
    return whole.hexdigest()


def sealed_tables(db: sqlite3.Connection) -> list[str]:
    """The tables that have seals, by name: all ordinary ones but the caches."""
    names = db.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name")
    return [name for (name,) in names.fetchall() if name not in CACHES and not name.startswith("sqlite_")]


def _difference(what: str, stored: Seal | None, present: Seal) -> Iterator[str]:
    if stored is None:
        yield f"{what}: {counted(present.rows, 'record')} that no run of undersong stored"
    elif stored.rows != present.rows:
        yield f"{what}: {counted(stored.rows, 'record')} stored, {present.rows} there"
    elif stored != present:
        yield f"{what}: changed since it was stored"


def _words(group: Group) -> str:
    kind, name = group
    return WORDS.get(kind, f"table {kind}").format(name)


def _triggers(db: sqlite3.Connection, table: str) -> Iterator[str]:
    columns = [name for name, _ in _columns(db, table)]

    def call(sign: int, record: str) -> str:
        group = f"{record}.{GROUPS[table]}" if table in GROUPS else "''"
        values = ", ".join((group, *(f"{record}.{name}" for name in columns)))
        return f"SELECT seal('{table}', {sign}, {values});"

    changes = (("INSERT", call(1, "new")), ("DELETE", call(-1, "old")), ("UPDATE", call(-1, "old") + call(1, "new")))
    for event, work in changes:
        yield f"CREATE TEMP TRIGGER seal_{table}_{event} AFTER {event} ON main.{table} BEGIN {work} END"


def _columns(db: sqlite3.Connection, table: str) -> list[tuple[str, int]]:
    """The columns of a table, each with its place in the primary key, from 1 on, or 0."""
    return db.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (table,)).fetchall()


def _rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[object, ...]]:
    columns = _columns(db, table)
    names = [name for name, _ in columns]
    keys = [name for name, place in sorted(columns, key=lambda column: column[1]) if place] or names
    # a text that is none shows as one that nobody stored
    db.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    try:
        yield from db.execute(f"SELECT {', '.join(names)} FROM main.{table} ORDER BY {', '.join(keys)}")
    finally:
        db.text_factory = str


def _row_hash(table: str, columns: tuple[object, ...]) -> int:
    return int.from_bytes(sha256(_encode((table, *columns))).digest(), "big")


def _present(db: sqlite3.Connection) -> dict[Group, Seal]:
    """The seals that the rows as they are now would have."""
    totals: dict[Group, list[int]] = defaultdict(lambda: [0, 0])
    for table in sealed_tables(db):
        names = [name for name, _ in _columns(db, table)]
        place = names.index(GROUPS[table]) if table in GROUPS else None
        for row in _rows(db, table):
            total = totals[table, "" if place is None else str(row[place])]
            total[0] += 1
            total[1] += _row_hash(table, row)
    return {group: Seal().changed(*total) for group, total in totals.items()}


def _stored(db: sqlite3.Connection) -> Iterator[tuple[Group, Seal]]:
    for kind, name, rows, digest in db.execute("SELECT kind, name, rows, digest FROM seals"):
        yield (str(kind), str(name)), _seal(rows, digest)


def _seal(rows: object, digest: object) -> Seal:
    """A stored seal; one that is none at all agrees with nothing."""
    if isinstance(rows, int) and isinstance(digest, bytes):
        return Seal(rows, int.from_bytes(digest, "big"))
    return Seal(-1, -1)


def _sum_of(seals: Mapping[Group, Seal]) -> Seal:
    """The seal of seals."""
    return Seal().changed(len(seals), sum(_seal_hash(group, seal) for group, seal in seals.items()))


def _seal_hash(group: Group, seal: Seal) -> int:
    return _row_hash("seals", (*group, seal.rows, seal.digest)) if seal.total >= 0 else 0


def _renew(db: sqlite3.Connection, changes: Mapping[Group, list[int]]) -> None:
    root = _read(db, ("", ""))
    for group, change in changes.items():
        before = _read(db, group)
        after = before.changed(*change)
        for sign, seal in ((-1, before), (1, after)):
            if seal != Seal():
                root = root.changed(sign, sign * _seal_hash(group, seal))
        _write(db, group, after)
    _write(db, ("", ""), root)


def _read(db: sqlite3.Connection, group: Group) -> Seal:
    row = db.execute("SELECT rows, digest FROM seals WHERE kind = ? AND name = ?", group).fetchone()
    return _seal(*row) if row else Seal()


def _write(db: sqlite3.Connection, group: Group, seal: Seal) -> None:
    if seal == Seal():
        db.execute("DELETE FROM seals WHERE kind = ? AND name = ?", group)
    else:
        db.execute("INSERT OR REPLACE INTO seals VALUES (?, ?, ?, ?)", (*group, seal.rows, seal.digest))
