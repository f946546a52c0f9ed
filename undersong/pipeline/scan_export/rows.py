"""Rows of scanned messages as JSON Lines: encoded before the run's routing is known, and patched with it afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.models import Message, Observed, Role, Route, Row, Scan, SourceRef, Tier, Width
from undersong.routing.budget import BACKWARDS, STEPS, TRIAGE, UNSCORED, WIDTH, BudgetCutoff, Draws, Levels
from undersong.routing.route import UNREAD, called_for, decide_route

Lengths = npt.NDArray[np.int32]
Bytes: TypeAlias = bytes | memoryview
_VARIED = ("tier", "tier_before", "width", "sampled", "reasons", "triage", "deference")
_encode = msgspec.json.Encoder().encode
_encode_into = msgspec.json.Encoder().encode_into
_TIER, _TRIAGE, _SOURCE_REF = b'"tier":', b',"triage":', b',"source_ref":'  # no string of JSON holds these bytes


class EncodedRows(NamedTuple):
    """Rows as JSON Lines, and how many bytes each takes with its line end."""

    data: bytes
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


def encode_rows(rows: Iterable[tuple[Message, Scan, Route]], *, text: bool) -> EncodedRows:
    """The bytes of ``Row.of`` for each message; ``text`` False leaves the texts out.

    Of a message without hits all but a few keys are bytes that were encoded once.
    """
    data = bytearray()
    ends = [0]
    for message, scan, route in rows:
        rest = _rest_of(scan, route)
        row = Row.of(message, scan, route) if rest is None else _pre_encoded(message, rest)
        _encode_into(row if text else msgspec.structs.replace(row, text=None), data, -1)
        data += b"\n"
        ends.append(len(data))
    return EncodedRows(bytes(data), np.diff(ends).astype(np.int32))


def _pre_encoded(message: Message, rest: msgspec.Raw) -> _PreEncodedRow:
    return _PreEncodedRow(
        message.id,
        message.conversation,
        message.position,
        message.time,
        message.agent,
        message.target,
        message.role,
        message.observed,
        message.branch,
        message.text,
        rest,
        message.source_ref,
    )


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
    return _without_hits(
        route.tier, route.tier_before, route.width, route.sampled, route.reasons, scan.triage, scan.deference
    )


@lru_cache(maxsize=4096)
def _without_hits(*values: object) -> msgspec.Raw:
    """The rest of a row without hits, from its routed keys, its triage score and its deference."""
    row = msgspec.structs.replace(_UNFLAGGED, **dict(zip(_VARIED, values, strict=True)))
    data = _encode(row)
    first = data.index(_TIER) + len(_TIER)
    return msgspec.Raw(data[first : data.index(_SOURCE_REF, first)])


_UNFLAGGED = Row.of(
    Message(id="", conversation="", position=0, author="", role="agent", text=""), Scan(message_id=""), UNREAD
)


class RoutedKeys(msgspec.Struct, frozen=True):
    """The routed keys of a row, in its order."""

    tier: Tier
    tier_before: Tier
    width: Width
    sampled: bool
    reasons: tuple[str, ...]


class RunRouting(NamedTuple):
    """What the whole run decides for every message: where reading ends, and the rate of the audit sample."""

    cut: BudgetCutoff
    rate: float


def patch_routes(
    rows: EncodedRows, levels: Levels, draws: Draws, routing: RunRouting, also: Mapping[int, str]
) -> list[Bytes]:
    """The rows as the run's routing has them, in parts to be written one after the other.

    ``levels`` and ``draws`` are of each row. ``also`` names, for a row by its index, the flagged message of another
    conversation for which it is read too.
    """
    called = sorted(also)
    levels = levels.copy()
    levels[called] -= WIDTH * (TRIAGE - BACKWARDS)
    read = levels <= routing.cut.level
    drawn = draws < routing.rate
    changed = (read != (levels < TRIAGE * WIDTH)) | (drawn & ~read)
    changed[called] = True
    starts = np.cumsum(rows.lengths, dtype=np.int64) - rows.lengths
    view = memoryview(rows.data)
    parts: list[Bytes] = []
    last = 0
    for place in np.flatnonzero(changed).tolist():
        first = rows.data.find(_TIER, int(starts[place]))
        after = rows.data.find(_TRIAGE, first)
        triage = None if levels[place] == UNSCORED else (STEPS - int(levels[place]) % WIDTH) / STEPS
        keys = _patched_keys(
            rows.data[first:after], also.get(place), bool(read[place]), bool(drawn[place]), triage, routing.cut
        )
        parts += (view[last:first], keys)
        last = after
    return [*parts, view[last:]]


@lru_cache(maxsize=4096)
def _patched_keys(
    keys: bytes, flagged: str | None, read: bool, drawn: bool, triage: float | None, cut: BudgetCutoff
) -> bytes:
    """The routed keys of one row, from what they were."""
    was = _decode(b"{%b}" % keys)
    tier, reasons = was.tier, was.reasons
    if flagged is not None:
        tier, reasons = "focused", (*reasons, called_for(flagged))
    route = decide_route(tier, was.tier_before, reasons, read=read, drawn=drawn, triage=triage, cut=cut)
    return _encode(RoutedKeys(route.tier, route.tier_before, route.width, route.sampled, route.reasons))[1:-1]


_decode = msgspec.json.Decoder(RoutedKeys).decode
