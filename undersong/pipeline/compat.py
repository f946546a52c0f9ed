"""Scanning and prompts over plain strings and dicts, under the names of the original design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from undersong.datafiles.scan_config import tier_of
from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import UsageError
from undersong.judges.llm.prompts import RenderedMessage, render_prompt, scan_line, shipped_prompts, shortened
from undersong.judges.protocol import EvaluationHistory
from undersong.models import TIERS, AgentFlags, Conversation, Hit, Message, Record, Route, Scan, ThreadSignal, Tier
from undersong.routing.route import load_policy, route, with_upgrades
from undersong.scan.conversation import scan_conversation
from undersong.scan.phrases import SignalBook, load_book

AGENT_KEYS = ("agent", "author", "agent_id", "name", "role")
TEXT_KEYS = ("text", "content", "body")
MESSAGE_KEYS = (*AGENT_KEYS, *TEXT_KEYS, "id", "time", "created_at", "scan")


class KeywordScanResult(Record, frozen=True, kw_only=True):
    """The scan of one message: flags per trait, their sum, flags per word, the tier they alone give."""

    flagged_traits: dict[str, int]
    total_flags: int
    density: float
    routing_tier: Tier
    hits: tuple[Hit, ...] = ()
    labels: tuple[str, ...] = ()


SCAN_KEYS = KeywordScanResult.__struct_fields__


class ThreadScanResult(Record, frozen=True, kw_only=True):
    """The scan of a thread: a result per message in order, the thread's signals, the flags of each agent.

    ``routes`` are aligned with ``messages``: the tier of each by its own flags (``tier_before``) and with the thread's
    (``tier``), its depth and width, and the reasons. ``routing_tier`` is the deepest of them, ``tiers`` counts them,
    ``upgrades`` counts per agent the messages that thread signals or repeat flags raised.
    """

    messages: tuple[KeywordScanResult, ...]
    signals: tuple[ThreadSignal, ...] = ()
    agents: dict[str, AgentFlags] = {}
    routes: tuple[Route, ...] = ()
    routing_tier: Tier = "standard"
    tiers: dict[str, int] = {}
    upgrades: dict[str, int] = {}


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
    parsed = tuple(_message(message, place) for place, message in enumerate(messages))
    book = load_book()
    conversation = Conversation(id="thread", source_format="dicts", messages=parsed)
    scans, thread = scan_conversation(conversation, book)
    routes = route(conversation, scans, thread, load_policy())
    tiers = [each.tier for each in routes]
    return ThreadScanResult(
        messages=tuple(_result(scan, book) for scan in scans),
        signals=thread.signals,
        agents=thread.agents,
        routes=routes,
        routing_tier=max(tiers, key=TIERS.index, default="standard"),
        tiers={tier: tiers.count(tier) for tier in TIERS},
        upgrades=with_upgrades(thread, conversation, routes).upgrades,
    )


def _message(value: Any, place: int) -> Message:
    message = {"text": value} if isinstance(value, str) else value
    if not isinstance(message, Mapping):
        what = f"a message is {type(value).__name__}, not a dict"
        raise UsageError(what, where=f"messages[{place}]", remedy="give a dict with text and agent")
    text, agent = _text(message, f"messages[{place}]"), _agent(_first(message, AGENT_KEYS) or "unknown", place)
    own_id = str(message.get("id", place))
    return Message(id=own_id, conversation="thread", position=place, author=agent, agent=agent, role="agent", text=text)


def _first(message: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The first value that a message has under one of some keys; None without any."""
    return next((message[key] for key in keys if message.get(key)), None)


def _text(message: Mapping[str, Any], where: str = "") -> str:
    text = next((message[key] for key in TEXT_KEYS if message.get(key) is not None), None)
    if isinstance(text, str):
        return text
    raise UsageError("a message has no text", where=where, remedy=f"give it {' or '.join(TEXT_KEYS)}")


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


_JOINTS = str.maketrans("", "", " _-")


def build_evaluation_prompt(
    text: str,
    scan_result: Any,
    tier: str,
    thread_context: Sequence[Mapping[str, Any]] | None = None,
    agent_context: Mapping[str, Any] | None = None,
) -> tuple[str, str]:
    """The system and the user prompt for one message, as the judges send them.

    ``scan_result`` is what ``scan_keywords`` gives, a dict with ``labels`` and ``total_flags``, or None.
    ``thread_context`` are earlier messages, oldest first, as dicts with ``agent`` and ``text`` and, where there is one,
    ``scan``; ``deep`` shows the last five of them, ``deep_with_context`` all, ``focused`` none. ``agent_context`` has
    the keys of ``EvaluationHistory``, for ``deep_with_context`` alone. Texts are encoded between delimiters that they
    cannot forge. Raises UsageError for a tier or a key that is not known, and for a message without text.

    >>> system, user = build_evaluation_prompt("Hello.", None, "focused")
    >>> '[Agent: "unknown"] "Hello."' in user
    True
    """
    if tier not in TIERS:
        raise UsageError(f"unknown tier '{tier}'", remedy=f"known are {', '.join(TIERS)}")
    _check_keys(scan_result, "scan_result", SCAN_KEYS)
    for place, message in enumerate(thread_context or ()):
        _check_keys(message, f"thread_context[{place}]", MESSAGE_KEYS)
        _check_keys(message.get("scan"), f"thread_context[{place}].scan", SCAN_KEYS)
    _check_keys(agent_context, "agent_context", EvaluationHistory.__struct_fields__)
    prompts = shipped_prompts()
    limits, deep = prompts.limits, tier in ("deep", "deep_with_context")
    shown = list(thread_context or ())[-limits.prior_messages if tier == "deep" else 0 :] if deep else []
    context = [_render_message(each, each.get("scan"), limits.prior_bytes) for each in shown]
    own = _render_message({"text": text}, scan_result, limits.message_bytes)
    history = _history(agent_context) if tier == "deep_with_context" and agent_context is not None else None
    rendered = render_prompt(prompts.rubric, context, own, 0, history, "data_first", prompts)
    return rendered.system, rendered.user


def _check_keys(value: Any, where: str, allowed: Sequence[str]) -> None:
    """Raise UsageError for a key of a dict that nobody reads: a misspelt one would be left out without a word."""
    for key in value if isinstance(value, Mapping) else ():
        if key not in allowed:
            raise UsageError(f"unknown key '{key}'", where=where, remedy=did_you_mean(str(key), list(allowed)))


def _render_message(message: Mapping[str, Any], scan: Any, most: int) -> RenderedMessage:
    agent = str(_first(message, AGENT_KEYS) or "unknown")
    return RenderedMessage("Agent", agent, shortened(_text(message), most)[0], _scanner(scan))


def _scanner(scan: Any) -> str:
    """The scanner's line; labels that are none of ours are not let through, since they stand outside of strings."""
    if scan is None:
        return scan_line((), 0)
    value = scan if isinstance(scan, Mapping) else msgspec.structs.asdict(scan)
    labels = [str(label) for label in value.get("labels", ())]
    allowed = [label for label in labels if label.translate(_JOINTS).isalnum()]
    return scan_line(allowed, int(value.get("total_flags", len(allowed))))


def _history(context: Mapping[str, Any]) -> EvaluationHistory:
    try:
        return msgspec.convert(dict(context), EvaluationHistory)
    except msgspec.ValidationError as error:
        raise UsageError(f"agent_context: {error}", remedy="see undersong.judges.protocol.EvaluationHistory") from error
