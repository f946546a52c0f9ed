"""One question → the bytes of its answer: kept ones are read, new ones are asked, paid and kept, each only once."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec

from undersong.errors import JudgeError
from undersong.judges.llm.answer import UnusableError
from undersong.judges.llm.committer import Committer
from undersong.judges.llm.purse import Purse
from undersong.judges.llm.seat import Seat
from undersong.judges.llm.wire import Delivered, Said, Sent, TransportError
from undersong.judges.terms import AnswerLedger, Paid
from undersong.models import Usage

NOBODY_THERE = "see that its server runs and is named by its address, and run the same command again"
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

        try:
            delivered = await seat.pace.patiently(once)
        except TransportError as error:
            if error.reached:
                raise
            raise JudgeError(error.why, where=seat.spec.name, remedy=NOBODY_THERE) from error
        paid = msgspec.structs.replace(booked(unpaid(asked), seat, delivered.body), attempt=attempt)
        await self._committer.keep(paid)
        return paid


def unpaid(asked: Asked) -> Paid:
    """A question as the ledger knows it, without an answer."""
    return Paid(
        key=asked.key,
        attempt=0,
        judge=asked.seat.spec.name,
        model=asked.seat.spec.model,
        prompt_hash=asked.prompt_hash,
        message_hash=asked.message_hash,
        context_hash=asked.context_hash,
        depth=asked.depth,
        body=b"",
        sent=len(asked.sent.user.encode()),
        fixed=len(asked.sent.system.encode()),
    )


def booked(question: Paid, seat: Seat, body: bytes, *, batch: bool = False) -> Paid:
    """The question with its answer, and what that took."""
    used = msgspec.structs.asdict(seat.used(_read(seat, body), batch=batch))
    del used["calls"]
    return msgspec.structs.replace(question, body=body[:LARGEST_KEPT], **used)


def _read(seat: Seat, body: bytes) -> Said:
    """What can be read of an answer for its tokens; one that is broken is booked without."""
    try:
        return seat.said(body)
    except UnusableError:
        return Said("", "end")
