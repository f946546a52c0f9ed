"""The LLM judge: questions → Evaluations, many at a time, each in a state that says what became of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from undersong.errors import JudgeError
from undersong.judges import BrokenOffError, Question
from undersong.judges.llm.answer import Answer, UnusableError, checked
from undersong.judges.llm.batches import WAITS, Settled, settled
from undersong.judges.llm.book import book
from undersong.judges.llm.framing import Framed, framed
from undersong.judges.llm.injection import suspicious
from undersong.judges.llm.loop import finished
from undersong.judges.llm.purse import Purse, SpentError
from undersong.judges.llm.schema import answer_schema
from undersong.judges.llm.seat import Seat, usage_of
from undersong.judges.llm.specimens import asked_hash, checked_hash, judge_hashes
from undersong.judges.llm.till import Asked, Till
from undersong.judges.llm.wire import TransportError
from undersong.judges.terms import MemoryLedger, Paid, Terms
from undersong.models import Depth, Evaluation, Reading, Tier, Usage

SIGNALS = ("act_request", "act_complies", "act_refuses", "concedes", "suspected_injection", "control_failed")
CONCEDES = {"concedes": 1.0, "holds": 0.0}
T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class RefusedError(Exception):
    """The model declined to answer; the text is what it said."""


class Read(NamedTuple):
    """An answer that can be used, as it came, and what it took."""

    answer: Answer
    raw: str
    shortened: int


class LLMJudge:
    """A model per tier, one ledger, one purse."""

    reads_everything = False
    gives = frozenset({"traits", "indicators", "mechanisms", *SIGNALS})

    def __init__(self, name: str, seats: Mapping[Tier, Seat], terms: Terms) -> None:
        self.name, self.seats, self.terms = name, dict(seats), terms
        self.hashes = judge_hashes()
        self.prompt_hash = asked_hash()
        named = {tier: seat.spec.name for tier, seat in sorted(self.seats.items())}
        self.hash = hashed([named, self.prompt_hash, checked_hash(), terms.framing])
        self.ledger = terms.ledger or MemoryLedger()
        self.purse = terms.purse or Purse(terms)
        self.calibrated = False
        self._settled = Settled(set(), {}, {})

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """One Evaluation per question, in order.

        Raises BrokenOffError, with what was answered before, where the provider turns every question away.
        """
        self.settle(
            self.asked(each, framed(each, self.terms.framing)) for each in questions if each.message.text.strip()
        )
        return finished(self.answered(questions, self._evaluation))

    async def answered(self, questions: Sequence[T], ask: Callable[[Till, T], Awaitable[R]]) -> list[R]:
        """The questions asked with bounded concurrency; each worker takes the next one."""
        found: list[R | None] = [None] * len(questions)
        waiting, failures, till = iter(enumerate(questions)), list[JudgeError](), Till(self.ledger, self.purse)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.terms.concurrency, len(questions))):
                    group.create_task(_work(waiting, till, ask, found, failures))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await _close(self.seats.values())
        if failures:
            raise BrokenOffError(failures[0], found)
        return [each for each in found if each is not None]

    def settle(self, asked: Iterable[Asked]) -> None:
        """Collect and submit batches, where that is asked for; what they have not answered is not asked otherwise.

        What the limits of the run leave out of a batch is in no batch, and is not asked otherwise either.
        """
        if not self.terms.batch:
            return
        try:
            self._settled = finished(self._settle(list(asked)))
        except TransportError as error:
            raise JudgeError(error.why, where=self.name, remedy="run the same command again later") from error

    async def _settle(self, asked: Sequence[Asked]) -> Settled:
        seats = list({id(seat): seat for seat in self.seats.values()}.values())
        try:
            return await settled(seats, self.ledger, self.purse, asked)
        finally:
            await _close(seats)

    def asked(self, question: Question, put: Framed, repair: str = "") -> Asked:
        """The question as it is sent to the model of its tier, with its key."""
        seat = self.seats[question.route.tier]
        depth = _depth(question)
        text, context = text_hash(question.message.text), question.context_hash
        parts = [text, context, seat.spec.name, self.prompt_hash, depth, self.terms.framing, self.terms.sample]
        user = f"{put.user}\n{repair}" if repair else put.user
        sent = seat.sent(put.system, user, depth, answer_schema)
        return Asked(seat, sent, hashed(parts), self.prompt_hash, text, context, depth)

    async def _evaluation(self, till: Till, question: Question) -> Evaluation:
        if not question.message.text.strip():
            return self._state(question, "unread", "no text to read")
        paid: list[Paid] = []
        try:
            read = await self._read(till, question, paid)
        except RefusedError as refusal:
            return self._state(question, "refused", f"the judge refused: {refusal}", paid)
        except UnusableError as error:
            return self._state(question, "failed", f"the judge's answer cannot be used: {error}", paid)
        except TransportError as error:
            return self._state(question, "failed", f"the judge did not answer: {error.why}", paid)
        except SpentError as error:
            return self._state(question, "unread", f"{error}", paid)
        return self._scored(question, read, paid)

    async def _read(self, till: Till, question: Question, paid: list[Paid]) -> Read:
        put = framed(question, self.terms.framing)
        message = question.message.text

        def use(text: str) -> Read:
            return Read(checked(text, message, put.control), text, put.shortened)

        return await self.usable(till, lambda repair: self.asked(question, put, repair), use, paid)

    async def usable(self, till: Till, asking: Callable[[str], Asked], use: Callable[[str], U], paid: list[Paid]) -> U:
        """The first answer that can be used, of two at most; every paid one is noted in ``paid``.

        ``asking`` makes the request, with words of repair for the second one; ``use`` raises UnusableError. Raises
        RefusedError, UnusableError, TransportError or SpentError.
        """
        first = asking("")
        kept, why = till.kept(first), ""
        if 0 not in kept:
            self._stop_for_batches(first.key)
        for attempt in range(2):
            repair = book().words.repair.format(why=why) if attempt else ""
            asked = asking(repair) if repair else first
            paid.append(kept.get(attempt) or await till.answer(asked, attempt))
            try:
                return use(_text(asked.seat, paid[-1].body))
            except UnusableError as error:
                why = str(error)
        raise UnusableError(f"{why}, also after one repair")

    def _stop_for_batches(self, key: str) -> None:
        """Raise TransportError or SpentError for a question that is in a batch, or that a limit keeps out of one."""
        waiting, without, left = self._settled
        if key in without:
            again = "; run the same command again to ask once more"
            raise TransportError(f"its batch gave no answer ({without[key]}){again}", passing=False)
        if key in waiting:
            raise SpentError(WAITS)
        if key in left:
            raise SpentError(left[key])

    def _scored(self, question: Question, read: Read, paid: Sequence[Paid]) -> Evaluation:
        answer = read.answer
        reading = Reading(
            mechanisms=answer.mechanisms,
            acts=answer.acts,
            stance=answer.stance,
            rejected=answer.rejected,
            cut=question.cut,
            usage=sum(map(usage_of, paid), Usage()),
            raw=read.raw,
            shortened=read.shortened,
            depth=_depth(question),
        )
        signals = {f"act_{act.id}": 1.0 for act in answer.acts}
        if answer.stance is not None and answer.stance.position in CONCEDES:
            signals["concedes"] = CONCEDES[answer.stance.position]
        state = self._state(question, "scored", None, paid)
        return msgspec.structs.replace(
            state,
            traits=answer.traits,
            indicators=answer.indicators,
            signals=signals | state.signals,
            mechanisms={each.id: each.confidence or 0.0 for each in answer.mechanisms},
            reading=reading,
        )

    def _state(self, question: Question, state: str, reason: str | None, paid: Sequence[Paid] = ()) -> Evaluation:
        used = sum(map(usage_of, paid), Usage())
        broken = {"control_failed": 1.0} if reason and "control question" in reason else {}
        return Evaluation(
            message_id=question.message.id,
            state=state,  # type: ignore[arg-type]
            reason=reason,
            judge=self.seats[question.route.tier].spec.name,
            judge_hash=self.hash,
            message_hash=text_hash(question.message.text),
            context_hash=question.context_hash,
            width=question.route.width if question.route.width != "none" else "message",
            signals=self._suspicion(question) | broken,
            tokens=used.input + used.output if paid else None,
            cost=used.cost or 0.0,
            reading=Reading(cut=question.cut, usage=used, depth=_depth(question)) if paid else None,
        )

    def _suspicion(self, question: Question) -> dict[str, float]:
        """Evidence of its own: somebody tries to talk to the reader of the transcript."""
        return {"suspected_injection": 1.0} if suspicious(question.message.text) else {}


async def _close(seats: Iterable[Seat]) -> None:
    for seat in seats:
        if seat.backend is not None:
            await seat.backend.close()


async def _work(
    waiting: Iterator[tuple[int, T]],
    till: Till,
    ask: Callable[[Till, T], Awaitable[R]],
    found: list[R | None],
    failures: list[JudgeError],
) -> None:
    for place, question in waiting:
        if failures:
            return
        try:
            found[place] = await ask(till, question)
        except JudgeError as error:
            failures.append(error)


def _depth(question: Question) -> Depth:
    """Which of the two prompts asks it; a message that only a run over everything reads has the standard one."""
    return "thorough" if question.route.depth == "thorough" else "standard"


def _text(seat: Seat, body: bytes) -> str:
    said = seat.said(body)
    if said.stop == "refusal":
        raise RefusedError(said.text[:200] or "without a reason")
    if said.stop == "length":
        raise UnusableError("it was cut off at its longest")
    return said.text


def text_hash(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hashed(parts: object) -> str:
    """SHA-256 of the JSON of some parts."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()
