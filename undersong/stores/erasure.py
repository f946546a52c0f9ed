"""Erasure of all private text of an agent or a conversation, with a tombstone in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import msgspec

from undersong.core.text import text_hash
from undersong.errors import UsageError
from undersong.models import Conversation, Finding, Message, Route, Row, Scan, ThreadScan
from undersong.models.row import flagged_before
from undersong.stores.protocol import Forgettable, Redaction, Store, Tombstone
from undersong.stores.reviewing import evidence_places

_SHOWN = 12  # hex digits of the digest that stand for a forgotten name
PSEUDONYM = "forgotten:"  # and these digits


def digest(name: str) -> str:
    """SHA-256 of a name: enough to know it again, not to read it."""
    return text_hash(name)


def pseudonym(agent: str) -> str:
    """The name that replaces a forgotten agent's."""
    return f"{PSEUDONYM}{digest(agent)[:_SHOWN]}"


def forget(store: Store, name: str, now: datetime, kind: Forgettable | None = None) -> Tombstone:
    """Remove all private text of an agent or a conversation, and leave a tombstone with the time ``now``.

    Of an agent go the texts and answers of its messages, its rows, the findings about it and towards it; its name
    becomes a pseudonym, and the conversations lose their titles. Of a conversation goes everything. Raises UsageError
    where there is neither, or both and ``kind`` does not say which. What was forgotten before stays so.
    """
    kind = kind or _kind(store, name)
    if kind is None:
        return _forgotten_before(store, name)
    redaction = _of_conversation(store, name, now) if kind == "conversation" else _of_agent(store, name, now)
    store.redact(redaction)
    return redaction.tombstone


class Forgotten:
    """The tombstones of a store, by which input is filtered: what was forgotten must not come back."""

    def __init__(self, tombstones: Iterable[Tombstone]) -> None:
        self._tombstones = {(each.kind, each.digest): each for each in tombstones}

    def conversation(self, name: str) -> Tombstone | None:
        """The tombstone of a conversation."""
        return self._tombstones.get(("conversation", digest(name)))

    def agent(self, name: str) -> Tombstone | None:
        """The tombstone of an agent."""
        return self._tombstones.get(("agent", digest(name)))

    def named(self, conversation: Conversation) -> list[str]:
        """The forgotten agents that a conversation names, in order."""
        named = {each.agent for each in conversation.messages} | {each.target or "" for each in conversation.messages}
        return [agent for agent in sorted(named) if self.agent(agent)]

    def without(self, conversation: Conversation) -> Conversation:
        """The conversation with every forgotten agent redacted."""
        for agent in self.named(conversation):
            conversation = redacted(conversation, agent)
        return conversation


def redacted(conversation: Conversation, agent: str) -> Conversation:
    """The conversation without an agent's texts, its name replaced; places, ids and times of messages remain."""
    messages = tuple(_message(message, agent) for message in conversation.messages)
    return msgspec.structs.replace(conversation, messages=messages, title=None, context=())


def _message(message: Message, agent: str) -> Message:
    if message.target == agent:
        message = msgspec.structs.replace(message, target=pseudonym(agent))
    if message.agent != agent:
        return message
    name = pseudonym(agent)
    return msgspec.structs.replace(
        message, author=name, agent=name, text="", tool_calls=(), tool_results=(), thinking=""
    )


def _kind(store: Store, name: str) -> Forgettable | None:
    is_conversation = any(each == name for each in (*store.conversations(), *store.threads()))
    is_agent = bool(store.conversations_with(name)) or any(store.history(name, j.judge_hash) for j in store.judges())
    if is_conversation and is_agent:
        raise UsageError(f"'{name}' is an agent and a conversation", remedy="say which with --kind")
    if is_conversation or is_agent:
        return "conversation" if is_conversation else "agent"
    return None


def _forgotten_before(store: Store, name: str) -> Tombstone:
    """The tombstone of what is not here any more: a command that was stopped can be given again."""
    for tombstone in store.tombstones():
        if tombstone.digest == digest(name):
            return tombstone
    remedy = "`undersong agents` lists the agents; the conversations are in evaluations.jsonl"
    raise UsageError(f"no agent and no conversation '{name}'", remedy=remedy)


def _of_conversation(store: Store, name: str, now: datetime) -> Redaction:
    places = {(name, row.id) for judge in store.judges() for row in store.thread(name, judge.judge_hash)}
    if name in set(store.conversations()):
        places |= {(name, message.id) for message in store.conversation(name)[0].messages}
    removed = tuple(finding.finding_id for finding in store.findings() if name in finding.conversations)
    redaction = Redaction(
        name=name,
        tombstone=Tombstone(kind="conversation", digest=digest(name), forgotten=now, messages=len(places)),
        dropped=(name,),
        detached=tuple(sorted(places)),
        removed=removed,
    )
    return _with_decisions(store, redaction, lambda place: place[0] == name)


