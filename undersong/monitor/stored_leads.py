"""The leads of a conversation that goes on, in a store."""

from __future__ import annotations

from collections.abc import Iterable

from undersong.models import Lead
from undersong.stores.protocol import Store


def keep_leads(store: Store, conversation: str, leads: Iterable[Lead]) -> None:
    """Store the leads from exact words of a conversation beside those that an audit counted."""
    if store.keeps_reviews:
        over = (lead for lead in store.leads() if conversation in lead.message_conversations)
        counted = [lead for lead in over if lead.kind != "message"]
        store.put_leads((conversation,), [*leads, *counted])
