"""The gate before every page: who may call, from where, how much may be sent, and what a browser may do with it."""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from undersong.serve.problems import HttpProblem, problem_response
from undersong.serve.settings import BODY_LIMIT, ServeSettings

COOKIE = "undersong_token"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # no-referrer would make browsers send "Origin: null" with our own forms
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",  # a transcript is nobody else's, and a browser's cache is a copy
}
SAFE = ("GET", "HEAD")
OTHERS = ("cross-site", "same-site")  # Sec-Fetch-Site of pages that are not ours; another port is "same-site"
UPLOADS = "/audits"  # the one address that takes a large body


class Gate:
    """Refuses what should not come in, and puts the headers on what goes out."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._refusal(scope)
        sending = _with_headers(send)
        if answer is not None:
            await answer(scope, receive, sending)
            return
        limit = self._limit(scope)
        await self.app(scope, _limited(receive, limit), sending)

    def _limit(self, scope: Scope) -> int:
        return self.settings.upload_limit if scope["path"].endswith(UPLOADS) else BODY_LIMIT

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        problem = (
            self._wrong_host(headers)
            or self._foreign(headers, scope["method"])
            or self._too_large(headers, self._limit(scope))
        )
        if problem is not None:
            return problem_response(scope, problem)
        return self._without_token(scope, headers) or self._not_writable(scope)

    def _wrong_host(self, headers: Headers) -> HttpProblem | None:
        """Another name may be one that an attacker's page resolves to this machine (DNS rebinding)."""
        host = headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if name.lower() in self.settings.hosts:
            return None
        remedy = "call it by the address that it printed, or start it with --allow-host NAME"
        return HttpProblem(421, "this server does not answer to that name", where=f"Host: {host[:100]}", remedy=remedy)

    def _foreign(self, headers: Headers, method: str) -> HttpProblem | None:
        """What changes something must come from our own pages, or from a program that is no browser."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if method in SAFE:
            navigated = headers.get("sec-fetch-mode", "navigate") == "navigate"
            if site not in OTHERS or (navigated and headers.get("sec-fetch-dest", "document") == "document"):
                return None
        elif (origin is None or urlsplit(origin).netloc == headers.get("host")) and site not in OTHERS:
            return None
        where = f"Origin: {(origin or site or '')[:100]}"
        return HttpProblem(
            403, "the request came from another site", where=where, remedy="use the pages of this server"
        )

    def _too_large(self, headers: Headers, limit: int) -> HttpProblem | None:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) <= limit:
            return None
        return too_large(limit)

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        token = self.settings.token
        if token is None or scope["path"].startswith("/static/"):
            return None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        shown = dict(pairs).get("token", "")
        if shown and scope["method"] in SAFE and _same(shown, token):
            rest = urlencode([(name, value) for name, value in pairs if name != "token"])
            answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), status_code=303)
            secure = scope.get("scheme") == "https"
            answer.set_cookie(COOKIE, token, httponly=True, samesite="lax", path="/", secure=secure)
            return answer
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if _same(bearer, token) or _same(_cookie(headers), token):
            return None
        remedy = "open the address with ?token=… that the server printed, or send Authorization: Bearer TOKEN"
        refusal = problem_response(scope, HttpProblem(401, "a token is needed", where=scope["path"], remedy=remedy))
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal

    def _not_writable(self, scope: Scope) -> Response | None:
        if scope["method"] in SAFE or self.settings.writable:
            return None
        if self.settings.copied:
            what = "this report has no store beside it, so that a decision would have no place to stay"
            remedy = "audit with a store (the default), and serve that"
        else:
            what, remedy = "this server only shows", "start it without --read-only"
        return problem_response(scope, HttpProblem(403, what, where=scope["path"], remedy=remedy))


def too_large(limit: int) -> HttpProblem:
    """The refusal of a body beyond a limit."""
    remedy = "audit it with `undersong audit FILE`, or start the server with a larger --upload-limit"
    return HttpProblem(413, f"more than {limit:,} bytes", where="the body of the request", remedy=remedy)


class BodyTooLargeError(Exception):
    """A body without a length, or with a wrong one, went beyond its limit."""


def _limited(receive: Receive, limit: int) -> Receive:
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > limit:
                raise BodyTooLargeError(limit)
        return message

    return counted


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _cookie(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _same(shown: str, token: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), token.encode())
