"""What the two providers' libraries have in common: no retries of their own, and their errors in our words."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from undersong.errors import JudgeError
from undersong.judges.llm.book import book
from undersong.judges.llm.spec import Spec
from undersong.judges.llm.wire import Delivered, Sent, TransportError, refused
from undersong.judges.terms import Terms

INSTALL = "pip install 'undersong[llm]'"
OWN_KEY = "UNDERSONG_JUDGE_KEY"  # for a server by address: the provider's key is never sent to another host
_STREAMED = {"headers": {"X-Stainless-Raw-Response": "stream"}}  # both libraries: the response before it is read


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
        self._open: Any = None

    async def send(self, sent: Sent) -> Delivered:
        """See Backend."""
        with self._errors():
            # the library's typed method walks through every node of a schema, which takes longer than all the rest
            response = await self._connected().post(self.path, body=self._body(sent), cast_to=object, options=_STREAMED)
            try:
                return Delivered(await bounded(response.iter_bytes()), response.headers)
            finally:
                await response.close()

    async def close(self) -> None:
        """See Backend."""
        if self._open is not None:
            opened, self._open = self._open, None
            await opened.close()

    def _connected(self) -> Any:
        """The client, made anew for every event loop."""
        if self._open is None:
            make = getattr(self._sdk, self.client)
            key = self._secret or "none"
            self._open = make(api_key=key, base_url=self._spec.url, max_retries=0, timeout=self._timeout)
        return self._open

    def _most(self, sent: Sent) -> int:
        return sent.most + (book().limits.thinking_tokens if self._spec.effort else 0)

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


async def bounded(chunks: AsyncIterator[bytes]) -> bytes:
    """The body, read to its end or just past the limit of ``reading.yaml``; what is longer is not read further."""
    most, parts, size = book().limits.body_bytes, list[bytes](), 0
    async for chunk in chunks:
        parts.append(chunk[: most + 1 - size])
        size += len(parts[-1])
        if size > most:
            break
    return b"".join(parts)
