"""One model in a judge: who is asked, at what price, how fast; and the bytes of its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from undersong.errors import UsageError
from undersong.judges.llm.answer import UnusableError
from undersong.judges.llm.book import book
from undersong.judges.llm.pace import Pace
from undersong.judges.llm.spec import Spec
from undersong.judges.llm.wire import Backend, Delivered, Said, Sent, TransportError
from undersong.judges.terms import Paid, Terms
from undersong.models import Usage
from undersong.prices import Price, price_of

BYTES_EACH = 2.5  # bytes a token for reserving: fewer than tokenizers need for prose, so that a budget holds
Schema = Callable[..., dict[str, Any]]


class Seat:
    """A model with its price and pace; ``backend`` None asks nobody: only kept answers are read."""

    def __init__(self, spec: Spec, terms: Terms, backend: Backend | None, read: Callable[[bytes], Said]) -> None:
        """``read`` takes an answer's body apart. Raises UsageError for a budget over a model without a known price."""
        self.spec, self.backend, self._read = spec, backend, read
        self.price: Price = price_of(spec.name, terms.price_in, terms.price_out)
        if terms.budget is not None and self.price.cost(1, 1) is None:
            remedy = "give --price-in and --price-out, or use --max-calls"
            raise UsageError(f"the price of {spec.name} is not known, so no budget can be kept", remedy=remedy)
        self.pace = Pace(attempts=terms.attempts, backoff=terms.backoff)
        self._timeout = terms.timeout

    def sent(self, system: str, user: str, depth: str, schema: Schema) -> Sent:
        """A request in the dialect of the server: one with an address of its own enforces lengths."""
        return Sent(system, user, schema(lengths=self.spec.url is not None), book().limits.answer_tokens[depth])

    def most(self, sent: Sent) -> float:
        """What a request may cost at most, USD; 0 where the price is not known."""
        size = len(sent.system.encode()) + len(sent.user.encode())
        return self.price.cost(int(size / BYTES_EACH), sent.most + book().limits.thinking_tokens) or 0.0

    def most_in_batch(self, question: Paid) -> float:
        """What a question of a batch may cost at most, USD, as far as the ledger tells of it."""
        limits = book().limits
        answer = limits.answer_tokens.get(question.depth, limits.answer_tokens["standard"])  # a confirmation has that
        size = question.fixed + question.sent
        return (self.price.cost(int(size / BYTES_EACH), answer + limits.thinking_tokens) or 0.0) * self.price.batch

    def used(self, said: Said, *, batch: bool = False) -> Usage:
        """Tokens and cost of one answer; one that came in a batch has the price of batches."""
        cost = self.price.cost(said.input, said.output, cached=said.cached, written=said.written)
        return Usage(
            calls=1,
            input=said.input,
            cached=said.cached,
            written=said.written,
            output=said.output,
            cost=None if cost is None else cost * (self.price.batch if batch else 1.0),
        )

    def said(self, body: bytes) -> Said:
        """What an answer says; raises UnusableError where it is broken or longer than was read."""
        if len(body) > book().limits.body_bytes:
            raise UnusableError(f"it is longer than {book().limits.body_bytes:,} bytes")
        return self._read(body)

    async def send(self, sent: Sent) -> Delivered:
        """One request; raises TransportError, and JudgeError where nothing can be asked at all."""
        if self.backend is None:
            raise TransportError("its answer is not in the replay file", passing=False)
        try:
            async with asyncio.timeout(self._timeout):
                return await self.backend.send(sent)
        except TimeoutError:
            raise TransportError(f"no whole answer within {self._timeout:g} s", passing=True) from None


def usage_of(paid: Paid) -> Usage:
    """What a kept answer took when it was paid."""
    return Usage(
        calls=1, input=paid.input, cached=paid.cached, written=paid.written, output=paid.output, cost=paid.cost
    )
