"""Rate limits and retries: exponential backoff, and the pauses that a server asks for."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from undersong.judges.llm.refusals import refusal_rules
from undersong.judges.llm.transport import Response, TransportError

LONGEST = 60.0  # seconds between two attempts where the server names none
LONGEST_REQUESTED_WAIT = (
    3600.0  # seconds that a server may ask to wait; a question that would wait longer counts as failed
)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
# remaining → reset, as the two providers name them
RATE_LIMIT_HEADERS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
)


class RetryPolicy:
    """Shared by all requests to one provider: when one of them is told to wait, all wait."""

    def __init__(self, *, attempts: int, backoff: float) -> None:
        self._attempts, self._backoff = attempts, backoff
        self._until = 0.0

    async def call(self, send: Callable[[], Awaitable[Response]]) -> Response:
        """Send until an answer comes; raises TransportError with the last reason when all attempts are used up.

        An attempt without a parameter that the server refused is none of them. Requests that ran out of time are few,
        since each may have been paid.
        """
        attempt = time_outs = 0
        while True:
            await self._wait_until_allowed()
            try:
                response = await send()
            except TransportError as error:
                if error.adapted:
                    continue
                attempt, time_outs = attempt + 1, time_outs + error.timed_out
                if self._is_last(error, attempt, time_outs):
                    why = f"{error.why} ({attempt} of {self._attempts} attempts)" if error.retryable else error.why
                    raise TransportError(
                        why, retryable=False, reached=error.reached, timed_out=error.timed_out
                    ) from None
                await self._back_off(attempt, error.after)
            else:
                self._apply_rate_limits(response.headers)
                return response

    def _is_last(self, error: TransportError, attempt: int, time_outs: int) -> bool:
        """Whether no further attempt follows this one."""
        if not error.retryable or attempt >= self._attempts or time_outs >= refusal_rules().time_outs:
            return True
        return (error.after or 0.0) > LONGEST_REQUESTED_WAIT

    async def _wait_until_allowed(self) -> None:
        loop = asyncio.get_running_loop()
        while (wait := self._until - loop.time()) > 0:
            await asyncio.sleep(wait)

    async def _back_off(self, attempt: int, after: float | None) -> None:
        """Exponential backoff with full jitter; where the server names a time, all wait for it."""
        if after is not None:
            self._pause(after)
            return
        await asyncio.sleep(random.uniform(0.5, 1.0) * min(LONGEST, self._backoff * 2 ** (attempt - 1)))

    def _apply_rate_limits(self, headers: Mapping[str, str]) -> None:
        """Wait for the reset where a limit is used up."""
        for remaining, reset in RATE_LIMIT_HEADERS:
            if headers.get(remaining) == "0" and (wait := seconds(headers.get(reset, ""))) is not None:
                self._pause(wait)

    def _pause(self, wait: float) -> None:
        self._until = max(self._until, asyncio.get_running_loop().time() + min(wait, LONGEST_REQUESTED_WAIT))


def seconds(text: str) -> float | None:
    """``2``, ``1.5``, ``6m0s``, ``20ms``, an HTTP date or an ISO time → seconds from now, never below 0.

    >>> seconds("6m0s")
    360.0
    """
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    if spans := _SPAN.findall(text):
        return sum(float(number) * _UNITS[unit] for number, unit in spans)
    moment = _moment(text)
    return None if moment is None else max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _moment(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
