"""The protocol of stores: four small ones with default methods, and how an address becomes a store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Protocol, Self, TypeAlias, cast

from undersong.errors import StoreError, UsageError
from undersong.models import Conversation, Evaluation, Finding, Lead, Message, Record, Route, Row, Scan, ThreadScan
from undersong.rows.binary import pack
from undersong.stores.addresses import without_password
from undersong.stores.listing import ListingStore
from undersong.stores.reviewing import ReviewStore

Forgettable = Literal["agent", "conversation"]

# scheme of --store → module with a function ``open_store(address, read_only) -> Store``; "" is a plain path
STORES: dict[str, str] = {
    "": "undersong.stores.sqlite",
    **dict.fromkeys(("postgresql", "postgres"), "undersong.stores.postgres"),
    **dict.fromkeys(("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"), "undersong.stores.neo4j"),
}
EXTRAS = {"psycopg": "postgres"}  # a package → the extra that brings it, where that has another name
PLUGINS = "undersong.stores"  # entry points of other packages: scheme → such a function


class Cursor(NamedTuple):
    """How far a sweep has come: the number of a change, and the last agent of that change that it has seen."""

    change: int = 0
    agent: str = ""


BEGINNING = Cursor()


class AgentHistory(NamedTuple):
    """An agent's rows in (event time, position, id) order; ``changed`` is the number of their last change."""

    agent: str
    changed: int
    rows: tuple[Row, ...]


class PackedHistory(NamedTuple):
    """An agent's rows, so many, in their order as the bytes of ``rows.binary``; None where one does not fit."""

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
    """A judge whose rows a store holds; its hash covers model and prompt. "" where the judge is unnamed."""

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
    ones; ``removed`` are ids of findings, ``leads`` and ``claims`` of these, ``reviews`` their keys. ``elsewhere``: it
    was forgotten in another store, and nothing of it is here.
    """

    tombstone: Tombstone
    name: str
    replaced: tuple[tuple[Conversation, tuple[Scan, ...], ThreadScan, tuple[Route, ...]], ...] = ()
    dropped: tuple[str, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    detached: tuple[tuple[str, str], ...] = ()
    rows: tuple[Row, ...] = ()
    removed: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    reviews: tuple[str, ...] = ()
    elsewhere: bool = False


class StoreVersions(NamedTuple):
    """Numbers that change with every write to a conversation, or to an agent's history by a judge; 0: not there."""

    conversations: dict[str, int]
    agents: dict[str, int]


class StoredConversation(Record, frozen=True, kw_only=True):
    """A conversation as it is stored; scans and routes are aligned with its messages.

    ``named`` are the ids of the messages that came with a target of their own, None where no live run put it.
    """

    conversation: Conversation
    scans: tuple[Scan, ...]
    routes: tuple[Route, ...]
    named: frozenset[str] | None = None


