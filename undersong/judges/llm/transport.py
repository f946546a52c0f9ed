"""What goes over the wire and what can go wrong there; each provider is one module with a ``Backend``."""

from __future__ import annotations

import asyncio
import os
import select
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.request import getproxies, proxy_bypass

import h11
import msgspec

from undersong.core.sanitize import one_line
from undersong.errors import JudgeError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.model_spec import ModelSpec
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
    from undersong.judges.llm.rate_limit import seconds

    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is not None:
            wait = seconds(value)
            return None if wait is None else wait * unit
    return None


class SdkTransport:
    """The line of a library's client: its own headers, with the key, to its own address; see ``Line``."""

    def __init__(self, sdk: Any, http: Any, path: str, timeout: float) -> None:
        import httpx2

        self._http, self._url = http, httpx2.URL(str(sdk.base_url).rstrip("/") + path)
        sdk_headers = {**sdk.default_headers, **sdk.auth_headers, "Accept-Encoding": "gzip, deflate"}
        own = [(name, value) for name, value in sdk_headers.items() if isinstance(value, str)]
        self._headers = [("Host", self._url.netloc.decode("ascii")), *own]
        self._extensions = {"timeout": httpx2.Timeout(timeout).as_dict()}

    def plain_transport(self) -> Http11Transport | None:
        """A line to the same address with the same headers and no library between.

        None where one is needed: for encryption, and for a proxy that the environment names.
        """

        url, proxies = self._url, getproxies()
        if url.scheme != "http" or ({"http", "all"} & proxies.keys() and not proxy_bypass(url.host)):
            return None
        endpoint = HttpEndpoint(url.host, url.port or 80, url.raw_path.decode("ascii"))
        return Http11Transport(endpoint, self._headers, shipped_prompts().limits.body_bytes)

    async def post(self, body: bytes) -> HttpResponse:
        """See Line. Redirects are followed. A request that the library builds itself takes longer than all the rest."""
        import httpx2

        headers = [*self._headers, ("content-length", str(len(body)))]
        request = httpx2.Request("POST", self._url, headers=headers, content=body, extensions=self._extensions)
        try:
            response = await self._http.send(request, stream=True)
            try:
                return HttpResponse(response.status_code, response.headers, await read_bounded(response.aiter_bytes()))
            finally:
                await response.aclose()
        except httpx2.ConnectError as error:
            raise TransportError(f"no connection: {type(error).__name__}", retryable=True, reached=False) from None
        except httpx2.HTTPError as error:
            raise TransportError(f"the connection broke off: {type(error).__name__}", retryable=True) from None

    async def close(self) -> None:
        """See Line; the library's client closes them."""


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
OWN_KEY = "UNDERSONG_JUDGE_KEY"  # for a server by address: the provider's key is never sent to another host
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class OpenClient(NamedTuple):
    """A library's client, and the lines that a question takes: another one where the first is sent elsewhere."""

    sdk: Any
    transports: tuple[Transport, ...]


class SdkBackend(ABC):
    """A provider's library, used for one request at a time: attempts are counted and paid for by us."""

    library: str
    client: str
    key: str
    path: str

    def __init__(self, spec: ModelSpec, limits: RunLimits) -> None:
        """Raises JudgeError where the library or the key is missing."""
        try:
            self._sdk = import_module(self.library)
        except ImportError as error:
            what = f"the library '{self.library}' is not installed"
            raise JudgeError(what, where=spec.name, remedy=INSTALL) from error
        environment = os.environ if limits.environment is None else limits.environment
        self._spec, self._timeout = spec, limits.timeout
        self._secret = environment.get(self.key if spec.url is None else OWN_KEY, "")
        if not self._secret and spec.url is None:
            raise JudgeError("no key", where=spec.name, remedy=f"set {self.key} in the environment")
        self._open: OpenClient | None = None

    async def send(self, request: Request) -> Response:
        """See Backend."""
        body = msgspec.json.encode(self._body(request))
        for transport in self._connected().transports:
            response = await transport.post(body)
            if response.status not in REDIRECTS:
                break
        if 200 <= response.status < 300:
            return Response(response.body, response.headers)
        raise http_error(response.status, _message(response.body), response.headers, self._secret, self._spec.name)

    async def close(self) -> None:
        """See Backend."""
        if self._open is not None:
            opened, self._open = self._open, None
            for transport in opened.transports:
                await transport.close()
            await opened.sdk.close()

    def _connected(self) -> OpenClient:
        """The library's client and its connections, made anew for every event loop."""
        if self._open is None:
            http = self._sdk.DefaultAsyncHttpxClient(timeout=self._timeout, verify=ssl_context())
            key, make = self._secret or "none", getattr(self._sdk, self.client)
            sdk = make(api_key=key, base_url=self._spec.url, max_retries=0, timeout=self._timeout, http_client=http)
            vendor = SdkTransport(sdk, http, self.path, self._timeout)
            direct = vendor.plain_transport()
            self._open = OpenClient(sdk, (vendor,) if direct is None else (direct, vendor))
        return self._open

    def _max_tokens(self, request: Request) -> int:
        return request.max_tokens + (shipped_prompts().limits.thinking_tokens if self._spec.effort else 0)

    @property
    def _client(self) -> Any:
        return self._connected().sdk

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """The library's errors in our words."""
        import httpx2

        try:
            yield
        except self._sdk.APIStatusError as error:
            headers, where = error.response.headers, self._spec.name
            raise http_error(error.status_code, error.message, headers, self._secret, where) from None
        except self._sdk.APIError as error:
            raise TransportError(f"no connection: {type(error).__name__}", retryable=True) from None
        except httpx2.HTTPError as error:
            raise TransportError(f"the connection broke off: {type(error).__name__}", retryable=True) from None

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Any]:
        """The request as the provider documents it."""


