"""What rows must have before a rule can say anything about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from undersong.models import DIMENSIONS, TRAITS, Row
from undersong.patterns.fields import FIELDS
from undersong.patterns.rules import PatternRule

_ALWAYS_THERE = frozenset({"observed", "target", "directed", "agent", "conversation", "role", "state", "position"})
_FROM_SCAN = frozenset({"total", "density", "sampled"})  # every row has a value, scanned or not
NEVER_MISSING = _ALWAYS_THERE | _FROM_SCAN
_SIGNAL = "signals:"
_TRAITS = frozenset({*TRAITS, *DIMENSIONS})
_RANKS_ONLY = (
    "needs scores as levels; this text is of a kind that the judge was not measured on, so they are ranks: "
    "name a judge that gives levels with --judge"
)


def available_inputs(read: Iterable[Row], wanted: Collection[str]) -> frozenset[str]:
    """Those of the ``wanted`` inputs that at least one read row has."""
    traits, others = _TRAITS.intersection(wanted), frozenset(wanted) - _TRAITS - NEVER_MISSING
    for row in read:
        if others:
            others -= {name for name in others if gives(row, name)}
        if traits and row.traits is not None:
            traits -= {name for name in traits if gives(row, name)}
        if not others and not traits:
            break
    return frozenset(wanted) - others - traits


def gives(row: Row, name: str) -> bool:
    """Whether a read row has an input: a field, ``indicators`` or ``signals:NAME``."""
    if name in NEVER_MISSING:
        return True
    if name == "indicators":
        return row.indicators is not None
    if name.startswith(_SIGNAL):
        return name.removeprefix(_SIGNAL) in row.signals
    if name == "tier" and row.observed != "unknown":
        return True  # rules that compare tiers ask for `observed` first
    return name in FIELDS and FIELDS[name].read(row) is not None


def lacking(
    rule: PatternRule, has: Collection[str], gives: Collection[str] | None, *, any_read: bool, ranks: bool = False
) -> str:
    """Why a rule cannot say anything about these rows; "" where it can.

    ``has`` are the inputs that some read row has; ``gives`` names what the judge fills, None where nobody says;
    ``ranks``: some read row has ranks for scores, which count as missing.
    """
    if not any_read:
        return "no message was read"
    missing = {need for need in rule.needs if need not in has}
    if gives is not None:
        if "indicators" in rule.needs and "indicators" not in gives:
            missing.add("indicators")
        if "traits" not in gives:
            missing |= {need for need in rule.needs if need in FIELDS and (need in DIMENSIONS or _is_trait(need))}
    if not missing:
        return ""
    if ranks and missing <= _TRAITS:
        return _RANKS_ONLY
    missing -= _TRAITS if ranks else set()  # named by what no other text would have either
    return f"needs {', '.join(sorted(name.removeprefix(_SIGNAL) for name in missing))}, which no read message has"


def _is_trait(name: str) -> bool:
    return any(name in traits for traits in DIMENSIONS.values())
