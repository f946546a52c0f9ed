"""A caching client of one model: price, retries, budget and batches; answers are stored in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from undersong.errors import JudgeError, UsageError
from undersong.judges.limits import TIMEOUT, AnswerLedger, LedgerEntry, Pending, RunLimits
from undersong.judges.llm.budget import Budget, BudgetExhaustedError
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.pricing import Price, price_of
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.rate_limit import RetryPolicy
from undersong.judges.llm.response import UnusableError
from undersong.judges.llm.transport import Backend, Completion, Request, Response, TransportError
from undersong.models import Usage

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
        self._timeout = limits.timeout or TIMEOUT

    def request(self, system: str, user: str, depth: str, schema: Schema) -> Request:
        """A request in the dialect of the server: one with an address of its own enforces lengths."""
        return Request(
            system, user, schema(lengths=not self.spec.hosted), shipped_prompts().limits.answer_tokens[depth]
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


UNREACHABLE_REMEDY = "see that its server runs and is named by its address, and run the same command again"
LARGEST_STORED = 1 << 21  # bytes of a body that are kept; `reading.yaml` bounds what is read far below


class KeyedRequest(NamedTuple):
    """A question with all that its key in the ledger stands for."""

    model_client: ModelClient
    request: Request
    key: str
    prompt_hash: str
    message_hash: str
    context_hash: str
    depth: str


class CachingClient:
    """The way to a provider in one event loop; questions of the same key share one request."""

    def __init__(self, ledger: AnswerLedger, budget: Budget) -> None:
        self._ledger, self._budget = ledger, budget
        self._committer = GroupCommitter(ledger)
        self._under_way: dict[tuple[str, int], asyncio.Future[LedgerEntry]] = {}

    def stored_answers(self, keyed: KeyedRequest) -> dict[int, LedgerEntry]:
        """Attempt → answer that was paid before."""
        return self._ledger.paid([keyed.key]).get(keyed.key, {})

    async def answer(self, keyed: KeyedRequest, attempt: int) -> LedgerEntry:
        """The answer; raises TransportError, BudgetExhaustedError, JudgeError, or what the ledger raises."""
        place = keyed.key, attempt
        if place in self._under_way:
            return await asyncio.shield(self._under_way[place])
        future = self._under_way[place] = asyncio.get_running_loop().create_future()
        try:
            paid = await self._request(keyed, attempt)
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # whoever waits has it; nobody waiting is no fault
            raise
        finally:
            del self._under_way[place]
        future.set_result(paid)
        return paid

    async def _request(self, keyed: KeyedRequest, attempt: int) -> LedgerEntry:
        model = keyed.model_client

        async def once() -> Response:
            max_cost = model.max_cost(keyed.request)
            await self._budget.reserve(max_cost)
            usage = Usage()
            try:
                response = await model.send(keyed.request)
                usage = model.usage(_read(model, response.body))
            finally:
                self._budget.commit(max_cost, usage)
            return response

        try:
            response = await model.retry_policy.call(once)
        except TransportError as error:
            if error.reached:
                raise
            raise JudgeError(error.why, where=model.spec.name, remedy=UNREACHABLE_REMEDY) from error
        paid = msgspec.structs.replace(answered_entry(unanswered_entry(keyed), model, response.body), attempt=attempt)
        await self._committer.commit(paid)
        return paid


def unanswered_entry(keyed: KeyedRequest) -> LedgerEntry:
    """A question as the ledger knows it, without an answer."""
    return LedgerEntry(
        key=keyed.key,
        attempt=0,
        judge=keyed.model_client.spec.name,
        model=keyed.model_client.spec.model,
        prompt_hash=keyed.prompt_hash,
        message_hash=keyed.message_hash,
        context_hash=keyed.context_hash,
        depth=keyed.depth,
        body=b"",
        sent=len(keyed.request.user.encode()),
        fixed=len(keyed.request.system.encode()),
    )


def answered_entry(question: LedgerEntry, model: ModelClient, body: bytes, *, batch: bool = False) -> LedgerEntry:
    """The question with its answer, and what that took."""
    used = msgspec.structs.asdict(model.usage(_read(model, body), batch=batch))
    del used["calls"]
    return msgspec.structs.replace(question, body=body[:LARGEST_STORED], **used)


def _read(model: ModelClient, body: bytes) -> Completion:
    """What can be read of an answer for its tokens; one that is broken is booked without."""
    try:
        return model.parse(body)
    except UnusableError:
        return Completion("", "end")


class GroupCommitter:
    """Group commit: answers that arrive together are stored in one transaction; each waits for its own."""

    def __init__(self, ledger: AnswerLedger) -> None:
        self._ledger = ledger
        self._waiting: list[LedgerEntry] = []
        self._commit: asyncio.Future[None] | None = None

    async def commit(self, answer: LedgerEntry) -> None:
        """Returns when the answer is kept; raises what the ledger raises."""
        self._waiting.append(answer)
        if self._commit is None:
            loop = asyncio.get_running_loop()
            self._commit = loop.create_future()
            loop.call_soon(self._flush, self._commit)
        await asyncio.shield(self._commit)

    def _flush(self, commit: asyncio.Future[None]) -> None:
        answers, self._waiting, self._commit = self._waiting, [], None
        try:
            self._ledger.keep(answers)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait for the commit must hear it
            commit.set_exception(error)
        else:
            commit.set_result(None)


MOST = 10_000  # questions of one batch: providers take more, but a body of some hundred megabytes is slow to send
WAITS = "it waits in a batch of the provider; run the same command again later"


class BatchSettlement(NamedTuple):
    """Keys of questions that have no answer yet.

    ``waiting``: a batch is under way; ``without``: why their batch did not answer them; ``left``: which limit of the
    run kept them out of a batch.
    """

    waiting: set[str]
    without: dict[str, str]
    left: dict[str, str]


async def collect_and_submit(
    models: Iterable[ModelClient], ledger: AnswerLedger, budget: Budget, requests: Sequence[KeyedRequest]
) -> BatchSettlement:
    """Collect the batches that have ended, then submit the questions that nobody asked yet, as far as they are paid.

    What an earlier run submitted counts against the limits of this one, whether it is still under way or collected
    now. Raises JudgeError where the provider turns everything away, TransportError where it cannot be reached.
    """
    settlement, models = BatchSettlement(set(), {}, {}), [model for model in models if model.backend is not None]
    for model in models:
        await _looked_after(model, ledger, budget, settlement)
    new = _reserved(_unasked(models, ledger, requests, settlement), budget, settlement)
    for model in models:
        own = [each for each in new if each.model_client is model]
        for first in range(0, len(own), MOST):
            await _submitted(model, ledger, budget, own[first : first + MOST])
    settlement.waiting.update(each.key for each in new)
    return settlement


async def _looked_after(model: ModelClient, ledger: AnswerLedger, budget: Budget, settlement: BatchSettlement) -> None:
    """Collect the batches of a model that have ended, and note which questions wait in the others."""
    assert model.backend is not None
    for batch in ledger.pending(model.spec.name):
        budget.resume(batch.id, [model.most_in_batch(each) for each in batch.questions])
        if await model.backend.ended(batch.id):
            settlement.without.update(await _collected(model, model.backend, ledger, budget, batch))
        else:
            settlement.waiting.update(each.key for each in batch.questions)


def _unasked(
    models: Sequence[ModelClient], ledger: AnswerLedger, asked: Sequence[KeyedRequest], settlement: BatchSettlement
) -> list[KeyedRequest]:
    """The questions that nobody asked yet, each once, in their order."""
    own = {each.key: each for each in asked if each.model_client in models}
    answered = ledger.paid(own).keys() | settlement.waiting | settlement.without.keys()
    return [each for key, each in own.items() if key not in answered]


def _reserved(unasked: Iterable[KeyedRequest], budget: Budget, settlement: BatchSettlement) -> list[KeyedRequest]:
    """The questions that the limits of the run allow, each reserved as a direct one would be."""
    taken = []
    for request in unasked:
        try:
            budget.take_in_batch(request.model_client.most_in_batch(unanswered_entry(request)))
        except BudgetExhaustedError as error:
            settlement.left[request.key] = str(error)
        else:
            taken.append(request)
    return taken


async def _submitted(model: ModelClient, ledger: AnswerLedger, budget: Budget, part: Sequence[KeyedRequest]) -> None:
    assert model.backend is not None
    name, questions = await model.backend.submit([each.request for each in part]), tuple(map(unanswered_entry, part))
    ledger.submit(Pending(id=name, judge=model.spec.name, questions=questions))
    budget.submitted(name, sum(map(model.most_in_batch, questions)))


async def _collected(
    model: ModelClient, backend: Backend, ledger: AnswerLedger, budget: Budget, batch: Pending
) -> dict[str, str]:
    """Keep the answers of a batch; of the questions without one, why."""
    results = [result async for result in backend.collect(batch.id)]
    answered = [(batch.questions[result.number], result.body) for result in results if result.body is not None]
    answers = [answered_entry(question, model, body, batch=True) for question, body in answered]
    ledger.keep(answers)
    ledger.collected(batch.id)
    budget.collected(batch.id, sum(map(usage_of, answers), Usage()))
    why = {batch.questions[result.number].key: result.why for result in results if result.body is None}
    seen = {question.key for question, _ in answered}
    return {each.key: why.get(each.key, "nothing came back") for each in batch.questions if each.key not in seen}
