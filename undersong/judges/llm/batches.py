"""Questions handed to a provider's batches at a lower price: submitted in one run, collected in a later one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from undersong.judges.llm.purse import Purse, SpentError
from undersong.judges.llm.seat import Seat, usage_of
from undersong.judges.llm.till import Asked, booked, unpaid
from undersong.judges.llm.wire import Backend
from undersong.judges.terms import AnswerLedger, Pending
from undersong.models import Usage

MOST = 10_000  # questions of one batch: providers take more, but a body of some hundred megabytes is slow to send
WAITS = "it waits in a batch of the provider; run the same command again later"


class Settled(NamedTuple):
    """Keys of questions that have no answer yet.

    ``waiting``: a batch is under way; ``without``: why their batch did not answer them; ``left``: which limit of the
    run kept them out of a batch.
    """

    waiting: set[str]
    without: dict[str, str]
    left: dict[str, str]


async def settled(seats: Iterable[Seat], ledger: AnswerLedger, purse: Purse, asked: Sequence[Asked]) -> Settled:
    """Collect the batches that have ended, then submit the questions that nobody asked yet, as far as they are paid.

    What an earlier run submitted counts against the limits of this one, whether it is still under way or collected
    now. Raises JudgeError where the provider turns everything away, TransportError where it cannot be reached.
    """
    found, seats = Settled(set(), {}, {}), [seat for seat in seats if seat.backend is not None]
    for seat in seats:
        await _looked_after(seat, ledger, purse, found)
    new = _reserved(_unasked(seats, ledger, asked, found), purse, found)
    for seat in seats:
        own = [each for each in new if each.seat is seat]
        for first in range(0, len(own), MOST):
            await _submitted(seat, ledger, purse, own[first : first + MOST])
    found.waiting.update(each.key for each in new)
    return found


async def _looked_after(seat: Seat, ledger: AnswerLedger, purse: Purse, found: Settled) -> None:
    """Collect the batches of a model that have ended, and note which questions wait in the others."""
    assert seat.backend is not None
    for batch in ledger.pending(seat.spec.name):
        purse.resume(batch.id, [seat.most_in_batch(each) for each in batch.questions])
        if await seat.backend.ended(batch.id):
            found.without.update(await _collected(seat, seat.backend, ledger, purse, batch))
        else:
            found.waiting.update(each.key for each in batch.questions)


def _unasked(seats: Sequence[Seat], ledger: AnswerLedger, asked: Sequence[Asked], found: Settled) -> list[Asked]:
    """The questions that nobody asked yet, each once, in their order."""
    own = {each.key: each for each in asked if each.seat in seats}
    known = ledger.paid(own).keys() | found.waiting | found.without.keys()
    return [each for key, each in own.items() if key not in known]


def _reserved(unasked: Iterable[Asked], purse: Purse, found: Settled) -> list[Asked]:
    """The questions that the limits of the run allow, each reserved as a direct one would be."""
    taken = []
    for each in unasked:
        try:
            purse.take_in_batch(each.seat.most_in_batch(unpaid(each)))
        except SpentError as error:
            found.left[each.key] = str(error)
        else:
            taken.append(each)
    return taken


async def _submitted(seat: Seat, ledger: AnswerLedger, purse: Purse, part: Sequence[Asked]) -> None:
    assert seat.backend is not None
    name, questions = await seat.backend.submit([each.sent for each in part]), tuple(map(unpaid, part))
    ledger.submit(Pending(id=name, judge=seat.spec.name, questions=questions))
    purse.submitted(name, sum(map(seat.most_in_batch, questions)))


async def _collected(
    seat: Seat, backend: Backend, ledger: AnswerLedger, purse: Purse, batch: Pending
) -> dict[str, str]:
    """Keep the answers of a batch; of the questions without one, why."""
    found = [result async for result in backend.collect(batch.id)]
    answered = [(batch.questions[result.number], result.body) for result in found if result.body is not None]
    answers = [booked(question, seat, body, batch=True) for question, body in answered]
    ledger.keep(answers)
    ledger.collected(batch.id)
    purse.collected(batch.id, sum(map(usage_of, answers), Usage()))
    why = {batch.questions[result.number].key: result.why for result in found if result.body is None}
    seen = {question.key for question, _ in answered}
    return {each.key: why.get(each.key, "nothing came back") for each in batch.questions if each.key not in seen}
