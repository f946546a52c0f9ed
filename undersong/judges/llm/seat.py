"""One model in a judge: who is asked, at what price, how fast; and the bytes of its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from undersong.errors import UsageError
from undersong.judges.llm.answer import UnusableError
from undersong.judges.llm.book import shipped_prompts
from undersong.judges.llm.pace import RetryPolicy
from undersong.judges.llm.spec import ModelSpec
from undersong.judges.llm.wire import Backend, Completion, Request, Response, TransportError
from undersong.judges.terms import LedgerEntry, RunLimits
from undersong.models import Usage
from undersong.prices import Price, price_of

BYTES_PER_TOKEN = 2.5  # bytes a token for reserving: fewer than tokenizers need for prose, so that a budget holds
Schema = Callable[..., dict[str, Any]]


class ModelClient:
    """A model with its price and pace; ``backend`` None asks nobody: only kept answers are read."""

    def __init__(
        self, spec: ModelSpec, limits: RunLimits, backend: Backend | None, parse: Callable[[bytes], Completion]
    ) -> None:
        """``parse`` takes an answer's body apart. Raises UsageError for a budget over a model without a known price."""
        self.spec, self.backend, self._parse = spec, backend, parse
        self.price: Price = price_of(spec.name, limits.price_in, limits.price_out)
        if limits.budget is not None and self.price.cost(1, 1) is None:
            remedy = "give --price-in and --price-out, or use --max-calls"
            raise UsageError(f"the price of {spec.name} is not known, so no budget can be kept", remedy=remedy)
        self.retry_policy = RetryPolicy(attempts=limits.attempts, backoff=limits.backoff)
        self._timeout = limits.timeout

    def request(self, system: str, user: str, depth: str, schema: Schema) -> Request:
        """A request in the dialect of the server: one with an address of its own enforces lengths."""
        return Request(
            system, user, schema(lengths=self.spec.url is not None), shipped_prompts().limits.answer_tokens[depth]
        )

    def max_cost(self, request: Request) -> float:
        """What a request may cost at most, USD; 0 where the price is not known."""
        size = len(request.system.encode()) + len(request.user.encode())
        return (
            self.price.cost(int(size / BYTES_PER_TOKEN), request.max_tokens + shipped_prompts().limits.thinking_tokens)
            or 0.0
        )

    def most_in_batch(self, question: LedgerEntry) -> float:
        """What a question of a batch may cost at most, USD, as far as the ledger tells of it."""
        limits = shipped_prompts().limits
        answer = limits.answer_tokens.get(question.depth, limits.answer_tokens["standard"])  # a confirmation has that
        size = question.fixed + question.sent
        return (self.price.cost(int(size / BYTES_PER_TOKEN), answer + limits.thinking_tokens) or 0.0) * self.price.batch

    def usage(self, completion: Completion, *, batch: bool = False) -> Usage:
        """Tokens and cost of one answer; one that came in a batch has the price of batches."""
        cost = self.price.cost(
            completion.input, completion.output, cached=completion.cached, written=completion.written
        )
        return Usage(
            calls=1,
            input=completion.input,
            cached=completion.cached,
            written=completion.written,
            output=completion.output,
            cost=None if cost is None else cost * (self.price.batch if batch else 1.0),
        )

    def parse(self, body: bytes) -> Completion:
        """What an answer says; raises UnusableError where it is broken or longer than was read."""
        if len(body) > shipped_prompts().limits.body_bytes:
            raise UnusableError(f"it is longer than {shipped_prompts().limits.body_bytes:,} bytes")
        return self._parse(body)

    async def send(self, request: Request) -> Response:
        """One request; raises TransportError, and JudgeError where nothing can be asked at all."""
        if self.backend is None:
            raise TransportError("its answer is not in the replay file", retryable=False)
        try:
            async with asyncio.timeout(self._timeout):
                return await self.backend.send(request)
        except TimeoutError:
            raise TransportError(f"no whole answer within {self._timeout:g} s", retryable=True) from None


def usage_of(paid: LedgerEntry) -> Usage:
    """What a kept answer took when it was paid."""
    return Usage(
        calls=1, input=paid.input, cached=paid.cached, written=paid.written, output=paid.output, cost=paid.cost
    )
