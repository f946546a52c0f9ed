"""Requests to a provider over its SDK, and the errors of transport; each provider is one module with a ``Backend``."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from undersong.core.sanitize import one_line
from undersong.errors import JudgeError
from undersong.judges.limits import TIMEOUT, RunLimits
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.presets import endpoint_of
from undersong.judges.llm.prompts import shipped_prompts

if TYPE_CHECKING:
    from ssl import SSLContext


FATAL_STATUSES = frozenset(
    {401, 402, 403, 404, 405}
)  # no question can be asked: key, payment, permission, model or address
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})  # worth another try


class Request(NamedTuple):
    """One request: the stable part, the question, the form of the answer, and its longest length in tokens."""

    system: str
    user: str
    schema: dict[str, Any]
    max_tokens: int


class Completion(NamedTuple):
    """What an answer says: ``stop`` is ``end``, ``length`` or ``refusal``; tokens as the provider counts them.

    ``input`` includes ``cached`` and ``written``.
    """

    text: str
    stop: str
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0


class Response(NamedTuple):
    """A whole answer as it came, and the headers that came with it."""

    body: bytes
    headers: Mapping[str, str]


class BatchResult(NamedTuple):
    """One result of a batch: the body of its answer, or why there is none."""

    number: int
    body: bytes | None
    why: str = ""


class TransportError(Exception):
    """A request that brought no answer: ``retryable`` says whether to try again, ``after`` in how many seconds.

    ``reached`` is False where no server was there at all.
    """

    def __init__(self, why: str, *, retryable: bool, after: float | None = None, reached: bool = True) -> None:
        super().__init__(why)
        self.why, self.retryable, self.after, self.reached = why, retryable, after, reached


class Backend(Protocol):
    """One provider and model; its module also has ``parse_completion(body)``, which reads an answer."""

    async def send(self, request: Request) -> Response:
        """Ask once; raises TransportError, or JudgeError where nothing can be asked at all."""
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

    async def close(self) -> None:
        """Release the connections."""
        ...


def http_error(status: int, message: str, headers: Mapping[str, str], secret: str, where: str) -> TransportError:
    """The error of an HTTP status; raises JudgeError for one that every question would meet."""
    text = one_line(message.replace(secret, "[key]") if secret else message, 200)
    if status in FATAL_STATUSES:
        remedy = "see the key in the environment, the model's name and the address"
        raise JudgeError(f"HTTP {status}: {text}", where=where, remedy=remedy)
    return TransportError(f"HTTP {status}: {text}", retryable=status in RETRYABLE_STATUSES, after=retry_after(headers))


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

    async def send(self, request: Request) -> Response:
        """See Backend."""
        body = msgspec.json.encode(self._body(request))
        with self._errors(_server_message):
            stream = await self._client.post(
                self.path, cast_to=object, content=body, stream=True, stream_cls=self._sdk.AsyncStream[object]
            )
            async with stream:
                return Response(await read_bounded(stream.response.aiter_bytes()), stream.response.headers)

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

    def _max_tokens(self, request: Request) -> int:
        return request.max_tokens + (shipped_prompts().limits.thinking_tokens if self._spec.effort else 0)

    @contextmanager
    def _errors(self, message: Callable[[Any], str] = attrgetter("message")) -> Iterator[None]:
        """The SDK's errors as ours; ``message`` takes the text from an error that has an HTTP status."""
        import httpx2

        try:
            yield
        except self._sdk.APIStatusError as error:
            headers, where = error.response.headers, self._spec.name
            raise http_error(error.status_code, message(error), headers, self._secret, where) from None
        except (self._sdk.APIConnectionError, httpx2.HTTPError) as error:
            cause = error.__cause__ or error
            reached = not isinstance(cause, httpx2.ConnectError)
            what = "the connection broke off" if reached else "no connection"
            raise TransportError(f"{what}: {type(cause).__name__}", retryable=True, reached=reached) from None

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Any]:
        """The request as the provider documents it."""


def _server_message(status_error: Any) -> str:
    """What the body of an error says, in the form that both providers have; else its first words."""
    body: bytes = status_error.response.content
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        decoded = None
    error = decoded.get("error") if isinstance(decoded, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body[:ERROR_EXCERPT].decode("utf-8", "replace")
