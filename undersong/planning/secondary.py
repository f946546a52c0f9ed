"""How many second questions an audit will ask, about flagged places of sessions, and what they cost: before any is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from undersong.evaluate import RoutedThread
from undersong.judges import Segment
from undersong.judges.llm.book import shipped_prompts
from undersong.judges.llm.schema import confirm_schema
from undersong.judges.llm.segment import render_segment
from undersong.judges.llm.specimens import questions_hash
from undersong.judges.llm.tokens import TokenRates, schema_bytes
from undersong.models import Evaluation, Record
from undersong.passes import rows_of
from undersong.prices import Price, load_prices
from undersong.stores.ledger import SQLiteLedger
from undersong.verdict import segments, session_verdict


class ConfirmationPlan(Record, frozen=True, kw_only=True):
    """The second questions of a run, to the judge of ``deep``.

    ``known`` places stand on the words, code and tool results of the sessions alone. ``expected`` adds those that the
    judge itself will see while it reads, as often as in ``learned_from`` kept readings; without these it is ``known``,
    the least that will be asked. Tokens and cost (USD, None = price not known) are of ``expected``.
    """

    judge: str
    known: int
    expected: int
    learned_from: int
    tokens_in: int
    tokens_out: int
    cost: float | None


class ConfirmationHistory(NamedTuple):
    """What a ledger tells of a judge: readings, second questions, and the bytes and tokens of these."""

    readings: int = 0
    questions: int = 0
    sent: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class FlaggedPlaces(msgspec.Struct):
    """Flagged places of the sessions of a run, counted one session after the other."""

    count: int = 0
    sent: int = 0  # UTF-8 bytes of the questions' user parts

    def add(self, thread: RoutedThread) -> None:
        """Count the places of a session as they stand before any message of it is read."""
        for segment in _flagged_segments(thread):
            self.count += 1
            self.sent += len(render_segment(segment).user.encode())


def confirmation_history(judges: Iterable[str], deep: str, ledger: SQLiteLedger | None) -> ConfirmationHistory:
    """What is kept of the judges of all tiers, and of the one that is asked twice."""
    if ledger is None:
        return ConfirmationHistory()
    taken = {name: ledger.totals_by_depth(name, questions_hash()) for name in {*judges, deep}}
    readings = sum(each.answers for depths in taken.values() for depth, each in depths.items() if depth != "confirm")
    asked = taken[deep].get("confirm")
    return ConfirmationHistory(readings, *asked) if asked is not None else ConfirmationHistory(readings)


def plan_confirmation(
    places: FlaggedPlaces, messages: int, history: ConfirmationHistory, price: Price, rates: TokenRates
) -> ConfirmationPlan:
    """The second questions of a run that reads so many messages."""
    tokens = load_prices().tokens
    learned = history.readings if history.readings >= tokens.learn_from else 0
    expected = max(places.count, round(messages * history.questions / history.readings)) if learned else places.count
    sent = places.sent / places.count if places.count else history.sent / max(history.questions, 1)
    fixed, answer = _rates(history, rates)
    tokens_in, tokens_out = round(expected * (fixed + rates.per_byte * sent)), round(expected * answer)
    cost = price.cost(tokens_in, tokens_out)
    return ConfirmationPlan(
        judge=price.name,
        known=places.count,
        expected=expected,
        learned_from=learned,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=cost,
    )


def _rates(history: ConfirmationHistory, rates: TokenRates) -> tuple[float, float]:
    """Tokens of a question beside its user part, and of its answer: as kept, or by the rule of thumb."""
    if history.questions:
        return (
            history.tokens_in - rates.per_byte * history.sent
        ) / history.questions, history.tokens_out / history.questions
    sent = len(shipped_prompts().confirming.encode()) + schema_bytes(confirm_schema)
    return rates.per_byte * sent, float(load_prices().tokens.confirmation)


def _flagged_segments(thread: RoutedThread) -> tuple[Segment, ...]:
    messages = thread.conversation.messages
    unread = [
        Evaluation(message_id=each.id, state="unread", judge="", judge_hash="", message_hash="") for each in messages
    ]
    verdict = session_verdict(thread.conversation, thread.scans, thread.thread, rows_of(thread, unread))
    return segments(thread.conversation, verdict)
