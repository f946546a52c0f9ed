"""What goes over the wire and what can go wrong there; each provider is one module with a ``Backend``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from undersong.errors import JudgeError
from undersong.visible import one_line

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


class HttpResponse(NamedTuple):
    """What came back for one request: headers by their names in lower case; the body may end just past its limit."""

    status: int
    headers: Mapping[str, str]
    body: bytes


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


class Transport(Protocol):
    """How requests go out to one address."""

    async def post(self, body: bytes) -> HttpResponse:
        """Ask once; raises TransportError where no answer comes."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


class Backend(Protocol):
    """One provider and model; its module also has ``said(body)``, which takes an answer apart."""

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
    from undersong.judges.llm.pace import seconds

    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is not None:
            wait = seconds(value)
            return None if wait is None else wait * unit
    return None
