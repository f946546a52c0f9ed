"""The synchronous monitor: one message in, an observation out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from undersong.errors import JudgeError, RecordError, StoreError, UsageError
from undersong.formats.field_map import FieldMap, renamed
from undersong.formats.json_stream import as_read
from undersong.formats.jsonl import message_of
from undersong.formats.normalize import mark_ambiguous_agents
from undersong.formats.scratchpads import with_thinking
from undersong.judges.limits import RunLimits
from undersong.judges.protocol import Judge
from undersong.models import (
    Conversation,
    Emerging,
    Finding,
    Message,
    Problem,
    Row,
    RuleOutcome,
    SessionVerdict,
    SignalBand,
)
from undersong.monitor.agents import AgentTracker
from undersong.monitor.conversation import build_routing_config
from undersong.monitor.state import LIVE, MonitorState, Observation
from undersong.patterns.catalog import chosen_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.live.changes import Changes, joined
from undersong.pipeline.finding_reader import FindingReader
from undersong.pipeline.judge_session import JudgeSession, confirmed_sessions, open_session
from undersong.pipeline.stages import AuditState
from undersong.routing.route import Policy
from undersong.scan import load_book
from undersong.stores.protocol import Store, open_store
from undersong.stores.sqlite import SQLiteStore
from undersong.verdict import session_verdict

ATTEMPTS = 20  # to write beside others who write to the same conversations and agents
PORTION = 500  # agents that are finished together
T = TypeVar("T")
P = ParamSpec("P")
MessageInput = Message | Mapping[str, Any]


def synchronized(work: Callable[Concatenate[SyncMonitor, P], T]) -> Callable[Concatenate[SyncMonitor, P], T]:
    """Work of a monitor that one thread does at a time."""

    @wraps(work)
    def done(monitor: SyncMonitor, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with monitor.lock:
            return work(monitor, *args, **kwargs)

    return done


class SyncMonitor:
    """Watches conversations while they go on: each message is scanned, routed, judged and searched for patterns.

    ``store`` is a path or an address, or an open store, to which the monitor makes a connection of its own; what it
    needs to know is there, so that a restart changes nothing. ``judge`` is as for ``--judge``, or a Judge. Of several
    monitors on one store, in any number of processes, none undoes what another one did. Threads may share one: they
    take turns.

    ``rules`` are names of shipped rules, or what ``load_rules`` gave; None: those that are on. ``recall`` (0-1, as in
    the triage model's card) bounds what a judge reads; one that reads for free reads everything without it.
    ``read_all`` reads everything. ``seed`` draws the audit sample. ``sequences``: a judge that can reads the whole
    sequence of each finding once it is new or grew, within the same budget. ``fields`` are keys of mappings that are
    observed and what each is called in our JSON Lines, as ``field_map("text=body")`` gives them.
    Raises UsageError and JudgeError as ``audit`` does, and StoreError where the store fails. After ``close`` whatever
    is asked of it raises UsageError.
    """

    def __init__(
        self,
        store: str | Path | Store,
        judge: str | Judge = "offline",
        *,
        rules: Sequence[PatternRule | str] | None = None,
        recall: float | None = None,
        read_all: bool = False,
        seed: int = 0,
        policy: Policy | None = None,
        terms: RunLimits | None = None,
        sequences: bool = True,
        fields: FieldMap | None = None,
    ) -> None:
        self.lock, self._stack, self._fields = RLock(), ExitStack(), fields or {}
        with ExitStack() as opening:
            connection = opening.enter_context(_connection(store))
            limits = terms or RunLimits()
            with_ledger, self._max_failed = _judge(judge, limits, connection), limits.max_failed
            self._judging = with_ledger if isinstance(with_ledger, JudgeSession) else opening.enter_context(with_ledger)
            self._stack = opening.pop_all()
        self.judge, book = self._judging.judge, load_book()
        self.rules = chosen_rules(rules)
        agents = AgentTracker(connection, self.rules, self.judge.name, self.judge.hash)
        way = build_routing_config(self.judge, book, recall=recall, seed=seed, read_all=read_all, policy=policy)
        histories = self._judging.live_histories()
        state = MonitorState(connection, self.judge, agents, book, way, self.rules, histories)
        if sequences and self.judge.reads_sequences:
            agents.reader = FindingReader(self.judge, state.messages, self.rules, None)
        self._open: MonitorState | None = state

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.lock:
            self._open = None
            self._stack.__exit__(kind, value, trace)

    @synchronized
    def close(self) -> None:
        """Release the store; what was observed is in it. A second time changes nothing."""
        self._open = None
        self._stack.close()

    @property
    def _state(self) -> MonitorState:
        if self._open is None:
            raise closed()
        return self._open

    def observe(self, message: MessageInput) -> Observation:
        """Take one message; a Message, or a mapping with the keys of our JSON Lines (docs/formats.md).

        Messages may come in any order, and again: an id names a message of its conversation, and the same id with
        other content is its newer version. ``position`` is its place; a mapping without one comes last. When this
        returns, everything is kept. Raises RecordError for what is no message.
        """
        return self.extend((message,))[0]

    @synchronized
    def extend(self, messages: Iterable[MessageInput]) -> list[Observation]:
        """Take several messages at once, which is cheaper; one Observation each, in order."""
        parsed = [self._message(each) for each in messages]
        return self._until_saved(lambda: self._state.take(parsed)) if parsed else []

    @synchronized
    def begin(self, *conversations: Conversation) -> list[Observation]:
        """Give the facts of conversations beside their messages: title, time zone, breaks, context.

        Messages that they have are observed: one Observation each, in order.
        """
        parsed = [self._message(each) for conversation in conversations for each in conversation.messages]
        return self._until_saved(lambda: self._state.take(parsed, conversations)) if conversations else []

    @synchronized
    def session(self, conversation_id: str, *, confirm: bool = False) -> SessionVerdict:
        """What a conversation comes to so far: sovereignty score, context vector, flags, deductions with their quotes.

        With ``confirm`` a judge that can tell mechanisms is asked about every flagged place, as an audit asks it; what
        it was not asked, and why, is in the verdict. Without, nothing is asked and words alone take no points. Raises
        StoreError where the store has no such conversation.
        """
        thread, rows = self._state.thread(conversation_id)
        if not confirm:
            return session_verdict(thread.conversation, thread.scans, thread.thread, rows)
        ((_, _, verdict),) = confirmed_sessions([(thread, rows)], self.judge, AuditState())
        return verdict

    @synchronized
    def rows(self, conversation_id: str) -> tuple[Row, ...]:
        """The rows of a conversation in order, as an audit of everything that the judge read in this store gives them.

        Scores that are no levels are ranks, and rows name their null bands (``signals``). For these all rows of the
        judge are read again where anything was written since: ask at the end of some work, not after each message.
        """
        rows, ranks = self._state.thread(conversation_id)[1], self._state.corpus_ranks()
        return tuple(ranks.of(row) for row in rows)

    @synchronized
    def signals(self) -> dict[str, SignalBand]:
        """Signal of the judge → its null band over everything that the judge read in this store; see ``rows``."""
        return self._state.corpus_ranks().bands

    @synchronized
    def emerging(self, agent: str) -> tuple[Emerging, ...]:
        """Early warnings about an agent: sequences past the middle of a pattern that are still open. No findings."""
        return self._state.emerging(agent)

    @synchronized
    def findings(self, agent: str | None = None) -> tuple[Finding, ...]:
        """The findings in the store, all or those of an agent."""
        return tuple(self._state.store.findings(agent))

    @synchronized
    def finish(self, agents: Iterable[str] | None = None, *, settle: bool = True) -> Changes:
        """Settle the findings of these agents (None: all), since nothing follows for now, and weigh them once more.

        What is observed later opens again what it could still change. Without ``settle`` that stays open, as in a
        batch run over the same messages.
        """
        wanted = self._everybody() if agents is None else list(agents)
        parts = []
        for start in range(0, len(wanted), PORTION):
            portion = wanted[start : start + PORTION]
            parts.append(self._until_saved(lambda names=portion: self._state.end(names, settle=settle)))  # type: ignore[misc]
        return joined(parts)

    @synchronized
    def outcomes(self) -> tuple[RuleOutcome, ...]:
        """The outcome of every rule on the histories in memory, with the reason of one that cannot run."""
        return self._state.agents.outcomes()

    @property
    @synchronized
    def failure(self) -> JudgeError | None:
        """Why the judge did not come to a message that was given, or to a sequence; None where it came to all."""
        return self._state.failed()

    @synchronized
    def failed_questions(self) -> Problem | None:
        """How many of the questions since it was opened failed, and why; of kind ``judge`` beyond ``max_failed``."""
        return self._state.tally.problem(self._max_failed)

    @synchronized
    def sequences_read(self) -> tuple[str, ...]:
        """What reading sequences took so far, and what was not read and why; () where nobody reads them."""
        reader = self._state.agents.reader
        return () if reader is None else tuple(reader.lines())

    def _everybody(self) -> list[str]:
        return [each.agent for each in self._state.store.agents(self.judge.hash)]

    def _message(self, source: MessageInput) -> Message:
        if self._fields and isinstance(source, Mapping):
            source = renamed(dict(source), self._fields)
        message = as_read(source if isinstance(source, Message) else message_of(source))
        if not message.id or not message.conversation:
            missing = "id" if not message.id else "conversation"
            what = f"a message without {missing}"
            raise RecordError(what, remedy="give every message an id of its own, and name its conversation")
        part, _ = with_thinking(Conversation(id=message.conversation, source_format=LIVE, messages=(message,)))
        return mark_ambiguous_agents(part, self._is_known).messages[0]

    def _is_known(self, escaped: str) -> bool:
        return self._state.store.length(escaped.replace("%2F", "/").replace("%25", "%")) is not None

    def _until_saved(self, work: Callable[[], T | None]) -> T:
        """Do work until nobody else writes in between; after an error nothing is held that the store does not have."""
        saved = False
        try:
            for _ in range(ATTEMPTS):
                done = work()
                if done is not None:
                    saved = True
                    return done
        finally:
            if not saved:
                self._state.drop()
        what = f"others wrote to the same conversations and agents {ATTEMPTS} times in between"
        raise StoreError(what, remedy="observe the message again")


def closed() -> UsageError:
    """The error of a call to a monitor that was closed."""
    return UsageError("the monitor is closed", remedy="make another one on the same store: it goes on where this ended")


def _connection(store: str | Path | Store) -> Store:
    """A connection of the monitor's own; a power cut takes no message whose observation was returned."""
    if isinstance(store, SQLiteStore):
        return SQLiteStore(store.path, durable=True)
    if isinstance(store, str | Path):
        return open_store(store) if "://" in str(store) else SQLiteStore(Path(store), durable=True)
    return store.another()


def _judge(judge: str | Judge, terms: RunLimits, store: Store) -> Any:
    return open_session(judge, terms, store) if isinstance(judge, str) else JudgeSession(judge, None)
