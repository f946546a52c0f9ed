"""Nominations of sequences for a second reading, and what a judge read in them."""

from __future__ import annotations

from typing import Literal

import msgspec

from undersong.models.evaluation import Quote, Usage
from undersong.models.message import Record, State

ShapeOutcome = Literal["confirmed", "let_go", "failed"]
SequenceOutcome = Literal["confirmed", "let_go", "failed", "none", "unread"]


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
    """One stage of a shape: the agent's messages that show it, each with verbatim words of it.

    ``conversation`` is theirs in a reading that compares two conversations, where ids may repeat; else None.
    """

    name: str
    message_ids: tuple[str, ...]
    quotes: tuple[Quote, ...]
    conversation: str | None = None


class ShapeReading(Record, frozen=True, kw_only=True):
    """A shape that a judge saw in a sequence, or considered and put aside.

    ``in_order``: the stages follow each other as the rule lists them, checked over the quoted messages. ``innocent`` is
    the best innocent reading in the judge's words. ``certainty`` is the judge's own: 1 a guess, 2 likely, 3 clear,
    4 beyond doubt; 0 where the innocent reading fits as well, and where the program could not hold the answer to the
    messages.
    ``outcome`` tells these two apart: ``let_go`` is the judge's own word, ``failed`` is what the judge named and its
    quotes do not bear out, with ``reason``. None in readings of earlier versions, which did not tell.
    """

    pattern: str
    stages: tuple[StageReading, ...]
    in_order: bool
    innocent: str
    certainty: int
    outcome: ShapeOutcome | None = None
    reason: str | None = None


class SequenceReading(Record, frozen=True, kw_only=True):
    """What a judge read in one window of an agent's messages; ``shapes`` is empty where none comes near.

    ``state`` and ``reason`` say why there is no reading; ``rejected`` counts by kind what was dropped from the answer.
    ``outcome`` is the gravest of its shapes: ``confirmed``, ``failed`` or ``let_go``; ``none`` where none comes near,
    and ``unread`` where there is no reading. None in readings of earlier versions.
    ``id`` is a hash over judge, prompt and window; ``message_conversations`` names the conversation of each message.
    ``conversation`` is None where messages of two conversations were read side by side.
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
    outcome: SequenceOutcome | None = None

    def with_outcome(self) -> SequenceReading:
        """The same reading with what came of it."""
        return msgspec.structs.replace(self, outcome=_outcome(self))

    @property
    def compares(self) -> bool:
        """Whether two conversations were read side by side: that says nothing of either one as a whole."""
        return self.conversation is None

    def failed_for(self, pattern: str) -> bool:
        """Whether the judge named this pattern and the messages do not bear it out: neither confirmed nor let go."""
        return any(each.pattern == pattern and each.outcome == "failed" for each in self.shapes)

    @property
    def is_settled(self) -> bool:
        """Whether it was read, and all that the judge named was either confirmed or let go."""
        return self.state == "scored" and self.outcome != "failed" and not any(map(_failed, self.shapes))


def shape_outcome(certainty: int, *, in_order: bool, reason: str | None = None) -> ShapeOutcome:
    """What comes of a shape of this certainty; ``reason`` is why it could not be held to the messages."""
    if reason or (certainty and not in_order):
        return "failed"
    return "confirmed" if certainty else "let_go"


def _failed(shape: ShapeReading) -> bool:
    return shape.outcome == "failed"


def _outcome(reading: SequenceReading) -> SequenceOutcome:
    if reading.state != "scored":
        return "unread"
    outcomes = {each.outcome for each in reading.shapes}
    graver: tuple[ShapeOutcome, ...] = ("confirmed", "failed", "let_go")
    dropped: SequenceOutcome = "failed" if reading.rejected.get("unknown_shape") else "none"
    return next((each for each in graver if each in outcomes), dropped)
