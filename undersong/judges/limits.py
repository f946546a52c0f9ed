"""What a paid judge may do in a run: money, calls, concurrency, and where its answers are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from undersong.judges.llm.budget import Budget


CONCURRENCY = 16  # questions at a time, where neither the user nor the provider's preset says how many
TIMEOUT = 300.0  # seconds for one request, as above: thinking takes its time
FAILED = 99  # number of the mark that no answer to a question could be used
CUT = 100  # numbers from here on: answers that were cut off, or had no word in them
SET_ASIDE = 1000  # numbers from here on: answers that could not be used, and that are asked for again


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a provider as it is kept: the key of its question, and the bytes that came.

    ``attempt`` 0 is the first answer, 1 the one after the repair, FAILED the mark that neither could be used; from CUT
    on they count for nothing, but were paid. ``sent`` are the UTF-8 bytes of the question's user
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
    """A batch that a provider works on: its id, who asked, and its questions in order, as answers without a body.

    ``reserved`` is what each may cost at most in USD, ``sizes`` the bytes of each that a provider counts, with
    the longest answer in tokens; both are empty in batches of earlier versions.
    """

    id: str
    judge: str
    questions: tuple[LedgerEntry, ...]
    reserved: tuple[float, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()


class AnswerLedger(Protocol):
    """Where paid answers are kept; what was kept is there after any crash."""

    def paid(self, keys: Iterable[str]) -> dict[str, dict[int, LedgerEntry]]:
        """Key → attempt → answer, of those that are kept."""
        ...

    def keep(self, answers: Iterable[LedgerEntry]) -> None:
        """Keep answers in one transaction; one that is there already stays."""
        ...

    def forget(self, places: Iterable[tuple[str, int]]) -> None:
        """Take away entries by their key and number."""
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
        return {key: dict(self._answers[key]) for key in keys if self._answers.get(key)}

    def keep(self, answers: Iterable[LedgerEntry]) -> None:
        """See AnswerLedger."""
        for answer in answers:
            self._answers.setdefault(answer.key, {}).setdefault(answer.attempt, answer)

    def forget(self, places: Iterable[tuple[str, int]]) -> None:
        """See AnswerLedger."""
        for key, attempt in places:
            self._answers.get(key, {}).pop(attempt, None)

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
    question apart, ``framing`` the two ways to put it. ``max_failed`` is the share of questions that may fail before a
    run counts as failed. ``batch``: hand questions to the provider's batch interface.
    ``shared_budget`` is shared by judges that have one budget together; None: each has its own. ``notes`` takes, by
    subject, what a person should hear of a run beside its results; None: nobody listens.
    """

    budget: float | None = None
    max_calls: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    attempts: int = 6
    backoff: float = 1.0
    max_failed: float = 0.1
    price_in: float | None = None
    price_out: float | None = None
    batch: bool = False
    sample: int = 0
    framing: str = "data_first"
    ledger: AnswerLedger | None = None
    environment: Mapping[str, str] | None = None
    shared_budget: Budget | None = None
    notes: dict[str, str] | None = None