def _of_agent(store: Store, agent: str, now: datetime) -> Redaction:
    threads = [store.conversation(name) for name in store.conversations_with(agent)]
    own_messages = {(c.id, m.id) for c, _, _ in threads for m in c.messages if m.agent == agent}
    read = {(row.conversation, row.id) for each in store.judges() for row in store.history(agent, each.judge_hash)}
    affected = own_messages | read
    removed = tuple(each.finding_id for each in store.findings() if _names(each, agent, affected))
    redaction = Redaction(
        name=agent,
        tombstone=Tombstone(kind="agent", digest=digest(agent), forgotten=now, messages=len(affected)),
        replaced=tuple(_replaced(store, *thread, agent) for thread in threads),
        answers=tuple(sorted(own_messages)),
        detached=tuple(sorted(affected)),
        rows=tuple(_renamed(row, agent) for row in store.aimed_at(agent) if row.agent != agent),
        removed=removed,
    )
    return _with_decisions(store, redaction, lambda place: place in affected)


def _replaced(
    store: Store, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan, agent: str
) -> tuple[Conversation, tuple[Scan, ...], ThreadScan, tuple[Route, ...]]:
    routes = routes_without(store.routes(conversation.id), agent)
    return redacted(conversation, agent), _scans(conversation, scans, agent), signals_without(thread, agent), routes


def _names(finding: Finding, agent: str, affected: set[tuple[str, str]]) -> bool:
    """Whether a finding is about the agent, towards it, or quotes it."""
    places = zip(finding.message_conversations, finding.message_ids, strict=True)
    return agent in (finding.agent, finding.target) or any(place in affected for place in places)


def _with_decisions(store: Store, redaction: Redaction, affected: Callable[[tuple[str, str]], bool]) -> Redaction:
    """The redaction with the leads, claims and reviews that go: of what goes, by or towards its name, or noting it."""
    if not store.keeps_reviews:
        return redaction
    name = redaction.name
    leads = [each.id for each in store.leads() if each.agent == name or any(map(affected, evidence_places(each)))]
    claims = [
        each.claim_id for each in store.claims() if each.agent == name or any(map(affected, evidence_places(each)))
    ]
    gone = {("finding", each) for each in redaction.removed}
    gone |= {("lead", each) for each in leads} | {("claim", each) for each in claims}
    noted = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    reviews = [
        each.key for each in store.reviews()
        if (each.kind, each.id) in gone or name in (each.agent, each.target, each.reviewer)
        or any(affected(row[:2]) for row in each.rows) or any(map(noted.search, (each.note, *each.reasons)))
    ]  # fmt: skip
    return msgspec.structs.replace(redaction, leads=tuple(leads), claims=tuple(claims), reviews=tuple(reviews))


def _renamed(row: Row, agent: str) -> Row:
    return msgspec.structs.replace(row, target=pseudonym(agent))


def _scans(conversation: Conversation, scans: tuple[Scan, ...], agent: str) -> tuple[Scan, ...]:
    pairs = zip(conversation.messages, scans, strict=True)
    return tuple(Scan(message_id=message.id) if message.agent == agent else scan for message, scan in pairs)


def routes_without(routes: Iterable[Route], agent: str) -> tuple[Route, ...]:
    """Routes whose reasons name the agent's pseudonym; the ids of messages in them stay."""
    original, replacement = flagged_before(agent), flagged_before(pseudonym(agent))

    def redact(route: Route) -> Route:
        if not any(original in reason for reason in route.reasons):
            return route
        return msgspec.structs.replace(
            route, reasons=tuple(each.replace(original, replacement) for each in route.reasons)
        )

    return tuple(map(redact, routes))


def signals_without(thread: ThreadScan, agent: str) -> ThreadScan:
    """The signals of a thread with the agent's pseudonym in place of its name."""

    def names(originals: Iterable[str]) -> Iterator[str]:
        return (pseudonym(agent) if name == agent else name for name in originals)

    signals = tuple(msgspec.structs.replace(each, agents=tuple(names(each.agents))) for each in thread.signals)
    agents = dict(zip(names(thread.agents), thread.agents.values(), strict=True))
    upgrades = dict(zip(names(thread.upgrades), thread.upgrades.values(), strict=True))
    return msgspec.structs.replace(thread, signals=signals, agents=agents, upgrades=upgrades)
