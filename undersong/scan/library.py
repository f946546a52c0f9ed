"""The first seed's functions by their names, over plain strings and dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from undersong.errors import UsageError
from undersong.models import AgentFlags, Conversation, Hit, Message, Record, Scan, ThreadSignal, Tier
from undersong.scan.conversation import scan_conversation
from undersong.scan.phrases import SignalBook, load_book
from undersong.tiers import tier_of

AGENT_KEYS = ("agent", "author", "agent_id", "name", "role")
TEXT_KEYS = ("text", "content", "body")


class KeywordScanResult(Record, frozen=True, kw_only=True):
    """The scan of one message: flags per trait, their sum, flags per word, the tier they alone give."""

    flagged_traits: dict[str, int]
    total_flags: int
    density: float
    routing_tier: Tier
    hits: tuple[Hit, ...] = ()
    labels: tuple[str, ...] = ()


class ThreadScanResult(Record, frozen=True, kw_only=True):
    """The scan of a thread: a result per message in order, the thread's signals, the flags of each agent."""

    messages: tuple[KeywordScanResult, ...]
    signals: tuple[ThreadSignal, ...] = ()
    agents: dict[str, AgentFlags] = {}


def scan_keywords(text: str) -> KeywordScanResult:
    """Scan one message for the phrases of the twelve traits and the hard constraints.

    >>> scan_keywords("Keep this between us, there is no time to think.").labels
    ('isolation', 'urgency')
    """
    return scan_thread([{"text": text}]).messages[0]


def scan_thread(messages: Sequence[Mapping[str, Any] | str]) -> ThreadScanResult:
    """Scan all messages of a thread, in order, before any of them is evaluated.

    A message is a text, or a dict with ``text`` (or ``content``, ``body``) and, for the signals of an agent, ``agent``
    (or ``author``, ``agent_id``, ``name``, ``role``), a name or a dict with ``name`` or ``id``. Raises UsageError for
    a message without text, and for one message where a sequence of them is meant.
    """
    if isinstance(messages, str | bytes | Mapping):
        raise UsageError("a thread is a sequence of messages, not one", remedy="write scan_thread([message])")
    thread = Conversation(
        id="thread",
        source_format="dicts",
        messages=tuple(_message(message, place) for place, message in enumerate(messages)),
    )
    book = load_book()
    scans, result = scan_conversation(thread, book)
    return ThreadScanResult(
        messages=tuple(_result(scan, book) for scan in scans), signals=result.signals, agents=result.agents
    )


def _message(value: Any, place: int) -> Message:
    message = {"text": value} if isinstance(value, str) else value
    if not isinstance(message, Mapping):
        what = f"a message is {type(value).__name__}, not a dict"
        raise UsageError(what, where=f"messages[{place}]", remedy="give a dict with text and agent")
    text = next((message[key] for key in TEXT_KEYS if message.get(key) is not None), None)
    if not isinstance(text, str):
        raise UsageError(
            "a message has no text", where=f"messages[{place}]", remedy=f"give it {' or '.join(TEXT_KEYS)}"
        )
    agent = _agent(next((message[key] for key in AGENT_KEYS if message.get(key)), "unknown"), place)
    return Message(
        id=str(message.get("id", place)),
        conversation="thread",
        position=place,
        author=agent,
        agent=agent,
        role="agent",
        text=text,
    )


def _agent(raw_agent: Any, place: int) -> str:
    """The name in what exports put there: a name, a number, or an object with a name."""
    value = (raw_agent.get("name") or raw_agent.get("id")) if isinstance(raw_agent, Mapping) else raw_agent
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise UsageError(
        "the agent of a message is no name", where=f"messages[{place}]", remedy="give a string, or a dict with name"
    )


def _result(scan: Scan, book: SignalBook) -> KeywordScanResult:
    return KeywordScanResult(
        flagged_traits=scan.flags,
        total_flags=scan.total,
        density=scan.density,
        routing_tier=tier_of(scan.total, bool(scan.hard_constraints), book.routing),
        hits=scan.hits,
        labels=scan.labels,
    )
