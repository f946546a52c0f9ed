"""A caching client of one model: price, retries and budget; answers are stored in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from undersong.core.sanitize import one_line
from undersong.errors import JudgeError, UsageError
from undersong.judges.limits import CUT, FAILED, SET_ASIDE, TIMEOUT, AnswerLedger, LedgerEntry, RunLimits
from undersong.judges.llm.budget import Budget
from undersong.judges.llm.context_window import check_fits, check_whole
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.pricing import Price, model_facts, price_of
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.rate_limit import RetryPolicy
from undersong.judges.llm.refusals import FailureCount
from undersong.judges.llm.response import UnusableError
from undersong.judges.llm.transport import (
    Backend,
    Billed,
    Completion,
    NoAnswerError,
    Request,
    Response,
    TransportError,
    http_error,
)
from undersong.models import Usage

BYTES_PER_TOKEN = 2.5  # bytes a token for reserving: fewer than tokenizers need for prose, so that a budget holds
ANSWER_BYTES_PER_TOKEN = 2.0  # of an answer that does not name its tokens: JSON has shorter ones than prose
MOST_TOKENS_PER_BYTE = 1.5  # beyond lies no tokenizer, but a server that counts something else
RAISED = 2  # times as long is the answer that is asked for once one was cut off
Schema = Callable[..., dict[str, Any]]


class Asked(NamedTuple):
    """The size of a question: bytes that a provider counts, and the longest answer in tokens."""

    size: int
    limit: int


class CutOffError(UnusableError):
    """An answer that ended before it said anything that could count, also when there was room for a longer one."""


class ModelClient:
    """A model with its price and pace; ``backend`` None asks nobody: only kept answers are read."""

    def __init__(
        self, spec: ModelSpec, limits: RunLimits, backend: Backend | None, parse: Callable[[bytes], Completion]
    ) -> None:
        """``parse`` takes an answer's body apart. Raises UsageError for a budget over a model without a known price."""
        self.spec, self.backend, self._parse = spec, backend, parse
        self.price: Price = price_of(spec.name, limits.price_in, limits.price_out)
        if limits.budget is not None and self.price.cost(1, 1) is None:
            remedy = "give --price-in and --price-out, or use --max-calls"
            raise UsageError(f"the price of {spec.name} is not known, so no budget can be kept", remedy=remedy)
        self.retry_policy = RetryPolicy(attempts=limits.attempts, backoff=limits.backoff)
        self.failures = FailureCount()
        self._timeout = limits.timeout or TIMEOUT
        self._windows: list[int | None] = []  # what the server said of its context, once it was asked
        self._warming: dict[str, asyncio.Event] = {}  # instructions → set once their first question is answered
        self._warm = set[str]()
        self._counts_whole = False  # an answer counted its whole question; later ones may leave out what is cached
        self._tokens_per_byte = 1 / BYTES_PER_TOKEN

    def request(self, system: str, user: str, depth: str, schema: Schema) -> Request:
        """A request in the dialect of the server: one with an address of its own enforces lengths.

        Thinking counts against the longest answer, so there is always room for it.
        """
        limit = shipped_prompts().limits.answer_tokens[depth] + self._thinking_room()
        return Request(system, user, schema(lengths=not self.spec.hosted), limit)

    def _thinking_room(self) -> int:
        """Tokens for thinking: as looked up for the model; generous where nobody did, or where it is asked for."""
        generous, listed = shipped_prompts().limits.thinking_tokens, model_facts(self.spec.name).thinking
        return generous if listed is None or (self.spec.effort and not listed) else listed

    def limit(self, request: Request) -> int:
        """The longest answer, in tokens, that a request is really sent with."""
        return request.max_tokens if self.backend is None else self.backend.limit(request)

    def max_cost(self, request: Request) -> float:
        """What a request may cost at most, USD, also where all of it is put into a cache; 0 without a known price."""
        tokens_in, tokens_out = self.input_tokens(_bytes_of(request)), self.limit(request)
        costs = (self.price.cost(tokens_in, tokens_out, written=written) for written in (0, tokens_in))
        return max(cost or 0.0 for cost in costs)

    def input_tokens(self, size: int) -> int:
        """Tokens of so many bytes, rather too many than too few."""
        return int(size * self._tokens_per_byte) + 1

    def usage(self, completion: Completion, *, batch: bool = False) -> Usage:
        """Tokens and cost of one answer; one that came in a batch has the price of batches."""
        cost = self.price.cost(
            completion.input, completion.output, cached=completion.cached, written=completion.written
        )
        return Usage(
            calls=1,
            input=completion.input,
            cached=completion.cached,
            written=completion.written,
            output=completion.output,
            cost=None if cost is None else cost * (self.price.batch if batch else 1.0),
            estimated=0 if completion.counted else 1,
        )

    def parse(self, body: bytes) -> Completion:
        """What an answer says; raises UnusableError for one that is too long, NoAnswerError for what is none."""
        if len(body) > shipped_prompts().limits.body_bytes:
            raise UnusableError(f"it is longer than {shipped_prompts().limits.body_bytes:,} bytes")
        return self._parse(body)

    def counted(self, body: bytes, asked: Asked | None = None) -> Completion:
        """What an answer says, its tokens estimated where it does not name them and it is known what was asked."""
        try:
            completion = self.parse(body)
        except (UnusableError, NoAnswerError) as error:  # one that is too long to be read, or of an earlier version
            completion = Completion(f"({error})", "end", counted=False)
        if asked is None:
            return completion
        if not completion.counted:
            output = min(asked.limit, int(len(body) / ANSWER_BYTES_PER_TOKEN) + 1)
            return completion._replace(input=self.input_tokens(asked.size), output=output)
        dense = min(MOST_TOKENS_PER_BYTE, completion.input / max(1, asked.size))
        self._tokens_per_byte = max(self._tokens_per_byte, dense)
        return completion

    def unanswered(self, request: Request, billed: Billed) -> Usage:
        """What a request without an answer may have cost: nothing, its question, or all that was reserved for it."""
        if billed == "nothing":
            return Usage()
        tokens_in = self.input_tokens(_bytes_of(request))
        output = self.limit(request) if billed == "everything" else 0
        return self.usage(Completion("", "end", input=tokens_in, output=output, counted=False))

    def used(self, paid: Mapping[int, LedgerEntry]) -> Usage:
        """What all answers to a question took when they were paid, by their numbers."""
        return sum((self._used(paid[number]) for number in sorted(paid) if number != FAILED), Usage())

    def _used(self, paid: LedgerEntry) -> Usage:
        return Usage(
            calls=1,
            input=paid.input,
            cached=paid.cached,
            written=paid.written,
            output=paid.output,
            cost=paid.cost,
            estimated=0 if self.counted(paid.body).counted else 1,
        )

    def other_model(self, paid: Mapping[int, LedgerEntry]) -> str | None:
        """The model that gave the last answer by its own account; None where it is the one that was asked."""
        last = max(number for number in paid if number < FAILED)
        named = one_line(self.counted(paid[last].body).model, MODEL_CHARACTERS)
        return named if named not in ("", self.spec.model) else None

    @property
    def note(self) -> str:
        """What is asked otherwise than intended, in words; "" where nothing is."""
        notes = () if self.backend is None else self.backend.notes
        return f"{self.spec.name} is asked {', '.join(notes)}, since its server refused it otherwise" if notes else ""

    async def send(self, request: Request) -> Response:
        """One request; raises TransportError, and JudgeError where nothing can be asked at all."""
        if self.backend is None:
            raise TransportError("its answer is not in the replay file", retryable=False)
        answer = min(shipped_prompts().limits.answer_tokens.values())
        if (window := await self.window()) is not None:
            check_fits(_bytes_of(request), answer, window, self.spec.preset.window, self.spec.name)
        async with self._first_alone(request.system):
            response = await self._answer(self.backend, request)
        self._check_is_answer(response)
        self._check_whole(request, response)
        return response

    async def _answer(self, backend: Backend, request: Request) -> Response:
        try:
            async with asyncio.timeout(self._timeout):
                return await backend.send(request)
        except TimeoutError:
            why = f"no whole answer within {self._timeout:g} s"
            raise TransportError(why, retryable=True, billed="everything", timed_out=True) from None

    @asynccontextmanager
    async def _first_alone(self, system: str) -> AsyncIterator[None]:
        """The first question under some instructions goes alone, so that the others find them in the server's cache."""
        if system in self._warm:
            yield
        elif system in self._warming:
            await self._warming[system].wait()
            yield
        else:
            event = self._warming[system] = asyncio.Event()
            try:
                yield
            finally:
                self._warm.add(system)  # also after a failure: one by one, many would wait for long
                del self._warming[system]
                event.set()

    async def window(self) -> int | None:
        """Tokens of context, as the server says or as looked up for the model; None = not known."""
        if self.backend is None:
            return None
        if not self._windows:
            self._windows.append(await self.backend.window() or model_facts(self.spec.name).context)
        return self._windows[0]

    def _check_whole(self, request: Request, response: Response) -> None:
        """Raise JudgeError where the server's count says that it read only a part of the question."""
        completion = self.counted(response.body)
        if completion.counted and completion.input and not self._counts_whole:
            check_whole(request.system, completion.input, self.spec.preset.window, self.spec.name)
            self._counts_whole = True

    def _check_is_answer(self, response: Response) -> None:
        """Raise TransportError for a body that is no answer although its status says so; JudgeError as for a status."""
        try:
            self.parse(response.body)
        except NoAnswerError as error:
            if error.status is not None:
                raise http_error(error.status, str(error), response.headers, "", self.spec.name) from None
            billed: Billed = "question" if b'"error"' in response.body else "everything"
            raise TransportError(f"no answer came: {error}", retryable=True, billed=billed) from None
        except UnusableError:
            return  # it is an answer, and paid; what is wrong with it is said where it is used


