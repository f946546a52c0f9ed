"""Events of a case to an OTLP receiver over HTTP, as JSON."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

from undersong.core.sanitize import one_line
from undersong.errors import StoreError, UsageError
from undersong.models import Case
from undersong.report.render.otlp import requests

PATH = "/v1/logs"
HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS")  # the later one goes before
TIMEOUT = 10.0  # seconds for a request
TRIES, FIRST_PAUSE, LONGEST_PAUSE = 4, 0.5, 30.0  # seconds; a pause is twice the one before
RETRYABLE = frozenset({429, 502, 503, 504})  # as the protocol names them
MOST_BYTES = 1 << 20  # of an answer that are read


class _NoRedirect(HTTPRedirectHandler):
    """Quotes of people go to the address that was named, and to no other."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none: the answer stands as an error."""


def logs_url(endpoint: str) -> str:
    """The address of logs at an endpoint, which may name it already; raises UsageError for what is no http address."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        remedy = "give an address such as http://localhost:4318"
        raise UsageError(f"'{one_line(endpoint)}' is no address of http", where="--otlp", remedy=remedy)
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(PATH) else path + PATH, fragment=""))


def send(
    case: Case,
    endpoint: str,
    *,
    environment: Mapping[str, str] | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> int:
    """Send the events of a case and return how many the receiver took.

    Headers come from OTEL_EXPORTER_OTLP_HEADERS. What cannot be sent now is tried again where the protocol says so.
    Raises StoreError where the receiver does not answer, refuses, or takes only a part.
    """
    url, headers, sent = logs_url(endpoint), headers_of(os.environ if environment is None else environment), 0
    for body in requests(case):
        records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
        rejected, why = _rejected(_post(url, msgspec.json.encode(body), headers, pause))
        if rejected:
            what = f"took {len(records) - rejected:,} of {len(records):,} events: {one_line(why, 200)}"
            raise StoreError(what, where=_shown(url), remedy="see the receiver's own log")
        sent += len(records)
    return sent


def headers_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The headers that the variables of the exporters name: ``key=value,key=value``, percent-encoded."""
    pairs = (pair.partition("=") for name in HEADERS for pair in environment.get(name, "").split(","))
    return {key.strip(): unquote(value.strip()) for key, equals, value in pairs if equals and key.strip()}


def _post(url: str, body: bytes, headers: Mapping[str, str], pause: Callable[[float], object]) -> bytes:
    """The answer to a body; raises StoreError where there is none that counts."""
    own = {"Content-Type": "application/json", "Content-Encoding": "gzip", "User-Agent": "undersong"}
    request = Request(url, gzip.compress(body, mtime=0), {**headers, **own}, method="POST")
    opener, wait = build_opener(_NoRedirect()), FIRST_PAUSE
    for attempt in range(TRIES):
        try:
            with opener.open(request, timeout=TIMEOUT) as answer:
                return bytes(answer.read(MOST_BYTES))
        except HTTPError as error:
            what, again = f"answered {error.code} {one_line(str(error.reason))}", error.code in RETRYABLE
            wait = _asked_for(error.headers.get("Retry-After")) or wait
            error.close()
        except (URLError, HTTPException, OSError) as error:
            what, again = f"cannot be reached: {one_line(str(getattr(error, 'reason', error)))}", True
        if not again or attempt == TRIES - 1:
            break
        pause(min(wait, LONGEST_PAUSE))
        wait *= 2
    raise StoreError(what, where=_shown(url), remedy="is a receiver of OTLP over HTTP there? The report is written")


def _asked_for(value: str | None) -> float:
    """The seconds of a ``Retry-After``; 0 where it names none."""
    return float(value) if value and value.isascii() and value.isdigit() else 0.0


def _rejected(answer: bytes) -> tuple[int, str]:
    """How many records a receiver did not take, and why; an answer without such words took all."""
    try:
        partial = msgspec.json.decode(answer, type=dict[str, Any]).get("partialSuccess") if answer.strip() else None
    except msgspec.DecodeError:
        return 0, ""  # a status of success with a body of another kind
    if not isinstance(partial, dict):
        return 0, ""
    number = str(partial.get("rejectedLogRecords") or 0)
    return int(number) if number.isdigit() else 0, str(partial.get("errorMessage") or "no reason was given")


def _shown(url: str) -> str:
    """The address without a name, password or query."""
    parts = urlsplit(url)
    host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
