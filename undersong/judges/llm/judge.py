"""The LLM judge: one model per tier, asked in parallel within a budget, its answers checked and stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import msgspec

from undersong.core.text import json_hash, text_hash
from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import JudgeError, UsageError
from undersong.judges.limits import CONCURRENCY, FAILED, TIMEOUT, MemoryLedger, RunLimits
from undersong.judges.llm.answering import AnswerSteps, RefusedError, run_sync, with_repair
from undersong.judges.llm.batches import WAITS, BatchSettlement, OpenRequests, collect_and_submit
from undersong.judges.llm.budget import Budget, BudgetExhaustedError
from undersong.judges.llm.client import (
    CachingClient,
    CutOffError,
    KeyedRequest,
    ModelClient,
    Stored,
    cut_answers,
)
from undersong.judges.llm.file_answers import take_written
from undersong.judges.llm.injection import suspicious
from undersong.judges.llm.model_spec import BACKENDS, ModelSpec, name_of, tier_specs_of
from undersong.judges.llm.prompt_fingerprint import answer_checks_hash, judge_hashes, questions_hash
from undersong.judges.llm.prompts import RenderedPrompt, render_question, render_segment, shipped_prompts
from undersong.judges.llm.response import (
    Answer,
    Confirmation,
    UnusableError,
    answer_schema,
    checked,
    confirm_schema,
    confirmed,
)
from undersong.judges.llm.sequences import sequence_hashes
from undersong.judges.llm.transport import TransportError
from undersong.judges.protocol import (
    Judge,
    JudgeAbortedError,
    PatternShape,
    Question,
    Segment,
    SequenceWindow,
    used_tools,
)
from undersong.models import Confirmed, Depth, Evaluation, Message, Quote, Reading, SequenceReading, State, Tier
from undersong.models.waiting import waits_in


def model_client(spec: ModelSpec, limits: RunLimits, *, asks: bool = True) -> ModelClient:
    """The model with its backend; without ``asks`` no key is needed, and only kept answers are read."""
    module, name = BACKENDS[spec.preset.speaks]
    provider = import_module(module)
    if limits.batch and not spec.preset.batch:
        raise UsageError("has no batches", where=f"--judge {spec.name}", remedy="leave out --batch")
    if limits.timeout is None:
        limits = msgspec.structs.replace(limits, timeout=spec.preset.timeout or TIMEOUT)
    return ModelClient(spec, limits, getattr(provider, name)(spec, limits) if asks else None, provider.parse_completion)


def judge_of(by_tier: dict[Tier, ModelSpec], limits: RunLimits, *, asks: bool = True) -> LLMJudge:
    """A judge that asks these models; tiers with the same model share one connection and one pace."""
    models = {spec: model_client(spec, limits, asks=asks) for spec in dict.fromkeys(by_tier.values())}
    if limits.concurrency is None:
        concurrency = min(spec.preset.concurrency or CONCURRENCY for spec in models)
        limits = msgspec.structs.replace(limits, concurrency=concurrency)
    if asks and any(spec.preset.speaks == "file" for spec in models):
        limits = msgspec.structs.replace(limits, batch=True)  # it is asked in no other way
    return LLMJudge(name_of(by_tier), {tier: models[spec] for tier, spec in by_tier.items()}, limits)


def open_judge(argument: str, limits: RunLimits) -> LLMJudge:
    """The judge of ``PROVIDER:MODEL`` or of ``focused=X,deep=Y,deep_with_context=Z``."""
    return judge_of(tier_specs_of(argument), limits)


SIGNALS = ("act_request", "act_complies", "act_refuses", "concedes", "suspected_injection", "control_failed")
CONCEDES = {"concedes": 1.0, "holds": 0.0}
T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class ParsedAnswer(NamedTuple):
    """An answer that can be used, as it came, and what it took."""

    answer: Answer
    raw: str
    shortened: int


class LLMJudge(Judge):
    """A model per tier, one ledger, one budget."""

    reads_everything, confirms, reads_sequences = False, True, True
    gives = frozenset({"traits", "indicators", "mechanisms", *SIGNALS})

    def __init__(self, name: str, models: Mapping[Tier, ModelClient], limits: RunLimits) -> None:
        self.name, self.models, self.limits = name, dict(models), limits
        self.hashes, self.sequence_hashes = judge_hashes(), sequence_hashes()
        self.prompt_hash = questions_hash()
        named = {tier: model.spec.name for tier, model in sorted(self.models.items())}
        self.hash = json_hash([named, self.prompt_hash, answer_checks_hash(), limits.framing])
        self.ledger = limits.ledger or MemoryLedger()
        self.budget = limits.shared_budget or Budget(limits)
        self.calibrated = False
        self._sync_batches = BatchSettlement(set(), {}, {})

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """One Evaluation per question, in order.

        Raises JudgeAbortedError, with what was answered before, where the provider turns every question away.
        """
        readable = [each for each in questions if each.message.text.strip()]
        self.sync_batches(lambda: map(self._reading_steps, readable))
        return run_sync(self.ask_all(questions, self._evaluation))

    async def ask_all(self, questions: Sequence[T], ask: Callable[[CachingClient, T], Awaitable[R]]) -> list[R]:
        """The questions asked with bounded concurrency; each worker takes the next one."""
        answers: list[R | None] = [None] * len(questions)
        waiting, failures, client = (
            iter(enumerate(questions)),
            list[JudgeError](),
            CachingClient(self.ledger, self.budget),
        )
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.limits.concurrency or CONCURRENCY, len(questions))):
                    group.create_task(_work(waiting, client, ask, answers, failures))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await _close(self.models.values())
            self._note()
        if failures:
            raise JudgeAbortedError(failures[0], answers)
        return [each for each in answers if each is not None]

    def _note(self) -> None:
        """Note what a person should hear of this run, where somebody listens."""
        if self.limits.notes is not None:
            notes = {model.spec.name: model.note for model in self.models.values()} | {"budget": self.budget.note}
            self.limits.notes.update({subject: words for subject, words in notes.items() if words})

    def sync_batches(self, questions: Callable[[], Iterable[AnswerSteps[Any]]]) -> None:
        """Collect and submit batches, where that is asked for; what they have not answered is not asked otherwise.

        Answers that lie in the folder of a ``file:`` judge are taken first, whoever asked for them.
        What the limits of the run leave out of a batch is in no batch, and is not asked otherwise either.
        """
        if not self.limits.batch:
            return
        try:
            take_written(questions(), self.ledger)
            self._sync_batches = run_sync(self._settle(lambda: self.open_requests(questions())))
        except TransportError as error:
            raise JudgeError(error.why, where=self.name, remedy="run the same command again later") from error

    def open_requests(self, questions: Iterable[AnswerSteps[Any]]) -> Iterator[KeyedRequest]:
        """What is to be asked next about each question, as the ledger stands; nothing of one that has its answer."""
        for steps in questions:
            first = steps.make_request("")
            stored = self.ledger.paid([first.key]).get(first.key, {})
            try:
                step = steps.next(stored)
            except (RefusedError, UnusableError):
                continue
            if isinstance(step, KeyedRequest):
                yield step.raised() if cut_answers(stored) else step

    async def _settle(self, open_requests: OpenRequests) -> BatchSettlement:
        models = list({id(model): model for model in self.models.values()}.values())
        try:
            return await collect_and_submit(models, self.ledger, self.budget, open_requests)
        finally:
            await _close(models)

    def keyed_request(self, question: Question, prompt: RenderedPrompt, repair: str = "") -> KeyedRequest:
        """The question as it is sent to the model of its tier, with its key."""
        model = self.models[question.route.tier]
        depth = _depth(question)
        text, context = text_hash(question.message.text), question.context_hash
        parts = [text, context, model.spec.name, self.prompt_hash, depth, self.limits.framing, self.limits.sample]
        request = model.request(prompt.system, with_repair(prompt, repair), depth, answer_schema)
        key = json_hash(parts)
        return KeyedRequest(model, request, key, self.prompt_hash, text, context, depth, attempt=1 if repair else 0)

    async def _evaluation(self, client: CachingClient, question: Question) -> Evaluation:
        if not question.message.text.strip():
            return self._state(question, "unread", "no text to read")
        paid: Stored = {}
        try:
            read = await self.usable_answer(client, self._reading_steps(question), paid)
        except RefusedError as refusal:
            return self._state(question, "refused", f"the judge refused: {refusal}", paid)
        except UnusableError as error:
            return self._state(question, "failed", f"the judge's answer cannot be used: {error}", paid)
        except TransportError as error:
            return self._state(question, "failed", f"the judge did not answer: {error.why}", paid)
        except BudgetExhaustedError as error:
            return self._state(question, "unread", f"{error}", paid)
        return self._scored(question, read, paid)

    def _reading_steps(self, question: Question) -> AnswerSteps[ParsedAnswer]:
        prompt = render_question(question, self.limits.framing)
        message = question.message.text

        def use(text: str) -> ParsedAnswer:
            return ParsedAnswer(checked(text, message, prompt.control), text, prompt.shortened)

        return AnswerSteps(lambda repair: self.keyed_request(question, prompt, repair), use)

    async def usable_answer(self, client: CachingClient, steps: AnswerSteps[U], paid: Stored) -> U:
        """The first answer that can be used, of two at most; every paid one is noted in ``paid``.

        Raises RefusedError, UnusableError, TransportError or BudgetExhaustedError.
        """
        first = steps.make_request("")
        paid.update(client.stored_answers(first))
        try:
            while isinstance(step := steps.next(paid), KeyedRequest):
                self._stop_for_batches(step.key)
                await client.answer(step, paid)
        except CutOffError:
            raise
        except UnusableError:
            if FAILED not in paid:
                await client.note_failed(first)
            raise
        if FAILED in paid:  # by an earlier version that checked answers in another way
            client.note_usable(first)
        return step

    def _stop_for_batches(self, key: str) -> None:
        """Raise TransportError or BudgetExhaustedError for a question in a batch, or kept out of one by a limit."""
        waiting, without, left = self._sync_batches
        if key in without:
            again = "; run the same command again to ask once more"
            raise TransportError(f"its batch gave no answer ({without[key]}){again}", retryable=False)
        if key in waiting:
            files = [model.spec for model in self.models.values() if model.spec.preset.speaks == "file"]
            raise BudgetExhaustedError(waits_in(files[0].model) if files else WAITS)
        if key in left:
            raise BudgetExhaustedError(left[key])

    def _scored(self, question: Question, read: ParsedAnswer, paid: Stored) -> Evaluation:
        answer, model = read.answer, self.models[question.route.tier]
        reading = Reading(
            mechanisms=answer.mechanisms,
            acts=answer.acts,
            stance=answer.stance,
            rejected=answer.rejected,
            cut=question.cut,
            usage=model.used(paid),
            raw=read.raw,
            shortened=read.shortened,
            depth=_depth(question),
            reasons=answer.reasons,
            model=model.other_model(paid),
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

    def _state(self, question: Question, state: str, reason: str | None, paid: Stored | None = None) -> Evaluation:
        used = self.models[question.route.tier].used(paid or {})
        broken = {"control_failed": 1.0} if reason and "control question" in reason else {}
        return Evaluation(
            message_id=question.message.id,
            state=state,  # type: ignore[arg-type]
            reason=reason,
            judge=self.models[question.route.tier].spec.name,
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

    def confirm(self, segments: Sequence[Segment]) -> list[Confirmed]:
        """See Judge; the model of ``deep`` is asked, and its answers are stored like any other.

        Raises UsageError for a mechanism that is not known and for a segment of none or more than two messages, and
        JudgeAbortedError where the provider turns every question away.
        """
        for segment in segments:
            _check_segment(segment)
        self.sync_batches(lambda: map(self._confirm_steps, segments))
        return run_sync(self.ask_all(segments, self._confirmed))

    def read_sequences(
        self, windows: Sequence[SequenceWindow], shapes: Sequence[PatternShape]
    ) -> list[SequenceReading]:
        """See Judge; the model of ``deep`` is asked. Raises JudgeAbortedError where every question is turned away."""
        from undersong.judges.llm.sequence_reader import read_all

        return read_all(self, windows, tuple(shapes))

    def not_asked(self, segment: Segment, why: str) -> Confirmed:
        """See Judge."""
        return self._confirmation(segment, {}, "unread", why)

    def _confirm_steps(self, segment: Segment) -> AnswerSteps[tuple[Confirmation, str]]:
        prompt, texts = render_segment(segment), tuple(message.text for message in segment.messages)

        def use(text: str) -> tuple[Confirmation, str]:
            return confirmed(text, texts, prompt.control), text

        return AnswerSteps(lambda repair: self._confirm_request(segment, prompt, repair), use)

    async def _confirmed(self, client: CachingClient, segment: Segment) -> Confirmed:
        paid: Stored = {}
        try:
            answer, raw = await self.usable_answer(client, self._confirm_steps(segment), paid)
        except RefusedError as refusal:
            return self._confirmation(segment, paid, "refused", f"the judge refused: {refusal}")
        except (UnusableError, TransportError) as error:
            return self._confirmation(segment, paid, "failed", f"no usable answer: {error}")
        except BudgetExhaustedError as error:
            return self._confirmation(segment, paid, "unread", str(error))
        return msgspec.structs.replace(
            self._confirmation(segment, paid, "scored", None),
            yes=answer.yes,
            quotes=tuple(_quotes(segment.messages, answer.quotes)),
            confidence=answer.confidence,
            rejected=answer.rejected,
            raw=raw,
        )

    def _confirmation(self, segment: Segment, paid: Stored, state: State, reason: str | None) -> Confirmed:
        return msgspec.structs.replace(
            super().not_asked(segment, reason or ""),
            judge=self.models["deep"].spec.name,
            state=state,
            reason=reason,
            usage=self.models["deep"].used(paid),
        )

    def _confirm_request(self, segment: Segment, prompt: RenderedPrompt, repair: str = "") -> KeyedRequest:
        model = self.models["deep"]
        texts, context = (
            [[text_hash(each.text), *used_tools(each)] for each in part] for part in (segment.messages, segment.around)
        )
        who = [[each.author, each.role] for each in (*segment.messages, *segment.around)]
        parts = [
            "confirm",
            segment.mechanism,
            texts,
            context,
            who,
            model.spec.name,
            self.prompt_hash,
            self.limits.sample,
        ]
        if own := shipped_prompts().constraints.get(segment.mechanism):
            parts.append(own)
        request = model.request(prompt.system, with_repair(prompt, repair), "standard", confirm_schema)
        hashes = json_hash(parts), self.prompt_hash, json_hash(texts), json_hash([context, who])
        return KeyedRequest(model, request, *hashes, "confirm", attempt=1 if repair else 0)


async def _close(models: Iterable[ModelClient]) -> None:
    for model in models:
        if model.backend is not None:
            await model.backend.close()


async def _work(
    waiting: Iterator[tuple[int, T]],
    client: CachingClient,
    ask: Callable[[CachingClient, T], Awaitable[R]],
    answers: list[R | None],
    failures: list[JudgeError],
) -> None:
    for place, question in waiting:
        if failures:
            return
        try:
            answers[place] = await ask(client, question)
        except JudgeError as error:
            failures.append(error)


def _check_segment(segment: Segment) -> None:
    mechanisms = shipped_prompts().second_questions
    if segment.mechanism not in mechanisms:
        remedy = did_you_mean(segment.mechanism, list(mechanisms))
        raise UsageError(f"unknown mechanism '{segment.mechanism}'", remedy=remedy)
    if not 1 <= len(segment.messages) <= 2:
        raise UsageError("a segment has one message or two", remedy="give the rest as `around`")


def _quotes(messages: Sequence[Message], texts: Sequence[str]) -> Iterator[Quote]:
    """The quotes of a yes, one a message, with their places; of a no there are none."""
    for message, text in zip(messages, texts, strict=False):
        start = message.text.index(text)
        digest = text_hash(message.text)
        yield Quote(message_id=message.id, text=text, start=start, end=start + len(text), sha256=digest)


def _depth(question: Question) -> Depth:
    """The depth of the tier; a message that only a run over everything reads has the standard one."""
    return "thorough" if question.route.depth == "thorough" else "standard"
