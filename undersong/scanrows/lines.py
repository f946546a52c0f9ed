"""Scanned messages as lines of JSON: of a message without hits all but a few keys are bytes made once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.models import Message, Observed, Role, Route, Row, Scan, SourceRef
from undersong.routing.route import UNREAD

Lengths = npt.NDArray[np.int32]
LINE_FEED = 0x0A
_VARIED = ("tier", "tier_before", "width", "sampled", "reasons", "triage", "deference")
_encoder = msgspec.json.Encoder()
_FIRST, _AFTER = b'"tier":', b',"source_ref":'  # what lies between them is the same for many rows


class EncodedRows(NamedTuple):
    """Rows as JSON Lines, and how many bytes each takes with its line end."""

    data: bytearray
    lengths: Lengths


class _PreEncodedRow(msgspec.Struct, frozen=True, gc=False):
    """A Row whose keys from ``tier`` to ``source_ref`` are there as bytes, the first one without its name."""

    id: str
    conversation: str
    position: int
    time: datetime | None
    agent: str
    target: str | None
    role: Role
    observed: Observed
    branch: str | None
    text: str | None
    tier: msgspec.Raw
    source_ref: SourceRef | None
    reading: None = None
    bands: None = None


class RowWriter:
    """Rows of messages, appended one after the other; ``text`` False leaves the texts out.

    The bytes are those of ``Row.of`` encoded, for any message.
    """

    def __init__(self, text: bool) -> None:
        self._text = text
        self._data = bytearray()
        self._ends = [0]

    def extend(self, messages: Iterable[Message], scans: Iterable[Scan], routes: Iterable[Route]) -> None:
        """Append the rows of messages."""
        data, ended, encode_into, with_text = self._data, self._ends.append, _encoder.encode_into, self._text
        for message, scan, route in zip(messages, scans, routes, strict=True):
            rest = _rest_of(scan, route)
            row = (
                Row.of(message, scan, route)
                if rest is None
                else _PreEncodedRow(
                    message.id, message.conversation, message.position, message.time, message.agent, message.target,
                    message.role, message.observed, message.branch, message.text, rest, message.source_ref,
                )
            )  # fmt: skip
            encode_into(row if with_text else msgspec.structs.replace(row, text=None), data, -1)
            data.append(LINE_FEED)
            ended(len(data))

    def lines(self) -> EncodedRows:
        """What was appended."""
        lengths = np.array([after - before for before, after in pairwise(self._ends)], dtype=np.int32)
        return EncodedRows(self._data, lengths)


def _rest_of(scan: Scan, route: Route) -> msgspec.Raw | None:
    """What a row has between its text and its place, None where the scan found something."""
    if (
        scan.hits
        or scan.loops
        or scan.sentiment_score
        or scan.code_change_delta is not None
        or scan.latency_drop is not None
    ):
        return None
    if route is UNREAD and scan.triage is None is scan.deference:
        return _NOTHING_SAID
    return _without_hits(
        route.tier, route.tier_before, route.width, route.sampled, route.reasons, scan.triage, scan.deference
    )


@lru_cache(maxsize=4096)
def _without_hits(*values: object) -> msgspec.Raw:
    """The rest of a row without hits, from its routed keys, its triage score and its deference."""
    row = msgspec.structs.replace(_UNFLAGGED, **dict(zip(_VARIED, values, strict=True)))
    data = _encoder.encode(row)
    first = data.index(_FIRST) + len(_FIRST)
    return msgspec.Raw(data[first : data.index(_AFTER, first)])


_UNFLAGGED = Row.of(
    Message(id="", conversation="", position=0, author="", role="agent", text=""), Scan(message_id=""), UNREAD
)
_NOTHING_SAID = _without_hits(*(getattr(_UNFLAGGED, name) for name in _VARIED))
