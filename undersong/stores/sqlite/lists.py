"""Lists by the page from the indexes of an SQLite file, and the search over its messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec

from undersong.models import LEVELS, Finding, Lead, LedgerClaim, Message, ReviewVerdict
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
    LeadQuery,
    ListingStore,
    Page,
    Reviewed,
    SearchHit,
    SearchQuery,
    checked_limit,
    decode_place,
    encode_place,
    hit_of,
    words_of,
)
from undersong.stores.reviewing import lead_decisions
from undersong.stores.sqlite.connection import Database

if TYPE_CHECKING:
    from undersong.stores.protocol import Store

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
_CITING = (  # the ids at once, and then a step through the index of the order, which stops at the end of a page
    "SELECT json_group_array(finding) FROM (SELECT DISTINCT finding FROM words"
    " CROSS JOIN cited_words ON number = words.rowid WHERE words MATCH ?)"
)


class _Filter(NamedTuple):
    """A condition on the rows of a list, with its parameters."""

    condition: str
    values: tuple[object, ...] = ()


class SQLiteLists(Database, ListingStore):
    """The lists of the store."""

    def list_conversations(
        self, query: ConversationQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[ConversationEntry]:
        """See ListingStore."""
        query = query or ConversationQuery()
        filters = []
        if query.agent is not None:
            speaking = "SELECT conversation FROM speakers WHERE agent = ?"
            addressed = "SELECT conversation FROM messages WHERE target = ?"
            filters.append(_Filter(f"conversation IN ({speaking} UNION {addressed})", (query.agent, query.agent)))
        if query.title:
            filters.append(_Filter("(holds(conversation, ?) OR holds(title, ?))", (query.title.casefold(),) * 2))
        key = ("conversation",) if query.sort == "id" else ("coalesce(-last, 1)", "conversation")
        return self._page("talks", "conversation", key, filters, after, limit, self._conversation_entry)

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

    def _text(self, query: str, values: Sequence[object]) -> str:
        with self._translated():
            text: str = self._db.execute(query, values).fetchone()[0]
        return text

    def _number(self, query: str, values: Sequence[object]) -> int:
        number: int = self._db.execute(query, values).fetchone()[0]
        return number

    def list_agents(
        self, query: AgentQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[AgentOverview]:
        """See ListingStore."""
        query = query or AgentQuery()
        filters = [_Filter("conversations + histories > 0")]
        if query.name:
            filters.append(_Filter("holds(agent, ?)", (query.name.casefold(),)))
        key = ("agent",) if query.sort == "name" else ("-likely", "-findings", "agent")
        return self._page("totals", "agent", key, filters, after, limit, self._overview)

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
        words = _match(query.text or "")
        if query.text is not None and not words:
            return Page((), None, 0)
        filters = [
            *_equal(agent=query.agent, target=query.target),
            *_one_of("pattern", query.patterns),
            *_one_of("-level", [-LEVELS.index(level) for level in query.levels]),
            *_one_of("coalesce(json_extract(json, '$.status'), 'settled')", (query.status,) if query.status else ()),
            *_verdicts("finding", "findings", query.reviewed),
        ]
        if query.conversation is not None:
            citing = "SELECT finding FROM cited WHERE conversation = ?"
            filters.append(_Filter(f"id IN ({citing})", (query.conversation,)))
        if query.confidence is not None:
            low, high = query.confidence
            filters.append(
                _Filter("coalesce(-confidence, 1) BETWEEN ? AND ? AND -confidence > ?", (-high, -low, -high))
            )
        if query.likely is not None:
            filters.append(_Filter(f"coalesce(-confidence, 1) {'<=' if query.likely else '>'} {-SURE}"))
        if words:
            filters.append(_Filter("+id IN (SELECT value FROM json_each(?))", (self._text(_CITING, (words,)),)))
        return self._page("findings", "body", _SORTS[query.sort], filters, after, limit, _decoder(Finding))

    def list_leads(self, query: LeadQuery | None = None, after: str | None = None, limit: int = PAGE) -> Page[Lead]:
        """See ListingStore."""
        query = query or LeadQuery()
        filters = [
            *_equal(agent=query.agent),
            *_one_of("kind", query.kinds),
            *_verdicts("lead", "leads", query.reviewed),
        ]
        if query.conversation is not None:
            over = "EXISTS (SELECT 1 FROM json_each(CAST(body AS TEXT), '$.message_conversations') WHERE value = ?)"
            filters.append(_Filter(f"(conversation = ? OR {over})", (query.conversation, query.conversation)))
        decided = lead_decisions(cast("Store", self))
        with self._translated():
            self._db.create_function("decided", 1, decided.__contains__)
        key = ("decided(id)", "-score", "agent", "id")
        return self._page("leads", "body", key, filters, after, limit, partial(_lead, decided))

    def list_claims(
        self, query: ClaimQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[LedgerClaim]:
        """See ListingStore."""
        query = query or ClaimQuery()
        filters = [
            *_equal(conversation=query.conversation, agent=query.agent),
            *_one_of("kind", query.kinds),
            *_one_of("state", query.states),
            *_verdicts("claim", "claims", query.reviewed),
        ]
        key = ("decisive", "conversation", "position", "id")
        return self._page("claims", "body", key, filters, after, limit, _decoder(LedgerClaim))

    def search(self, query: SearchQuery, after: str | None = None, limit: int = PAGE) -> Page[SearchHit]:
        """See ListingStore."""
        phrases = words_of(query.words)
        if not phrases:
            return Page((), None, 0)
        filters = [_Filter("words MATCH ?", (_match(query.words),))]
        filters += _equal(**{"texts.conversation": query.conversation, "texts.agent": query.agent})
        table = "words JOIN texts ON number = words.rowid"  # without what damaged messages left in the index
        return self._page(table, "words.rowid", ("words.rowid",), filters, after, limit, partial(self._hit, phrases))

    def _hit(self, phrases: list[list[str]], number: int) -> SearchHit:
        query = (
            "SELECT body FROM texts JOIN messages ON messages.conversation = texts.conversation AND"
            " messages.id = texts.message WHERE number = ?"
        )
        (body,) = self._db.execute(query, (number,)).fetchone()
        return hit_of(decoded(body, Message), phrases)

    def _page(
        self,
        table: str,
        column: str,
        key: tuple[str, ...],
        filters: Iterable[_Filter],
        after: str | None,
        limit: int,
        entry: Callable[[Any], T],
    ) -> Page[T]:
        """The entries after a place, made of a column of the rows that all filters let through, in order of the key."""
        place, limit, every = decode_place(after, len(key)), checked_limit(limit), list(filters)
        where = " AND ".join(each.condition for each in every) or "1"
        values = [value for each in every for value in each.values]
        columns = ", ".join(key)
        rest = f"({columns}) > ({', '.join('?' * len(key))})" if place else "1"
        if place and len(key) == 1:
            rest = f"{columns} > ?"  # which the index of words takes
        query = f"SELECT {columns}, {column} FROM {table} WHERE {where} AND {rest} ORDER BY {columns} LIMIT ?"
        with self._reading() as db:
            db.create_function("holds", 2, _holds, deterministic=True)
            total = self._number(f"SELECT count(*) FROM {table} WHERE {where}", values)
            rows = db.execute(query, (*values, *(place or ()), limit + 1)).fetchall()
            items = tuple(entry(row[-1]) for row in rows[:limit])
        return Page(items, encode_place(rows[limit - 1][:-1]) if len(rows) > limit else None, total)


def unsearchable(db: sqlite3.Connection) -> Iterator[str]:
    """What the search does not know, or knows and is not there, in words."""
    stored, numbered = "SELECT conversation, id, agent FROM messages", "SELECT conversation, message, agent FROM texts"
    for here, there, words in (
        (stored, numbered, "cannot be searched"),
        (numbered, stored, "is searched and not there"),
    ):
        for conversation, name, _ in db.execute(f"{here} EXCEPT {there}"):
            yield f"message {name} of conversation {conversation} {words}"


_TOTALS = {  # a table that lists are made from → the same from what it follows from
    "speakers": "SELECT agent, conversation, count(*) FROM messages GROUP BY agent, conversation",
    "totals": "SELECT agent, sum(conversations), sum(histories), sum(findings), sum(likely) FROM"
    " (SELECT agent, 1 AS conversations, 0 AS histories, 0 AS findings, 0 AS likely FROM messages"
    " GROUP BY agent, conversation UNION ALL SELECT agent, 0, 1, 0, 0 FROM agents UNION ALL"
    f" SELECT agent, 0, 0, 1, coalesce(confidence >= {SURE}, 0) FROM findings) GROUP BY agent",
    "talks": "SELECT id, CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.title') END,"
    " (SELECT max(time) FROM messages WHERE conversation = conversations.id) FROM conversations",
    "cited_words": "SELECT number, finding FROM cited JOIN texts ON texts.conversation = cited.conversation"
    " AND texts.message = cited.message",
}


def mismatched_totals(db: sqlite3.Connection) -> Iterator[str]:
    """The tables behind the lists that do not agree with what they are made from, in words."""
    for table, made in _TOTALS.items():
        stored = f"SELECT * FROM {table}"
        differing = db.execute(
            f"SELECT * FROM ({stored} EXCEPT {made}) UNION ALL SELECT * FROM ({made} EXCEPT {stored})"
        )
        if (first := differing.fetchone()) is not None:
            yield f"the lists do not agree with what is stored: {table} of {first[0]}"


def _holds(text: str | None, part: str) -> bool:
    return part in (text or "").casefold()


def _match(words: str) -> str:
    """A search as FTS5 takes it: every phrase in quotes, all of them wanted."""
    return " ".join(f'"{" ".join(phrase)}"' for phrase in words_of(words))


def _equal(**values: str | None) -> list[_Filter]:
    return [_Filter(f"{column} = ?", (value,)) for column, value in values.items() if value is not None]


def _one_of(column: str, values: Sequence[object]) -> list[_Filter]:
    return [_Filter(f"{column} IN ({', '.join('?' * len(values))})", tuple(values))] if values else []


def _verdicts(kind: str, table: str, wanted: Sequence[Reviewed]) -> list[_Filter]:
    return _one_of(_LATEST.format(kind, table), wanted)


def _lead(decided: Mapping[str, ReviewVerdict], body: object) -> Lead:
    lead = decoded(body, Lead)
    return msgspec.structs.replace(lead, decided=decided.get(lead.id))


def _decoder(kind: type[T]) -> Callable[[object], T]:
    return partial(decoded, kind=kind)
