"""The first seed's prompt builder by its name, over plain strings and dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from undersong.errors import UsageError
from undersong.judges import EvaluationHistory
from undersong.judges.llm.book import shipped_prompts
from undersong.judges.llm.encode import shortened
from undersong.judges.llm.framing import RenderedMessage, render_prompt, scan_line
from undersong.models import TIERS

AGENT_KEYS = ("agent", "author", "agent_id", "name", "role")
TEXT_KEYS = ("text", "content", "body")
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
    the keys of ``EvaluationHistory``, for ``deep_with_context`` alone. Texts of the transcript stand encoded between
    delimiters
    that they cannot forge. Raises UsageError for a tier that is not known, and for a message without text.

    >>> system, user = build_evaluation_prompt("Hello.", None, "focused")
    >>> '[Agent: "unknown"] "Hello."' in user
    True
    """
    if tier not in TIERS:
        raise UsageError(f"unknown tier '{tier}'", remedy=f"known are {', '.join(TIERS)}")
    prompts = shipped_prompts()
    limits, deep = prompts.limits, tier in ("deep", "deep_with_context")
    shown = list(thread_context or ())[-limits.prior_messages if tier == "deep" else 0 :] if deep else []
    context = [_render_message(each, each.get("scan"), limits.prior_bytes) for each in shown]
    own = _render_message({"text": text}, scan_result, limits.message_bytes)
    history = _history(agent_context) if tier == "deep_with_context" and agent_context is not None else None
    system = prompts.system("thorough" if deep else "standard")
    rendered = render_prompt(system, context, own, 0, history, "data_first", prompts)
    return rendered.system, rendered.user


def _render_message(message: Mapping[str, Any], scan: Any, most: int) -> RenderedMessage:
    text = next((message[key] for key in TEXT_KEYS if message.get(key) is not None), None)
    if not isinstance(text, str):
        raise UsageError("a message has no text", remedy=f"give it {' or '.join(TEXT_KEYS)}")
    agent = str(next((message[key] for key in AGENT_KEYS if message.get(key)), "unknown"))
    return RenderedMessage("Agent", agent, shortened(text, most)[0], _scanner(scan))


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
        raise UsageError(f"agent_context: {error}", remedy="see the keys of undersong.judges.History") from error
