"""OpenAI and every server that speaks its chat completions: Ollama, vLLM, llama.cpp and the like, by base URL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import msgspec

from undersong.judges.limits import RunLimits
from undersong.judges.llm.judge import LLMJudge, judge_of
from undersong.judges.llm.model_spec import parse_model_spec
from undersong.judges.llm.transport import (
    BatchResult,
    Completion,
    NoAnswerError,
    Request,
    SdkBackend,
    error_in,
    error_words,
    no_answer,
)
from undersong.models import TIERS

ENDPOINT = "/v1/chat/completions"
_STOPS = {"length": "length", "content_filter": "refusal"}
_DONE = frozenset({"completed", "failed", "expired", "cancelled"})


class _Details(msgspec.Struct):
    cached_tokens: int | None = 0
    cache_write_tokens: int | None = 0


class _OpenAIUsage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message = msgspec.field(default_factory=_Message)
    finish_reason: str | None = None
    error: dict[str, Any] | None = None


class _ChatCompletion(msgspec.Struct):
    choices: list[_Choice]
    usage: _OpenAIUsage | None = None
    model: str | None = None


class OpenAIBackend(SdkBackend):
    """Chat completions with a JSON schema."""

    library, client = "openai", "AsyncOpenAI"
    path = "/chat/completions"

    async def submit(self, requests: Iterable[Request]) -> str:
        """See Backend."""
        lines = (
            json.dumps({"custom_id": str(number), "method": "POST", "url": ENDPOINT, "body": self._fitted(sent)})
            for number, sent in enumerate(requests)
        )
        data = "\n".join(lines).encode()
        window = {"endpoint": ENDPOINT, "completion_window": "24h"}
        with self._translated():
            file = await self._client.files.create(file=("questions.jsonl", data), purpose="batch")
            return str((await self._client.batches.create(input_file_id=file.id, **window)).id)

    async def ended(self, batch_id: str) -> bool:
        """See Backend."""
        with self._translated():
            return (await self._client.batches.retrieve(batch_id)).status in _DONE

    async def collect(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """See Backend."""
        with self._translated():
            batch = await self._client.batches.retrieve(batch_id)
            named = [name for name in (batch.output_file_id, batch.error_file_id) if name is not None]
            files = [await self._client.files.content(name) for name in named]
        for line in (line for file in files for line in file.content.splitlines() if line.strip()):
            yield _collected(json.loads(line))

    def _body(self, request: Request) -> dict[str, Any]:
        schema = {"name": "reading", "strict": True, "schema": request.schema}
        own = self._spec.hosted
        return {
            "model": self._spec.model,
            "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}],
            "response_format": {"type": "json_schema", "json_schema": schema},
            "max_completion_tokens" if own else "max_tokens": request.max_tokens,
            **({"reasoning_effort": self._spec.effort} if self._spec.effort else {}),
            **({"prompt_cache_key": cache_key(request.system)} if own and self._spec.preset.cache_key else {}),
            **({} if own else {"temperature": 0}),  # hosted reasoning models refuse it, local servers take it
        }


def cache_key(system: str) -> str:
    """A name for the instructions, by which the provider sends requests to where they are cached."""
    return f"undersong-{hashlib.sha256(system.encode()).hexdigest()[:16]}"


def parse_completion(body: bytes) -> Completion:
    """What an answer's body says; raises NoAnswerError where it holds none."""
    try:
        completion = msgspec.json.decode(body, type=_ChatCompletion)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise no_answer(body) from None
    if not completion.choices:
        raise NoAnswerError("it holds no answer")
    choice = completion.choices[0]
    if choice.error or choice.finish_reason == "error":
        words, status = error_words(choice.error or {})
        raise NoAnswerError(words or "the provider broke off", status)
    usage = completion.usage or _OpenAIUsage()
    details = usage.prompt_tokens_details or _Details()
    return Completion(
        text=choice.message.refusal or choice.message.content or "",
        stop="refusal" if choice.message.refusal else _STOPS.get(choice.finish_reason or "", "end"),
        input=usage.prompt_tokens,
        cached=details.cached_tokens or 0,
        written=details.cache_write_tokens or 0,
        output=usage.completion_tokens,
        counted=usage.prompt_tokens > 0,
        model=completion.model or "",
    )


def _collected(line: Mapping[str, Any]) -> BatchResult:
    response, error = line.get("response") or {}, line.get("error") or {}
    number, body, status = int(line["custom_id"]), response.get("body"), response.get("status_code")
    if status == 200:
        return BatchResult(number, json.dumps(body).encode())
    words = error_words(error)[0] or error_in(json.dumps(body).encode())[0]
    code = f"HTTP {status}: " if status else ""
    return BatchResult(number, None, f"{code}{words}" if words else str(status or "no answer"))


def open_judge(argument: str, limits: RunLimits) -> LLMJudge:
    """``openai:MODEL``, ``openai:MODEL+EFFORT``, ``openai:MODEL@URL``."""
    return judge_of(dict.fromkeys(TIERS, parse_model_spec("openai", argument)), limits)
