"""What the two providers' libraries have in common: no retries of their own, and their errors in our words."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import msgspec

from undersong.errors import JudgeError
from undersong.judges.llm.book import shipped_prompts
from undersong.judges.llm.spec import ModelSpec
from undersong.judges.llm.vendor import SdkTransport, ssl_context
from undersong.judges.llm.wire import Request, Response, Transport, TransportError, http_error
from undersong.judges.terms import RunLimits

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
