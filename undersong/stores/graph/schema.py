"""The graph's labels, constraints and indexes, in the first seed's names; made when a store is opened.

    (Agent)-[:EVALUATED]->(Evaluation)-[:OF]->(Message)-[:IN]->(Thread)
    (Evaluation)-[:PRECEDES]->(Evaluation)                     an agent's scored rows of one judge, in event time
    (Evaluation)-[:DETECTED {confidence}]->(Indicator)-[:BELONGS_TO]->(Trait)-[:BELONGS_TO]->(Dimension)
    (Agent)-[:EXHIBITS_PATTERN {detected_at, confidence, start_eval_id, end_eval_id, eval_count, finding_id}]->(Pattern)
    (Pattern)-[:COMPOSED_OF]->(Indicator), (Agent)-[:JUDGED_BY {changed, last_id, last_time}]->(Judge)

An Evaluation is one message and one judge. Its ``state`` is scored, unread, refused or failed; ``created_at`` is the
event time, ``trait_manipulation`` and so on are the scores; where ``scale`` is "rank" they are ``rank_manipulation``
and so on, ranks within a corpus that no threshold applies to. ``body`` and ``answer`` are for this program.
"""

from __future__ import annotations

VERSION = 3

_UNIQUE = {
    "Agent": ("agent_id",),
    "Evaluation": ("evaluation_id",),
    "Message": ("thread_id", "message_id"),
    "Thread": ("thread_id",),
    "Indicator": ("indicator_id",),
    "Trait": ("name",),
    "Dimension": ("name",),
    "Pattern": ("name",),
    "Judge": ("judge_hash",),
    "Cursor": ("name",),
    "Grave": ("kind", "digest"),
}
_INDEXED = (
    ("evaluation_thread", "(n:Evaluation)", "n.thread_id, n.judge_hash"),
    ("evaluation_target", "(n:Evaluation)", "n.target"),
    ("message_id", "(n:Message)", "n.message_id"),
    ("message_agent", "(n:Message)", "n.agent_id"),
    ("message_target", "(n:Message)", "n.target"),
    ("judged_by_changed", "()-[n:JUDGED_BY]-()", "n.changed"),
)


def statements() -> tuple[str, ...]:
    """What makes the constraints and indexes; each does nothing where it is there."""
    unique = tuple(
        f"CREATE CONSTRAINT {label.lower()}_unique IF NOT EXISTS FOR (n:{label})"
        f" REQUIRE ({', '.join(f'n.{key}' for key in keys)}) IS UNIQUE"
        for label, keys in _UNIQUE.items()
    )
    finding = (
        "CREATE CONSTRAINT finding_unique IF NOT EXISTS FOR ()-[r:EXHIBITS_PATTERN]-() REQUIRE r.finding_id IS UNIQUE"
    )
    indexes = tuple(f"CREATE INDEX {name} IF NOT EXISTS FOR {what} ON ({keys})" for name, what, keys in _INDEXED)
    return (*unique, finding, *indexes)
