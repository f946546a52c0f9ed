"""When two texts are one that was posted again, nearly word for word."""

from __future__ import annotations

from rapidfuzz import fuzz

SAME = 92.0  # of 100 characters alike from which on a text is a repost
SHORTEST = 40  # characters of the shorter text: shorter ones are alike by accident


def is_repost(one: str, other: str) -> bool:
    """Whether the texts differ in next to nothing but white space.

    >>> is_repost("Buy now, before the window closes tonight!", "Buy now,  before the window closes tonight!!")
    True
    """
    first, second = " ".join(one.split()), " ".join(other.split())
    return min(len(first), len(second)) >= SHORTEST and fuzz.ratio(first, second, score_cutoff=SAME) >= SAME
