"""Sequences put to a language model: keyed, asked, checked and kept like every other question."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import msgspec

from undersong.core.text import json_hash, text_hash
from undersong.judges.limits import LedgerEntry
from undersong.judges.llm.answering import AnswerSteps, RefusedError, run_sync, with_repair
from undersong.judges.llm.budget import BudgetExhaustedError
from undersong.judges.llm.client import CachingClient, KeyedRequest
from undersong.judges.llm.prompts import RenderedPrompt
from undersong.judges.llm.response import UnusableError
from undersong.judges.llm.sequences import (
    WindowAnswer,
    checked_window,
    render_window,
    sequence_schema,
    sequence_system,
    sequence_words,
)
from undersong.judges.llm.transport import TransportError
from undersong.judges.protocol import PatternShape, SequenceWindow, used_tools
from undersong.models import SequenceReading, State

if TYPE_CHECKING:
    from undersong.judges.llm.judge import LLMJudge

DEPTH = "sequence"  # how the ledger tells these questions from those about messages


@lru_cache(maxsize=8)
def sequence_hash(shapes: tuple[PatternShape, ...]) -> str:
    """SHA-256 over the stable part of the questions and the form of their answers."""
    forms = [sequence_schema(shapes, lengths=lengths) for lengths in (True, False)]
    return json_hash([sequence_system(shapes), forms])


def read_all(
    judge: LLMJudge, windows: Sequence[SequenceWindow], shapes: tuple[PatternShape, ...]
) -> list[SequenceReading]:
    """One reading per window, in order; raises JudgeAbortedError where the provider turns every question away."""
    judge.sync_batches(lambda: (steps(judge, each, shapes) for each in windows))
    return run_sync(judge.ask_all(windows, partial(_read, judge, shapes)))


def steps(
    judge: LLMJudge, window: SequenceWindow, shapes: tuple[PatternShape, ...]
) -> AnswerSteps[tuple[WindowAnswer, str]]:
    """The way to a usable answer about a window."""
    prompt = render_window(window, shapes)

    def use(text: str) -> tuple[WindowAnswer, str]:
        return checked_window(text, window, shapes, prompt.control), text

    return AnswerSteps(lambda repair: keyed(judge, window, shapes, prompt, repair), use)


async def _read(
    judge: LLMJudge, shapes: tuple[PatternShape, ...], client: CachingClient, window: SequenceWindow
) -> SequenceReading:
    way, paid = steps(judge, window, shapes), dict[int, LedgerEntry]()
    question, model = way.make_request(""), judge.models["deep"]

    def reading(state: State, why: str | None) -> SequenceReading:
        unread = judge.sequence_not_read(window, why or "")
        return msgspec.structs.replace(
            unread,
            id=question.key,
            state=state,
            reason=why,
            usage=model.used(paid),
            prompt_hash=question.prompt_hash,
            judge=model.spec.name,
        )

    try:
        answer, raw = await judge.usable_answer(client, way, paid)
    except RefusedError as refusal:
        return reading("refused", f"the judge refused: {refusal}")
    except (UnusableError, TransportError) as error:
        return reading("failed", f"no usable answer: {error}")
    except BudgetExhaustedError as error:
        return reading("unread", str(error))
    read = msgspec.structs.replace(reading("scored", None), shapes=answer.shapes, rejected=answer.rejected, raw=raw)
    return read.with_outcome()


def keyed(
    judge: LLMJudge, window: SequenceWindow, shapes: tuple[PatternShape, ...], prompt: RenderedPrompt, repair: str = ""
) -> KeyedRequest:
    """The question with all that its key stands for: model, prompt, and everything that the window shows."""
    model, prompt_hash = judge.models["deep"], sequence_hash(shapes)
    shown = [
        [
            *(text_hash(each.text), each.agent, each.author, each.target, str(each.time), each.observed),
            *used_tools(each),
            *([["thinking", text_hash(each.thinking)]] if each.thinking else ()),
        ]
        for each in window.messages
    ]
    parts = ["sequence", window.agent, shown, model.spec.name, prompt_hash, judge.limits.sample]
    if window.compared:
        parts += ["compared", window.compared, text_hash(sequence_words().compared)]
    request = model.request(prompt.system, with_repair(prompt, repair), "standard", partial(sequence_schema, shapes))
    return KeyedRequest(
        model,
        request,
        json_hash(parts),
        prompt_hash,
        json_hash(shown),
        json_hash([window.agent]),
        DEPTH,
        attempt=1 if repair else 0,
    )
