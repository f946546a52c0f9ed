"""How many second questions an audit will ask, about flagged places of sessions, and what they cost: before any is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from undersong.evaluate import Thread
from undersong.judges import Segment
from undersong.judges.llm.book import book
from undersong.judges.llm.schema import confirm_schema
from undersong.judges.llm.segment import framed_segment
from undersong.judges.llm.specimens import asked_hash
from undersong.judges.llm.tokens import Rates, schema_bytes
from undersong.models import Evaluation, Noun
from undersong.passes import rows_of
from undersong.prices import Price, load_prices
from undersong.stores.ledger import SQLiteLedger
from undersong.verdict import segments, session_verdict


class Secondary(Noun, frozen=True, kw_only=True):
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


class Kept(NamedTuple):
    """What a ledger tells of a judge: readings, second questions, and the bytes and tokens of these."""

    readings: int = 0
    questions: int = 0
    sent: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class Places(msgspec.Struct):
    """Flagged places of the sessions of a run, counted one session after the other."""

    known: int = 0
    sent: int = 0  # UTF-8 bytes of the questions' user parts

    def add(self, thread: Thread) -> None:
        """Count the places of a session as they stand before any message of it is read."""
        for segment in _known(thread):
            self.known += 1
            self.sent += len(framed_segment(segment).user.encode())


def kept_of(judges: Iterable[str], deep: str, ledger: SQLiteLedger | None) -> Kept:
    """What is kept of the judges of all tiers, and of the one that is asked twice."""
    if ledger is None:
        return Kept()
    taken = {name: ledger.taken(name, asked_hash()) for name in {*judges, deep}}
    readings = sum(each.answers for depths in taken.values() for depth, each in depths.items() if depth != "confirm")
    asked = taken[deep].get("confirm")
    return Kept(readings, *asked) if asked is not None else Kept(readings)


def secondary(places: Places, messages: int, kept: Kept, price: Price, rates: Rates) -> Secondary:
    """The second questions of a run that reads so many messages."""
    tokens = load_prices().tokens
    learned = kept.readings if kept.readings >= tokens.learn_from else 0
    expected = max(places.known, round(messages * kept.questions / kept.readings)) if learned else places.known
    sent = places.sent / places.known if places.known else kept.sent / max(kept.questions, 1)
    fixed, answer = _rates(kept, rates)
    tokens_in, tokens_out = round(expected * (fixed + rates.each * sent)), round(expected * answer)
    cost = price.cost(tokens_in, tokens_out)
    return Secondary(
        judge=price.name,
        known=places.known,
        expected=expected,
        learned_from=learned,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=cost,
    )


def _rates(kept: Kept, rates: Rates) -> tuple[float, float]:
    """Tokens of a question beside its user part, and of its answer: as kept, or by the rule of thumb."""
    if kept.questions:
        return (kept.tokens_in - rates.each * kept.sent) / kept.questions, kept.tokens_out / kept.questions
    sent = len(book().confirming.encode()) + schema_bytes(confirm_schema)
    return rates.each * sent, float(load_prices().tokens.confirmation)


def _known(thread: Thread) -> tuple[Segment, ...]:
    messages = thread.conversation.messages
    unread = [
        Evaluation(message_id=each.id, state="unread", judge="", judge_hash="", message_hash="") for each in messages
    ]
    verdict = session_verdict(thread.conversation, thread.scans, thread.thread, rows_of(thread, unread))
    return segments(thread.conversation, verdict)
