"""Requests by a vendor's client library: encryption, proxies, redirects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

from undersong.judges.llm.book import shipped_prompts
from undersong.judges.llm.wire import HttpResponse, TransportError

if TYPE_CHECKING:
    from ssl import SSLContext

    from undersong.judges.llm.direct import Http11Transport


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
        from undersong.judges.llm.direct import Http11Transport, HttpEndpoint

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
