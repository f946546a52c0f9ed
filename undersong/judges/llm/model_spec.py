"""``--judge`` → who is asked: ``MODEL``, ``MODEL+EFFORT``, ``MODEL@http://host:port/v1``."""

from __future__ import annotations

import re
from typing import NamedTuple

from undersong.errors import UsageError

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
_SHAPE = re.compile(r"(?P<model>[^@]+?)(?:\+(?P<effort>[a-z]+))?(?:@(?P<url>https?://.+))?")


class ModelSpec(NamedTuple):
    """One model at one provider; ``effort`` None leaves it to the provider, ``url`` None is the provider's own."""

    provider: str
    model: str
    effort: str | None = None
    url: str | None = None

    @property
    def name(self) -> str:
        """As a user writes it, and as the rows record it."""
        effort = f"+{self.effort}" if self.effort else ""
        return f"{self.provider}:{self.model}{effort}" + (f"@{self.url}" if self.url else "")


def parse_model_spec(provider: str, argument: str) -> ModelSpec:
    """The spec of what follows the provider's colon; raises UsageError for what is none."""
    match = _SHAPE.fullmatch(argument)
    where = f"--judge '{provider}:{argument}'"  # in quotes: a colon follows
    if match is None:
        raise UsageError("names no model", where=where, remedy=f"write {provider}:MODEL or {provider}:MODEL@http://…")
    effort = match["effort"]
    if effort is not None and effort not in EFFORTS:
        raise UsageError(f"unknown effort '{effort}'", where=where, remedy=f"known are {', '.join(EFFORTS)}")
    return ModelSpec(provider, match["model"], effort, match["url"])