UNREACHABLE_REMEDY = "see that its server runs and is named by its address, and run the same command again"
HOPELESS_REMEDY = "see what the provider says, mend it, and run the same command again: what was answered is kept"
SLOW_REMEDY = "give a longer --timeout, a smaller --concurrency, or +low behind the model's name"
CUT_REMEDY = "add +low to the judge's name, or ask a model that thinks less"
MODEL_CHARACTERS = 200  # of the name of a model that are shown
LARGEST_STORED = 1 << 21  # bytes of a body that are kept; `reading.yaml` bounds what is read far below


class KeyedRequest(NamedTuple):
    """A question with all that its key in the ledger stands for; ``attempt`` 1 asks for a repair."""

    model_client: ModelClient
    request: Request
    key: str
    prompt_hash: str
    message_hash: str
    context_hash: str
    depth: str
    attempt: int = 0

    @property
    def asked(self) -> Asked:
        """The size of the question."""
        return Asked(_bytes_of(self.request), self.model_client.limit(self.request))

    def raised(self) -> KeyedRequest:
        """The same question with room for a longer answer."""
        return self._replace(request=self.request._replace(max_tokens=RAISED * self.request.max_tokens))


Stored = dict[int, LedgerEntry]  # number of an answer → the answer


def cut_answers(stored: Stored) -> int:
    """How many answers to a question were cut off so far."""
    return sum(CUT <= number < SET_ASIDE for number in stored)


