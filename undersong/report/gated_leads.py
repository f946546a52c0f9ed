"""The leads that a gate counts and SARIF lists: those above the cut, each conversation of two once."""

from __future__ import annotations

from collections.abc import Collection

from undersong.models import Case, Lead
from undersong.report.claims_view import is_work

OPEN = (None, "unsure")  # what a person decided of a lead on which there is still something to decide


def leads_above_cut(case: Case) -> list[Lead]:
    """The leads above the cut in their order; of a conversation of two, which has a lead for each side, the first.

    Of coding sessions only those from exact words: there nobody is named for how they write.
    """
    first: dict[tuple[str, str | None], Lead] = {}
    for lead in case.leads:
        if lead.above_cut and not (lead.kind != "message" and is_work(case)):
            between_two = lead.kind == "conversation"
            first.setdefault(("", lead.conversation) if between_two else (lead.id, None), lead)
    return list(first.values())


def leads_not_shown(case: Case, shown: Collection[str]) -> list[Lead]:
    """Those above the cut beside the ones with the ids ``shown``, each speaker and each conversation of two once.

    Who is named for exact words is not named for what was counted, too, nor is the conversation in which it is said.
    """
    above = leads_above_cut(case)
    exact = [each for each in above if each.kind == "message"]
    named = {each.agent for each in exact} | {each.conversation for each in exact}
    named |= {_counted_of(each) for each in case.leads if each.id in shown}
    return [
        each for each in above if each.id not in shown and (each.kind == "message" or _counted_of(each) not in named)
    ]


def _counted_of(lead: Lead) -> str | None:
    return lead.conversation if lead.kind == "conversation" else lead.agent


def is_open(lead: Lead) -> bool:
    """Whether nobody has confirmed or rejected it as it is now: what is open fails a gate."""
    return lead.decided in OPEN
