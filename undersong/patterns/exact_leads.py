"""What leads from exact words have in common: their id, their form, and turns listed behind what is said in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from undersong.core.sanitize import one_line
from undersong.core.text import turns_listed
from undersong.models import Lead, LeadEvidence, Moment
from undersong.patterns.lead_reasons import SHOWN_NAME
from undersong.patterns.lead_weights import lead_weights


def exact_lead_id(source: str, conversation: str, agent: str) -> str:
    """The id of the lead for what a speaker says in a conversation, by source of evidence: the same in every run."""
    return hashlib.sha256(f"lead\0{source}\0{conversation}\0{agent}".encode("utf-8", "surrogatepass")).hexdigest()


def listed(own: Iterable[Moment], words_of: Callable[[Moment], str]) -> list[str]:
    """``asks for money (turns 11 and 17)`` for each kind of noted turns, in the order in which kinds come first."""
    turns: dict[str, set[int]] = {}
    for moment in own:
        turns.setdefault(words_of(moment), set()).add(moment.position)
    return [f"{words} ({turns_listed(sorted(places))})" for words, places in turns.items()]


def exact_lead(
    source: str, conversation: str, agent: str, own: Sequence[Moment], *, does: str, kinds: int, score: float
) -> Lead:
    """The lead of a speaker's noted turns ``own``, the gravest first, with no rank.

    ``does`` stands behind the name in the reason. ``kinds`` is how many kinds of things were said: each adds the
    weight of the source to ``score``.
    """
    messages = dict.fromkeys(moment.message_id for moment in own)
    return Lead(
        id=exact_lead_id(source, conversation, agent),
        rank=0,
        kind="message",
        agent=agent,
        conversation=conversation,
        message_ids=tuple(messages),
        message_conversations=(conversation,) * len(messages),
        quotes=tuple(moment.quotes[0] for moment in own),
        reason=f"{one_line(agent.removeprefix(f'{conversation}/'), SHOWN_NAME)} {does}.",
        evidence=(LeadEvidence(source=source, value=float(kinds)),),
        score=score + lead_weights().sources[source].weight * kinds,
        above_cut=True,
    )
