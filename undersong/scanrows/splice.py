"""Rows written before it is known what the run reads, and mended when it is: most of them stand as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.models import Tier, Width
from undersong.routing.budget import BACKWARDS, STEPS, TRIAGE, UNSCORED, WIDTH, BudgetCutoff
from undersong.routing.route import called_for, decide_route
from undersong.routing.sample import Draws, Levels

# The routed keys of a row, between the message's own and the scan's. No string of JSON holds these bytes: its quotes
# are escaped.
_FIRST, _AFTER = b',"tier":', b',"triage":'
MANY = 200  # parts from which on it costs less to put them together than to write each
Bytes: TypeAlias = bytes | memoryview
Starts = npt.NDArray[np.int64]


class RoutedKeys(msgspec.Struct, frozen=True):
    """The routed keys of a row, in its order."""

    tier: Tier
    tier_before: Tier
    width: Width
    sampled: bool
    reasons: tuple[str, ...]


class RunRouting(NamedTuple):
    """What the whole run decides for every message."""

    cut: BudgetCutoff
    rate: float


def patch_routes(
    rows: bytes, starts: Starts, levels: Levels, draws: Draws, routing: RunRouting, also: Mapping[int, str]
) -> Sequence[Bytes]:
    """The rows (JSON Lines) as the run's routing has them, in parts to be written one after the other.

    ``starts``, ``levels`` and ``draws`` are of each row. ``also`` names, for a row by its index, the flagged message of
    another conversation for which it is read too.
    """
    called = sorted(also)
    levels = levels.copy()
    levels[called] -= WIDTH * (TRIAGE - BACKWARDS)
    read = levels <= routing.cut.level
    drawn = draws < routing.rate
    changed = (read != (levels < TRIAGE * WIDTH)) | (drawn & ~read)
    changed[called] = True
    places = np.flatnonzero(changed)
    if not len(places):
        return (rows,)
    view = memoryview(rows)
    pieces: list[Bytes] = []
    last = 0
    decisions = zip(
        places.tolist(), starts[places].tolist(), read[places].tolist(), drawn[places].tolist(), strict=True
    )
    for place, start, is_read, is_drawn in decisions:
        first = rows.find(_FIRST, start)
        after = rows.find(_AFTER, first)
        triage = None if levels[place] == UNSCORED else (STEPS - int(levels[place]) % WIDTH) / STEPS
        mended = _patched_keys(rows[first + 1 : after], also.get(place), is_read, is_drawn, triage, routing.cut)
        pieces += (view[last : first + 1], mended)
        last = after
    pieces.append(view[last:])
    return pieces if len(pieces) < MANY else (b"".join(pieces),)


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
_encode = msgspec.json.Encoder().encode
