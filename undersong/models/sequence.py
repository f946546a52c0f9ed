"""Nominations of sequences for a second reading, and what a judge read in them."""

from __future__ import annotations

from undersong.models.evaluation import Quote, Usage
from undersong.models.message import Record, State


class Nomination(Record, frozen=True, kw_only=True):
    """A sequence that is worth a careful reading: whose, towards whom, which messages, and why.

    ``target`` and ``conversation`` are None where the sequence is not limited to one. ``reasons`` are for people; a
    judge is not shown them.
    """

    agent: str
    target: str | None = None
    conversation: str | None = None
    message_ids: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


class StageReading(Record, frozen=True, kw_only=True):
    """One stage of a shape: the agent's messages that show it, each with verbatim words of it."""

    name: str
    message_ids: tuple[str, ...]
    quotes: tuple[Quote, ...]


class ShapeReading(Record, frozen=True, kw_only=True):
    """A shape that a judge saw in a sequence, or considered and put aside.

    ``in_order``: the stages follow each other as the rule lists them, checked over the quoted messages. ``innocent`` is
    the best innocent reading in the judge's words. ``certainty`` is the judge's own: 1 a guess, 2 likely, 3 clear,
    4 beyond doubt; 0 where the innocent reading fits as well.
    """

    pattern: str
    stages: tuple[StageReading, ...]
    in_order: bool
    innocent: str
    certainty: int


class SequenceReading(Record, frozen=True, kw_only=True):
    """What a judge read in one window of an agent's messages; ``shapes`` is empty where none comes near.

    ``state`` and ``reason`` say why there is no reading; ``rejected`` counts by kind what was dropped from the answer.
    ``id`` is a hash over judge, prompt and window; ``message_conversations`` names the conversation of each message.
    """

    id: str
    agent: str
    target: str | None
    conversation: str | None
    message_ids: tuple[str, ...]
    message_conversations: tuple[str, ...]
    shapes: tuple[ShapeReading, ...]
    judge: str
    prompt_hash: str
    state: State
    reason: str | None = None
    rejected: dict[str, int] = {}
    usage: Usage = Usage()
    raw: str | None = None