class CachingClient:
    """The way to a provider in one event loop; questions of the same key share one request."""

    def __init__(self, ledger: AnswerLedger, budget: Budget) -> None:
        self._ledger, self._budget = ledger, budget
        self._committer = GroupCommitter(ledger)
        self._under_way: dict[tuple[str, int], asyncio.Future[list[LedgerEntry]]] = {}

    def stored_answers(self, keyed: KeyedRequest) -> Stored:
        """Number → answer that was paid before."""
        return dict(self._ledger.paid([keyed.key]).get(keyed.key, {}))

    async def answer(self, keyed: KeyedRequest, stored: Stored) -> None:
        """Ask, and add what was paid for to ``stored``: the answer, and before it one that was cut off.

        Of a question with an answer that was cut off before, one with room for a longer answer is asked for at once.
        Raises CutOffError where that is cut off, too, and TransportError, BudgetExhaustedError, JudgeError, or what the
        ledger raises.
        """
        place = keyed.key, keyed.attempt
        if place in self._under_way:
            entries = await asyncio.shield(self._under_way[place])
        else:
            entries = await self._shared(place, keyed, cut_answers(stored))
        stored.update({entry.attempt: entry for entry in entries})
        if keyed.attempt not in stored:
            raise self._cut_off(keyed, entries[-1])

    async def _shared(self, place: tuple[str, int], keyed: KeyedRequest, cut: int) -> list[LedgerEntry]:
        future = self._under_way[place] = asyncio.get_running_loop().create_future()
        try:
            entries = await self._entries(keyed, cut)
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # whoever waits has it; nobody waiting is no fault
            raise
        finally:
            del self._under_way[place]
        future.set_result(entries)
        return entries

    async def _entries(self, keyed: KeyedRequest, cut: int) -> list[LedgerEntry]:
        """The answers of one question or two, the second with room for a longer answer."""
        model, entries = keyed.model_client, list[LedgerEntry]()
        for asked in (keyed.raised(),) if cut else (keyed, keyed.raised()):
            response = await self._sent(asked)
            incomplete = model.counted(response.body, asked.asked).incomplete
            entry = answered_entry(unanswered_entry(asked), model, response.body, asked.asked)
            if incomplete:
                entry = msgspec.structs.replace(entry, attempt=CUT + cut + len(entries))
            await self._committer.commit(entry)
            entries.append(entry)
            if not incomplete:
                model.failures.success()
                break
        return entries

    async def _sent(self, keyed: KeyedRequest) -> Response:
        model = keyed.model_client

        async def once() -> Response:
            max_cost = model.max_cost(keyed.request)
            await self._budget.reserve(max_cost)
            usage = model.unanswered(keyed.request, "everything")
            try:
                response = await model.send(keyed.request)
                usage = model.usage(model.counted(response.body, keyed.asked))
            except TransportError as error:
                usage = model.unanswered(keyed.request, error.billed)
                self._budget.unanswered += usage
                raise
            except JudgeError:
                usage = Usage()
                raise
            finally:
                self._budget.commit(max_cost, usage)
            return response

        try:
            return await model.retry_policy.call(once)
        except TransportError as error:
            if not error.reached:
                raise JudgeError(error.why, where=model.spec.name, remedy=UNREACHABLE_REMEDY) from error
            if model.backend is not None:
                remedy = SLOW_REMEDY if error.timed_out else HOPELESS_REMEDY
                model.failures.failure(error.why, model.spec.name, remedy)
            raise

    def _cut_off(self, keyed: KeyedRequest, last: LedgerEntry) -> CutOffError:
        """The error of an answer that was cut off also with more room; raises JudgeError where others were, too."""
        model = keyed.model_client
        if model.counted(last.body).stop == "length":
            limit = model.limit(keyed.raised().request)
            why, remedy = f"it was cut off at {limit:,} tokens, thinking included", CUT_REMEDY
        else:
            why, remedy = "it is empty, also when it was asked for once more", HOPELESS_REMEDY
        model.failures.failure(why, model.spec.name, remedy)
        return CutOffError(f"{why}; {CUT_REMEDY}" if remedy == CUT_REMEDY else why)

    async def note_failed(self, keyed: KeyedRequest) -> None:
        """Mark that no answer to a question could be used: the next run does not ask it again."""
        await self._committer.commit(msgspec.structs.replace(unanswered_entry(keyed), attempt=FAILED))

    def note_usable(self, keyed: KeyedRequest) -> None:
        """Take that mark away."""
        self._ledger.forget([(keyed.key, FAILED)])


