"""Questions and judges for the tests of LLM judges, over the real server of the benchmarks."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from undersong.judges.limits import RunLimits
from undersong.judges.llm.judge import LLMJudge
from undersong.judges.protocol import Question, open_judge
from undersong.models import Message, Route, Scan, Tier

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from judge_server import JudgeServer

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-secret", "OPENAI_API_KEY": "sk-secret", "UNDERSONG_JUDGE_KEY": "own-secret"}
PROVIDERS = ("openai", "anthropic")
TIERS: dict[Tier, tuple[Any, Any]] = {
    "standard": ("standard", "message"),
    "focused": ("standard", "message"),
    "deep": ("thorough", "prior_messages"),
    "deep_with_context": ("thorough", "thread_and_history"),
}


def make_message(text: str, place: int = 0, author: str = "kira", **more: Any) -> Message:
    fields = {"role": "agent"} | more
    return Message(id=f"m{place}", conversation="c", position=place, author=author, agent=author, text=text, **fields)


def question(text: str, tier: Tier = "focused", place: int = 0, prior: Sequence[str] = (), **more: Any) -> Question:
    depth, width = TIERS[tier]
    before = tuple(make_message(each, at, "bo") for at, each in enumerate(prior))
    route = Route(message_id=f"m{place}", tier=tier, tier_before=tier, depth=depth, width=width)
    return Question(
        message=make_message(text, place),
        scan=Scan(message_id=f"m{place}"),
        route=route,
        prior=before,
        prior_scans=tuple(Scan(message_id=each.id) for each in before),
        **more,
    )


class Served:
    """A judge server in a thread of its own."""

    def __init__(self, **how: Any) -> None:
        self.server = JudgeServer(**how)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.port: int = self._run(self.server.start())

    def spec(self, provider: str = "openai", model: str = "m") -> str:
        """``--judge`` for this server."""
        return f"{provider}:{model}@http://127.0.0.1:{self.port}{'/v1' if provider == 'openai' else ''}"

    def judge(self, provider: str = "openai", **terms: Any) -> LLMJudge:
        """A judge that asks this server, with short pauses."""
        settings = {"backoff": 0.01, "attempts": 3, "timeout": 30.0, "environment": KEYS} | terms
        judge = open_judge(self.spec(provider), RunLimits(**settings))
        assert isinstance(judge, LLMJudge)
        return judge

    def close(self) -> None:
        """Stop the server and its thread."""
        self._run(self.server.stop())
        self._run(_settled())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _settled() -> None:
    """End what still serves a connection."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
