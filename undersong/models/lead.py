"""Leads: where a person may look first, from what was counted of each agent. They accuse nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, TypeVar

import msgspec

from undersong.models.evaluation import Quote
from undersong.models.message import Record
from undersong.models.notebook import lead_html
from undersong.models.review import ReviewVerdict

T = TypeVar("T")


class LeadEvidence(Record, frozen=True, kw_only=True):
    """One figure of an agent beside the same figure of others; ``compared_with`` is None where there is none.

    ``source`` is a name in ``leads.yaml``, which says what is counted and what it weighs.
    """

    source: str
    value: float
    compared_with: float | None = None


class LeadKind(Record, frozen=True, kw_only=True):
    """A kind of harm that is worded in the messages of a lead: what its speaker ``does``, as a verb phrase.

    ``kind`` is a name in ``harm_kinds.yaml``. ``message_ids`` are all messages with such words, in their order,
    ``quotes`` the sentence of each verbatim, ``answers`` what the other wrote right after the first and the last that
    are shown. Wordings are countless, so there may be more. It describes a lead, and is no finding.
    """

    kind: str
    does: str
    message_ids: tuple[str, ...]
    quotes: tuple[Quote, ...]
    answers: tuple[Quote, ...] = ()

    @property
    def cited_ids(self) -> tuple[str, ...]:
        """All messages that it names."""
        return (*self.message_ids, *(quote.message_id for quote in (*self.quotes, *self.answers)))


def told_apart(quotes: Sequence[Quote], count: int) -> list[Quote]:
    """How it goes on: of each of ``count`` stretches of the quotes, early to late, the longest, which says most."""
    return [max(part, key=lambda quote: len(quote.text)) for part in stretches(quotes, count)]


def stretches(several: Sequence[T], count: int) -> list[Sequence[T]]:
    """A sequence in so many parts of about the same length, in their order; as many as it has things at most."""
    count = min(count, len(several))
    places = [len(several) * part // count for part in range(count + 1)] if count else []
    return [several[first:last] for first, last in pairwise(places)]


class Lead(Record, frozen=True, kw_only=True):
    """Something to look at, best first by ``rank`` (from 1): ``reason`` says what was counted, in one sentence.

    ``agent`` is named as in rows. ``target`` is the one other to whom all messages go that were counted; None where all
    that the agent writes was counted, or what it writes to nobody by name. ``conversation`` is None where what was
    counted is of several. ``message_ids`` are the messages that show most of it, ``message_conversations`` the
    conversation of each. ``quotes`` are verbatim; below the cut there are none, and
    ``reason`` says that nothing is worth a look. ``score`` is a weighted sum
    (``leads.yaml``): 0 is like the others of the run; no probability. ``above_cut`` says whether it is above the cut at
    which precision was measured. ``kind`` ``message``: exact words in these messages: orders to whoever reads them, or
    requests that are rare together (the source of the evidence is ``orders`` or ``requests``); the score of these is
    above all others. ``decided`` is the
    latest verdict of a person on these messages, None where nobody decided, or the messages have changed since.
    ``kinds`` say what is in the speaker's messages, for leads that are shown and are about one conversation.
    """

    id: str
    rank: int
    kind: Literal["agent", "conversation", "message"]
    agent: str
    target: str | None = None
    conversation: str | None
    message_ids: tuple[str, ...]
    message_conversations: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    reason: str
    evidence: tuple[LeadEvidence, ...] = ()
    score: float
    above_cut: bool = False
    decided: ReviewVerdict | None = None
    kinds: tuple[LeadKind, ...] = ()

    def _repr_html_(self) -> str:
        """What a notebook shows: what was counted, and the quotes."""
        return lead_html(self)


def lead_order(lead: Lead) -> tuple[int, float, str, str]:
    """The place of a lead in every list: those that nobody decided on first, of each the highest score first."""
    return int(lead.decided is not None), -lead.score, lead.agent, lead.id


def ranked_leads(leads: Iterable[Lead]) -> tuple[Lead, ...]:
    """The leads in their order, each with its rank."""
    ordered = sorted(leads, key=lead_order)
    return tuple(msgspec.structs.replace(lead, rank=place) for place, lead in enumerate(ordered, 1))
