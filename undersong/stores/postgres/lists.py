"""Lists of a PostgreSQL database, and the search over its messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg

from undersong.errors import StoreError, UsageError
from undersong.models import Message
from undersong.stores.codec import decoded
from undersong.stores.listing import PAGE, Page, SearchHit, SearchQuery, hit_of, words_of
from undersong.stores.postgres.server import PostgresDatabase
from undersong.stores.sql.paging import Filter, PagedLists, equal

LONGEST_WORD = 100  # characters of a word that the index has: as in words_in


class PostgresLists(PagedLists, PostgresDatabase):
    """The lists of the store; those of leads are made of all of them."""

    def _with_words(self, words: list[list[str]]) -> Filter:
        holding = _holding(words)
        citing = "SELECT finding FROM cited JOIN messages ON messages.id = message"
        query = f"{citing} AND messages.conversation = cited.conversation WHERE {holding.condition}"
        return Filter(f"id IN ({query})", holding.values)

    def search(self, query: SearchQuery, after: str | None = None, limit: int = PAGE) -> Page[SearchHit]:
        """See ListingStore."""
        phrases = words_of(query.words)
        if not phrases:
            return Page((), None, 0)
        filters = [_holding(phrases), *equal(conversation=query.conversation, agent=query.agent)]
        return self._page_of("messages", "body", ("rowid",), filters, after, limit, partial(_hit, phrases))

    @contextmanager
    def _continued(self, after: str | None, /) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            if after is None or not isinstance(error.__cause__, psycopg.DataError | psycopg.ProgrammingError):
                raise
            what, remedy = f"'{after}' is no place in this list", "begin again with the first page"
            raise UsageError(what, where="after", remedy=remedy) from error


def _holding(phrases: list[list[str]]) -> Filter:
    """Messages with all of these words; those of a phrase one after the other."""
    words = list(dict.fromkeys(word[:LONGEST_WORD] for phrase in phrases for word in phrase))
    joined = [" ".join(word[:LONGEST_WORD] for word in phrase) for phrase in phrases if len(phrase) > 1]
    has_phrase = " AND strpos(concat(' ', array_to_string(words_in(messages.body), ' '), ' '), ?) > 0"
    condition = f"words_in(messages.body) @> CAST(? AS TEXT[]){has_phrase * len(joined)}"
    return Filter(condition, (words, *(f" {each} " for each in joined)))


def _hit(phrases: list[list[str]], body: object) -> SearchHit:
    return hit_of(decoded(body, Message), phrases)
