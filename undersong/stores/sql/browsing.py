"""A store as its pages look at it: parts of transcripts, what is new, and figures by model or agent."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import numpy as np

from undersong.models import LEVELS, NEGATIVE_TRAITS, TRAITS, Conversation, Evaluation, Message, Row
from undersong.models.finding import SURE
from undersong.rows.binary import LAYOUT, NO_SCORE, RANK, THOUSAND, from_microseconds
from undersong.stores.codec import decoded, rows_of
from undersong.stores.conversation_order import OrderedFinding
from undersong.stores.sql.store import SQLStore

GroupBy = Literal["model", "agent"]
HARM = 0.5  # from here on a harmful trait counts, as in the miss estimate of a run
BATCH = 500  # parameters of a statement
_TRAITS_AT = 28  # bytes before the traits in packed cells: time, target, conversation, position
_HARMFUL = [place for place, trait in enumerate(TRAITS) if trait in NEGATIVE_TRAITS]
_JUDGE = "(SELECT number FROM judges WHERE hash = ?)"


class AgentFigures(NamedTuple):
    """How many rows a judge has of an agent, how many of them it scored, and from when to when."""

    messages: int
    scored: int
    first: datetime | None
    last: datetime | None


class ScoreFigures(NamedTuple):
    """Rows of a judge: how many, with levels, with ranks, and with levels of which a harmful trait is .5 or more."""

    messages: int
    scored: int
    ranked: int
    harmful: int


class LatestMessage(NamedTuple):
    """A message and its number: later ones have higher numbers."""

    number: int
    message: Message


class BrowsingStore(SQLStore):
    """A store with what its pages show beside the lists; ``read_only`` it may be used from another thread."""

    @abstractmethod
    def data_version(self) -> int:
        """Another number whenever another connection has written since this one looked last."""

    def conversation_head(self, conversation_id: str) -> Conversation | None:
        """A conversation without its messages, None where it is not there."""
        with self._translated():
            row = self._db.execute("SELECT body FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
        return decoded(row[0], Conversation) if row else None

    def transcript(self, conversation_id: str, first: int, last: int) -> tuple[Message, ...]:
        """The messages at the positions ``first`` to ``last`` (inclusive) of a conversation, in order."""
        query = "SELECT body FROM messages WHERE conversation = ? AND position BETWEEN ? AND ? ORDER BY position, id"
        with self._translated():
            bodies = self._db.execute(query, (conversation_id, first, last)).fetchall()
        return tuple(decoded(body, Message) for (body,) in bodies)

    def answers_at(self, conversation_id: str, ids: Sequence[str]) -> dict[str, list[Evaluation]]:
        """Message id → what every judge answered of it."""
        query = "SELECT judge_hash FROM evaluations WHERE conversation = ? GROUP BY judge_hash"
        single = "SELECT body FROM evaluations WHERE conversation = ? AND judge_hash = ? AND message = ?"
        answers: dict[str, list[Evaluation]] = {}
        with self._reading() as db:
            judges = [judge for (judge,) in db.execute(query, (conversation_id,)).fetchall()]
            for name in ids:
                rows = (db.execute(single, (conversation_id, judge, name)).fetchone() for judge in judges)
                answers[name] = [decoded(row[0], Evaluation) for row in rows if row]
        return answers

    def figures_of(self, agent: str, judge_hash: str) -> AgentFigures:
        """The figures of an agent, from the index alone."""
        query = (
            "SELECT count(*), coalesce(sum(CASE WHEN state = 'scored' THEN 1 ELSE 0 END), 0), min(time), max(time)"
            f" FROM history WHERE agent = ? AND judge = {_JUDGE}"
        )
        with self._translated():
            messages, scored, first, last = self._db.execute(query, (agent, judge_hash)).fetchone()
        return AgentFigures(messages, scored, from_microseconds(first), from_microseconds(last))

    def targets_of(self, agent: str) -> list[tuple[str | None, int]]:
        """Whom an agent addresses (None: everybody), with the number of messages, the most first."""
        counts = "SELECT target, count(*) AS number FROM messages WHERE agent = ? GROUP BY target"
        query = f"{counts} ORDER BY number DESC, target LIMIT 50"
        with self._translated():
            return [(target, number) for target, number in self._db.execute(query, (agent,))]

    def latest_messages(self, after: int, limit: int = 50) -> list[LatestMessage]:
        """The messages that were written after a number, the latest ``limit`` of them, in order."""
        query = "SELECT rowid, body FROM messages WHERE rowid > ? ORDER BY rowid DESC LIMIT ?"
        with self._translated():
            rows = self._db.execute(query, (after, limit)).fetchall()
        return [LatestMessage(number, decoded(body, Message)) for number, body in reversed(rows)]

    def latest_number(self) -> int:
        """The number of the message that was written last; 0 without any."""
        with self._translated():
            return self._db.execute("SELECT coalesce(max(rowid), 0) FROM messages").fetchone()[0]  # type: ignore[no-any-return]

    def pattern_counts(self) -> dict[str, int]:
        """Pattern → how many findings it has."""
        with self._translated():
            return dict(self._db.execute("SELECT pattern, count(*) FROM findings GROUP BY pattern").fetchall())

    def finding_versions(self, likely: bool | None = None) -> dict[str, int]:
        """Finding id → its number; a finding that changes gets a new one. ``likely``: of those alone, or the others."""
        where = "TRUE" if likely is None else f"coalesce(-confidence, 1) {'<=' if likely else '>'} {-SURE}"
        with self._translated():
            return dict(self._db.execute(f"SELECT id, rowid FROM findings WHERE {where}").fetchall())

    def ordered_findings(self, numbers: Iterable[int]) -> dict[int, OrderedFinding]:
        """Number → what the place in a review depends on, of the findings of these numbers."""
        query = (
            "SELECT rowid, id, coalesce(json_extract(json, '$.conversations[0]'), ''), level, pattern, agent, target"
            " FROM findings WHERE rowid IN ({})"
        )
        wanted, rows = list(numbers), []
        with self._reading() as db:
            for start in range(0, len(wanted), BATCH):
                part = wanted[start : start + BATCH]
                rows += db.execute(query.format(", ".join("?" * len(part))), part).fetchall()
        columns = {number: (*row[:2], LEVELS[row[2]], *row[3:]) for number, *row in rows}
        return {number: OrderedFinding(*values) for number, values in columns.items()}

    def review_counts(self) -> dict[str, int]:
        """Finding id → how many reviews it has, or the finding has whose place it took; of those with any."""
        own = "SELECT id, count(*) FROM reviews WHERE kind = 'finding' GROUP BY id"
        gone = "SELECT 1 FROM reviews WHERE kind = 'finding' AND id NOT IN (SELECT id FROM findings) LIMIT 1"
        replaced_by = "json_extract(json, '$.replaces')"
        heirs = f"SELECT id, {replaced_by} FROM findings WHERE {replaced_by} IS NOT NULL"
        with self._translated():
            counts: dict[str, int] = dict(self._db.execute(own).fetchall())
            replaced = self._db.execute(heirs).fetchall() if self._db.execute(gone).fetchone() else []
        for name, earlier in replaced:
            if earlier in counts:
                counts[name] = counts.get(name, 0) + counts[earlier]
        return counts

    def score_figures(self, judge_hash: str, group: GroupBy) -> dict[str, ScoreFigures]:
        """The figures of each model or agent ("" without one) over every row of a judge."""
        cells: defaultdict[str, list[bytes]] = defaultdict(list)
        bodies: defaultdict[str, list[bytes]] = defaultdict(list)
        for name, packed, body in self._cells_by(judge_hash, group):
            if packed is not None:
                cells[name].append(packed)
            elif body is not None:
                bodies[name].append(body)
        figures = {}
        for name in {*cells, *bodies}:
            pairs = zip(_figures(b"".join(cells[name])), _row_figures(rows_of(bodies[name])), strict=True)
            figures[name] = ScoreFigures(len(cells[name]) + len(bodies[name]), *map(sum, pairs))
        return figures

    def _cells_by(self, judge_hash: str, group: GroupBy) -> Iterator[tuple[str, bytes | None, bytes | None]]:
        """Model or agent ("" without one) of every row of a judge, its packed cells, and its body where it has none."""
        if group == "agent":
            query = f"SELECT agent, cells, CASE WHEN cells IS NULL THEN body END FROM history WHERE judge = {_JUDGE}"
        else:
            model = "coalesce(json_extract(CAST(m.body AS TEXT), '$.model'), '')"
            query = (
                f"SELECT {model}, h.cells, CASE WHEN h.cells IS NULL THEN h.body END FROM history h"
                " JOIN messages m ON m.conversation = h.conversation"
                f" AND m.id = h.id WHERE h.judge = {_JUDGE}"
            )
        with self._translated():
            yield from self._db.execute(query, (judge_hash,))

    def models_of(self, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """(conversation, message) → the model that wrote it, of those where one is named."""
        query = (
            "SELECT conversation, id, json_extract(CAST(body AS TEXT), '$.model') FROM (VALUES {}) AS wanted"
            " CROSS JOIN messages WHERE conversation = wanted.column1 AND id = wanted.column2"
        )
        models: dict[tuple[str, str], str] = {}
        with self._reading() as db:
            for start in range(0, len(places), BATCH // 2):
                part = places[start : start + BATCH // 2]
                values = [value for place in part for value in place]
                rows = db.execute(query.format(", ".join(["(?, ?)"] * len(part))), values)
                models |= {(name, message): model for name, message, model in rows if model}
        return models


def _row_figures(rows: Iterable[Row]) -> tuple[int, int, int]:
    """As ``_figures``, of rows that do not fit into packed cells: those without a time."""
    scored = ranked = harmful = 0
    for row in rows:
        levels = row.absolute_scores
        ranked += levels is None and row.traits is not None
        scored += levels is not None
        harmful += any(score >= HARM for trait, score in (levels or {}).items() if trait in NEGATIVE_TRAITS)
    return scored, ranked, harmful


def _figures(packed: bytes) -> tuple[int, int, int]:
    """Rows with levels, rows with ranks, and those with levels of which a harmful trait counts."""
    if not packed:
        return 0, 0, 0
    table = np.frombuffer(packed, dtype=np.uint8).reshape(-1, LAYOUT.size)
    traits = np.ascontiguousarray(table[:, _TRAITS_AT : _TRAITS_AT + 2 * len(TRAITS)]).view("<u2")
    bits = table[:, LAYOUT.size - 3]
    present = (traits != NO_SCORE).any(axis=1)
    ranked = (bits & RANK) > 0
    levels = present & ~ranked
    harmful = traits[:, _HARMFUL]
    strong = ((harmful != NO_SCORE) & (harmful >= HARM * THOUSAND)).any(axis=1)
    return int(levels.sum()), int((present & ranked).sum()), int((levels & strong).sum())
