"""Lists by the page from the indexes of a database in SQL, and the search over its messages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, TypeVar

from undersong.models import LEVELS, Finding, LedgerClaim, Message
from undersong.models.finding import SURE
from undersong.rows.binary import from_microseconds
from undersong.stores.codec import decoded
from undersong.stores.listing import (
    PAGE,
    AgentOverview,
    AgentQuery,
    ClaimQuery,
    ConversationEntry,
    ConversationQuery,
    FindingQuery,
    ListingStore,
    Page,
    Reviewed,
    SearchHit,
    checked_limit,
    decode_place,
    encode_place,
    hit_of,
    words_of,
)
from undersong.stores.sql.database import SQLConnection, SQLDatabase

T = TypeVar("T")
_SORTS = {  # of findings: the key, lower first
    "confidence": ("coalesce(-confidence, 1)", "id"),
    "level": ("-level", "coalesce(-confidence, 1)", "id"),
    "recent": ("coalesce(-ended, 1)", "id"),
    "id": ("id",),
}
_REVIEWER = "json_extract(CAST({}.body AS TEXT), '$.reviewer')"
_WITHDRAWN = (  # whether the one who decided has withdrawn it since
    "EXISTS (SELECT 1 FROM reviews AS later WHERE later.kind = made.kind AND later.id = made.id"
    " AND later.verdict = 'withdrawn' AND (later.at, later.key) > (made.at, made.key)"
    f" AND {_REVIEWER.format('later')} IS {_REVIEWER.format('made')})"
)
_LATEST = (
    "coalesce((SELECT verdict FROM reviews AS made WHERE kind = '{}' AND made.id = {}.id"
    f" AND verdict <> 'withdrawn' AND NOT {_WITHDRAWN}"
    " ORDER BY at DESC, key DESC LIMIT 1), 'none')"
)


class Filter(NamedTuple):
    """A condition on the rows of a list, with its parameters."""

    condition: str
    values: tuple[object, ...] = ()


class PagedLists(SQLDatabase, ListingStore):
    """The lists of the store; what differs between databases is left to them."""

    @abstractmethod
    def _with_words(self, words: list[list[str]]) -> Filter:
        """Findings that rest on a message with all of these words."""

    def _continued(self, _after: str | None, /) -> AbstractContextManager[None]:
        """In it a list is read on from a place; raises UsageError where the database says that it is none of it."""
        return nullcontext()

    def _prepare_lists(self, db: SQLConnection) -> None:
        """Make ``holds(text, part)`` known, which is true where a text has a part, in whatever case."""

    def list_conversations(
        self, query: ConversationQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[ConversationEntry]:
        """See ListingStore."""
        query = query or ConversationQuery()
        filters = []
        if query.agent is not None:
            speaking = "SELECT conversation FROM speakers WHERE agent = ?"
            addressed = "SELECT conversation FROM messages WHERE target = ?"
            filters.append(Filter(f"conversation IN ({speaking} UNION {addressed})", (query.agent, query.agent)))
        if query.title:
            filters.append(Filter("(holds(conversation, ?) OR holds(title, ?))", (query.title,) * 2))
        key = ("conversation",) if query.sort == "id" else ("coalesce(-last, 1)", "conversation")
        return self._page_of("talks", "conversation", key, filters, after, limit, self._conversation_entry)

    def _conversation_entry(self, name: str) -> ConversationEntry:
        head = self._db.execute(
            "SELECT json_extract(CAST(body AS TEXT), '$.title'), json_extract(CAST(body AS TEXT), '$.source_format')"
            " FROM conversations WHERE id = ?",
            (name,),
        ).fetchone()
        spoken = self._db.execute(
            "SELECT agent, count(*), min(time), max(time) FROM messages INDEXED BY messages_time"
            " WHERE conversation = ? GROUP BY agent ORDER BY agent",
            (name,),
        ).fetchall()
        times = [time for _, _, first, last in spoken for time in (first, last) if time is not None]
        findings = "SELECT count(DISTINCT finding) FROM cited WHERE conversation = ?"
        return ConversationEntry(
            id=name,
            title=head[0],
            source_format=head[1] or "",
            messages=sum(number for _, number, _, _ in spoken),
            first=from_microseconds(min(times, default=None)),
            last=from_microseconds(max(times, default=None)),
            agents=tuple(agent for agent, _, _, _ in spoken),
            findings=self._number(findings, (name,)),
            claims=self._number("SELECT count(*) FROM claims WHERE conversation = ?", (name,)),
        )

    def _number(self, query: str, values: Sequence[object]) -> int:
        number: int = self._db.execute(query, values).fetchone()[0]
        return number

    def list_agents(
        self, query: AgentQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[AgentOverview]:
        """See ListingStore."""
        query = query or AgentQuery()
        filters = [Filter("conversations + histories > 0")]
        if query.name:
            filters.append(Filter("holds(agent, ?)", (query.name,)))
        key = ("agent",) if query.sort == "name" else ("-likely", "-findings", "agent")
        return self._page_of("totals", "agent", key, filters, after, limit, self._overview)

    def _overview(self, agent: str) -> AgentOverview:
        numbers = "SELECT conversations, findings, likely FROM totals WHERE agent = ?"
        conversations, findings, likely = self._db.execute(numbers, (agent,)).fetchone()
        return AgentOverview(
            agent=agent,
            messages=self._number("SELECT coalesce(sum(messages), 0) FROM speakers WHERE agent = ?", (agent,)),
            conversations=conversations,
            findings=findings,
            likely=likely,
        )

    def list_findings(
        self, query: FindingQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[Finding]:
        """See ListingStore."""
        query = query or FindingQuery()
        words = words_of(query.text or "")
        if query.text is not None and not words:
            return Page((), None, 0)
        filters = [
            *equal(agent=query.agent, target=query.target),
            *one_of("pattern", query.patterns),
            *one_of("-level", [-LEVELS.index(level) for level in query.levels]),
            *one_of("coalesce(json_extract(json, '$.status'), 'settled')", (query.status,) if query.status else ()),
            *verdicts("finding", "findings", query.reviewed),
        ]
        if query.conversation is not None:
            citing = "SELECT finding FROM cited WHERE conversation = ?"
            filters.append(Filter(f"id IN ({citing})", (query.conversation,)))
        if query.confidence is not None:
            low, high = query.confidence
            filters.append(Filter("coalesce(-confidence, 1) BETWEEN ? AND ? AND -confidence > ?", (-high, -low, -high)))
        if query.likely is not None:
            filters.append(Filter(f"coalesce(-confidence, 1) {'<=' if query.likely else '>'} {-SURE}"))
        if words:
            filters.append(self._with_words(words))
        return self._page_of("findings", "body", _SORTS[query.sort], filters, after, limit, _decoder(Finding))

    def list_claims(
        self, query: ClaimQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[LedgerClaim]:
        """See ListingStore."""
        query = query or ClaimQuery()
        filters = [
            *equal(conversation=query.conversation, agent=query.agent),
            *one_of("kind", query.kinds),
            *one_of("state", query.states),
            *verdicts("claim", "claims", query.reviewed),
        ]
        key = ("decisive", "conversation", "position", "id")
        return self._page_of("claims", "body", key, filters, after, limit, _decoder(LedgerClaim))

    def _hit(self, phrases: list[list[str]], number: int) -> SearchHit:
        query = (
            "SELECT body FROM texts JOIN messages ON messages.conversation = texts.conversation AND"
            " messages.id = texts.message WHERE number = ?"
        )
        (body,) = self._db.execute(query, (number,)).fetchone()
        return hit_of(decoded(body, Message), phrases)

    def _page_of(
        self,
        table: str,
        column: str,
        key: tuple[str, ...],
        filters: Iterable[Filter],
        after: str | None,
        limit: int,
        entry: Callable[[Any], T],
    ) -> Page[T]:
        """The entries after a place, made of a column of the rows that all filters let through, in order of the key."""
        place, limit, every = decode_place(after, len(key)), checked_limit(limit), list(filters)
        where = " AND ".join(each.condition for each in every) or "TRUE"
        values = [value for each in every for value in each.values]
        columns = ", ".join(key)
        rest = f"({columns}) > ({', '.join('?' * len(key))})" if place else "TRUE"
        if place and len(key) == 1:
            rest = f"{columns} > ?"  # which the index of words takes
        query = f"SELECT {columns}, {column} FROM {table} WHERE {where} AND {rest} ORDER BY {columns} LIMIT ?"
        with self._continued(after), self._reading() as db:
            self._prepare_lists(db)
            total = self._number(f"SELECT count(*) FROM {table} WHERE {where}", values)
            rows = db.execute(query, (*values, *(place or ()), limit + 1)).fetchall()
            items = tuple(entry(row[-1]) for row in rows[:limit])
        return Page(items, encode_place(rows[limit - 1][:-1]) if len(rows) > limit else None, total)


def equal(**values: str | None) -> list[Filter]:
    return [Filter(f"{column} = ?", (value,)) for column, value in values.items() if value is not None]


def one_of(column: str, values: Sequence[object]) -> list[Filter]:
    return [Filter(f"{column} IN ({', '.join('?' * len(values))})", tuple(values))] if values else []


def verdicts(kind: str, table: str, wanted: Sequence[Reviewed]) -> list[Filter]:
    return one_of(_LATEST.format(kind, table), wanted)


def _decoder(kind: type[T]) -> Callable[[object], T]:
    return partial(decoded, kind=kind)
