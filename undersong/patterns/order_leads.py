"""Leads from orders to whoever reads a message: word for word, one for each speaker of a conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from undersong.core.sanitize import one_line
from undersong.core.text import turns_listed
from undersong.models import Lead, LeadEvidence, Moment
from undersong.models.verdict import AGENT_ORDERS, ORDERS, SPREADS
from undersong.patterns.leads import SHOWN_NAME, lead_weights

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
    return hashlib.sha256(f"lead\0orders\0{conversation}\0{agent}".encode("utf-8", "surrogatepass")).hexdigest()


def what_is_ordered(moment: Moment) -> str:
    """``to send money to an address``."""
    return f"to {DROP if moment.code == ORDERS else moment.title.removeprefix(OPENING)}"


def _lead(conversation: str, agent: str, own: Sequence[Moment]) -> Lead:
    """``own`` are the noted turns of a speaker, the gravest first."""
    name = one_line(agent.removeprefix(f"{conversation}/"), SHOWN_NAME)
    turns: dict[str, set[int]] = {}
    for moment in own:
        turns.setdefault(what_is_ordered(moment), set()).add(moment.position)
    parts = [f"{order} ({turns_listed(sorted(places))})" for order, places in turns.items()]
    does = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    messages = dict.fromkeys(moment.message_id for moment in own)
    return Lead(
        id=order_lead_id(conversation, agent),
        rank=0,
        kind="message",
        agent=agent,
        conversation=conversation,
        message_ids=tuple(messages),
        message_conversations=(conversation,) * len(messages),
        quotes=tuple(moment.quotes[0] for moment in own),
        reason=f"{name} tells whoever reads it {does}.",
        evidence=(LeadEvidence(source=SOURCE, value=float(len(turns))),),
        score=lead_weights().orders[own[0].code] + lead_weights().sources[SOURCE].weight * len(turns),
        above_cut=True,
    )
