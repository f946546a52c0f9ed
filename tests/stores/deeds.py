"""Conversations, answers, rows and findings that the tests of the stores put and get."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from undersong.models import Conversation, Evaluation, Finding, Message, Row, Scan, State, ThreadScan

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def talk(*texts: str, conversation: str = "c1") -> Conversation:
    messages = tuple(
        Message(
            id=f"m{place}", conversation=conversation, position=place, author="kira", agent="kira", role="agent",
            text=text, time=datetime(2026, 1, 1, 0, place, tzinfo=UTC),
        )
        for place, text in enumerate(texts)
    )  # fmt: skip
    return Conversation(id=conversation, source_format="jsonl", messages=messages, title="a talk")


def scans(conversation: Conversation) -> tuple[tuple[Scan, ...], ThreadScan]:
    return tuple(Scan(message_id=m.id) for m in conversation.messages), ThreadScan(conversation=conversation.id)


def answer(message_id: str = "m0", judge_hash: str = "j1", score: float = 0.5) -> Evaluation:
    return Evaluation(
        message_id=message_id,
        state="scored",
        judge="offline",
        judge_hash=judge_hash,
        message_hash="h",
        traits={"virtue": score},
    )


def make_finding(name: str, *conversations: str) -> Finding:
    return Finding(
        finding_id=name,
        pattern="darvo",
        title="DARVO",
        level="high",
        rule_hash="r",
        agent="kira",
        target=None,
        message_ids=("m0",),
        conversations=conversations,
    )


def row(id_: str, minute: int | None = 0, agent: str = "kira", state: State = "scored", **other: Any) -> Row:
    """A row of conversation c1 by judge j1, ``minute`` minutes past noon or without a time."""
    traits = {"virtue": 0.25, "compassion": 0.5} if state == "scored" else None
    fields = {"conversation": "c1", "judge": "offline", "judge_hash": "j1", "traits": traits} | other
    time = None if minute is None else NOON + timedelta(minutes=minute)
    return Row(id=id_, time=time, agent=agent, state=state, **fields)
