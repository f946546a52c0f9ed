"""Leads from exact words: requests of one speaker that are rare together; before those from what is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from undersong.core.sanitize import one_line
from undersong.core.text import turns_listed
from undersong.datafiles.verdict_config import requests_config
from undersong.models import Finding, Lead, LeadEvidence, Moment, Row, SessionVerdict, SignalBand, ranked_leads
from undersong.models.verdict import REQUEST
from undersong.patterns.leads import SHOWN_NAME, lead_weights, leads_of
from undersong.patterns.order_leads import order_leads

SOURCE = "requests"
NAMED = 6  # kinds of requests that a sentence names, the gravest


def all_leads(
    rows: Iterable[Row],
    findings: Iterable[Finding],
    bands: Mapping[str, SignalBand],
    sessions: Iterable[SessionVerdict],
) -> tuple[Lead, ...]:
    """Every lead of a run, best first: those from exact words, then every agent with enough messages (``leads_of``)."""
    leads = [
        *(lead for session in sessions for lead in word_leads(session.conversation, session.moments)),
        *leads_of(rows, findings, bands),
    ]
    return ranked_leads(leads)


def word_leads(conversation: str, moments: Iterable[Moment]) -> Iterator[Lead]:
    """The leads from exact words of a conversation: orders to whoever reads them, and requests; with no rank."""
    noted = tuple(moments)
    yield from order_leads(conversation, noted)
    yield from request_leads(conversation, noted)


def request_leads(conversation: str, moments: Iterable[Moment]) -> Iterator[Lead]:
    """A lead for each speaker of a conversation whose requests are noted, most kinds of things first; with no rank.

    They need the messages of this conversation alone, so that they can be named while it goes on.
    """
    for agent, own in requests_of_speakers(moments):
        yield _lead(conversation, agent, own)


def requests_of_speakers(moments: Iterable[Moment]) -> Iterator[tuple[str, list[Moment]]]:
    """The noted requests of each speaker, gravest first; who asks most kinds of things comes first."""
    speakers: dict[str, list[Moment]] = {}
    for moment in moments:
        if moment.code == REQUEST and moment.quotes:
            speakers.setdefault(moment.agent, []).append(moment)
    for agent, own in sorted(speakers.items(), key=lambda item: -_kinds(item[1])):
        yield agent, sorted(own, key=lambda moment: (_gravity(moment), moment.position))


def request_lead_id(conversation: str, agent: str) -> str:
    """The id of the lead for a speaker's requests in a conversation: the same in every run."""
    return hashlib.sha256(f"lead\0requests\0{conversation}\0{agent}".encode("utf-8", "surrogatepass")).hexdigest()


def request_kind(moment: Moment) -> str:
    """``asks for money``."""
    return f"{moment.title[0].lower()}{moment.title[1:]}"


def what_is_asked(own: Sequence[Moment]) -> str:
    """``asks for money (turns 11 and 17) and asks that others are kept out of it (turn 13)``."""
    turns: dict[str, set[int]] = {}
    for moment in own:
        turns.setdefault(request_kind(moment), set()).add(moment.position)
    parts = [f"{kind} ({turns_listed(sorted(places))})" for kind, places in turns.items()]
    if len(parts) > NAMED:
        parts = [*parts[: NAMED - 1], f"{len(parts) - NAMED + 1} more such things"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _lead(conversation: str, agent: str, own: Sequence[Moment]) -> Lead:
    name = one_line(agent.removeprefix(f"{conversation}/"), SHOWN_NAME)
    messages = dict.fromkeys(moment.message_id for moment in own)
    return Lead(
        id=request_lead_id(conversation, agent),
        rank=0,
        kind="message",
        agent=agent,
        conversation=conversation,
        message_ids=tuple(messages),
        message_conversations=(conversation,) * len(messages),
        quotes=tuple(moment.quotes[0] for moment in own),
        reason=f"{name} {what_is_asked(own)}.",
        evidence=(LeadEvidence(source=SOURCE, value=float(_kinds(own))),),
        score=lead_weights().exact + lead_weights().sources[SOURCE].weight * _kinds(own),
        above_cut=True,
    )


def _kinds(own: Iterable[Moment]) -> int:
    return len({moment.title for moment in own})


def _gravity(moment: Moment) -> int:
    """The place of a request's kind among all kinds, 0 the gravest."""
    config = requests_config()
    does = [config.asks[kind].does for kind in config.gravest_first]
    return next((place for place, words in enumerate(does) if words == request_kind(moment)), len(does))
