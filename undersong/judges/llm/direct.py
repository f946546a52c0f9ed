"""Questions over plain HTTP to a server of one's own: one write each, on connections that are kept.

A vendor's library takes about 2 ms of CPU for a request; h11, the parser below it, a fifth of that. A server in the
next room that answers 64 questions at once in 200 ms each would otherwise wait for us.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import h11

from undersong.judges.llm.wire import HttpResponse, TransportError

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
