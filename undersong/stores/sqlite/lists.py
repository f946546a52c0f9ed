"""Lists of an SQLite file: its search over messages, its leads, and whether what lists are made from agrees."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

import msgspec

from undersong.models import Lead, ReviewVerdict
from undersong.models.finding import SURE
from undersong.stores.codec import decoded
from undersong.stores.listing import PAGE, LeadQuery, Page, SearchHit, SearchQuery, words_of
from undersong.stores.reviewing import lead_decisions
from undersong.stores.sql.database import SQLConnection
from undersong.stores.sql.paging import Filter, PagedLists, equal, one_of, verdicts
from undersong.stores.sqlite.connection import Database

if TYPE_CHECKING:
    from undersong.stores.protocol import Store

_CITING = (  # the ids at once, and then a step through the index of the order, which stops at the end of a page
    "SELECT json_group_array(finding) FROM (SELECT DISTINCT finding FROM words"
    " CROSS JOIN cited_words ON number = words.rowid WHERE words MATCH ?)"
)


class SQLiteLists(PagedLists, Database):
    """The lists of the store."""

    def _with_words(self, words: list[list[str]]) -> Filter:
        with self._translated():
            names: str = self._db.execute(_CITING, (_match(words),)).fetchone()[0]
        return Filter("+id IN (SELECT value FROM json_each(?))", (names,))

    def _prepare_lists(self, db: SQLConnection) -> None:  # noqa: ARG002 - the same connection
        self._db.create_function("holds", 2, _holds, deterministic=True)

    def list_leads(self, query: LeadQuery | None = None, after: str | None = None, limit: int = PAGE) -> Page[Lead]:
        """See ListingStore."""
        query = query or LeadQuery()
        filters = [
            *equal(agent=query.agent),
            *one_of("kind", query.kinds),
            *verdicts("lead", "leads", query.reviewed),
        ]
        if query.conversation is not None:
            over = "EXISTS (SELECT 1 FROM json_each(CAST(body AS TEXT), '$.message_conversations') WHERE value = ?)"
            filters.append(Filter(f"(conversation = ? OR {over})", (query.conversation, query.conversation)))
        decided = lead_decisions(cast("Store", self))
        with self._translated():
            self._db.create_function("decided", 1, decided.__contains__)
        key = ("decided(id)", "-score", "agent", "id")
        return self._page_of("leads", "body", key, filters, after, limit, partial(_lead, decided))

    def search(self, query: SearchQuery, after: str | None = None, limit: int = PAGE) -> Page[SearchHit]:
        """See ListingStore."""
        phrases = words_of(query.words)
        if not phrases:
            return Page((), None, 0)
        filters = [Filter("words MATCH ?", (_match(phrases),))]
        filters += equal(**{"texts.conversation": query.conversation, "texts.agent": query.agent})
        table = "words JOIN texts ON number = words.rowid"  # without what damaged messages left in the index
        return self._page_of(table, "words.rowid", ("words.rowid",), filters, after, limit, partial(self._hit, phrases))


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
    return part.casefold() in (text or "").casefold()


def _match(phrases: list[list[str]]) -> str:
    """A search as FTS5 takes it: every phrase in quotes, all of them wanted."""
    return " ".join(f'"{" ".join(phrase)}"' for phrase in phrases)


def _lead(decided: Mapping[str, ReviewVerdict], body: object) -> Lead:
    lead = decoded(body, Lead)
    return msgspec.structs.replace(lead, decided=decided.get(lead.id))
