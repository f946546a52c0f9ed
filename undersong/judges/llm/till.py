"""One question → the bytes of its answer: kept ones are read, new ones are asked, paid and kept, each only once."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec

from undersong.judges.llm.answer import UnusableError
from undersong.judges.llm.committer import Committer
from undersong.judges.llm.purse import Purse
from undersong.judges.llm.seat import Seat
from undersong.judges.llm.wire import Delivered, Said, Sent
from undersong.judges.terms import AnswerLedger, Paid
from undersong.models import Usage

LARGEST_KEPT = 1 << 21  # bytes of a body that are kept; `reading.yaml` bounds what is read far below


class Asked(NamedTuple):
    """A question with all that its key in the ledger stands for."""

    seat: Seat
    sent: Sent
    key: str
    prompt_hash: str
    message_hash: str
    context_hash: str
    depth: str


class Till:
    """The way to a provider in one event loop; questions of the same key share one request."""

    def __init__(self, ledger: AnswerLedger, purse: Purse) -> None:
        self._ledger, self._purse = ledger, purse
        self._committer = Committer(ledger)
        self._under_way: dict[tuple[str, int], asyncio.Future[Paid]] = {}

    def kept(self, asked: Asked) -> dict[int, Paid]:
        """Attempt → answer that was paid before."""
        return self._ledger.paid([asked.key]).get(asked.key, {})

    async def answer(self, asked: Asked, attempt: int) -> Paid:
        """The answer to an attempt; raises TransportError, SpentError, JudgeError, or what the ledger raises."""
        place = asked.key, attempt
        if place in self._under_way:
            return await asyncio.shield(self._under_way[place])
        future = self._under_way[place] = asyncio.get_running_loop().create_future()
        try:
            paid = await self._pay(asked, attempt)
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # whoever waits has it; nobody waiting is no fault
            raise
        finally:
            del self._under_way[place]
        future.set_result(paid)
        return paid

    async def _pay(self, asked: Asked, attempt: int) -> Paid:
        seat = asked.seat

        async def once() -> Delivered:
            most = seat.most(asked.sent)
            await self._purse.take(most)
            used = Usage()
            try:
                delivered = await seat.send(asked.sent)
                used = seat.used(_read(seat, delivered.body))
            finally:
                self._purse.settle(most, used)
            return delivered

        delivered = await seat.pace.patiently(once)
        paid = paid_of(asked, attempt, delivered.body)
        await self._committer.keep(paid)
        return paid


def paid_of(asked: Asked, attempt: int, body: bytes) -> Paid:
    """An answer as it is kept."""
    seat = asked.seat
    used = seat.used(_read(seat, body))
    return Paid(
        key=asked.key,
        attempt=attempt,
        judge=seat.spec.name,
        model=seat.spec.model,
        prompt_hash=asked.prompt_hash,
        message_hash=asked.message_hash,
        context_hash=asked.context_hash,
        depth=asked.depth,
        body=body[:LARGEST_KEPT],
        sent=len(asked.sent.user.encode()),
        fixed=len(asked.sent.system.encode()),
        **{name: value for name, value in msgspec.structs.asdict(used).items() if name != "calls"},
    )


def _read(seat: Seat, body: bytes) -> Said:
    """What can be read of an answer for its tokens; one that is broken is booked without."""
    try:
        return seat.said(body)
    except UnusableError:
        return Said("", "end")
