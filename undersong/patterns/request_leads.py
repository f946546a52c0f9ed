"""Leads from exact words: requests of one speaker that are rare together; before those from what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from undersong.core.text import in_words
from undersong.datafiles.verdict_config import requests_config
from undersong.models import Finding, Lead, Moment, Row, SessionVerdict, SignalBand, ranked_leads
from undersong.models.verdict import REQUEST
from undersong.patterns.exact_leads import exact_lead, exact_lead_id, listed
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.leads import leads_of, places_of
from undersong.patterns.order_leads import order_leads

SOURCE = "requests"
NAMED = 6  # kinds of requests that a sentence names, the gravest


def all_leads(
    rows: Iterable[Row],
    findings: Iterable[Finding],
    bands: Mapping[str, SignalBand],
    sessions: Iterable[SessionVerdict],
) -> tuple[Lead, ...]:
    """Every lead of a run, best first: those from exact words, then every agent with enough messages (``leads_of``).

    Who is above the cut for what was counted of what they write to one other there, too, has that behind exact words.
    """
    counts = leads_of(rows, findings, bands)
    above = counted_to_one(counts)
    words = (lead for session in sessions for lead in word_leads(session.conversation, session.moments))
    return ranked_leads([*(with_counted(lead, above.get((lead.agent, lead.conversation))) for lead in words), *counts])


def counted_to_one(leads: Iterable[Lead]) -> dict[tuple[str, str | None], Lead]:
    """Agent and conversation → the lead for what was counted there of what it writes to one other, of those above the
    cut."""
    above = (lead for lead in leads if lead.above_cut and lead.conversation)
    return {
        (lead.agent, lead.conversation): lead
        for lead in above
        if lead.kind == "conversation" or (lead.kind == "agent" and lead.target)
    }


def with_counted(lead: Lead, counted: Lead | None) -> Lead:
    """A lead from exact words with what was counted of the same speaker behind it: its reason and its messages."""
    if counted is None:
        return lead
    places = dict.fromkeys([*places_of(lead), *places_of(counted)])
    return msgspec.structs.replace(
        lead,
        reason=f"{lead.reason} {counted.reason}",
        message_ids=tuple(message_id for _, message_id in places),
        message_conversations=tuple(home for home, _ in places),
        evidence=lead.evidence + counted.evidence,
    )


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
    return exact_lead_id(SOURCE, conversation, agent)


def request_kind(moment: Moment) -> str:
    """``asks for money``."""
    return f"{moment.title[0].lower()}{moment.title[1:]}"


def what_is_asked(own: Sequence[Moment]) -> str:
    """``asks for money (turns 11 and 17) and asks that others are kept out of it (turn 13)``, in the order of turns."""
    kinds = list(dict.fromkeys(map(request_kind, own)))
    named = kinds if len(kinds) <= NAMED else kinds[: NAMED - 1]
    in_order = sorted((moment for moment in own if request_kind(moment) in named), key=lambda moment: moment.position)
    parts = listed(in_order, request_kind)
    return in_words(parts if named == kinds else [*parts, f"{len(kinds) - len(named)} more such things"])


def _lead(conversation: str, agent: str, own: Sequence[Moment]) -> Lead:
    does, score = what_is_asked(own), lead_weights().exact
    return exact_lead(SOURCE, conversation, agent, own, does=does, kinds=_kinds(own), score=score)


def _kinds(own: Iterable[Moment]) -> int:
    return len({moment.title for moment in own})


def _gravity(moment: Moment) -> int:
    """The place of a request's kind among all kinds, 0 the gravest."""
    config = requests_config()
    does = [config.asks[kind].does for kind in config.gravest_first]
    return next((place for place, words in enumerate(does) if words == request_kind(moment)), len(does))
