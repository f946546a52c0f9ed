"""What a paid judge may do in a run: money, calls, concurrency, and where its answers are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from undersong.judges.llm.budget import Budget


CONCURRENCY = 16  # questions at a time, where neither the user nor the provider's preset says how many
TIMEOUT = 120.0  # seconds for one request, as above


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a provider as it is kept: the key of its question, and the bytes that came.

    ``attempt`` 0 is the first answer, 1 the one after the repair. ``sent`` are the UTF-8 bytes of the question's user
    part, ``fixed`` those of its system part. ``cost`` in USD, None where the price is not known.
    """

    key: str
    attempt: int
    judge: str
    model: str
    prompt_hash: str
    message_hash: str
    context_hash: str
    depth: str
    body: bytes
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost: float | None = None
    sent: int = 0
    fixed: int = 0


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that a provider works on: its id, who asked, and its questions in order, as answers without a body."""

    id: str
    judge: str
    questions: tuple[LedgerEntry, ...]


class AnswerLedger(Protocol):
    """Where paid answers are kept; what was kept is there after any crash."""

    def paid(self, keys: Iterable[str]) -> dict[str, dict[int, LedgerEntry]]:
        """Key → attempt → answer, of those that are kept."""
        ...

    def keep(self, answers: Iterable[LedgerEntry]) -> None:
        """Keep answers in one transaction; one that is there already stays."""
        ...

    def pending(self, judge: str) -> list[Pending]:
        """The batches of a judge that were not collected yet."""
        ...

    def submit(self, batch: Pending) -> None:
        """Remember a batch."""
        ...

    def collected(self, batch_id: str) -> None:
        """Forget a batch whose answers are kept."""
        ...


class MemoryLedger:
    """A ledger that ends with the process: for a judge that was opened without a store."""

    def __init__(self, answers: Iterable[LedgerEntry] = ()) -> None:
        self._answers: dict[str, dict[int, LedgerEntry]] = {}
        self._batches: dict[str, Pending] = {}
        self.keep(answers)

    def paid(self, keys: Iterable[str]) -> dict[str, dict[int, LedgerEntry]]:
        """See AnswerLedger."""
        return {key: self._answers[key] for key in keys if key in self._answers}

    def keep(self, answers: Iterable[LedgerEntry]) -> None:
        """See AnswerLedger."""
        for answer in answers:
            self._answers.setdefault(answer.key, {}).setdefault(answer.attempt, answer)

    def pending(self, judge: str) -> list[Pending]:
        """See AnswerLedger."""
        return [batch for batch in self._batches.values() if batch.judge == judge]

    def submit(self, batch: Pending) -> None:
        """See AnswerLedger."""
        self._batches[batch.id] = batch

    def collected(self, batch_id: str) -> None:
        """See AnswerLedger."""
        self._batches.pop(batch_id, None)


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a run allows a paid judge.

    ``budget`` in USD and ``max_calls`` None: no limit. ``concurrency`` (questions at a time) and ``timeout`` (seconds
    for one request) None: those of the provider, else 16 and 120. ``attempts`` is how often a question is sent before
    it counts as failed, ``backoff`` the first pause in seconds. ``price_in`` and
    ``price_out`` (USD for a million tokens) go before the price file. ``sample`` tells repeated readings of one
    question apart, ``framing`` the two ways to put it. ``batch``: hand questions to the provider's batch interface.
    ``shared_budget`` is shared by judges that have one budget together; None: each has its own.
    """

    budget: float | None = None
    max_calls: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    attempts: int = 6
    backoff: float = 1.0
    price_in: float | None = None
    price_out: float | None = None
    batch: bool = False
    sample: int = 0
    framing: str = "data_first"
    ledger: AnswerLedger | None = None
    environment: Mapping[str, str] | None = None
    shared_budget: Budget | None = None
