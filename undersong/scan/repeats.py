"""Runs of words that come again: found by their keys for many messages at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.scan.block import Ints
from undersong.scan.speech import Keys, Speech, mixed

BUCKET_BITS = 16  # buckets in which keys are counted before they are sorted: most keys stand alone


class Repeats(NamedTuple):
    """Grams that stand twice or more in a group of messages, sorted by ``gram`` and then by ``place``.

    ``gram`` numbers the distinct ones, ``place`` is the word at which one stands, ``message`` the message.
    """

    gram: Ints
    place: Ints
    message: Ints


def repeats(speech: Speech, group: Ints, n: int) -> Repeats:
    """The repeated ``n``-grams; ``group`` has a number per message, and grams of different groups are different.

    Messages of a negative group have none.
    """
    keys = speech.grams(n)
    counts = np.diff(speech.first)
    message = np.repeat(np.arange(len(counts)), counts)[: len(keys)]
    inside = np.arange(len(keys)) + n <= speech.first[message + 1]
    place = np.flatnonzero(inside & (group >= 0)[message])
    message = message[place]
    keys = mixed(keys[place] + group[message].astype(np.uint64))
    for shift in (0, BUCKET_BITS, 2 * BUCKET_BITS):
        kept = _not_alone(keys, shift)
        keys, place, message = keys[kept], place[kept], message[kept]
    order = np.argsort(keys, kind="stable")
    keys, place, message = keys[order], place[order], message[order]
    same = keys[1:] == keys[:-1]
    again = np.append(same, False) | np.append(False, same)
    if not len(keys):
        again = np.zeros(0, dtype=bool)
    fresh = np.append(True, ~same)[: len(keys)]
    return Repeats(np.cumsum(fresh)[again] - 1, place[again], message[again])


def _not_alone(keys: Keys, shift: int) -> Ints:
    """The keys that share a bucket with another one."""
    bucket = (keys >> np.uint64(shift)).astype(np.uint16 if BUCKET_BITS == 16 else np.int64)
    counts = np.bincount(bucket, minlength=1 << BUCKET_BITS)
    return np.flatnonzero(counts[bucket] > 1)
