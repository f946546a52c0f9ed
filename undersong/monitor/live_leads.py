"""The leads from exact words of conversations that go on: what a store is given, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from undersong.models import Lead
from undersong.monitor.conversation import ConversationState


def changed_leads(touched: Mapping[str, ConversationState]) -> tuple[tuple[str, tuple[Lead, ...]], ...]:
    """The conversations of which they are others than they were, each with all of them."""
    for state in touched.values():
        state.new_leads = state.leads_by_now()
    changed = ((name, state.new_leads) for name, state in touched.items() if state.new_leads != state.leads)
    return tuple((name, tuple(leads.values())) for name, leads in changed)


def leads_to_tell(
    homes: Sequence[str], touched: Mapping[str, ConversationState]
) -> Iterator[tuple[int, tuple[tuple[Lead, ...], tuple[str, ...]]]]:
    """Those that are new or other than they were, and the ids of those that are gone, with the last place of their
    conversation in ``homes``; from then on they count as told.
    """
    last = {name: place for place, name in enumerate(homes)}
    for name, state in touched.items():
        before, now = state.leads, state.new_leads
        if before == now:
            continue
        state.leads = now
        if name in last:
            fresh = tuple(lead for lead in now.values() if before.get(lead.id) != lead)
            yield last[name], (fresh, tuple(sorted(before.keys() - now.keys())))
