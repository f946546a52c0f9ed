"""Runs of words that come again: found by their keys for many messages at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from undersong.scan.block import NONE, Ints
from undersong.scan.speech import Keys, TokenIndex, mixed


class RepeatedNgrams(NamedTuple):
    """Grams that stand twice or more in a group of messages, sorted by ``gram`` and then by ``place``.

    ``gram`` numbers the distinct ones, ``place`` is the word at which one stands, ``message`` the message.
    """

    gram: Ints
    place: Ints
    message: Ints


def repeated_ngrams(speech: TokenIndex, group: Ints, n: int) -> RepeatedNgrams:
    """The repeated ``n``-grams; ``group`` has a number per message, and grams of different groups are different.

    Messages of a negative group have none.
    """
    place, message, keys = _counted(speech, group, n)
    order = np.argsort(keys, kind="stable")
    keys, place, message = keys[order], place[order], message[order]
    fresh = np.diff(keys, prepend=~keys[:1]) != 0
    again = np.flatnonzero(~fresh | ~np.append(fresh[1:], True)[: len(fresh)])
    return RepeatedNgrams(np.cumsum(fresh[again]) - 1, place[again], message[again])


def _counted(speech: TokenIndex, group: Ints, n: int) -> tuple[Ints, Ints, Keys]:
    """Place, message and key of few grams, by place: all that stand twice are among them."""
    keys = speech.grams(n)
    keys += np.repeat(mixed(group.astype(np.uint64) + np.uint64(1)), speech.counts)[: len(keys)]
    place = _likely(keys)
    message = np.searchsorted(speech.first, place, side="right") - 1
    counted = (place + n <= speech.first[message + 1]) & (group[message] >= 0)
    place, message = place[counted], message[counted]
    return place, message, keys[place]


def _likely(keys: Keys) -> Ints:
    """The places of keys that share their high bits with another one, rising: few, and all that stand twice.

    A key's low bits give way to its place, so that one sort of plain numbers tells both.
    """
    places = np.uint64((1 << len(keys).bit_length()) - 1)
    packed = keys & ~places
    packed |= np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    alike = (packed[1:] ^ packed[:-1]) <= places
    if not alike.any():
        return NONE
    shared = np.append(alike, False)
    shared[1:] |= alike
    return np.sort(packed[shared] & places).astype(np.int64)
