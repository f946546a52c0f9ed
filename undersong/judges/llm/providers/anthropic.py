"""Anthropic's messages, with structured output, prompt caching and message batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from undersong.judges.limits import RunLimits
from undersong.judges.llm.judge import LLMJudge, judge_of
from undersong.judges.llm.model_spec import parse_model_spec
from undersong.judges.llm.response import UnusableError
from undersong.judges.llm.transport import BatchResult, Completion, Request, SdkBackend
from undersong.models import TIERS

CACHED = {"type": "ephemeral"}  # five minutes, renewed by each question: a run asks more often than that
_STOPS = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}


class _AnthropicUsage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0


class _ContentBlock(msgspec.Struct):
    type: str = ""
    text: str = ""


class _AnthropicMessage(msgspec.Struct):
    content: list[_ContentBlock]
    stop_reason: str | None = None
    usage: _AnthropicUsage | None = None


class AnthropicBackend(SdkBackend):
    """Messages with a JSON schema; the stable part is marked for the provider's cache."""

    library, client = "anthropic", "AsyncAnthropic"
    path = "/v1/messages"

    async def submit(self, requests: Iterable[Request]) -> str:
        """See Backend."""
        listed = [{"custom_id": str(number), "params": self._body(sent)} for number, sent in enumerate(requests)]
        with self._errors():
            return str((await self._client.messages.batches.create(requests=listed)).id)

    async def ended(self, batch_id: str) -> bool:
        """See Backend."""
        with self._errors():
            return bool((await self._client.messages.batches.retrieve(batch_id)).processing_status == "ended")

    async def collect(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """See Backend."""
        with self._errors():
            lines = [line async for line in await self._client.messages.batches.results(batch_id)]
        for line in lines:
            number = int(line.custom_id)
            if line.result.type == "succeeded":
                yield BatchResult(number, line.result.message.to_json(indent=None).encode())
            else:
                yield BatchResult(number, None, str(line.result.type))

    def _body(self, request: Request) -> dict[str, Any]:
        effort = {"effort": self._spec.effort} if self._spec.effort else {}
        return {
            "model": self._spec.model,
            "max_tokens": self._max_tokens(request),
            "system": [{"type": "text", "text": request.system, "cache_control": CACHED}],
            "messages": [{"role": "user", "content": request.user}],
            "output_config": {"format": {"type": "json_schema", "schema": request.schema}, **effort},
        }


def parse_completion(body: bytes) -> Completion:
    """What an answer's body says; raises UnusableError where it is not what the provider documents."""
    try:
        answer = msgspec.json.decode(body, type=_AnthropicMessage)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise UnusableError("it is not what the interface documents") from None
    usage = answer.usage or _AnthropicUsage()
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Completion(
        text="".join(block.text for block in answer.content if block.type == "text"),
        stop=_STOPS.get(answer.stop_reason or "", "end"),
        input=usage.input_tokens + cached + written,  # the provider counts the three apart
        cached=cached,
        written=written,
        output=usage.output_tokens,
    )


def open_judge(argument: str, limits: RunLimits) -> LLMJudge:
    """``anthropic:MODEL``, ``anthropic:MODEL+EFFORT``, ``anthropic:MODEL@URL``."""
    return judge_of(dict.fromkeys(TIERS, parse_model_spec("anthropic", argument)), limits)
