"""Questions handed to a provider's batches at a lower price: submitted in one run, collected in a later one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from undersong.judges.llm.purse import Budget, BudgetExhaustedError
from undersong.judges.llm.seat import ModelClient, usage_of
from undersong.judges.llm.till import KeyedRequest, answered_entry, unanswered_entry
from undersong.judges.llm.wire import Backend
from undersong.judges.terms import AnswerLedger, Pending
from undersong.models import Usage

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
    seats: Sequence[ModelClient], ledger: AnswerLedger, asked: Sequence[KeyedRequest], settlement: BatchSettlement
) -> list[KeyedRequest]:
    """The questions that nobody asked yet, each once, in their order."""
    own = {each.key: each for each in asked if each.model_client in seats}
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
