"""What goes over the wire and what can go wrong there; each provider is one module with a ``Backend``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from undersong.errors import JudgeError
from undersong.visible import one_line

HOPELESS = frozenset({401, 402, 403, 404, 405})  # no question can be asked: key, payment, permission, model or address
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})  # worth another try


class Sent(NamedTuple):
    """One request: the stable part, the question, the form of the answer, and its longest length in tokens."""

    system: str
    user: str
    schema: dict[str, Any]
    most: int


class Said(NamedTuple):
    """What an answer says: ``stop`` is ``end``, ``length`` or ``refusal``; tokens as the provider counts them.

    ``input`` includes ``cached`` and ``written``.
    """

    text: str
    stop: str
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0


class Delivered(NamedTuple):
    """A whole answer as it came, and the headers that came with it."""

    body: bytes
    headers: Mapping[str, str]


class Answered(NamedTuple):
    """What came back for one request: headers by their names in lower case; the body may end just past its limit."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Collected(NamedTuple):
    """One result of a batch: the body of its answer, or why there is none."""

    number: int
    body: bytes | None
    why: str = ""


class TransportError(Exception):
    """A request that brought no answer: ``passing`` says whether to try again, ``after`` in how many seconds.

    ``reached`` is False where no server was there at all.
    """

    def __init__(self, why: str, *, passing: bool, after: float | None = None, reached: bool = True) -> None:
        super().__init__(why)
        self.why, self.passing, self.after, self.reached = why, passing, after, reached


class Line(Protocol):
    """How requests go out to one address."""

    async def post(self, body: bytes) -> Answered:
        """Ask once; raises TransportError where no answer comes."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


class Backend(Protocol):
    """One provider and model; its module also has ``said(body)``, which takes an answer apart."""

    async def send(self, sent: Sent) -> Delivered:
        """Ask once; raises TransportError, or JudgeError where nothing can be asked at all."""
        ...

    async def submit(self, requests: Iterable[Sent]) -> str:
        """Hand questions to the provider's batch interface; the id of the batch."""
        ...

    def collect(self, batch_id: str) -> AsyncIterator[Collected]:
        """The results of a batch that has ended, by the number of the question, in any order."""
        ...

    async def ended(self, batch_id: str) -> bool:
        """Whether the provider is done with a batch."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


def refused(status: int, message: str, headers: Mapping[str, str], secret: str, where: str) -> TransportError:
    """The error of an HTTP status; raises JudgeError for one that every question would meet."""
    said = one_line(message.replace(secret, "[key]") if secret else message, 200)
    if status in HOPELESS:
        remedy = "see the key in the environment, the model's name and the address"
        raise JudgeError(f"HTTP {status}: {said}", where=where, remedy=remedy)
    return TransportError(f"HTTP {status}: {said}", passing=status in PASSING, after=retry_after(headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date)."""
    from undersong.judges.llm.pace import seconds

    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is not None:
            found = seconds(value)
            return None if found is None else found * unit
    return None
