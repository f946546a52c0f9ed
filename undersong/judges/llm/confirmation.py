"""A second question: do these words show this mechanism? Yes or no with quotes, over any distance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import UsageError
from undersong.judges.limits import LedgerEntry
from undersong.judges.llm.budget import BudgetExhaustedError
from undersong.judges.llm.client import CachingClient, KeyedRequest, usage_of
from undersong.judges.llm.judge import LLMJudge, RefusedError, hashed, run_sync, text_hash
from undersong.judges.llm.prompts import RenderedPrompt, render_segment, shipped_prompts
from undersong.judges.llm.response import Confirmation, UnusableError, confirm_schema, confirmed
from undersong.judges.llm.transport import TransportError
from undersong.judges.protocol import Segment, used_tools
from undersong.models import Confirmed, Message, Quote, State, Usage


def confirm(judge: LLMJudge, segments: Sequence[Segment]) -> list[Confirmed]:
    """One answer per segment, in order, by the model of ``deep``; asked and kept like any other question.

    Raises UsageError for a mechanism that is not known and for a segment of none or more than two messages, and
    BrokenOffError where the provider turns every question away.
    """
    for segment in segments:
        if segment.mechanism not in shipped_prompts().mechanisms:
            remedy = did_you_mean(segment.mechanism, list(shipped_prompts().mechanisms))
            raise UsageError(f"unknown mechanism '{segment.mechanism}'", remedy=remedy)
        if not 1 <= len(segment.messages) <= 2:
            raise UsageError("a segment has one message or two", remedy="give the rest as `around`")

    async def ask(client: CachingClient, segment: Segment) -> Confirmed:
        return await _confirmed(judge, client, segment)

    judge.sync_batches(_keyed_request(judge, each, render_segment(each), "") for each in segments)
    return run_sync(judge.ask_all(segments, ask))


class ParsedConfirmation(NamedTuple):
    """An answer that can be used, and as it came."""

    answer: Confirmation
    raw: str


def not_asked(judge: LLMJudge, segment: Segment, why: str) -> Confirmed:
    """The state of a segment that the judge was not asked about."""
    return _state(judge, segment, (), "unread", why)


async def _confirmed(judge: LLMJudge, client: CachingClient, segment: Segment) -> Confirmed:
    prompt = render_segment(segment)
    texts = tuple(message.text for message in segment.messages)
    paid: list[LedgerEntry] = []

    def use(text: str) -> ParsedConfirmation:
        return ParsedConfirmation(confirmed(text, texts, prompt.control), text)

    try:
        parsed = await judge.usable_answer(
            client, lambda repair: _keyed_request(judge, segment, prompt, repair), use, paid
        )
    except RefusedError as refusal:
        return _state(judge, segment, paid, "refused", f"the judge refused: {refusal}")
    except (UnusableError, TransportError) as error:
        return _state(judge, segment, paid, "failed", f"no usable answer: {error}")
    except BudgetExhaustedError as error:
        return _state(judge, segment, paid, "unread", str(error))
    return _state(judge, segment, paid, "scored", None, parsed)


def _state(
    judge: LLMJudge,
    segment: Segment,
    paid: Sequence[LedgerEntry],
    state: State,
    reason: str | None,
    parsed: ParsedConfirmation | None = None,
) -> Confirmed:
    answer = parsed.answer if parsed else None
    return Confirmed(
        mechanism=segment.mechanism,
        at=segment.at or segment.messages[-1].id,
        message_ids=tuple(message.id for message in segment.messages),
        state=state,
        judge=judge.models["deep"].spec.name,
        judge_hash=judge.hash,
        yes=answer.yes if answer else None,
        quotes=tuple(_quotes(segment.messages, answer.quotes)) if answer else (),
        confidence=answer.confidence if answer else None,
        rejected=answer.rejected if answer else {},
        reason=reason,
        usage=sum(map(usage_of, paid), Usage()),
        raw=parsed.raw if parsed else None,
    )


def _quotes(messages: Sequence[Message], texts: Sequence[str]) -> Iterator[Quote]:
    """The quotes of a yes, one a message, with their places; of a no there are none."""
    for message, text in zip(messages, texts, strict=False):
        start = message.text.index(text)
        digest = text_hash(message.text)
        yield Quote(message_id=message.id, text=text, start=start, end=start + len(text), sha256=digest)


def _keyed_request(judge: LLMJudge, segment: Segment, prompt: RenderedPrompt, repair: str) -> KeyedRequest:
    model = judge.models["deep"]
    texts, context = (
        [[text_hash(each.text), *used_tools(each)] for each in part] for part in (segment.messages, segment.around)
    )
    who = [[each.author, each.role] for each in (*segment.messages, *segment.around)]
    parts = ["confirm", segment.mechanism, texts, context, who, model.spec.name, judge.prompt_hash, judge.limits.sample]
    user = f"{prompt.user}\n{repair}" if repair else prompt.user
    request = model.request(prompt.system, user, "standard", confirm_schema)
    return KeyedRequest(
        model, request, hashed(parts), judge.prompt_hash, hashed(texts), hashed([context, who]), "confirm"
    )
