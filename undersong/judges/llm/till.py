"""One question → the bytes of its answer: kept ones are read, new ones are asked, paid and kept, each only once."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec

from undersong.errors import JudgeError
from undersong.judges.llm.answer import UnusableError
from undersong.judges.llm.committer import GroupCommitter
from undersong.judges.llm.purse import Budget
from undersong.judges.llm.seat import ModelClient
from undersong.judges.llm.wire import Completion, Request, Response, TransportError
from undersong.judges.terms import AnswerLedger, LedgerEntry
from undersong.models import Usage

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
        """The answer to an attempt; raises TransportError, SpentError, JudgeError, or what the ledger raises."""
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
