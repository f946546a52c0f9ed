"""Leads from orders to whoever reads a message: word for word, one for each speaker of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from undersong.core.text import in_words
from undersong.models import Lead, Moment
from undersong.models.verdict import AGENT_ORDERS, ORDERS, SPREADS
from undersong.patterns.exact_leads import exact_lead, exact_lead_id, listed
from undersong.patterns.lead_weights import lead_weights

SOURCE = "orders"
CODES = (AGENT_ORDERS, ORDERS, SPREADS)  # of noted turns, the gravest first
DROP = "drop their instructions"
OPENING = "Tells others to "  # how the title of a noted order begins


def order_leads(conversation: str, moments: Iterable[Moment]) -> Iterator[Lead]:
    """A lead for each speaker of a conversation whose orders are noted; with no rank.

    They need the messages of this conversation alone, so that they can be named while it goes on.
    """
    speakers: dict[str, list[Moment]] = {}
    for moment in moments:
        if moment.code in CODES and moment.quotes:
            speakers.setdefault(moment.agent, []).append(moment)
    for agent, own in speakers.items():
        yield _lead(conversation, agent, sorted(own, key=lambda one: (CODES.index(one.code), one.position)))


def order_lead_id(conversation: str, agent: str) -> str:
    """The id of the lead for a speaker's orders in a conversation: the same in every run."""
    return exact_lead_id(SOURCE, conversation, agent)


def what_is_ordered(moment: Moment) -> str:
    """``to send money to an address``."""
    return f"to {DROP if moment.code == ORDERS else moment.title.removeprefix(OPENING)}"


def _lead(conversation: str, agent: str, own: Sequence[Moment]) -> Lead:
    """``own`` are the noted turns of a speaker, the gravest first."""
    parts = listed(own, what_is_ordered)
    does, score = f"tells whoever reads it {in_words(parts)}", lead_weights().orders[own[0].code]
    return exact_lead(SOURCE, conversation, agent, own, does=does, kinds=len(parts), score=score)
