"""PRECEDES: an agent's scored rows of one judge, chained in event time, and the number of their latest change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from undersong.models import TRAITS, Row
from undersong.rows.timestamps import microseconds
from undersong.stores.codec import row_body, rows_of, supersedes
from undersong.stores.neo4j.connection import Transaction, cypher

_NEVER = -(1 << 62)  # before any time

HistoryKey = tuple[str, str]  # an agent and the hash of a judge
RowOrderKey = tuple[int, int, str, str]  # the place of a timed row among its agent's


class ChangedHistories:
    """The histories that a transaction changes.

    Scored rows that are new and later than all before are put behind them. Any other history is chained again from its
    earliest changed row on; from the beginning, if a row has no time.
    """

    def __init__(self) -> None:
        self._since: dict[HistoryKey, int | None] = {}
        self._come: dict[HistoryKey, list[tuple[RowOrderKey, str]]] = {}
        self._again: set[HistoryKey] = set()

    def add(self, agent: str, judge: str, time: int | None) -> None:
        """A row, in microseconds, that goes or is another one."""
        place = agent, judge
        before = self._since.get(place, time)
        self._since[place] = None if before is None or time is None else min(before, time)
        self._again.add(place)

    def add_new(self, name: str, row: Row) -> None:
        """A row that is not there yet, with the id of its Evaluation."""
        place = row.agent, row.judge_hash or ""
        time = None if row.time is None else microseconds(row.time)
        if row.state == "scored" and time is None:
            self.add(*place, time)
            return
        before = self._since.get(place, time)
        self._since[place] = None if before is None or time is None else min(before, time)
        if row.state == "scored" and time is not None:
            self._come.setdefault(place, []).append(((time, row.position, row.id, row.conversation), name))

    def apply(self, transaction: Transaction) -> None:
        """Say that they changed, all in one change, and chain their rows."""
        for come in self._come.values():
            come.sort()
        followed: list[list[str]] = []  # ids of Evaluations, each before the next
        rest = self._again.copy()
        for place, before, follows in bump(transaction, sorted(self._since), self._tails()):
            if follows:
                followed.append([*filter(None, [before]), *(name for _, name in self._come[place])])
            elif place in self._come:
                rest.add(place)
        transaction.run_batched(cypher.follow, followed)
        items = [{"agent": place[0], "judge": place[1], "since": self._since[place]} for place in sorted(rest)]
        transaction.run_batched(cypher.chain, items)
        transaction.run_batched(cypher.last_rows, items, never=_NEVER)

    def _tails(self) -> dict[HistoryKey, dict[str, Any]]:
        """Of the histories to which rows only came: the first time of these, and the last one of them."""
        return {
            place: {"first": come[0][0][0], "last_id": come[-1][1], "last_time": come[-1][0][0]}
            for place, come in self._come.items()
            if place not in self._again
        }


_NO_TAIL = {"first": None, "last_id": None, "last_time": None}


def bump(
    transaction: Transaction, changed: Sequence[HistoryKey], tails: dict[HistoryKey, dict[str, Any]] | None = None
) -> list[tuple[HistoryKey, str, bool]]:
    """Say that these histories changed, all in one change.

    With the ``tails`` of new rows: of each history the id of its last row before, and whether its tail comes behind it.
    """
    if not changed:
        return []
    tails = tails or {}
    items = [{"agent": place[0], "judge": place[1], **tails.get(place, _NO_TAIL)} for place in changed]
    records = transaction.run(cypher.bump, items=items, never=_NEVER)
    return [((each["agent"], each["judge"]), each["before"], each["follows"]) for each in records]


RANKS_APART = 2  # the version of the graph in which ranks have names of their own


def evaluation_id(conversation: str, message: str, judge_hash: str | None) -> str:
    """The id of an Evaluation: a hash over where the message stands and who judged it."""
    return hashlib.sha256(msgspec.json.encode((conversation, message, judge_hash or ""))).hexdigest()[:32]


def put_rows(transaction: Transaction, rows: Sequence[Row], *, overwrite: bool = False) -> None:
    """Put rows into the histories, within a transaction; with ``overwrite`` an unread one may replace a read one."""
    ids = [evaluation_id(row.conversation, row.id, row.judge_hash) for row in rows]
    nodes = {
        record["id"]: tuple(record)[1:] for record in transaction.run_batched(cypher.stored_rows, sorted(set(ids)))
    }
    stored = {name: node for name, node in nodes.items() if node[2] is not None}  # others have an answer alone
    there, new = frozenset(stored), dict[str, Row]()
    changed = ChangedHistories()
    for name, row in zip(ids, rows, strict=True):
        body, judge = row_body(row), row.judge_hash or ""
        if name not in stored:
            changed.add_new(name, row)
        else:
            agent, state, stored_body, since = stored[name]
            if not supersedes(row.state, body, state, stored_body, overwrite=overwrite):
                continue
            changed.add(agent, judge, since)
            changed.add(row.agent, judge, _time(row))
        stored[name], new[name] = (row.agent, row.state, body, _time(row)), row
    transaction.run_batched(cypher.unlink_rows, [name for name in new if name in there])
    judges = {row.judge_hash or "": row.judge or "" for row in reversed(new.values())}  # the first row names its judge
    transaction.run_batched(cypher.put_judges, [{"hash": each, "name": judge} for each, judge in judges.items()])
    items = [item(name, row) for name, row in new.items()]
    transaction.run_batched(cypher.create_rows, [each for each in items if each["id"] not in nodes])
    transaction.run_batched(cypher.merge_rows, [each for each in items if each["id"] in nodes])
    transaction.run_batched(
        cypher.put_indicators, [each for name, row in new.items() for each in _indicators(name, row)]
    )
    changed.apply(transaction)


def remove_messages(transaction: Transaction, places: Iterable[tuple[str, str]]) -> None:
    """Take messages, by conversation and id, out of every history, within a transaction."""
    records = transaction.run_batched(
        cypher.rows_of_messages, [{"thread": thread, "message": message} for thread, message in places]
    )
    ids = [record["id"] for record in records]
    transaction.run_batched(cypher.unlink_rows, ids)
    transaction.run_batched(cypher.forget_rows, ids)
    changed = ChangedHistories()
    for record in records:
        changed.add(record["agent"], record["judge"], record["time"])
    changed.apply(transaction)


def item(name: str, row: Row) -> dict[str, Any]:
    """A row as the parameters of an Evaluation node with id ``name``."""
    timed = row.time is not None
    return {
        "id": name,
        "properties": {
            "agent_id": row.agent,
            "target": row.target,
            "judge": row.judge or "",
            "judge_hash": row.judge_hash or "",
            "thread_id": row.conversation,
            "message_id": row.id,
            "position": row.position,
            "created_at": row.time,
            "time": _time(row),
            "sequence": "" if timed else row.conversation,
            "state": row.state,
            "scale": row.scale,
            "tier": row.tier,
            "observed": row.observed,
            "branch": row.branch,
            "body": row_body(row),
        },
        "traits": _scores(row),
    }


def upgrade(transaction: Transaction) -> None:
    """To RANKS_APART: scores that are ranks stood as ``trait_...`` there, where queries take them for levels."""
    records = transaction.run(cypher.all_rows)
    rows = zip((record["id"] for record in records), rows_of(record["body"] for record in records), strict=True)
    items = [{"id": name, "scale": row.scale, "traits": _scores(row)} for name, row in rows if row.scale is not None]
    transaction.run_batched(cypher.rescale, items)


def _time(row: Row) -> int | None:
    return None if row.time is None else microseconds(row.time)


def _scores(row: Row) -> dict[str, float | None]:
    """``trait_...`` for scores that are levels, ``rank_...`` for ranks; None takes a property away."""
    prefix, other = ("rank_", "trait_") if row.scale == "rank" else ("trait_", "rank_")
    traits = row.traits or {}
    return {f"{prefix}{trait}": traits.get(trait) for trait in TRAITS} | {f"{other}{trait}": None for trait in TRAITS}


def _indicators(name: str, row: Row) -> list[dict[str, Any]]:
    return [{"id": name, "indicator": each.id, "confidence": each.confidence} for each in row.indicators or ()]
