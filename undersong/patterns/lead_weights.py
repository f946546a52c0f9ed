"""What leads are ranked by, and what a score is worth (``leads.yaml``), typed."""

from __future__ import annotations

from functools import cache

import msgspec

from undersong.datafiles.yaml_loader import RULES, read

FILE = "leads.yaml"


class LeadSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is counted, what it weighs, and the measurement that set the weight."""

    weight: float
    counts: str
    why: str


class PairRates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many test chats there are in which somebody does harm, in which nobody does, and how many of either have a
    speaker with such a score or more."""

    harm: int
    innocent: int
    as_high: dict[float, tuple[int, int]]


class LeadWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``leads.yaml``."""

    least: int
    least_of_part: int
    for_chances: float
    prior: int
    cut: float
    exact: float
    orders: dict[str, float]
    shown: int
    counted: int
    which: str
    side: str
    err: str
    below: str
    pairs: PairRates
    reads: str
    wording: str
    usual: float
    levels: dict[float, float]
    signals: dict[str, str]
    sources: dict[str, LeadSource]
    unread: dict[str, float]
    measured: dict[str, float]


@cache
def lead_weights() -> LeadWeights:
    """The shipped weights; raises RuleError with file and line."""
    return read(RULES / FILE, LeadWeights)


def high_words(score: float) -> str:
    """``as high are 41 of 62 test chats in which somebody does harm, and 11 of 62 in which nobody does``."""
    pairs = lead_weights().pairs
    harm, innocent = pairs.as_high[
        max((limit for limit in pairs.as_high if limit <= score), default=min(pairs.as_high))
    ]
    return (
        f"as high are {harm} of {pairs.harm} test chats in which somebody does harm, and {innocent} of "
        f"{pairs.innocent} in which nobody does{'' if innocent else f' (so up to 1 in {pairs.innocent // 3} may be)'}"
    )
