"""What is in the messages of those who are leads, by kind: their conversations are read again for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from undersong.models import Conversation, Lead
from undersong.patterns.leads import shown_leads
from undersong.verdict.detectors.harm_kinds import harm_kinds


def with_kinds(leads: Sequence[Lead], load: Callable[[str], Conversation | None]) -> tuple[Lead, ...]:
    """The leads, those that are shown and are about one conversation with the kinds of harm that its words name.

    ``load`` gives a conversation by id, None where it has none. Sessions of coding agents, which have tools, have none.
    """
    shown = {lead.id for lead in shown_leads(leads)}
    return tuple(_with_kinds(lead, load) if lead.id in shown else lead for lead in leads)


def _with_kinds(lead: Lead, load: Callable[[str], Conversation | None]) -> Lead:
    conversation = load(lead.conversation) if lead.conversation is not None else None
    if conversation is None or any(message.role == "tool" for message in conversation.messages):
        return lead
    messages = sorted(conversation.messages, key=lambda message: message.position)
    return msgspec.structs.replace(lead, kinds=harm_kinds(messages, lead.agent))
