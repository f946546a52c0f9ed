"""One SQLite file (write-ahead log, mode 0600) as the store."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from undersong.errors import StoreError
from undersong.models import Conversation, Evaluation, Finding, Message, Noun, Route, Scan, ThreadScan, encode
from undersong.stores.lock import WriterLock
from undersong.stores.schema import TABLES, open_database

T = TypeVar("T")


class _Scans(Noun, frozen=True, kw_only=True):
    scans: tuple[Scan, ...]
    thread: ThreadScan


class SQLiteStore:
    """A Store in one file; several processes may read it, one at a time may put conversations until it closes it."""

    def __init__(self, path: Path) -> None:
        """Open or make the file; raises StoreError where it cannot be used."""
        self.path = path
        with self._translated():
            self._db = open_database(path)
            self._lock = WriterLock(path)
            self._place = path.absolute()
            self._file: os.stat_result | None = os.stat(self._place)

    def __enter__(self) -> SQLiteStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._file = None  # one error at a time
        self.close()

    def put_conversation(self, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
        """See Store."""
        with self._translated():
            self._lock.hold()
        head = encode(msgspec.structs.replace(conversation, messages=()))
        with self._transaction() as db:
            db.execute("DELETE FROM messages WHERE conversation = ?", (conversation.id,))
            db.execute(
                "INSERT OR REPLACE INTO conversations VALUES (?, ?, ?, NULL)",
                (conversation.id, head, encode(_Scans(scans=scans, thread=thread))),
            )
            db.executemany(
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", map(_message_row, conversation.messages)
            )

    def conversation(self, conversation_id: str) -> tuple[Conversation, tuple[Scan, ...], ThreadScan]:
        """See Store."""
        with self._transaction("BEGIN"):  # both reads see the same version
            query = "SELECT body, scans FROM conversations WHERE id = ?"
            found = self._db.execute(query, (conversation_id,)).fetchone()
            query = "SELECT body FROM messages WHERE conversation = ? ORDER BY position, id"
            bodies = self._db.execute(query, (conversation_id,)).fetchall()
            if found is None:
                what = f"no conversation '{conversation_id}'"
                raise StoreError(what, where=str(self.path), remedy="audit its file first")
            messages = tuple(_decoded(body, Message) for (body,) in bodies)
            scanned, head = _decoded(found[1], _Scans), _decoded(found[0], Conversation)
            if len(scanned.scans) != len(messages):
                raise msgspec.DecodeError(f"{len(messages)} messages and {len(scanned.scans)} scans")
        return msgspec.structs.replace(head, messages=messages), scanned.scans, scanned.thread

    def messages(self, conversation_id: str, ids: Iterable[str]) -> tuple[Message, ...]:
        """See Store."""
        query = "SELECT body FROM messages WHERE conversation = ? AND id = ?"
        with self._transaction("BEGIN") as db:
            rows = (db.execute(query, (conversation_id, each)).fetchone() for each in set(ids))
            found = [_decoded(row[0], Message) for row in rows if row is not None]
        return tuple(sorted(found, key=lambda message: (message.position, message.id)))

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:
        """See Store."""
        query = "SELECT body FROM evaluations WHERE conversation = ? AND judge_hash = ?"
        with self._translated():
            bodies = self._db.execute(query, (conversation_id, judge_hash)).fetchall()
        found: dict[str, Evaluation] = {}
        for (body,) in bodies:
            with suppress(msgspec.DecodeError):  # a damaged answer is asked for again
                evaluation = _decoded(body, Evaluation)
                found[evaluation.message_id] = evaluation
        return found

    def put_answers(self, answers: Iterable[tuple[str, Evaluation]]) -> None:
        """See Store."""
        rows = [(c, e.message_id, e.judge_hash, e.state, encode(e)) for c, e in answers]
        with self._transaction() as db:
            db.executemany("INSERT OR REPLACE INTO evaluations VALUES (?, ?, ?, ?, ?)", rows)

    def put_routes(self, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
        """See Store."""
        rows = [(msgspec.json.encode(each), name) for name, each in routes]
        with self._transaction() as db:
            db.executemany("UPDATE conversations SET routes = ? WHERE id = ?", rows)

    def routes(self, conversation_id: str) -> tuple[Route, ...]:
        """See Store."""
        query = "SELECT routes FROM conversations WHERE id = ? AND routes IS NOT NULL"
        with self._translated():
            found = self._db.execute(query, (conversation_id,)).fetchone()
            return _decoded(found[0], tuple[Route, ...]) if found else ()

    def evaluations(self, conversation_id: str, message_id: str) -> tuple[Evaluation, ...]:
        """See Store."""
        query = "SELECT body FROM evaluations WHERE conversation = ? AND message = ? ORDER BY judge_hash"
        with self._translated():
            bodies = self._db.execute(query, (conversation_id, message_id)).fetchall()
            return tuple(_decoded(body, Evaluation) for (body,) in bodies)

    def put_findings(self, conversations: Iterable[str], findings: Iterable[Finding]) -> None:
        """See Store."""
        rows = [(f.finding_id, f.pattern, f.agent, f.target, encode(f)) for f in findings]
        audited = frozenset(conversations)
        with self._transaction() as db:
            kept = db.execute("SELECT id, body FROM findings").fetchall()
            gone = [(name,) for name, body in kept if _touches(body, audited)]
            db.executemany("DELETE FROM findings WHERE id = ?", gone)
            db.executemany("INSERT OR REPLACE INTO findings VALUES (?, ?, ?, ?, ?)", rows)

    def findings(self) -> Iterator[Finding]:
        """See Store."""
        with self._translated():
            bodies = self._db.execute("SELECT body FROM findings ORDER BY id").fetchall()
            return iter([_decoded(body, Finding) for (body,) in bodies])

    def find_message(self, message_id: str) -> tuple[str, ...]:
        """See Store."""
        query = "SELECT conversation FROM messages WHERE id = ? ORDER BY conversation"
        with self._translated():
            return tuple(name for (name,) in self._db.execute(query, (message_id,)))

    def counts(self) -> dict[str, int]:
        """See Store."""
        with self._translated():
            return {table: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}

    def close(self) -> None:
        """See Store."""
        with self._translated():
            self._db.close()
            self._lock.release()
        opened, self._file = self._file, None
        if opened is not None and not _is_at(self._place, opened):
            what = "was removed or replaced while it was in use, so nothing of this run is kept"
            raise StoreError(what, where=str(self.path), remedy="run the same command again")

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        with self._translated():
            self._db.execute(begin)
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            remedy = "see that the disk has room and the file is a store of undersong, or name another with --store"
            raise StoreError(str(error), where=str(self.path), remedy=remedy) from error
        except OSError as error:
            raise StoreError(
                error.strerror or str(error), where=str(self.path), remedy="name another --store"
            ) from error
        except msgspec.DecodeError as error:
            remedy = "audit the files again with another --store; a kept answer that is damaged is asked for again"
            raise StoreError(f"a stored record is damaged: {error}", where=str(self.path), remedy=remedy) from error


@contextmanager
def temporary_store() -> Iterator[SQLiteStore]:
    """A store in a temporary file that is removed afterwards: bounded memory for a run that keeps nothing."""
    with tempfile.TemporaryDirectory(prefix="undersong-") as folder, SQLiteStore(Path(folder) / "run.db") as store:
        yield store


def _is_at(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(opened, os.stat(path))
    except FileNotFoundError:
        return False


def _decoded(body: object, kind: type[T]) -> T:
    """A value back from its stored JSON; whatever is wrong with it is a ``msgspec.DecodeError``."""
    if not isinstance(body, bytes | str):
        raise msgspec.DecodeError(f"{type(body).__name__} instead of JSON")
    try:
        return msgspec.json.decode(body, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def _touches(body: object, conversations: frozenset[str]) -> bool:
    """Whether a kept finding stands on one of the conversations; True where it cannot be read."""
    try:
        return not conversations.isdisjoint(_decoded(body, Finding).conversations)
    except msgspec.DecodeError:
        return True


def _message_row(message: Message) -> tuple[str, str, int, str, str | None, int | None, bytes]:
    time = round(message.time.timestamp() * 1_000_000) if message.time else None
    ids = (message.conversation, message.id, message.position, message.agent)
    return (*ids, message.target, time, encode(message))
