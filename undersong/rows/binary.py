"""Times as whole microseconds since 1970, and a row's cells at a fixed width: as stores keep and sweeps read them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import get_args

import msgspec

from undersong.models import TRAITS, WHOLE_REPLIES, Observed, Role, Row, State, Tier, Width

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """Whole microseconds since 1970, exact; a time without a zone counts as UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def from_microseconds(time: int | None) -> datetime | None:
    """The time back from its microseconds."""
    return None if time is None else _EPOCH + time * _MICROSECOND


def with_event_times(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of one whole conversation, each with its event time: without one it has its predecessor's.

    Before the first known time it has that one; a conversation without times stays so. An abandoned branch has no part
    in this.
    """
    ordered = sorted(rows, key=lambda row: (row.position, row.id))
    last_time = next((row.time for row in ordered if row.time is not None and row.branch is None), None)
    for row in ordered:
        if row.branch is None:
            last_time = row.time if row.time is not None else last_time
        yield row if row.time is not None or last_time is None else msgspec.structs.replace(row, time=last_time)


# time (microseconds), keys of target and conversation, position; each trait in thousandths; texts by their place in
# TEXTS + 1 (0: none); counts of loops, whole replies, apologies, corrections; latency drop; bits; flags
LAYOUT = struct.Struct(f"<qQQi{len(TRAITS)}H6B4BBBH")
TEXTS: dict[str, tuple[str, ...]] = {
    "state": get_args(State),
    "tier": get_args(Tier),
    "tier_before": get_args(Tier),
    "width": get_args(Width),
    "observed": get_args(Observed),
    "role": get_args(Role),
}
FLAGS = ("apology", "agreement", "correction", *TRAITS, "hard_constraint")  # a bit each; others are in rows alone
COUNTS = ("loops", "replies", "apologies", "corrections")
THOUSAND = 1_000
NO_SCORE, NO_COUNT = 0xFFFF, 0xFF
SAMPLED, JUDGED, RANK, BRANCH = 1, 2, 4, 8  # bits
_PLACES = {name: {None: 0} | {text: place + 1 for place, text in enumerate(texts)} for name, texts in TEXTS.items()}


def pack(row: Row) -> bytes | None:
    """The cells of a row; None where one does not fit: no time, a score of more than three decimals, many loops.

    What rules seldom ask for is not there: signals, which indicators, texts.
    """
    if row.time is None:
        return None
    try:
        return LAYOUT.pack(
            microseconds(row.time), _target(row.target), key(row.conversation), row.position, *_scores(row),
            *(places[getattr(row, name)] for name, places in _PLACES.items()), *_counts(row),
            0 if row.latency_drop is None else 1 + row.latency_drop, _bits(row), _flags(row),
        )  # fmt: skip
    except (struct.error, _UnfitError):
        return None


@lru_cache(maxsize=1 << 14)
def key(name: str) -> int:
    """The key of a name: 64 bits of its SHA-256, never 0."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little") or 1


class _UnfitError(ValueError):
    """A score has more than three decimals, or a count is too large."""


def _target(name: str | None) -> int:
    return 0 if name is None else key(name)


def _scores(row: Row) -> list[int]:
    traits = row.traits
    if not traits:
        return _NO_SCORES
    return [NO_SCORE if score is None else _thousandths(score) for score in map(traits.get, TRAITS)]


@lru_cache(maxsize=1 << 12)  # few distinct scores: they have three decimals
def _thousandths(score: float) -> int:
    thousandths = round(score * THOUSAND)
    if thousandths / THOUSAND != score or thousandths >= NO_SCORE:
        raise _UnfitError
    return thousandths


def _counts(row: Row) -> tuple[int, int, int, int]:
    if not row.loops and row.deference is None:
        return 0, 0, NO_COUNT, NO_COUNT
    loops, replies = len(row.loops), sum(loop.scope in WHOLE_REPLIES for loop in row.loops)
    if row.deference is None:
        return _fitting(loops), replies, NO_COUNT, NO_COUNT
    return _fitting(loops), replies, _fitting(row.deference.apologies), _fitting(row.deference.corrections)


def _fitting(count: int) -> int:
    if count >= NO_COUNT:
        raise _UnfitError
    return count


def _bits(row: Row) -> int:
    judged = 0 if row.indicators is None else JUDGED
    rank, branch = RANK * (row.scale == "rank"), BRANCH * (row.branch is not None)
    return SAMPLED * row.sampled | judged | rank | branch


def _flags(row: Row) -> int:
    if not row.flags and not row.labels:
        return 0
    return sum(1 << place for place, name in enumerate(FLAGS) if row.flags.get(name, 0) > 0 or name in row.labels)


_NO_SCORES = [NO_SCORE] * len(TRAITS)