def unanswered_entry(keyed: KeyedRequest) -> LedgerEntry:
    """A question as the ledger knows it, without an answer."""
    return LedgerEntry(
        key=keyed.key,
        attempt=keyed.attempt,
        judge=keyed.model_client.spec.name,
        model=keyed.model_client.spec.model,
        prompt_hash=keyed.prompt_hash,
        message_hash=keyed.message_hash,
        context_hash=keyed.context_hash,
        depth=keyed.depth,
        body=b"",
        sent=len(keyed.request.user.encode()),
        fixed=len(keyed.request.system.encode()),
    )


def answered_entry(
    question: LedgerEntry, model: ModelClient, body: bytes, asked: Asked, *, batch: bool = False
) -> LedgerEntry:
    """The question with its answer, and what that took."""
    used = msgspec.structs.asdict(model.usage(model.counted(body, asked), batch=batch))
    del used["calls"], used["estimated"]
    return msgspec.structs.replace(question, body=body[:LARGEST_STORED], **used)


def _bytes_of(request: Request) -> int:
    """UTF-8 bytes of a request that a provider counts: question, prompt and the form of the answer."""
    return len(request.system.encode()) + len(request.user.encode()) + len(msgspec.json.encode(request.schema))


class GroupCommitter:
    """Group commit: answers that arrive together are stored in one transaction; each waits for its own."""

    def __init__(self, ledger: AnswerLedger) -> None:
        self._ledger = ledger
        self._waiting: list[LedgerEntry] = []
        self._commit: asyncio.Future[None] | None = None

    async def commit(self, answer: LedgerEntry) -> None:
        """Returns when the answer is kept; raises what the ledger raises."""
        self._waiting.append(answer)
        if self._commit is None:
            loop = asyncio.get_running_loop()
            self._commit = loop.create_future()
            loop.call_soon(self._flush, self._commit)
        await asyncio.shield(self._commit)

    def _flush(self, commit: asyncio.Future[None]) -> None:
        answers, self._waiting, self._commit = self._waiting, [], None
        try:
            self._ledger.keep(answers)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait for the commit must hear it
            commit.set_exception(error)
        else:
            commit.set_result(None)
