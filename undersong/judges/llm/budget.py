"""The budget of a run, in money and calls: reserved before a request goes out, committed when its answer is there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from undersong.core.text import counted
from undersong.judges.limits import RunLimits
from undersong.models import Usage

CENT = 0.005  # USD that are worth a word


class BudgetExhaustedError(Exception):
    """Nothing more may be asked in this run; the text says which limit was reached."""


class Budget:
    """What a run may still spend; where a request is too dear just now, those under way may cost less than reserved."""

    def __init__(self, limits: RunLimits) -> None:
        self._budget, self._calls_left = limits.budget, limits.max_calls
        self._reserved = self._held = 0.0
        self._batches: dict[str, float] = {}  # id → what of the reserved is for it
        self._under_way = 0
        self._committed: asyncio.Event | None = None
        self.usage = Usage()
        self.unanswered = Usage()  # part of it: requests that brought no answer and may have been paid all the same

    async def reserve(self, max_cost: float) -> None:
        """Reserve what a request may cost at most, in USD; raises BudgetExhaustedError where it cannot be paid."""
        while not self._affords(max_cost):
            if self._under_way == 0:
                raise self._used_up()
            self._committed = self._committed or asyncio.Event()
            await self._committed.wait()
        self._reserve(max_cost)
        self._under_way += 1

    def take_in_batch(self, most: float) -> None:
        """Reserve the most that a question of a batch may cost, in USD; raises BudgetExhaustedError.

        It stays reserved where the batch could not be submitted: it may have arrived all the same.
        """
        if not self._affords(most):
            raise self._used_up()
        self._reserve(most)

    def submitted(self, batch_id: str, most: float) -> None:
        """Note for which batch some of the reserved is."""
        self._batches[batch_id] = most

    def resume(self, batch_id: str, most: Sequence[float]) -> None:
        """Reserve the questions of a batch that an earlier run submitted, also beyond the limits; only once."""
        if batch_id in self._batches:
            return
        self._batches[batch_id] = sum(most)
        self._reserved += sum(most)
        if self._calls_left is not None:
            self._calls_left = max(0, self._calls_left - len(most))

    def collected(self, batch_id: str, used: Usage) -> None:
        """Give back what was reserved for a batch, and book what was used."""
        self._reserved -= self._batches.pop(batch_id)
        self.usage += used

    @classmethod
    def shared(cls, limits: RunLimits) -> RunLimits:
        """The limits with one budget for all judges that are opened with them."""
        return (
            limits if limits.shared_budget is not None else msgspec.structs.replace(limits, shared_budget=cls(limits))
        )

    def commit(self, max_cost: float, usage: Usage) -> None:
        """Give back what was reserved, and book what was used.

        Where the tokens are an estimate, what was reserved beyond it is not spent again: thinking may have been paid
        that nobody saw.
        """
        self._reserved -= max_cost
        self.hold(max_cost, usage)
        self._under_way -= 1
        self.usage += usage
        if self._committed is not None:
            self._committed.set()
            self._committed = None

    def hold(self, max_cost: float, usage: Usage) -> None:
        """Keep reserved what an answer may have cost beyond an estimate of it."""
        if usage.estimated:
            self._held += max(0.0, max_cost - (usage.cost or 0.0))

    @property
    def note(self) -> str:
        """What requests without an answer may have cost, in words; "" where there were none."""
        lost = self.unanswered
        if not lost.calls:
            return ""
        most = f"{lost.input + lost.output:,} tokens" if lost.cost is None else f"${lost.cost:,.2f}"
        return (
            f"{counted(lost.calls, 'request')} brought no answer and may have been paid all the same, {most} at most: "
            "the budget counts them, the cost in the report does not"
        )

    def _reserve(self, most: float) -> None:
        if self._calls_left is not None:
            if self._calls_left == 0:
                raise BudgetExhaustedError("the number of calls that were allowed is used up")
            self._calls_left -= 1
        self._reserved += most

    def _used_up(self) -> BudgetExhaustedError:
        beyond = f", ${self._held:,.2f} of it by answers that name no tokens" if self._held >= CENT else ""
        return BudgetExhaustedError(f"the budget of ${self._budget:,.2f} is used up{beyond}")

    def _affords(self, max_cost: float) -> bool:
        spent = (self.usage.cost or 0.0) + self._held
        return self._budget is None or spent + self._reserved + max_cost <= self._budget
