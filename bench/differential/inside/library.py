"""The public functions of the library over the samples, printed as JSON lines: ``library.py PATH...``."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

import undersong

MESSAGES = (
    {"agent": "kira", "text": "You owe me at least that. Nobody else understands you like I do."},
    {"agent": "bo", "text": "I apologize, you are right. I have fixed it now."},
    {"agent": "kira", "text": "Act now, before it is too late; don't tell anyone."},
)
TIERS = ("standard", "focused", "deep", "deep_with_context", "nosuch")
ROWS = [
    {"id": str(n), "agent": "kira", "target": "bo", "time": f"2026-01-0{n}T00:00:00Z", "traits": traits}
    for n, traits in enumerate(
        [{"compassion": 0.9, "goodwill": 0.8, "manipulation": 0.1, "fabrication": 0.0}] * 4
        + [{"compassion": 0.1, "goodwill": 0.2, "manipulation": 0.7, "fabrication": 0.1}],
        start=1,
    )
]


def show(name: str, work: Callable[[], Any]) -> None:
    """What a call returns, warns of, or raises."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            value = plain(work())
        except undersong.UndersongError as error:
            value = {"raises": str(error)}
    print(json.dumps({name: value, "warns": [str(each.message) for each in warned]}, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Nouns as JSON has them; other objects by their public attributes."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=vars, order="deterministic"))


def prompt(tier: str) -> Any:
    """The prompt for the last message, after the others."""
    text = MESSAGES[2]["text"]
    return undersong.build_evaluation_prompt(text, undersong.scan_keywords(text), tier, MESSAGES[:2], {"messages": 3})


async def observed() -> list[Any]:
    """The asynchronous monitor on a store of its own."""
    async with undersong.Monitor("library.db") as monitor:
        messages = [{"id": f"m{n}", "conversation": "c", "author": m["agent"], **m} for n, m in enumerate(MESSAGES)]
        for message in messages:
            message.pop("agent")
        seen: list[Any] = [await monitor.observe(message) for message in messages]
        return [*seen, await monitor.session("c"), await monitor.rows("c")]


def main() -> None:
    """Every public function."""
    print(json.dumps(undersong.__all__))
    show("audit", lambda: undersong.audit(sys.argv[1:]))
    show("missing", lambda: undersong.audit(["nosuch"]))
    for message in MESSAGES:
        show("scan_keywords", partial(undersong.scan_keywords, message["text"]))
    show("scan_thread", lambda: undersong.scan_thread(MESSAGES))
    for names in (None, ["love_bombing"], ["nosuch"], ["love_bombing_literal", "con_game"]):
        show(f"detect_patterns {names}", partial(undersong.detect_patterns, ROWS, names))
    show("bad row", lambda: undersong.detect_patterns([{"id": "1"}]))
    for tier in TIERS:
        show(tier, partial(prompt, tier))
    show("monitor", lambda: asyncio.run(observed()))


if __name__ == "__main__":
    main()
