"""Texts of several lists under one numbering, in alphabetical order, without a dictionary of them all."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress, islice

import numpy as np

from undersong.patterns.engine.vectors import UNKNOWN, Codes


class Names(Mapping[str, int]):
    """The number of each of some texts, which are distinct and in order."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __getitem__(self, text: str) -> int:
        place = bisect_left(self.texts, text)
        if place == len(self.texts) or self.texts[place] != text:
            raise KeyError(text)
        return place

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


def numbered(lists: Sequence[Sequence[str]]) -> tuple[Names, list[Codes]]:
    """The texts of all lists, and per list the numbers of its own, at the end that of none."""
    given = {id(each): each for each in lists}  # often several are one
    texts = [*chain.from_iterable(given.values())]
    order = sorted(range(len(texts)), key=texts.__getitem__)  # next to no work where each list is in order already
    ordered = [texts[place] for place in order]
    new = [True, *map(operator.ne, islice(ordered, 1, None), ordered)][: len(ordered)]
    numbers = np.empty(len(texts), dtype=np.int32)
    numbers[order] = np.cumsum(new, dtype=np.int32) - 1
    ends = [*accumulate(map(len, given.values()))]
    parts = np.split(numbers, ends[:-1])
    own = {key: np.append(part, np.int32(UNKNOWN)) for key, part in zip(given, parts, strict=True)}
    return Names([*compress(ordered, new)]), [own[id(each)] for each in lists]
