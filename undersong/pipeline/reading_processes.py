"""Stored conversations routed, scored and judged in other processes, where the judge reads for free.

The first process hands out names of conversations and stores what comes back, batch by batch and in order, so that the
store, the rows and the verdicts are those of one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from undersong.core.batches import batches
from undersong.core.processes import Share, in_turn
from undersong.errors import JudgeError
from undersong.judges.limits import RunLimits
from undersong.judges.measurement import ScoreMap, mapped_row
from undersong.judges.protocol import Judge
from undersong.models import Evaluation, Row, SessionVerdict
from undersong.pipeline.evaluate import RoutedThread, evaluate
from undersong.pipeline.judge_session import confirmed_sessions
from undersong.pipeline.options import Options, Progress
from undersong.pipeline.partwise import CorpusRouting, judge_named, reads_all, routed_thread, rows_of
from undersong.pipeline.stages import BATCH, AuditCorpus, AuditState, read_threads, stored_rows
from undersong.routing.route import load_policy
from undersong.scan import load_book
from undersong.stores.protocol import Store
from undersong.stores.sqlite import SQLiteStore
from undersong.verdict import session_verdict

ReadThread = tuple[RoutedThread, tuple[Row, ...], SessionVerdict]


class _Work(NamedTuple):
    """What the work on every batch needs."""

    store: Path
    options: Options
    maps: dict[str, ScoreMap]


class _ReadBatch(NamedTuple):
    """Threads with the rows that the judge gave and the verdicts, its new answers, and why it failed as a whole."""

    threads: list[ReadThread]
    answers: list[tuple[str, Evaluation]]
    failure: JudgeError | None


def ready_to_read(free: bool, judge: str) -> None:
    """Load what a process needs that is to read conversations, where the judge reads for ``free``."""
    if free:
        load_book()
        judge_named(judge)


def read_conversations(
    corpus: AuditCorpus,
    store: Store,
    judge: Judge,
    options: Options,
    progress: Progress,
    run: AuditState,
    share: Share = in_turn,
) -> Iterator[ReadThread]:
    """Each thread of a corpus with its rows and its verdict, in order, as ``confirmed_sessions`` of ``read_threads``.

    Other processes do it where the store is a file and the judge reads for free and is asked nothing again. A judge
    that fails as a whole is asked no further.
    """
    names = corpus.conversations
    if share is not in_turn and isinstance(store, SQLiteStore) and _works_anywhere(judge, options):
        done = 0
        for part in _shared_batches(corpus, store, options, run, share):
            done += len(part.threads)
            yield from _stored(part, store, run)
            progress("evaluate", sum(run.states.values()), corpus.messages)
            if run.failure is not None:
                break
        names = names[done:]
    rest = msgspec.structs.replace(corpus, conversations=names)
    yield from confirmed_sessions(read_threads(rest, store, judge, options, progress, run), judge, run)


def _works_anywhere(judge: Judge, options: Options) -> bool:
    asked_again = judge.confirms or "mechanisms" in judge.gives
    return judge.reads_everything and not asked_again and options.read == "messages"


def _shared_batches(
    corpus: AuditCorpus, store: SQLiteStore, options: Options, run: AuditState, share: Share
) -> Iterator[_ReadBatch]:
    plain = msgspec.structs.replace(options, rules=None, terms=RunLimits(), ledger=None)
    work, routing = _Work(store.path.absolute(), plain, run.maps), corpus.routing
    named = batches(corpus.conversations, BATCH, lambda name: store.length(name) or 0)
    items = (
        (some, routing._replace(also={name: routing.also[name] for name in some if name in routing.also}))
        for some in named
    )
    return share(partial(_read, work), items)


def _read(work: _Work, item: tuple[Sequence[str], CorpusRouting]) -> _ReadBatch:
    """Read a batch of conversations by their names; the store is not written."""
    (names, routing), options = item, work.options
    store, judge, policy = _opened(work.store), judge_named(options.judge), options.policy or load_policy()
    threads = [routed_thread(*store.conversation(name), policy, routing, options.seed) for name in names]
    ledger = _NewAnswers(store)
    answers = evaluate(threads, judge, ledger, read_all=reads_all(judge, options))
    read: list[ReadThread] = []
    for thread, evaluations in zip(threads, answers.evaluations, strict=True):
        rows = rows_of(thread, evaluations)
        mapped = tuple(mapped_row(row, work.maps) for row in rows)
        verdict = session_verdict(thread.conversation, thread.scans, thread.thread, mapped, (), options.profile)
        read.append((thread, rows, verdict))
    return _ReadBatch(read, ledger.new, answers.failure)


@lru_cache(maxsize=1)
def _opened(path: Path) -> SQLiteStore:
    return SQLiteStore(path, read_only=True)


class _NewAnswers:
    """The answers of a store, and new ones that somebody else is to store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.new: list[tuple[str, Evaluation]] = []

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:
        """Those in the store."""
        return self._store.answers(conversation_id, judge_hash)

    def put_answers(self, answers: Sequence[tuple[str, Evaluation]]) -> None:
        """Note new ones."""
        self.new += answers


def _stored(part: _ReadBatch, store: Store, run: AuditState) -> Iterator[ReadThread]:
    """The threads of a batch once all that is new is in the store."""
    threads = [thread for thread, _, _ in part.threads]
    store.put_routes((thread.conversation.id, thread.routes) for thread in threads)
    if part.answers:
        store.put_answers(part.answers)
    run.failure = part.failure
    mapped = stored_rows([rows for _, rows, _ in part.threads], store, run)
    for (thread, _, verdict), rows in zip(part.threads, mapped, strict=True):
        yield thread, rows, verdict
