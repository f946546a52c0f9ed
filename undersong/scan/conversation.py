"""A conversation → its free signals: one Scan per message, and what the thread shows."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import msgspec

from undersong.models import Conversation, Hit, Message, Scan, ThreadScan
from undersong.scan.code import code_of
from undersong.scan.loops import words_of
from undersong.scan.normalise import fold
from undersong.scan.phrases import COUNTED, SignalBook
from undersong.scan.structure import NO_DEFERENCE, AgentSoFar, sentiment_score
from undersong.scan.telemetry import NOT_SPEAKERS, session_context_vector, telemetry
from undersong.scan.threads import agent_flags, thread_signals, turns_of
from undersong.triage import Triage


def scan_conversation(conversation: Conversation, book: SignalBook) -> tuple[tuple[Scan, ...], ThreadScan]:
    """The Scans, aligned with ``conversation.messages``, and the ThreadScan; free, pure and linear in the text.

    A turn knows its agent's past only, so a live scan of the same messages gives the same Scans. Messages of
    abandoned branches are scanned for themselves and add to nobody's past. ``upgrades`` is left to the router.
    """
    agents: dict[str, AgentSoFar] = {}
    scans: list[Scan] = []
    for place, message in enumerate(conversation.messages):
        agent = agents.get(message.agent or message.author)
        if agent is None:
            agent = agents[message.agent or message.author] = AgentSoFar(book.structure, book.loops)
        scans.append(_scan(place, message, book, agent if message.branch is None else None))
    _add_loops_over_turns(scans, agents)
    scans = with_triage(conversation.messages, scans, book.triage)
    turns = turns_of(conversation.messages, scans)
    session = telemetry(conversation, scans, book.telemetry)
    thread = ThreadScan(
        conversation=conversation.id,
        signals=thread_signals(turns, book.routing.signals),
        agents=agent_flags(turns),
        session_context_vector=session_context_vector(session, conversation.context, book.telemetry),
        telemetry=session,
    )
    return tuple(scans), thread


def with_triage(messages: Sequence[Message], scans: Sequence[Scan], model: Triage | None) -> list[Scan]:
    """The scans with their triage scores; the messages may be of any number of conversations, and more are faster."""
    if model is None:
        return list(scans)
    scores = model([message.text for message in messages]).tolist()
    return [
        scan if isnan(score) else msgspec.structs.replace(scan, triage=score)
        for scan, score in zip(scans, scores, strict=True)
    ]


def count_flags(hits: tuple[Hit, ...]) -> dict[str, int]:
    """Hits per negative trait and for ``hard_constraint``: what flags a message."""
    flags: dict[str, int] = {}
    for hit in hits:
        if hit.trait in COUNTED:
            flags[hit.trait] = flags.get(hit.trait, 0) + 1
    return flags


def _scan(place: int, message: Message, book: SignalBook, agent: AgentSoFar | None) -> Scan:
    text = message.text
    folded = fold(text)
    hits = book.hits(folded)
    flags = count_flags(hits)
    words, total = len(text.split()), sum(flags.values())
    codes = code_of(message, book.structure.code)
    speaks = message.role not in NOT_SPEAKERS
    spoken = words_of(text, folded) if speaks else []
    if agent is not None and speaks:
        agent.turns.add(place, message.id, spoken)
    return Scan(
        message_id=message.id,
        hits=hits,
        flags=flags,
        total=total,
        density=round(total / max(words, 1), 6),
        words=words,
        hard_constraints=tuple(sorted({hit.constraint for hit in hits if hit.constraint})),
        loops=book.loops.within(spoken),
        deference=agent.deference(hits) if agent is not None and message.role not in NO_DEFERENCE else None,
        code_blocks=tuple(code.block for code in codes),
        sentiment_score=sentiment_score(text, hits, book.structure.sentiment.label),
        code_change_delta=agent.code_change(codes) if agent is not None else None,
        latency_drop=agent.latency_drop(message) if agent is not None else None,
    )


def _add_loops_over_turns(scans: list[Scan], agents: dict[str, AgentSoFar]) -> None:
    for agent in agents.values():
        for place, loops in agent.turns.loops().items():
            scans[place] = msgspec.structs.replace(scans[place], loops=scans[place].loops + loops)
