"""The stores: where conversations, scans, evaluations, agent histories and findings are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Protocol, Self

from undersong.errors import UsageError
from undersong.models import Conversation, Evaluation, Finding, Message, Record, Route, Row, Scan, ThreadScan

Forgettable = Literal["agent", "conversation"]

# scheme of --store → module with a function ``open_store(address, read_only) -> Store``; "" is a plain path
STORES: dict[str, str] = {
    "": "undersong.stores.sqlite",
    **dict.fromkeys(("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"), "undersong.stores.neo4j"),
}


class Cursor(NamedTuple):
    """How far a sweep has come: the number of a change, and the last agent of that change that it has seen."""

    change: int = 0
    agent: str = ""


BEGINNING = Cursor()


class AgentHistory(NamedTuple):
    """An agent's rows in (event time, position, id) order; ``changed`` is the number of the change they last took."""

    agent: str
    changed: int
    rows: tuple[Row, ...]


class PackedHistory(NamedTuple):
    """An agent's rows, so many, in their order as the bytes of ``stores.packed``; None where one does not fit."""

    agent: str
    changed: int
    rows: int
    cells: bytes | None


class AgentSweep(NamedTuple):
    """What a sweep found in the history of an agent as it was at change ``changed``.

    ``cells`` are those of the packed history; a store may keep them for the next time.
    """

    agent: str
    changed: int
    findings: tuple[Finding, ...]
    cells: bytes | None = None


class AgentEntry(Record, frozen=True, kw_only=True):
    """An agent in a store: how many messages, how many of them a judge scored, and from when to when.

    Of the scored ones ``ranked`` have ranks within a corpus for scores, no levels.
    """

    agent: str
    messages: int
    read: int
    ranked: int = 0
    threads: int
    first: datetime | None = None
    last: datetime | None = None


class JudgeEntry(Record, frozen=True, kw_only=True):
    """A judge whose rows a store holds; its hash covers model and prompt. "" where nobody said who judged."""

    judge_hash: str
    judge: str
    rows: int


class Tombstone(Record, frozen=True, kw_only=True):
    """What is left of a forgotten agent or conversation: ``digest`` is the SHA-256 of its name."""

    kind: Forgettable
    digest: str
    forgotten: datetime
    messages: int


