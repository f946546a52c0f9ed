"""Runs of words that come again: found by their keys for many messages at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.scan.block import Ints
from undersong.scan.speech import Keys, Speech, mixed

BITS = 64
BUCKET_BITS = 16, 14  # of the buckets in which keys are counted before they are sorted: most keys stand alone


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
    salts = mixed(group.astype(np.uint64) + np.uint64(1))
    keys = speech.grams(n)
    keys += np.repeat(salts, speech.counts)[: len(keys)]
    place = _not_alone(keys, BITS - BUCKET_BITS[0], BUCKET_BITS[0])
    message = np.searchsorted(speech.first, place, side="right") - 1
    counted = (place + n <= speech.first[message + 1]) & (group[message] >= 0)
    place, message = place[counted], message[counted]
    keys = keys[place]
    kept = _not_alone(keys, BITS - sum(BUCKET_BITS), BUCKET_BITS[1])
    keys, place, message = keys[kept], place[kept], message[kept]
    order = np.argsort(keys, kind="stable")
    keys, place, message = keys[order], place[order], message[order]
    fresh = np.diff(keys, prepend=~keys[:1]) != 0
    again = np.flatnonzero(~fresh | ~np.append(fresh[1:], True)[: len(fresh)])
    return Repeats(np.cumsum(fresh)[again] - 1, place[again], message[again])


def _not_alone(keys: Keys, shift: int, bits: int) -> Ints:
    """The keys that share a bucket with another one, by some of their bits."""
    bucket = (keys >> np.uint64(shift)).astype(np.int64) & ((1 << bits) - 1)
    shared = np.bincount(bucket, minlength=1 << bits) > 1
    found: Ints = np.flatnonzero(shared[bucket])
    return found
