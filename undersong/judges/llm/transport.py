"""Requests to a provider over its SDK, and the errors of transport; each provider is one module with a ``Backend``."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from undersong.core.sanitize import one_line
from undersong.errors import JudgeError
from undersong.judges.limits import TIMEOUT, RunLimits
from undersong.judges.llm.context_window import ask_window
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.presets import endpoint_of
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.refusals import Parameters, names_any, refusal_rules

if TYPE_CHECKING:
    from ssl import SSLContext


FATAL_STATUSES = frozenset(
    {401, 402, 403, 404, 405}
)  # no question can be asked: key, payment, permission, model or address
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 524, 529})  # worth another try
GAVE_UP_STATUSES = frozenset({408, 504, 524})  # somebody between us and the model did not wait for its answer
PARAMETER_STATUSES = frozenset({400, 422})  # with which a server refuses a parameter
ERROR_CHARACTERS = 300  # of a provider's message that are shown


class Request(NamedTuple):
    """One request: the stable part, the question, the form of the answer, and its longest length in tokens."""

    system: str
    user: str
    schema: dict[str, Any]
    max_tokens: int


RUNS_ON = 16_000  # characters of a text that was cut off; whole answers have 10,000 at most


class Completion(NamedTuple):
    """What an answer says: ``stop`` is ``end``, ``length`` or ``refusal``; tokens as the provider counts them.

    ``input`` includes ``cached`` and ``written``. ``counted`` is False where the answer names no tokens; ``model`` is
    the model that it names, "" for none.
    """

    text: str
    stop: str
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    counted: bool = True
    model: str = ""

    @property
    def incomplete(self) -> bool:
        """Whether it ended before it said anything that could count: cut off at its longest, or without a word.

        One whose text is longer than any answer is not short of room: it runs on, and is an answer that cannot be used.
        """
        if self.stop == "length":
            return len(self.text) <= RUNS_ON
        return self.stop == "end" and not self.text.strip()


class NoAnswerError(ValueError):
    """A body that came with status 200 and holds no answer: an error, nothing, or something that nobody documents.

    ``status`` is the HTTP status that an error within it names.
    """

    def __init__(self, what: str, status: int | None = None) -> None:
        super().__init__(what)
        self.status = status


class Response(NamedTuple):
    """A whole answer as it came, and the headers that came with it."""

    body: bytes
    headers: Mapping[str, str]


class BatchResult(NamedTuple):
    """One result of a batch: the body of its answer, or why there is none."""

    number: int
    body: bytes | None
    why: str = ""


Billed: TypeAlias = Literal["nothing", "question", "everything"]


class TransportError(Exception):
    """A request that brought no answer: ``retryable`` says whether to try again, ``after`` in how many seconds.

    ``reached`` is False where no server was there at all. ``billed`` says what the provider may ask to be paid all the
    same. ``adapted``: the server refused a parameter, and the next attempt does without it. ``timed_out``: nobody
    waited for its end.
    """

    def __init__(
        self,
        why: str,
        *,
        retryable: bool,
        after: float | None = None,
        reached: bool = True,
        billed: Billed = "nothing",
        adapted: bool = False,
        timed_out: bool = False,
    ) -> None:
        super().__init__(why)
        self.why, self.retryable, self.after, self.reached = why, retryable, after, reached
        self.billed, self.adapted, self.timed_out = billed, adapted, timed_out


class Backend(Protocol):
    """One provider and model; its module also has ``parse_completion(body)``, which reads an answer."""

    async def send(self, request: Request) -> Response:
        """Ask once; raises TransportError, or JudgeError where nothing can be asked at all."""
        ...

    def limit(self, request: Request) -> int:
        """The longest answer in tokens that a request is really sent with."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What is asked otherwise than intended, since the server refused it."""
        ...

    async def submit(self, requests: Iterable[Request]) -> str:
        """Hand questions to the provider's batch interface; the id of the batch."""
        ...

    def collect(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """The results of a batch that has ended, by the number of the question, in any order."""
        ...

    async def ended(self, batch_id: str) -> bool:
        """Whether the provider is done with a batch."""
        ...

    async def window(self) -> int | None:
        """Tokens of context for one question, as the server says itself; None where it does not say."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


def http_error(status: int, message: str, headers: Mapping[str, str], secret: str, where: str) -> TransportError:
    """The error of an HTTP status; raises JudgeError for one that every question would meet."""
    text, rules = one_line(message.replace(secret, "[key]") if secret else message, ERROR_CHARACTERS), refusal_rules()
    if names_any(rules.spent, message):
        raise JudgeError(f"HTTP {status}: {text}", where=where, remedy="see the account's credit, and its limits")
    if status in FATAL_STATUSES and not names_any(rules.of_one_question, message):
        remedy = "see the key in the environment, the model's name and the address"
        raise JudgeError(f"HTTP {status}: {text}", where=where, remedy=remedy)
    return TransportError(
        f"HTTP {status}: {text}",
        retryable=status in RETRYABLE_STATUSES,
        after=retry_after(headers),
        billed="everything" if status in GAVE_UP_STATUSES else "nothing",
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date)."""
    from undersong.judges.llm.rate_limit import seconds

    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is not None:
            wait = seconds(value)
            return None if wait is None else wait * unit
    return None


@cache
def ssl_context() -> SSLContext:
    """The certificates that are trusted: read once a process, since that takes longer than thirty questions."""
    import httpx2

    return httpx2.create_ssl_context()


async def read_bounded(chunks: AsyncIterator[bytes]) -> bytes:
    """The body, read to its end or just past the limit of ``reading.yaml``; what is longer is not read further."""
    most, parts, size = shipped_prompts().limits.body_bytes, list[bytes](), 0
    async for chunk in chunks:
        parts.append(chunk[: most + 1 - size])
        size += len(parts[-1])
        if size > most:
            break
    return b"".join(parts)


INSTALL = "pip install 'undersong[llm]'"
ERROR_EXCERPT = 400  # bytes of an error that is not in the documented form
COMMON_KINDS = frozenset({"invalid_request_error", "error", "api_error"})  # say nothing beside a message


class SdkBackend(ABC):
    """A provider's SDK, asked for one attempt at a time: every attempt is counted and paid for by ``RetryPolicy``."""

    library: str
    client: str
    path: str

    def __init__(self, spec: ModelSpec, limits: RunLimits) -> None:
        """Raises JudgeError where the library or the key is missing."""
        try:
            self._sdk = import_module(self.library)
        except ImportError as error:
            what = f"the library '{self.library}' is not installed"
            raise JudgeError(what, where=spec.name, remedy=INSTALL) from error
        environment = os.environ if limits.environment is None else limits.environment
        self._spec, self._timeout = spec, limits.timeout or TIMEOUT
        self._endpoint = endpoint_of(spec.provider, spec.url, environment)
        self._secret = self._endpoint.secret
        self._open: Any = None
        self._parameters = Parameters()

    async def send(self, request: Request) -> Response:
        """See Backend; a parameter that the server refuses is left out from the next attempt on."""
        sent = self._fitted(request)
        try:
            return await self._post(sent)
        except _StatusError as error:
            if error.status in PARAMETER_STATUSES:
                self._parameters.learn(error.message, sent, _size(request))
                if self._fitted(request) != sent:
                    raise TransportError(error.message, retryable=True, adapted=True) from None
            raise http_error(error.status, error.message, error.headers, self._secret, self._spec.name) from None

    def limit(self, request: Request) -> int:
        """See Backend."""
        return self._parameters.limit(request.max_tokens, _size(request))

    @property
    def notes(self) -> tuple[str, ...]:
        """See Backend."""
        return self._parameters.notes

    def _fitted(self, request: Request) -> dict[str, Any]:
        """The body of a request with the parameters that this server takes."""
        return self._parameters.fitted(self._body(request), _size(request))

    async def _post(self, sent: dict[str, Any]) -> Response:
        """The answer to a body; raises _StatusError and TransportError."""
        body = msgspec.json.encode(sent)
        with self._errors(server_message):
            stream = await self._client.post(
                self.path, cast_to=object, content=body, stream=True, stream_cls=self._sdk.AsyncStream[object]
            )
            async with stream:
                return Response(await read_bounded(stream.response.aiter_bytes()), stream.response.headers)

    async def window(self) -> int | None:
        """See Backend."""
        kind, url = self._spec.preset.window, self._endpoint.url
        return await ask_window(kind, url, self._spec.model, self._fetch) if kind and url else None

    async def _fetch(self, url: str, body: dict[str, Any] | None) -> Any:
        """What a server says of itself; None where it says nothing there, or cannot be reached."""
        try:
            with self._errors():
                if body is None:
                    return await self._client.get(url, cast_to=object)
                return await self._client.post(url, cast_to=object, body=body)
        except (_StatusError, TransportError, msgspec.DecodeError, ValueError):
            return None

    async def close(self) -> None:
        """See Backend."""
        if self._open is not None:
            client, self._open = self._open, None
            await client.close()

    @property
    def _client(self) -> Any:
        """The SDK's client with its connections, made anew for every event loop; its own retries are off."""
        if self._open is None:
            hooks = {"request": [self._without_bearer]}
            http = self._sdk.DefaultAsyncHttpxClient(timeout=self._timeout, verify=ssl_context(), event_hooks=hooks)
            self._open = getattr(self._sdk, self.client)(
                api_key=self._secret or "none",
                base_url=self._endpoint.url,
                default_query=self._endpoint.query,
                default_headers=self._headers(),
                max_retries=0,
                timeout=self._timeout,
                http_client=http,
            )
        return self._open

    def _headers(self) -> dict[str, Any]:
        """Headers beside the SDK's own; a key in a header of its own or for basic authentication replaces the SDK's."""
        if self._secret.startswith("Basic "):
            return {"Authorization": self._secret, "X-Api-Key": self._sdk.Omit()}
        if self._endpoint.headers:
            return dict(self._endpoint.headers)
        return {}

    async def _without_bearer(self, request: Any) -> None:
        """Leave out the SDK's header for the key where the key has a header of its own."""
        if self._endpoint.headers:
            request.headers.pop("Authorization", None)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The SDK's errors as ours, for what is no question."""
        try:
            with self._errors():
                yield
        except _StatusError as error:
            raise http_error(error.status, error.message, error.headers, self._secret, self._spec.name) from None

    @contextmanager
    def _errors(self, message: Callable[[Any], str] = attrgetter("message")) -> Iterator[None]:
        """The SDK's errors as ours; ``message`` takes the text from an error that has an HTTP status."""
        import httpx2

        try:
            yield
        except self._sdk.APIStatusError as error:
            raise _StatusError(error.status_code, message(error), error.response.headers) from None
        except (self._sdk.APIConnectionError, httpx2.HTTPError) as error:
            cause = error.__cause__ or error
            if isinstance(cause, httpx2.ConnectError):
                raise TransportError(f"no connection: {type(cause).__name__}", retryable=True, reached=False) from None
            if isinstance(cause, httpx2.TooManyRedirects):
                raise TransportError("its address leads in a circle", retryable=False) from None
            what = f"the connection broke off: {type(cause).__name__}"
            late = isinstance(cause, httpx2.TimeoutException)
            raise TransportError(what, retryable=True, billed="everything", timed_out=late) from None

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Any]:
        """The request as the provider documents it."""


