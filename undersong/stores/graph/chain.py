"""PRECEDES: an agent's scored rows of one judge, chained in event time, and the number of their latest change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undersong.models import Row
from undersong.stores.graph.connection import Transaction
from undersong.stores.moments import microseconds

_NEVER = -(1 << 62)  # before any time
_BUMP = """
MATCH (c:Cursor {name: 'changes'}) SET c.change = c.change + 1
WITH c.change AS now UNWIND $items AS item
MATCH (j:Judge {judge_hash: item.judge})
MERGE (a:Agent {agent_id: item.agent})
MERGE (a)-[r:JUDGED_BY]->(j) ON CREATE SET r.last_id = '', r.last_time = $never
WITH now, item, r, r.last_id AS before,
item.first > r.last_time AND (r.last_id = '' OR EXISTS { (:Evaluation {evaluation_id: r.last_id}) }) AS follows
SET r.changed = now
FOREACH (_ IN CASE WHEN follows THEN [1] ELSE [] END | SET r.last_id = item.last_id, r.last_time = item.last_time)
RETURN item.agent AS agent, item.judge AS judge, before, coalesce(follows, false) AS follows
"""
_FOLLOW = """
UNWIND $items AS names UNWIND range(0, size(names) - 1) AS i
MATCH (e:Evaluation {evaluation_id: names[i]})
WITH names, i, e ORDER BY names, i
WITH names, collect(e) AS chain UNWIND range(1, size(chain) - 1) AS i
WITH chain[i - 1] AS e, chain[i] AS next
CREATE (e)-[:PRECEDES]->(next)
"""
_CHAIN = """
UNWIND $items AS item
MATCH (:Agent {agent_id: item.agent})-[:EVALUATED]->(e:Evaluation {judge_hash: item.judge, state: 'scored'})
WITH item, e ORDER BY e.time, e.position, e.message_id, e.thread_id
WITH item, e.sequence AS sequence, collect(e) AS chain
UNWIND range(0, size(chain) - 1) AS i
WITH item, chain[i] AS e, chain[i + 1] AS next
WHERE item.since IS NULL OR e.time IS NULL OR coalesce(next.time, e.time) >= item.since
OPTIONAL MATCH (e)-[old:PRECEDES]->(other) WHERE next IS NULL OR other <> next
DELETE old
WITH DISTINCT e, next WHERE next IS NOT NULL
MERGE (e)-[:PRECEDES]->(next)
"""
_LAST = """
UNWIND $items AS item
MATCH (a:Agent {agent_id: item.agent})-[r:JUDGED_BY]->(:Judge {judge_hash: item.judge})
OPTIONAL MATCH (a)-[:EVALUATED]->(e:Evaluation {judge_hash: item.judge, state: 'scored', sequence: ''})
WITH r, e ORDER BY e.time, e.position, e.message_id, e.thread_id
WITH r, last(collect(e)) AS e
SET r.last_id = coalesce(e.evaluation_id, ''), r.last_time = coalesce(e.time, $never)
"""

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
        transaction.run_batched(_FOLLOW, followed)
        items = [{"agent": place[0], "judge": place[1], "since": self._since[place]} for place in sorted(rest)]
        transaction.run_batched(_CHAIN, items)
        transaction.run_batched(_LAST, items, never=_NEVER)

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
    records = transaction.run(_BUMP, items=items, never=_NEVER)
    return [((each["agent"], each["judge"]), each["before"], each["follows"]) for each in records]
