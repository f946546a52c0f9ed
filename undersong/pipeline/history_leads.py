"""Leads over all that a store holds: every agent's whole history, ranked as an audit of all of it would rank them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from undersong.judges.stance import stance_signals
from undersong.models import Conversation, Lead, Row, ranked_leads
from undersong.patterns.leads import leads_of
from undersong.pipeline.case_builder import quoted_leads
from undersong.rows.corpus_scales import null_bands_of, ranks_of
from undersong.stores.protocol import Store
from undersong.verdict.session_score import AGENT_LOGS

MOST = 500_000  # rows that are ranked together; each takes some four kilobytes while they are


def history_leads(store: Store, judge_hash: str) -> tuple[Lead, ...]:
    """Rank the agents of a store (``leads_over``), and store the leads in place of all that are there."""
    leads = leads_over(store, judge_hash)
    store.put_leads(_conversations(store), leads)
    return leads


def leads_over(store: Store, judge_hash: str) -> tuple[Lead, ...]:
    """The agents of a store ranked by the rows of one judge; nothing is stored.

    They are weighed as in an audit, with the other agents of the store beside each. The leads from exact words are
    those that audits and monitors stored, since they depend on one conversation alone. Quotes are of the messages that
    the store has: imported rows have none.
    """
    exact = [lead for lead in store.leads() if lead.kind == "message"]
    rows = list(_rows(store, judge_hash))
    ranks = ranks_of(rows)
    rows = [ranks.of(row) for row in rows]
    names = {name for row in rows for name in row.signals} - stance_signals()
    counted = leads_of(rows, store.findings(), null_bands_of(rows, names))
    texts = _StoredTexts(store)
    return quoted_leads(ranked_leads([*exact, *counted]), rows, texts, tuple(store.reviews()))


def leads_of_talk(store: Store, leads: Iterable[Lead]) -> tuple[Lead, ...]:
    """The leads without those that are counted in logs of coding agents, where nobody is named for how they write."""
    texts = _StoredTexts(store)

    def is_log(lead: Lead) -> bool:
        return texts.conversation(lead.message_conversations[0])[0].source_format in AGENT_LOGS

    return tuple(lead for lead in leads if lead.kind == "message" or not lead.above_cut or not is_log(lead))


def _rows(store: Store, judge_hash: str) -> Iterator[Row]:
    """All rows of a judge with what leads are counted from, which is a third of their memory."""
    for agent in store.agents(judge_hash):
        for row in store.history(agent.agent, judge_hash):
            yield msgspec.structs.replace(row, flags={}, labels=(), loops=(), indicators=None, engines={}, reasons=())


def _conversations(store: Store) -> Collection[str]:
    """All whose leads are replaced: those of rows, and those of stored leads."""
    names = {name for lead in store.leads() for name in lead.message_conversations}
    return names | set(store.threads())


class _StoredTexts:
    """The conversations of a store; of one that it knows by rows alone no message."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def conversation(self, name: str, /) -> tuple[Conversation]:
        """The conversation, with no message where the store has no texts of it."""
        if self._store.length(name) is None:
            return (Conversation(id=name, source_format="rows"),)
        return (self._store.conversation(name)[0],)
