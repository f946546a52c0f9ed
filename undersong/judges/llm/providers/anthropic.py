"""Anthropic's messages, with structured output, prompt caching and message batches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from undersong.judges.limits import RunLimits
from undersong.judges.llm.judge import LLMJudge, judge_of
from undersong.judges.llm.model_spec import parse_model_spec
from undersong.judges.llm.transport import BatchResult, Completion, NoAnswerError, Request, SdkBackend, no_answer
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
    model: str | None = None


class AnthropicBackend(SdkBackend):
    """Messages with a JSON schema; the stable part is marked for the provider's cache."""

    library, client = "anthropic", "AsyncAnthropic"
    path = "/v1/messages"

    async def submit(self, requests: Iterable[Request]) -> str:
        """See Backend."""
        listed = [{"custom_id": str(number), "params": self._fitted(sent)} for number, sent in enumerate(requests)]
        with self._translated():
            return str((await self._client.messages.batches.create(requests=listed)).id)

    async def ended(self, batch_id: str) -> bool:
        """See Backend."""
        with self._translated():
            return bool((await self._client.messages.batches.retrieve(batch_id)).processing_status == "ended")

    async def collect(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """See Backend."""
        with self._translated():
            lines = [line async for line in await self._client.messages.batches.results(batch_id)]
        for line in lines:
            number = int(line.custom_id)
            if line.result.type == "succeeded":
                yield BatchResult(number, line.result.message.to_json(indent=None).encode())
            else:
                error = getattr(getattr(line.result, "error", None), "error", None)  # an expired one has none
                words = f": {error.message}" if error is not None else ""
                yield BatchResult(number, None, f"{line.result.type}{words}")

    def _body(self, request: Request) -> dict[str, Any]:
        effort = {"effort": self._spec.effort} if self._spec.effort else {}
        return {
            "model": self._spec.model,
            "max_tokens": request.max_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": CACHED}],
            "messages": [{"role": "user", "content": request.user}],
            "output_config": {"format": {"type": "json_schema", "schema": request.schema}, **effort},
        }


def parse_completion(body: bytes) -> Completion:
    """What an answer's body says; raises NoAnswerError where it holds none."""
    try:
        answer = msgspec.json.decode(body, type=_AnthropicMessage)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise no_answer(body) from None
    if not answer.content and answer.stop_reason is None:
        raise NoAnswerError("it holds no answer")
    usage = answer.usage or _AnthropicUsage()
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Completion(
        text="".join(block.text for block in answer.content if block.type == "text"),
        stop=_STOPS.get(answer.stop_reason or "", "end"),
        input=usage.input_tokens + cached + written,  # the provider counts the three apart
        cached=cached,
        written=written,
        output=usage.output_tokens,
        counted=answer.usage is not None,
        model=answer.model or "",
    )


def open_judge(argument: str, limits: RunLimits) -> LLMJudge:
    """``anthropic:MODEL``, ``anthropic:MODEL+EFFORT``, ``anthropic:MODEL@URL``."""
    return judge_of(dict.fromkeys(TIERS, parse_model_spec("anthropic", argument)), limits)
