"""Questions handed to a provider's batches at a lower price: submitted in one run, collected in a later one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from undersong.judges.llm.seat import Seat
from undersong.judges.llm.till import Asked, booked, unpaid
from undersong.judges.llm.wire import Backend
from undersong.judges.terms import AnswerLedger, Pending

MOST = 10_000  # questions of one batch: providers take more, but a body of some hundred megabytes is slow to send
WAITS = "it waits in a batch of the provider; run the same command again later"


async def settled(
    seats: Iterable[Seat], ledger: AnswerLedger, asked: Sequence[Asked]
) -> tuple[set[str], dict[str, str]]:
    """Collect the batches that have ended, then submit the questions that nobody asked yet.

    Returns the keys whose answers are still to come, and of those that a batch did not answer why. Raises JudgeError
    where the provider turns everything away, TransportError where it cannot be reached.
    """
    waiting, without = set[str](), dict[str, str]()
    for seat in seats:
        if seat.backend is None:
            continue
        own = {each.key: each for each in asked if each.seat is seat}
        for batch in ledger.pending(seat.spec.name):
            if await seat.backend.ended(batch.id):
                without |= await _collected(seat, seat.backend, ledger, batch)
            else:
                waiting.update(each.key for each in batch.questions)
        left = own.keys() - ledger.paid(own).keys() - waiting - without.keys()
        new = [each for key, each in own.items() if key in left]
        for first in range(0, len(new), MOST):
            part = new[first : first + MOST]
            name = await seat.backend.submit([each.sent for each in part])
            ledger.submit(Pending(id=name, judge=seat.spec.name, questions=tuple(map(unpaid, part))))
            waiting.update(each.key for each in part)
    return waiting, without


async def _collected(seat: Seat, backend: Backend, ledger: AnswerLedger, batch: Pending) -> dict[str, str]:
    """Keep the answers of a batch; of the questions without one, why."""
    found = [result async for result in backend.collect(batch.id)]
    answered = [(batch.questions[result.number], result.body) for result in found if result.body is not None]
    ledger.keep([booked(question, seat, body, batch=True) for question, body in answered])
    ledger.collected(batch.id)
    why = {batch.questions[result.number].key: result.why for result in found if result.body is None}
    seen = {question.key for question, _ in answered}
    return {each.key: why.get(each.key, "nothing came back") for each in batch.questions if each.key not in seen}
