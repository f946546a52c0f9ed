"""What the two providers' libraries have in common: no retries of their own, and their errors in our words."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import msgspec

from undersong.errors import JudgeError
from undersong.judges.llm.book import book
from undersong.judges.llm.spec import Spec
from undersong.judges.llm.wire import Delivered, Sent, TransportError, refused
from undersong.judges.terms import Terms

INSTALL = "pip install 'undersong[llm]'"
SAID = 400  # bytes of an error that is not in the documented form
OWN_KEY = "UNDERSONG_JUDGE_KEY"  # for a server by address: the provider's key is never sent to another host


class Line(NamedTuple):
    """How requests go out: the connections, the address, and the headers that all have."""

    http: Any
    url: Any
    headers: list[tuple[str, str]]
    extensions: dict[str, Any]


class Connected(NamedTuple):
    """A library's client, and the line that questions take."""

    sdk: Any
    line: Line


class SdkBackend(ABC):
    """A provider's library, used for one request at a time: attempts are counted and paid for by us."""

    library: str
    client: str
    key: str
    path: str

    def __init__(self, spec: Spec, terms: Terms) -> None:
        """Raises JudgeError where the library or the key is missing."""
        try:
            self._sdk = import_module(self.library)
        except ImportError as error:
            what = f"the library '{self.library}' is not installed"
            raise JudgeError(what, where=spec.name, remedy=INSTALL) from error
        environment = os.environ if terms.environment is None else terms.environment
        self._spec, self._timeout = spec, terms.timeout
        self._secret = environment.get(self.key if spec.url is None else OWN_KEY, "")
        if not self._secret and spec.url is None:
            raise JudgeError("no key", where=spec.name, remedy=f"set {self.key} in the environment")
        self._open: Connected | None = None

    async def send(self, sent: Sent) -> Delivered:
        """See Backend."""
        import httpx2

        line = self._connected().line
        try:
            response = await line.http.send(self._request(line, sent), stream=True)
            try:
                body = await bounded(response.aiter_bytes())
            finally:
                await response.aclose()
        except httpx2.ConnectError as error:
            raise TransportError(f"no connection: {type(error).__name__}", passing=True, reached=False) from None
        except httpx2.HTTPError as error:
            raise TransportError(f"the connection broke off: {type(error).__name__}", passing=True) from None
        if response.is_success:
            return Delivered(body, response.headers)
        raise refused(response.status_code, _message(body), response.headers, self._secret, self._spec.name)

    async def close(self) -> None:
        """See Backend."""
        if self._open is not None:
            opened, self._open = self._open, None
            await opened.sdk.close()

    def _request(self, line: Line, sent: Sent) -> Any:
        """A request of the library's address and headers. Made by the library, one takes longer than all the rest."""
        import httpx2

        body = msgspec.json.encode(self._body(sent))
        headers = [*line.headers, ("content-length", str(len(body)))]
        return httpx2.Request("POST", line.url, headers=headers, content=body, extensions=line.extensions)

    def _connected(self) -> Connected:
        """The library's client and its connections, made anew for every event loop."""
        if self._open is None:
            http = self._sdk.DefaultAsyncHttpxClient(timeout=self._timeout)
            key, make = self._secret or "none", getattr(self._sdk, self.client)
            sdk = make(api_key=key, base_url=self._spec.url, max_retries=0, timeout=self._timeout, http_client=http)
            self._open = Connected(sdk, line_of(sdk, http, self.path, self._timeout))
        return self._open

    def _most(self, sent: Sent) -> int:
        return sent.most + (book().limits.thinking_tokens if self._spec.effort else 0)

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
            raise refused(error.status_code, error.message, headers, self._secret, where) from None
        except self._sdk.APIError as error:
            raise TransportError(f"no connection: {type(error).__name__}", passing=True) from None
        except httpx2.HTTPError as error:
            raise TransportError(f"the connection broke off: {type(error).__name__}", passing=True) from None

    @abstractmethod
    def _body(self, sent: Sent) -> dict[str, Any]:
        """The request as the provider documents it."""


def line_of(sdk: Any, http: Any, path: str, timeout: float) -> Line:
    """The line of a library's client: its own headers, with the key, to its own address."""
    import httpx2

    url = httpx2.URL(str(sdk.base_url).rstrip("/") + path)
    given = {**sdk.default_headers, **sdk.auth_headers, "Accept-Encoding": "gzip, deflate"}
    headers = [(name, value) for name, value in given.items() if isinstance(value, str)]
    extensions = {"timeout": httpx2.Timeout(timeout).as_dict()}
    return Line(http, url, [("Host", url.netloc.decode("ascii")), *headers], extensions)


def _message(body: bytes) -> str:
    """What the body of an error says, in the form that both providers have; else its first words."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = None
    error = found.get("error") if isinstance(found, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else body[:SAID].decode("utf-8", "replace")


async def bounded(chunks: AsyncIterator[bytes]) -> bytes:
    """The body, read to its end or just past the limit of ``reading.yaml``; what is longer is not read further."""
    most, parts, size = book().limits.body_bytes, list[bytes](), 0
    async for chunk in chunks:
        parts.append(chunk[: most + 1 - size])
        size += len(parts[-1])
        if size > most:
            break
    return b"".join(parts)