class ConversationUpdate(Record, frozen=True, kw_only=True):
    """A conversation as it now is; ``changed`` are the ids of the messages of which anything is new.

    See StoredConversation.
    """

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
    ``leads`` are conversations with all of their leads from exact words, which replace those that are there.
    """

    judge_hash: str
    conversations: tuple[ConversationUpdate, ...] = ()
    detached: tuple[tuple[str, str], ...] = ()
    answers: tuple[tuple[str, Evaluation], ...] = ()
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    removed: tuple[str, ...] = ()
    leads: tuple[tuple[str, tuple[Lead, ...]], ...] = ()


class ConversationStore(Protocol):
    """Conversations with their scans, routes and the judges' answers."""

    @abstractmethod
    def put_conversation(self, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
        """Store a conversation with its scans; a newer version of the same id replaces the older one.

        Messages that are gone, or have another text or author, leave the histories.
        """

    def put_conversations(self, scanned: Iterable[tuple[Conversation, tuple[Scan, ...], ThreadScan]]) -> None:
        """Store several, each as ``put_conversation`` does; a store may do it in one transaction."""
        for conversation, scans, thread in scanned:
            self.put_conversation(conversation, scans, thread)

    @abstractmethod
    def conversation(self, conversation_id: str) -> tuple[Conversation, tuple[Scan, ...], ThreadScan]:
        """A conversation with its scans, as they were put; raises StoreError where it is not there."""

    @abstractmethod
    def conversations(self) -> Iterator[str]:
        """The ids of all conversations, in order."""

    @abstractmethod
    def put_routes(self, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
        """Store (conversation id, routes of its messages) pairs, the latest ones, in one transaction."""

    @abstractmethod
    def routes(self, conversation_id: str) -> tuple[Route, ...]:
        """The routes of a conversation's messages, in order; () before it was routed."""

    @abstractmethod
    def put_answers(self, answers: Iterable[tuple[str, Evaluation]]) -> None:
        """Store (conversation id, evaluation) pairs in one transaction."""

    @abstractmethod
    def evaluations(self, conversation_id: str, message_id: str | None = None) -> tuple[Evaluation, ...]:
        """What every judge answered about a message, or about all of a conversation, by message id and judge."""

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:
        """Message id → the evaluation that this judge gave of a message; one that cannot be read is left out."""
        own = (each for each in self.evaluations(conversation_id) if each.judge_hash == judge_hash)
        return {each.message_id: each for each in own}

    def length(self, conversation_id: str) -> int | None:
        """How many messages a conversation has, None where it is not there."""
        if conversation_id not in set(self.conversations()):
            return None
        return len(self.conversation(conversation_id)[0].messages)

    def messages(self, conversation_id: str, ids: Iterable[str]) -> tuple[Message, ...]:
        """The messages of these ids in a conversation, in its order, each once; ids that it lacks are passed over."""
        wanted = set(ids) if self.length(conversation_id) else ()
        return tuple(m for m in self.conversation(conversation_id)[0].messages if m.id in wanted) if wanted else ()

    def conversations_with(self, agent: str) -> tuple[str, ...]:
        """Ids of the conversations in which an agent speaks or is spoken to, in order."""
        return self._with(lambda message: agent in (message.agent, message.target))

    def find_message(self, message_id: str) -> tuple[str, ...]:
        """Ids of the conversations that hold a message of this id, in order."""
        return self._with(lambda message: message.id == message_id)

    def _with(self, holds: Callable[[Message], bool]) -> tuple[str, ...]:
        return tuple(name for name in self.conversations() if any(map(holds, self.conversation(name)[0].messages)))


class HistoryStore(Protocol):
    """Agent histories, which patterns search: an agent's rows over all conversations by judge, with their findings.

    Rows come without texts and hits. Their ``time`` is the event time, which a message without one has from its
    predecessor (``rows.binary``).
    """

    @abstractmethod
    def append(self, rows: Iterable[Row], findings: Iterable[Finding] = (), *, removed: Iterable[str] = ()) -> None:
        """Store rows and findings, and drop the findings ``removed``: all of it or nothing.

        A row is stored under its conversation, id and judge: the same again changes nothing, another one replaces it,
        but an unread one never replaces one that was read.
        """

    @abstractmethod
    def history(self, agent: str, judge_hash: str) -> tuple[Row, ...]:
        """The rows of an agent in (event time, position, id) order, untimed ones first; () for an unknown agent."""

    @abstractmethod
    def histories(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[AgentHistory]:
        """The histories that changed after a cursor and hold ``least`` or more scored rows, in the order of change.

        What changes meanwhile is left for the next sweep.
        """

    @abstractmethod
    def thread(self, conversation_id: str, judge_hash: str) -> tuple[Row, ...]:
        """The rows of a conversation in (position, id) order."""

    @abstractmethod
    def threads(self) -> Iterator[str]:
        """The ids of all conversations that have rows, in order."""

    @abstractmethod
    def agents(self, judge_hash: str) -> tuple[AgentEntry, ...]:
        """Every agent with rows of this judge, by name."""

    @abstractmethod
    def judges(self) -> tuple[JudgeEntry, ...]:
        """Every judge with rows, the first to come first."""

    @abstractmethod
    def cursor(self, name: str) -> Cursor:
        """The cursor of this name, at the beginning where nobody put it; ``changes`` counts changes of histories."""

    @abstractmethod
    def put_sweep(
        self, judge_hash: str, swept: Sequence[AgentSweep], patterns: Collection[str], cursors: Mapping[str, Cursor]
    ) -> None:
        """Replace the findings of these patterns for each swept agent and put the cursors, in one transaction.

        The findings of an agent whose history has changed since stay as they are: the next sweep reads it again.
        """

    @abstractmethod
    def put_findings(self, conversations: Iterable[str], findings: Iterable[Finding]) -> None:
        """Store findings under their ids, in place of the stored ones that touch one of these conversations.

        A stored finding that cannot be read goes too: nobody can say what it touches. Agents that lose a finding count
        as changed.
        """

    @abstractmethod
    def findings(self, agent: str | None = None) -> Iterator[Finding]:
        """All findings, or those of an agent, in the order of their ids."""

    def rows_at(self, agent: str, judge_hash: str, places: Sequence[int]) -> tuple[Row, ...]:
        """The rows at some places of a history, from 0 on, in the order of ``places``; it may lack some of them."""
        rows = self.history(agent, judge_hash)
        return tuple(rows[place] for place in places if place < len(rows))

    def packed(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[PackedHistory]:
        """The ``histories`` as bytes (``rows.binary``), which are several times as quick to search."""
        for agent, changed, rows in self.histories(judge_hash, after, least):
            cells = [each for each in map(pack, rows) if each is not None]
            yield PackedHistory(agent, changed, len(rows), b"".join(cells) if len(cells) == len(rows) else None)

    def aimed_at(self, agent: str) -> Iterator[Row]:
        """The rows of every judge whose target is this agent."""
        judges = [judge.judge_hash for judge in self.judges()]
        rows = (row for name in self.threads() for judge in judges for row in self.thread(name, judge))
        return (row for row in rows if row.target == agent)

    def changes(self) -> int:
        """The number of the latest change of any history; 0 before the first."""
        return self.cursor("changes").change

    def finding_ids(self) -> set[str]:
        """The ids of all findings."""
        return {finding.finding_id for finding in self.findings()}


class LiveStore(Protocol):
    """Optimistic updates for live runs: several of them, in any number of processes, never undo each other's work.

    A store without these methods takes part in everything but ``watch`` and the monitors.
    """

    def versions(self, conversations: Iterable[str], agents: Iterable[str], judge_hash: str) -> StoreVersions:
        """The versions of these conversations and agents."""
        raise _lacking(self, "live runs")

    def stored_conversation(self, conversation_id: str) -> StoredConversation | None:
        """A conversation as it was put last, None where it is not there."""
        raise _lacking(self, "live runs")

    def put_update(self, update: Update, expected: StoreVersions) -> StoreVersions | None:
        """Store all of an update in one transaction, and give the new versions.

        None, and nothing is stored, where the versions no longer hold: somebody else wrote in between.
        """
        raise _lacking(self, "live runs")


class StoreAdministration(Protocol):
    """Opening, closing, checking and erasure; a context manager that closes the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Make everything durable and release the store; raises StoreError where it is no longer there."""

    def another(self) -> Store:
        """One more connection to the same database, for reading and writing."""
        return open_store(self.facts()["store"])

    @abstractmethod
    def facts(self) -> dict[str, str]:
        """Name → value, for people: ``store`` is its address, then its version, its size and the like."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """The numbers of stored conversations, messages, evaluations and findings."""

    def redact(self, redaction: Redaction) -> None:
        """Do all of a redaction in one transaction, and leave no byte of what is gone in the files.

        Raises StoreError where a reader keeps the old bytes in the log for now.
        """
        raise _lacking(self, "erasure")

    def tombstones(self) -> tuple[Tombstone, ...]:
        """What was forgotten, by kind and digest."""
        return ()

    def seed(self) -> None:
        """Put the taxonomy and the patterns into a graph; raises UsageError where the store is none."""
        remedy = "name a graph with --store bolt://HOST:PORT"
        raise UsageError("only a graph holds the taxonomy", where=self.facts()["store"], remedy=remedy)

    def repeatable_read(self) -> AbstractContextManager[None]:
        """While it is open, every read of a file sees the version of its first one; a graph shows what is newest."""
        return nullcontext()

    def integrity_errors(self) -> Iterator[str]:
        """What is damaged, or is not as it was stored, as far as the database itself can tell, in words."""
        return iter(())

    def digest(self) -> str | None:
        """SHA-256 of all of the content; None where the database has no order of its own."""
        return None


class Store(ConversationStore, HistoryStore, LiveStore, ReviewStore, ListingStore, StoreAdministration, Protocol):
    """A database of what the steps produced; every write is atomic, and writing the same thing again changes nothing.

    A class of your own derives from it and has the abstract methods; the others have defaults, to be overridden where
    the database can do better.
    """


def _lacking(store: object, feature: str) -> StoreError:
    return StoreError(f"{type(store).__name__} has no {feature}", remedy="name a file with --store instead")


StoreOpener: TypeAlias = Callable[[str, bool], Store]  # (address, read_only) → the store


def open_store(address: str | Path, *, read_only: bool = False) -> Store:
    """The store at a path, or at an address such as ``bolt://127.0.0.1:7687``; a missing file is made unless only read.

    Raises UsageError for an unknown scheme or a missing package, and StoreError where it cannot be opened.
    """
    scheme = str(address).partition("://")[0] if "://" in str(address) else ""
    try:
        opener = _opener(scheme)
    except ModuleNotFoundError as error:
        package = f"'undersong[{EXTRAS.get(str(error.name), error.name)}]'" if scheme in STORES else error.name
        what = f"{without_password(str(address))} needs the package {error.name}"
        raise UsageError(what, remedy=f"pip install {package}") from error
    return opener(str(address), read_only)


def _opener(scheme: str) -> StoreOpener:
    """The ``open_store`` of a scheme: of our own table, else of an installed package."""
    if scheme in STORES:
        return cast("StoreOpener", import_module(STORES[scheme]).open_store)
    from importlib.metadata import entry_points

    plugins = {each.name: each for each in entry_points(group=PLUGINS)}
    if scheme not in plugins:
        names = ", ".join(filter(None, [*STORES, *sorted(plugins)]))
        raise UsageError(f"unknown kind of store '{scheme}'", remedy=f"name a file, or one of {names}")
    return cast("StoreOpener", plugins[scheme].load())
