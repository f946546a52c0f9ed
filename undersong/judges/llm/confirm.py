"""A second question: do these words show this mechanism? Yes or no with quotes, over any distance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from undersong.errors import UsageError
from undersong.judges import Segment, used_tools
from undersong.judges.llm.answer import Confirmation, UnusableError, confirmed
from undersong.judges.llm.book import book
from undersong.judges.llm.framing import Framed
from undersong.judges.llm.judge import LLMJudge, RefusedError, hashed, text_hash
from undersong.judges.llm.loop import finished
from undersong.judges.llm.purse import SpentError
from undersong.judges.llm.schema import confirm_schema
from undersong.judges.llm.seat import usage_of
from undersong.judges.llm.segment import framed_segment
from undersong.judges.llm.till import Asked, Till
from undersong.judges.llm.wire import TransportError
from undersong.judges.terms import Paid
from undersong.models import Confirmed, Message, Quote, State, Usage
from undersong.rulebook import did_you_mean


def confirm(judge: LLMJudge, segments: Sequence[Segment]) -> list[Confirmed]:
    """One answer per segment, in order, by the model of ``deep``; asked and kept like any other question.

    Raises UsageError for a mechanism that is not known and for a segment of none or more than two messages, and
    BrokenOffError where the provider turns every question away.
    """
    for each in segments:
        if each.mechanism not in book().mechanisms:
            remedy = did_you_mean(each.mechanism, list(book().mechanisms))
            raise UsageError(f"unknown mechanism '{each.mechanism}'", remedy=remedy)
        if not 1 <= len(each.messages) <= 2:
            raise UsageError("a segment has one message or two", remedy="give the rest as `around`")

    async def ask(till: Till, segment: Segment) -> Confirmed:
        return await _confirmed(judge, till, segment)

    judge.settle(_asked(judge, each, framed_segment(each), "") for each in segments)
    return finished(judge.answered(segments, ask))


class Said(NamedTuple):
    """An answer that can be used, and as it came."""

    answer: Confirmation
    raw: str


def not_asked(judge: LLMJudge, segment: Segment, why: str) -> Confirmed:
    """The state of a segment that the judge was not asked about."""
    return _state(judge, segment, (), "unread", why)


async def _confirmed(judge: LLMJudge, till: Till, segment: Segment) -> Confirmed:
    put = framed_segment(segment)
    texts = tuple(message.text for message in segment.messages)
    paid: list[Paid] = []

    def use(text: str) -> Said:
        return Said(confirmed(text, texts, put.control), text)

    try:
        found = await judge.usable(till, lambda repair: _asked(judge, segment, put, repair), use, paid)
    except RefusedError as refusal:
        return _state(judge, segment, paid, "refused", f"the judge refused: {refusal}")
    except (UnusableError, TransportError) as error:
        return _state(judge, segment, paid, "failed", f"no usable answer: {error}")
    except SpentError as error:
        return _state(judge, segment, paid, "unread", str(error))
    return _state(judge, segment, paid, "scored", None, found)


def _state(
    judge: LLMJudge, segment: Segment, paid: Sequence[Paid], state: State, reason: str | None, said: Said | None = None
) -> Confirmed:
    found = said.answer if said else None
    return Confirmed(
        mechanism=segment.mechanism,
        at=segment.at or segment.messages[-1].id,
        message_ids=tuple(message.id for message in segment.messages),
        state=state,
        judge=judge.seats["deep"].spec.name,
        judge_hash=judge.hash,
        yes=found.yes if found else None,
        quotes=tuple(_quotes(segment.messages, found.quotes)) if found else (),
        confidence=found.confidence if found else None,
        rejected=found.rejected if found else {},
        reason=reason,
        usage=sum(map(usage_of, paid), Usage()),
        raw=said.raw if said else None,
    )


def _quotes(messages: Sequence[Message], texts: Sequence[str]) -> Iterator[Quote]:
    """The quotes of a yes, one a message, with their places; of a no there are none."""
    for message, text in zip(messages, texts, strict=False):
        start = message.text.index(text)
        digest = text_hash(message.text)
        yield Quote(message_id=message.id, text=text, start=start, end=start + len(text), sha256=digest)


def _asked(judge: LLMJudge, segment: Segment, put: Framed, repair: str) -> Asked:
    seat = judge.seats["deep"]
    texts, context = (
        [[text_hash(each.text), *used_tools(each)] for each in part] for part in (segment.messages, segment.around)
    )
    who = [[each.author, each.role] for each in (*segment.messages, *segment.around)]
    parts = ["confirm", segment.mechanism, texts, context, who, seat.spec.name, judge.prompt_hash, judge.terms.sample]
    user = f"{put.user}\n{repair}" if repair else put.user
    sent = seat.sent(put.system, user, "standard", confirm_schema)
    return Asked(seat, sent, hashed(parts), judge.prompt_hash, hashed(texts), hashed([context, who]), "confirm")
