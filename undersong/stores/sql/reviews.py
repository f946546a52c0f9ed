"""Leads, claims and reviews in SQL tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from undersong.models import Finding, Lead, LedgerClaim, Review, ReviewKind, encode, lead_order
from undersong.models.verdict import DECISIVE
from undersong.rows.binary import microseconds
from undersong.stores.codec import decoded
from undersong.stores.protocol import Redaction
from undersong.stores.reviewing import ReviewStore, undecided_lead
from undersong.stores.sql.database import SQLConnection, SQLDatabase

T = TypeVar("T")


class SQLReviewStore(SQLDatabase, ReviewStore):
    """The leads, claims and reviews of the store."""

    keeps_reviews = True

    def put_leads(self, conversations: Iterable[str], leads: Sequence[Lead]) -> None:
        """See Store."""
        audited = frozenset(conversations)
        with self._writing() as db:
            stored = db.execute("SELECT id, body FROM leads").fetchall()
            remove_leads(db, (name for name, body in stored if not audited.isdisjoint(_conversations(body))))
            _put_leads(db, leads)

    def put_claims(self, conversations: Iterable[str], claims: Sequence[LedgerClaim]) -> None:
        """See Store."""
        with self._writing() as db:
            db.executemany("DELETE FROM claims WHERE conversation = ?", ((name,) for name in conversations))
            db.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(_claim_row, claims))

    def leads(self, agent: str | None = None) -> Iterator[Lead]:
        """See Store."""
        query = "SELECT body FROM leads WHERE CAST(? AS TEXT) IS NULL OR agent = ?"
        with self._translated():
            bodies = self._db.execute(query, (agent, agent)).fetchall()
            return iter(sorted((decoded(body, Lead) for (body,) in bodies), key=lead_order))

    def claims(self, conversation: str | None = None) -> Iterator[LedgerClaim]:
        """See Store."""
        where, values = ("", ()) if conversation is None else ("WHERE conversation = ?", (conversation,))
        query = f"SELECT body FROM claims {where} ORDER BY conversation, position, id"
        with self._translated():
            return iter([decoded(body, LedgerClaim) for (body,) in self._db.execute(query, values).fetchall()])

    def finding(self, finding_id: str) -> Finding | None:
        """See Store."""
        return self._one("findings", finding_id, Finding)

    def lead(self, lead_id: str) -> Lead | None:
        """See Store."""
        return self._one("leads", lead_id, Lead)

    def claim(self, claim_id: str) -> LedgerClaim | None:
        """See Store."""
        return self._one("claims", claim_id, LedgerClaim)

    def _one(self, table: str, name: str, kind: type[T]) -> T | None:
        with self._translated():
            row = self._db.execute(f"SELECT body FROM {table} WHERE id = ?", (name,)).fetchone()
            return decoded(row[0], kind) if row else None

    def add_reviews(self, reviews: Iterable[Review]) -> None:
        """See Store."""
        rows = [(r.key, r.kind, r.id, microseconds(r.at), r.verdict, encode(r)) for r in reviews]
        with self._writing() as db:
            db.executemany("INSERT OR IGNORE INTO reviews VALUES (?, ?, ?, ?, ?, ?)", rows)

    def reviews(self, kind: ReviewKind | None = None, of: str | None = None) -> Iterator[Review]:
        """See Store."""
        chosen = {name: value for name, value in (("kind", kind), ("id", of)) if value is not None}
        where = f"WHERE {' AND '.join(f'{name} = ?' for name in chosen)}" if chosen else ""
        query = f"SELECT body FROM reviews {where} ORDER BY at, key"
        with self._translated():
            bodies = self._db.execute(query, tuple(chosen.values())).fetchall()
            return iter([decoded(body, Review) for (body,) in bodies])


def put_word_leads(db: SQLConnection, leads: Iterable[tuple[str, Sequence[Lead]]]) -> None:
    """Put conversations' leads from exact words in place of those that are there, within a transaction."""
    for conversation, own in leads:
        db.execute("DELETE FROM leads WHERE kind = 'message' AND conversation = ?", (conversation,))
        _put_leads(db, own)


def _put_leads(db: SQLConnection, leads: Iterable[Lead]) -> None:
    rows = ((each.id, each.agent, each.kind, each.conversation, each.score, _lead_body(each)) for each in leads)
    db.executemany("INSERT OR REPLACE INTO leads VALUES (?, ?, ?, ?, ?, ?)", rows)


def remove_leads(db: SQLConnection, names: Iterable[str]) -> None:
    """Drop the leads of these ids, within a transaction."""
    db.executemany("DELETE FROM leads WHERE id = ?", ((name,) for name in names))


def forget_reviewed(db: SQLConnection, redaction: Redaction) -> None:
    """Drop the leads, claims and reviews of a redaction, within a transaction."""
    remove_leads(db, redaction.leads)
    db.executemany("DELETE FROM claims WHERE id = ?", ((name,) for name in redaction.claims))
    db.executemany("DELETE FROM reviews WHERE key = ?", ((key,) for key in redaction.reviews))


def _lead_body(lead: Lead) -> bytes:
    return encode(undecided_lead(lead))


def _conversations(body: object) -> tuple[str, ...]:
    return decoded(body, Lead).message_conversations


def _claim_row(claim: LedgerClaim) -> tuple[str, str, int, str, str, str, int, bytes]:
    return (
        claim.claim_id, claim.conversation, claim.position, claim.agent, claim.kind, claim.state,
        DECISIVE.index(claim.state), encode(claim),
    )  # fmt: skip
