"""The ledger of paid answers, in the tables of a store in SQL: what was paid is there after any crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import msgspec

from undersong.errors import UsageError
from undersong.judges.context import Past
from undersong.judges.limits import FAILED, SET_ASIDE, LedgerEntry, Pending
from undersong.judges.measurement import Calibration, Shift
from undersong.models import TRAITS, TraitScores
from undersong.stores.addresses import without_password
from undersong.stores.protocol import open_store
from undersong.stores.sql.database import SQLDatabase
from undersong.stores.sql.store import SQLStore
from undersong.stores.sqlite.connection import Database

T = TypeVar("T")


class _TraitScores(msgspec.Struct):
    traits: TraitScores


class _Ended(msgspec.Struct):
    end: datetime | None = None


COLUMNS = tuple(LedgerEntry.__struct_fields__)
_INSERT = f"INSERT OR IGNORE INTO paid ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM paid"


class LedgerTotals(NamedTuple):
    """A number of answers, the bytes of their questions' user parts, and their tokens."""

    answers: int
    sent: int
    tokens_in: int
    tokens_out: int


Pasts = Callable[[str, str | None], Iterable[tuple[str, Past]]]  # judge hash, and an agent or None for all of them


class SQLLedger:
    """An AnswerLedger over a connection of its own to a store's tables, which it closes in the end."""

    def __init__(self, database: SQLDatabase, *, pasts: Pasts | None = None) -> None:
        """``pasts`` where the store is somewhere else."""
        self._db, self._writing, self._translated = database.parts()
        self._leave = database.__exit__
        self._pasts = pasts or self._own_pasts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(kind, value, trace)

    def paid(self, keys: Iterable[str]) -> dict[str, dict[int, LedgerEntry]]:
        """See AnswerLedger."""
        answers: dict[str, dict[int, LedgerEntry]] = {}
        with self._translated():
            for key in keys:
                for row in self._db.execute(f"{_SELECT} WHERE key = ?", (key,)):
                    answer = _paid(row)
                    answers.setdefault(key, {})[answer.attempt] = answer
        return answers

    def keep(self, answers: Iterable[LedgerEntry]) -> None:
        """See AnswerLedger."""
        rows = [msgspec.structs.astuple(each) for each in answers]
        with self._writing() as db:
            db.executemany(_INSERT, rows)

    def forget(self, places: Iterable[tuple[str, int]]) -> None:
        """See AnswerLedger."""
        with self._writing() as db:
            db.executemany("DELETE FROM paid WHERE key = ? AND attempt = ?", list(places))

    def set_failed_aside(self, judges: Iterable[str], prompt_hash: str) -> int:
        """Set the answers aside that could not be used, so that their questions are asked again; how many questions.

        What was paid for them stays on the books.
        """
        query = "SELECT key FROM paid WHERE judge = ? AND prompt_hash = ? AND attempt = ?"
        with self._translated():
            rows = (self._db.execute(query, (judge, prompt_hash, FAILED)) for judge in sorted(set(judges)))
            keys = [key for each in rows for (key,) in each]
        for key in keys:
            self._set_aside(key, self.paid([key])[key])
        return len(keys)

    def _set_aside(self, key: str, entries: dict[int, LedgerEntry]) -> None:
        answers = [entries[number] for number in sorted(entries) if number < FAILED]
        first = max(SET_ASIDE - 1, *entries) + 1
        with self._writing() as db:
            db.execute("DELETE FROM paid WHERE key = ? AND attempt <= ?", (key, FAILED))
            for number, answer in enumerate(answers, first):
                db.execute(_INSERT, msgspec.structs.astuple(msgspec.structs.replace(answer, attempt=number)))

    def all(self, judges: Iterable[str]) -> Iterator[LedgerEntry]:
        """Every kept answer of these judges, whatever it was asked, in the order of their keys."""
        for judge in sorted(set(judges)):
            with self._translated():
                query = f"{_SELECT} WHERE judge = ? AND attempt <> ? ORDER BY key, attempt"
                yield from map(_paid, self._db.execute(query, (judge, FAILED)))

    def counts(self) -> dict[str, int]:
        """Judge → how many answers of it are kept."""
        with self._translated():
            query = "SELECT judge, COUNT(*) FROM paid WHERE attempt <> ? GROUP BY judge ORDER BY judge"
            return {judge: count for judge, count in self._db.execute(query, (FAILED,))}

    def sizes(self, judge: str, prompt_hash: str, most: int) -> list[tuple[str, int, int, int]]:
        """(depth, bytes of the user part, tokens in, tokens out) of the first answers of a judge that were kept."""
        query = (
            "SELECT depth, sent, input, output FROM paid WHERE judge = ? AND prompt_hash = ? AND attempt = 0"
            " AND input > 0 AND depth <> 'confirm' ORDER BY rowid LIMIT ?"
        )
        with self._translated():
            return list(self._db.execute(query, (judge, prompt_hash, most)))

    def cached_share(self, judge: str, prompt_hash: str) -> float:
        """Which share of the input of a judge's answers came from the provider's cache; 0 without any."""
        query = "SELECT SUM(cached), SUM(input) FROM paid WHERE judge = ? AND prompt_hash = ? AND input > 0"
        with self._translated():
            cached, taken = self._db.execute(query, (judge, prompt_hash)).fetchone()
        return float(cached) / float(taken) if taken else 0.0

    def totals_by_depth(self, judge: str, prompt_hash: str) -> dict[str, LedgerTotals]:
        """Depth → what the first answers of a judge took in all; ``confirm`` are those about flagged places."""
        query = (
            "SELECT depth, COUNT(*), SUM(sent), SUM(input), SUM(output) FROM paid"
            " WHERE judge = ? AND prompt_hash = ? AND attempt = 0 AND input > 0 GROUP BY depth"
        )
        with self._translated():
            return {depth: LedgerTotals(*rest) for depth, *rest in self._db.execute(query, (judge, prompt_hash))}

    def pending(self, judge: str) -> list[Pending]:
        """See AnswerLedger."""
        return self._bodies(Pending, "SELECT body FROM batches WHERE judge = ? ORDER BY rowid", judge)

    def submit(self, batch: Pending) -> None:
        """See AnswerLedger."""
        row = (batch.id, batch.judge, msgspec.json.encode(batch))
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO batches (id, judge, body) VALUES (?, ?, ?)", row)

    def collected(self, batch_id: str) -> None:
        """See AnswerLedger."""
        with self._writing() as db:
            db.execute("DELETE FROM batches WHERE id = ?", (batch_id,))

    def put_calibration(self, calibration: Calibration) -> None:
        """Keep how a judge agrees with labels; the latest figures of a judge stand."""
        row = (calibration.judge_hash, msgspec.json.encode(calibration))
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO calibrations VALUES (?, ?)", row)

    def calibration(self, judge_hash: str) -> Calibration | None:
        """How a judge agrees with labels, None where nobody measured it."""
        with self._translated():
            query = "SELECT body FROM calibrations WHERE judge_hash = ?"
            row = self._db.execute(query, (judge_hash,)).fetchone()
            return msgspec.json.decode(row[0], type=Calibration) if row else None

    def put_shifts(self, shifts: Iterable[Shift]) -> None:
        """Keep how far readings of a judge lie apart; the latest of a kind and width stand."""
        rows = [(each.judge_hash, each.kind, each.width, msgspec.json.encode(each)) for each in shifts]
        with self._writing() as db:
            db.executemany("INSERT OR REPLACE INTO shifts VALUES (?, ?, ?, ?)", rows)

    def shifts(self, judge_hash: str) -> list[Shift]:
        """How far readings of a judge lie apart, as far as it was measured."""
        return self._bodies(Shift, "SELECT body FROM shifts WHERE judge_hash = ? ORDER BY kind, width", judge_hash)

    def _bodies(self, kind: type[T], query: str, of: str) -> list[T]:
        with self._translated():
            rows = self._db.execute(query, (of,)).fetchall()
            return [msgspec.json.decode(body, type=kind) for (body,) in rows]

    def snapshot(self, run: str, judge_hash: str) -> None:
        """Fix what this judge said of every agent so far under the name of a run; a second call changes nothing."""
        with self._writing() as db:
            if db.execute("INSERT OR IGNORE INTO snapshots VALUES (?)", (run,)).rowcount:
                rows = ((run, agent, msgspec.json.encode(past)) for agent, past in self._pasts(judge_hash, None))
                db.executemany("INSERT INTO histories VALUES (?, ?, ?)", rows)

    def snapshot_agent(self, run: str, judge_hash: str, agent: str) -> None:
        """As ``snapshot`` for one agent; a second call changes nothing."""
        with self._translated():
            query = "SELECT 1 FROM histories WHERE run = ? AND agent = ?"
            if self._db.execute(query, (run, agent)).fetchone():
                return
        with self._writing() as db:
            past = dict(self._pasts(judge_hash, agent)).get(agent, Past())
            db.execute("INSERT OR IGNORE INTO histories VALUES (?, ?, ?)", (run, agent, msgspec.json.encode(past)))

    def past(self, run: str, agent: str) -> Past:
        """What a snapshot holds of an agent."""
        with self._translated():
            query = "SELECT body FROM histories WHERE run = ? AND agent = ?"
            row = self._db.execute(query, (run, agent)).fetchone()
            return msgspec.json.decode(row[0], type=Past) if row else Past()

    def _own_pasts(self, judge_hash: str, only: str | None) -> Iterator[tuple[str, Past]]:
        query = (
            "SELECT m.agent, m.time, e.body FROM evaluations e JOIN messages m"
            " ON m.conversation = e.conversation AND m.id = e.message WHERE e.judge_hash = ? AND e.state = 'scored'"
            " AND m.time IS NOT NULL AND (CAST(? AS TEXT) IS NULL OR m.agent = ?)"
            " ORDER BY m.agent, m.time, m.position, m.id"
        )
        readings: dict[str, list[tuple[int, tuple[float | None, ...]]]] = {}
        for agent, time, body in self._db.execute(query, (judge_hash, only, only)):
            traits = msgspec.json.decode(body, type=_TraitScores).traits
            readings.setdefault(agent, []).append((time, tuple(map(traits.get, TRAITS))))
        finding_ends: dict[str, list[tuple[int, str]]] = {}
        query = "SELECT agent, pattern, body FROM findings WHERE (CAST(? AS TEXT) IS NULL OR agent = ?) ORDER BY id"
        for agent, pattern, body in self._db.execute(query, (only, only)):
            end = msgspec.json.decode(body, type=_Ended).end
            if end is not None:
                finding_ends.setdefault(agent, []).append((round(end.timestamp() * 1_000_000), pattern))
        for agent in sorted({*readings, *finding_ends}):
            yield agent, Past(tuple(readings.get(agent, ())), tuple(sorted(finding_ends.get(agent, ()))))


class SQLiteLedger(SQLLedger):
    """The ledger in a file."""

    def __init__(self, path: Path, *, pasts: Pasts | None = None) -> None:
        """Open or make the file; raises StoreError where it cannot be used."""
        super().__init__(Database(path), pasts=pasts)


def open_ledger(address: str) -> SQLLedger:
    """The ledger of the store at a path or an address; raises UsageError for a store that has none."""
    if "://" not in address:
        return SQLiteLedger(Path(address))
    store = open_store(address)
    if isinstance(store, SQLStore):
        return SQLLedger(store)
    store.close()
    remedy = "name the file beside its report that ends with .ledger.db"
    raise UsageError("holds no answers of paid judges", where=without_password(address), remedy=remedy)


def _paid(row: tuple[object, ...]) -> LedgerEntry:
    return msgspec.convert(dict(zip(COLUMNS, row, strict=True)), LedgerEntry)
