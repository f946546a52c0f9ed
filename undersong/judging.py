"""A judge with its ledger: paid answers lie in the store's file, and agents' histories are fixed for a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import msgspec

from undersong.evaluate import Histories
from undersong.judges import History, Judge, open_judge
from undersong.judges.history import history
from undersong.judges.terms import Terms
from undersong.models import InputFile, Message
from undersong.stores import Store
from undersong.stores.ledger import SQLiteLedger
from undersong.stores.sqlite import SQLiteStore


class Opened(NamedTuple):
    """A judge, and the ledger that its answers go to; None where the store has no file for one."""

    judge: Judge
    ledger: SQLiteLedger | None

    def histories(self, inputs: Iterable[InputFile]) -> Histories | None:
        """Agents' histories as of now, and as of the first time for a run over the same files by the same judge."""
        if self.ledger is None or self.judge.reads_everything:
            return None
        named = [self.judge.hash, *sorted(each.sha256 for each in inputs)]
        run = hashlib.sha256("\0".join(named).encode()).hexdigest()
        self.ledger.snapshot(run, self.judge.hash)
        return partial(_history, self.ledger, run)


@contextmanager
def opened(spec: str, terms: Terms, store: Store) -> Iterator[Opened]:
    """The judge of ``--judge``; raises UsageError, and JudgeError where a key, a library or a file is missing.

    A store that is not a SQLite file keeps evaluations but no raw answers, so that they are paid again after a crash.
    """
    if not isinstance(store, SQLiteStore):
        yield Opened(open_judge(spec, terms), None)
        return
    with SQLiteLedger(store.path) as ledger:
        yield Opened(open_judge(spec, msgspec.structs.replace(terms, ledger=ledger)), ledger)


def _history(ledger: SQLiteLedger, run: str, message: Message) -> History:
    return history(ledger.past(run, message.agent), message.time)