class _StatusError(Exception):
    """An answer with an HTTP status that says no."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def _size(request: Request) -> int:
    """UTF-8 bytes of a question."""
    return len(request.system.encode()) + len(request.user.encode())


def server_message(status_error: Any) -> str:
    """What the body of an error says, in the form that both providers have; else its first words."""
    body: bytes = status_error.response.content
    return error_in(body)[0] or body[:ERROR_EXCERPT].decode("utf-8", "replace")


def error_in(body: bytes) -> tuple[str, int | None]:
    """(text with its code, HTTP status that it names) of the error in a body; ("", None) where there is none."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return "", None
    error = decoded.get("error") if isinstance(decoded, dict) else None
    if isinstance(error, str):
        return error, None
    return error_words(error) if isinstance(error, dict) else ("", None)


def no_answer(body: bytes) -> NoAnswerError:
    """Why a body that came with status 200 holds no answer."""
    words, status = error_in(body)
    return NoAnswerError(words or ("it is not what the interface documents" if body.strip() else "it is empty"), status)


def error_words(error: Mapping[str, Any]) -> tuple[str, int | None]:
    """The same of the error itself: its message, and its code or type where the message does not say it."""
    message, code = error.get("message"), error.get("code") or error.get("type")
    words = message if isinstance(message, str) else ""
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    if isinstance(code, str) and code not in words and code not in COMMON_KINDS:
        words = f"{words} [{code}]" if words else code
    return words, status