def _message(body: bytes) -> str:
    """What the body of an error says, in the form that both providers have; else its first words."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        decoded = None
    error = decoded.get("error") if isinstance(decoded, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body[:ERROR_EXCERPT].decode("utf-8", "replace")


PIECE = 1 << 16  # bytes read at a time


class HttpEndpoint(NamedTuple):
    """Where questions go: host and port to connect to, and the target of the request."""

    host: str
    port: int
    target: str


class Http11Transport:
    """A line without a library between, for ``http://`` addresses that no proxy stands before; see ``Line``."""

    def __init__(self, endpoint: HttpEndpoint, headers: Sequence[tuple[str, str]], most: int) -> None:
        """``headers`` are those that all requests have; of an answer little more than ``most`` bytes are read."""
        self._endpoint, self._most = endpoint, most
        own_headers = [(name, value) for name, value in headers if name.lower() != "accept-encoding"]
        self._headers = [*own_headers, ("Accept-Encoding", "identity")]
        self._idle: list[_Connection] = []

    async def post(self, body: bytes) -> HttpResponse:
        """See Line."""
        connection = self._idle_connection() or await self._new()
        try:
            answered = await connection.exchange(self._request(len(body)), body, self._most)
        except (OSError, h11.ProtocolError) as error:
            raise TransportError(f"the connection broke off: {type(error).__name__}", retryable=True) from None
        finally:
            self._put_back(connection)
        if answered.headers.get("content-encoding", "identity") != "identity":
            raise TransportError("the answer is compressed, which was not asked for", retryable=False)
        return answered

    async def close(self) -> None:
        """See Line."""
        while self._idle:
            await self._idle.pop().close()

    def _request(self, length: int) -> h11.Request:
        headers = [*self._headers, ("Content-Length", str(length))]
        return h11.Request(method="POST", target=self._endpoint.target, headers=headers)

    def _idle_connection(self) -> _Connection | None:
        """The connection that was used last, of those that the server has not closed meanwhile."""
        while self._idle:
            if (last := self._idle.pop()).open:
                return last
            last.drop()
        return None

    def _put_back(self, connection: _Connection) -> None:
        if connection.again():
            self._idle.append(connection)
        else:
            connection.drop()

    async def _new(self) -> _Connection:
        try:
            return _Connection(*await asyncio.open_connection(self._endpoint.host, self._endpoint.port))
        except OSError as error:
            raise TransportError(f"no connection: {type(error).__name__}", retryable=True, reached=False) from None


class _Connection:
    """One connection: a request goes out in one piece, and its answer comes back before the next one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._state = h11.Connection(h11.CLIENT)
        self._unasked = select.poll()
        self._unasked.register(writer.get_extra_info("socket").fileno(), select.POLLIN)

    @property
    def open(self) -> bool:
        """Whether the server has left it open: between two questions nothing comes from it but its end."""
        return not self._reader.at_eof() and not self._writer.is_closing() and not self._unasked.poll(0)

    def again(self) -> bool:
        """Whether another request may go out: the last one came to its end, and the server keeps the connection."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE or not self.open:
            return False
        self._state.start_next_cycle()
        return True

    def drop(self) -> None:
        """End it at once, whatever is under way."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """End it and wait until it has ended."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def exchange(self, request: h11.Request, body: bytes, most: int) -> HttpResponse:
        """Raises OSError and h11.ProtocolError where no whole answer comes; what is longer than ``most`` is not read
        to its end."""
        sent = (self._state.send(each) for each in (request, h11.Data(data=body), h11.EndOfMessage()))
        self._writer.write(b"".join(part for part in sent if part))
        await self._writer.drain()
        response = await self._event()
        while not isinstance(response, h11.Response):
            response = await self._event()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
        return HttpResponse(response.status_code, headers, await self._body(most))

    async def _body(self, most: int) -> bytes:
        parts, size = list[bytes](), 0
        while size <= most and isinstance(event := await self._event(), h11.Data):
            parts.append(bytes(event.data))
            size += len(parts[-1])
        return b"".join(parts)[: most + 1]

    async def _event(self) -> object:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            self._state.receive_data(await self._reader.read(PIECE))
        if isinstance(event, h11.ConnectionClosed):
            raise ConnectionResetError("closed before the answer")
        return event
