"""Questions in a provider's batches: submitted within the limits of a run, collected by a later one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from undersong.judges.limits import CUT, AnswerLedger, LedgerEntry, Pending
from undersong.judges.llm.budget import Budget, BudgetExhaustedError
from undersong.judges.llm.client import (
    CUT_REMEDY,
    Asked,
    KeyedRequest,
    ModelClient,
    answered_entry,
    cut_answers,
    unanswered_entry,
)
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.response import UnusableError
from undersong.judges.llm.transport import BatchResult, NoAnswerError
from undersong.models import Usage

MOST_OUT = 16_000  # tokens of an answer whose longest length an earlier version did not note
MOST = 10_000  # questions of one batch: providers take more, but a body of some hundred megabytes is slow to send
WAITS = "it waits in a batch of the provider; run the same command again later"
OpenRequests = Callable[[], Iterable[KeyedRequest]]  # what is to be asked, as the ledger stands when it is called


class BatchSettlement(NamedTuple):
    """Keys of questions that have no answer yet.

    ``waiting``: a batch is under way; ``without``: why their batch did not answer them; ``left``: which limit of the
    run kept them out of a batch.
    """

    waiting: set[str]
    without: dict[str, str]
    left: dict[str, str]


async def collect_and_submit(
    models: Iterable[ModelClient], ledger: AnswerLedger, budget: Budget, open_requests: OpenRequests
) -> BatchSettlement:
    """Collect the batches that have ended, then submit what is to be asked, as far as it can be paid.

    That are questions that nobody asked yet, and second ones about answers that could not be used or were cut off. What
    an earlier run submitted counts against the limits of this one, whether it is still under way or collected now.
    Raises JudgeError where the provider turns everything away, TransportError where it cannot be reached.
    """
    settlement, models = BatchSettlement(set(), {}, {}), [model for model in models if model.backend is not None]
    for model in models:
        await _looked_after(model, ledger, budget, settlement)
    unasked = {each.key: each for each in open_requests() if each.model_client in models}
    wanted = [each for key, each in unasked.items() if key not in settlement.waiting | settlement.without.keys()]
    new = _reserved(wanted, budget, settlement)
    for model in models:
        own = [each for each in new if each.model_client is model]
        for first in range(0, len(own), MOST):
            await _submitted(model, ledger, budget, own[first : first + MOST])
    settlement.waiting.update(each.key for each in new)
    return settlement


def max_cost_in_batch(request: KeyedRequest) -> float:
    """What a question of a batch may cost at most, USD."""
    return request.model_client.max_cost(request.request) * request.model_client.price.batch


async def _looked_after(model: ModelClient, ledger: AnswerLedger, budget: Budget, settlement: BatchSettlement) -> None:
    """Collect the batches of a model that have ended, and note which questions wait in the others."""
    assert model.backend is not None
    for batch in ledger.pending(model.spec.name):
        budget.resume(batch.id, batch.reserved or [_reserved_earlier(model, each) for each in batch.questions])
        if await model.backend.ended(batch.id):
            results = [result async for result in model.backend.collect(batch.id)]
            settlement.without.update(_collected(model, ledger, budget, batch, results))
        else:
            settlement.waiting.update(each.key for each in batch.questions)


def _reserved_earlier(model: ModelClient, question: LedgerEntry) -> float:
    """What a question may cost that an earlier version submitted, as far as the ledger tells of it."""
    limits = shipped_prompts().limits
    answer = limits.answer_tokens.get(question.depth, limits.answer_tokens["standard"])  # a confirmation has that
    tokens_in = model.input_tokens(question.fixed + question.sent)
    return (model.price.cost(tokens_in, answer + limits.thinking_tokens) or 0.0) * model.price.batch


def _reserved(wanted: Iterable[KeyedRequest], budget: Budget, settlement: BatchSettlement) -> list[KeyedRequest]:
    """The questions that the limits of the run allow, each reserved as a direct one would be."""
    taken = []
    for request in wanted:
        try:
            budget.take_in_batch(max_cost_in_batch(request))
        except BudgetExhaustedError as error:
            settlement.left[request.key] = str(error)
        else:
            taken.append(request)
    return taken


async def _submitted(model: ModelClient, ledger: AnswerLedger, budget: Budget, part: Sequence[KeyedRequest]) -> None:
    assert model.backend is not None
    reserved = tuple(map(max_cost_in_batch, part))
    name = await model.backend.submit([each.request for each in part])
    batch = Pending(
        id=name,
        judge=model.spec.name,
        questions=tuple(map(unanswered_entry, part)),
        reserved=reserved,
        sizes=tuple(each.asked for each in part),
    )
    ledger.submit(batch)
    budget.submitted(name, sum(reserved))


def _collected(
    model: ModelClient, ledger: AnswerLedger, budget: Budget, batch: Pending, results: Iterable[BatchResult]
) -> dict[str, str]:
    """Keep the answers of a batch; of the questions without one, why."""
    without = {question.key: "nothing came back" for question in batch.questions}
    used, answers = Usage(), []
    for result in results:
        if not 0 <= result.number < len(batch.questions):
            continue  # an answer to a question that was not asked
        question = batch.questions[result.number]
        why = _why_not(model, result)
        if why or result.body is None:
            without[question.key] = why
            continue
        without.pop(question.key, None)
        asked = Asked(*batch.sizes[result.number]) if batch.sizes else Asked(question.sent + question.fixed, MOST_OUT)
        completion = model.counted(result.body, asked)
        usage = model.usage(completion, batch=True)
        if batch.reserved:
            budget.hold(batch.reserved[result.number], usage)
        used += usage
        entry = answered_entry(question, model, result.body, asked, batch=True)
        if completion.incomplete:
            cut = cut_answers(ledger.paid([question.key]).get(question.key, {}))
            entry = msgspec.structs.replace(entry, attempt=CUT + cut)
            if cut:
                without[question.key] = f"the answer was cut off twice; {CUT_REMEDY}"
        answers.append(entry)
    ledger.keep(answers)
    ledger.collected(batch.id)
    budget.collected(batch.id, used)
    return without


def _why_not(model: ModelClient, result: BatchResult) -> str:
    """Why a result is no answer; "" for one that is."""
    if result.body is None:
        return result.why
    try:
        model.parse(result.body)
    except NoAnswerError as error:
        return str(error)
    except UnusableError:
        pass  # it is an answer, and paid; what is wrong with it is said where it is used
    return ""