class Redaction(Record, frozen=True, kw_only=True):
    """What a store has to replace, put and delete so that the agent or conversation ``name`` is forgotten.

    ``replaced`` are conversations without the private texts, with their scans and routes; ``dropped`` whole ones;
    ``answers`` and ``detached`` are the (conversation, message) places whose answers and rows go; ``rows`` replace kept
    ones; ``removed`` are ids of findings. ``elsewhere``: it was forgotten in another store, and nothing of it is here.
    """

    tombstone: Tombstone
    name: str
    replaced: tuple[tuple[Conversation, tuple[Scan, ...], ThreadScan, tuple[Route, ...]], ...] = ()
    dropped: tuple[str, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    detached: tuple[tuple[str, str], ...] = ()
    rows: tuple[Row, ...] = ()
    removed: tuple[str, ...] = ()
    elsewhere: bool = False


class StoreVersions(NamedTuple):
    """Numbers that change with every write to a conversation, or to an agent's history by a judge; 0: not there."""

    conversations: dict[str, int]
    agents: dict[str, int]


class StoredConversation(Record, frozen=True, kw_only=True):
    """A conversation as it stands; scans and routes are aligned with its messages.

    ``named`` are the ids of the messages that came with a target of their own, None where no live run put it.
    """

    conversation: Conversation
    scans: tuple[Scan, ...]
    routes: tuple[Route, ...]
    named: frozenset[str] | None = None


class ConversationUpdate(Record, frozen=True, kw_only=True):
    """A conversation as it now is; ``changed`` are the ids of the messages of which anything is new. See Kept."""

    conversation: Conversation
    scans: tuple[Scan, ...]
    thread: ThreadScan
    routes: tuple[Route, ...]
    named: frozenset[str]
    changed: frozenset[str]


class Update(Record, frozen=True, kw_only=True):
    """All that messages changed when they came.

    ``detached`` are the (conversation, message) places of what has another text or author now: rows of any judge go.
    ``rows`` replace those that are there, an unread one also a read one: a late message may end what called for it.
    """

    judge_hash: str
    conversations: tuple[ConversationUpdate, ...] = ()
    detached: tuple[tuple[str, str], ...] = ()
    answers: tuple[tuple[str, Evaluation], ...] = ()
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    removed: tuple[str, ...] = ()


class ConversationStore(Protocol):
    """What was said, scanned, routed and answered."""

    def put_conversation(self, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
        """Keep a conversation with its scans; a newer version of the same id replaces the older one.

        Messages that are gone, or have another text or author, leave the histories.
        """
        ...

    def conversation(self, conversation_id: str) -> tuple[Conversation, tuple[Scan, ...], ThreadScan]:
        """A conversation with its scans, as they were put; raises StoreError where it is not there."""
        ...

    def conversations(self) -> Iterator[str]:
        """The ids of all conversations, in order."""
        ...

    def length(self, conversation_id: str) -> int | None:
        """How many messages a conversation has, None where it is not there."""
        ...

    def messages(self, conversation_id: str, ids: Iterable[str]) -> tuple[Message, ...]:
        """The messages of these ids in a conversation, in its order, each once; ids that it lacks are passed over."""
        ...

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:
        """Message id → the evaluation that this judge gave of a message; one that cannot be read is left out."""
        ...

    def put_answers(self, answers: Iterable[tuple[str, Evaluation]]) -> None:
        """Keep (conversation id, evaluation) pairs in one transaction."""
        ...

    def put_routes(self, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
        """Keep (conversation id, routes of its messages) pairs, the latest ones, in one transaction."""
        ...

    def routes(self, conversation_id: str) -> tuple[Route, ...]:
        """The routes of a conversation's messages, in order; () before it was routed."""
        ...

    def evaluations(self, conversation_id: str, message_id: str | None = None) -> tuple[Evaluation, ...]:
        """What every judge said of a message, or of every message of a conversation, by message id and judge."""
        ...

    def conversations_with(self, agent: str) -> tuple[str, ...]:
        """Ids of the conversations in which an agent speaks or is spoken to, in order."""
        ...

    def find_message(self, message_id: str) -> tuple[str, ...]:
        """Ids of the conversations that hold a message of this id, in order."""
        ...


class HistoryStore(Protocol):
    """What patterns read: every agent's rows across conversations, apart for each judge, and what was found in them.

    Rows come without texts and hits. Their ``time`` is the event time, which a message without one has from its
    predecessor (``moments.dated``).
    """

    def append(self, rows: Iterable[Row], findings: Iterable[Finding] = (), *, removed: Iterable[str] = ()) -> None:
        """Keep rows and findings, and drop the findings ``removed``: all of it or nothing.

        A row stands under its conversation, id and judge: the same again changes nothing, another one replaces it, but
        an unread one never replaces one that was read.
        """
        ...

    def history(self, agent: str, judge_hash: str) -> tuple[Row, ...]:
        """The rows of an agent in (event time, position, id) order, untimed ones first; () for an unknown agent."""
        ...

    def rows_at(self, agent: str, judge_hash: str, places: Sequence[int]) -> tuple[Row, ...]:
        """The rows at some places of a history, from 0 on, in the order of ``places``; it may lack some of them."""
        ...

    def histories(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[AgentHistory]:
        """The histories that changed after a cursor and hold ``least`` or more scored rows, in the order of change.

        What changes meanwhile is left for the next sweep.
        """
        ...

    def packed(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[PackedHistory]:
        """What ``histories`` gives, packed: several times as quick to read."""
        ...

    def thread(self, conversation_id: str, judge_hash: str) -> tuple[Row, ...]:
        """The rows of a conversation in (position, id) order."""
        ...

    def aimed_at(self, agent: str) -> Iterator[Row]:
        """The rows of every judge whose target is this agent."""
        ...

    def threads(self) -> Iterator[str]:
        """The ids of all conversations that have rows, in order."""
        ...

    def agents(self, judge_hash: str) -> tuple[AgentEntry, ...]:
        """Every agent with rows of this judge, by name."""
        ...

    def judges(self) -> tuple[JudgeEntry, ...]:
        """Every judge with rows, the first to come first."""
        ...

    def changes(self) -> int:
        """The number of the latest change of any history; 0 before the first."""
        ...

    def cursor(self, name: str) -> Cursor:
        """The cursor of this name, at the beginning where nobody put it."""
        ...

    def put_sweep(
        self, judge_hash: str, swept: Sequence[AgentSweep], patterns: Collection[str], cursors: Mapping[str, Cursor]
    ) -> None:
        """Replace the findings of these patterns for each swept agent and put the cursors, in one transaction.

        The findings of an agent whose history has changed since stay as they are: the next sweep reads it again.
        """
        ...

    def put_findings(self, conversations: Iterable[str], findings: Iterable[Finding]) -> None:
        """Keep findings under their ids, in place of the kept ones that touch one of these conversations.

        A kept finding that cannot be read goes too: nobody can say what it touches. Agents that lose a finding count as
        changed.
        """
        ...

    def finding_ids(self) -> set[str]:
        """The ids of all findings."""
        ...

    def findings(self, agent: str | None = None) -> Iterator[Finding]:
        """All findings, or those of an agent, in the order of their ids."""
        ...


class LiveStore(Protocol):
    """What a live run needs so that several of them, in any number of processes, never undo each other's work."""

    def versions(self, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> StoreVersions:
        """The marks of these conversations and agents."""
        ...

    def stored_conversation(self, conversation_id: str) -> StoredConversation | None:
        """A conversation as it was put last, None where it is not there."""
        ...

    def put_update(self, update: Update, expected: StoreVersions) -> StoreVersions | None:
        """Keep all of an update in one transaction, and give the new marks.

        None, and nothing is kept, where the marks no longer hold: somebody else wrote in between.
        """
        ...


class Store(ConversationStore, HistoryStore, LiveStore, Protocol):
    """Keeps what the steps produced; every write is atomic, and writing the same thing again changes nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def redact(self, redaction: Redaction) -> None:
        """Do all of a redaction in one transaction, and leave no byte of what is gone in the files.

        Raises StoreError where a reader keeps the old bytes in the log for now.
        """
        ...

    def seed(self) -> None:
        """Put the taxonomy and the patterns into a graph; raises UsageError where the store is none."""
        ...

    def tombstones(self) -> tuple[Tombstone, ...]:
        """What was forgotten, by kind and digest."""
        ...

    def repeatable_read(self) -> AbstractContextManager[None]:
        """While it is open, every read of a file sees the version of its first one; a graph shows what is newest."""
        ...

    def integrity_errors(self) -> Iterator[str]:
        """What the database itself says is wrong with its files, in words."""
        ...

    def facts(self) -> dict[str, str]:
        """Where the store is, its version, its size: name → value, for people."""
        ...

    def counts(self) -> dict[str, int]:
        """How many conversations, messages, evaluations and findings are kept."""
        ...

    def close(self) -> None:
        """Make everything durable and release the store; raises StoreError where it is no longer there."""
        ...


def open_store(address: str | Path, *, read_only: bool = False) -> Store:
    """The store at a path, or at an address such as ``bolt://127.0.0.1:7687``; a missing file is made unless only read.

    Raises UsageError for an unknown scheme or a missing package, and StoreError where it cannot be opened.
    """
    scheme, separator, _ = str(address).partition("://")
    if separator and scheme not in STORES:
        raise UsageError(
            f"unknown kind of store '{scheme}'", remedy=f"name a file, or one of {', '.join(filter(None, STORES))}"
        )
    module = STORES[scheme if separator else ""]
    try:
        opener: Callable[[str, bool], Store] = import_module(module).open_store
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{address} needs the package {error.name}", remedy=f"pip install 'undersong[{error.name}]'"
        ) from error
    return opener(str(address), read_only)
