"""What a condition can ask of one row: its fields and the functions ``indicator``, ``flag`` and ``signal``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from undersong.models import DIMENSIONS, NEGATIVE_TRAITS, TRAITS, WHOLE_REPLIES, Row
from undersong.models.row import DownstreamRow
from undersong.patterns.language.expressions import Call, Field, Member, Node, Text, walk
from undersong.patterns.language.logic import Evaluate, Value

DOWNSTREAM = "downstream"  # whether a row is of the agent that the sequence's own agent addressed
Kind: TypeAlias = Literal["number", "text", "boolean"]
_SIGNED = {name: [(trait, trait in NEGATIVE_TRAITS) for trait in DIMENSIONS[name]] for name in DIMENSIONS}


class Context(NamedTuple):
    """One row and what its sequence adds: columns, ``gap_hours`` and ``day``."""

    row: Row
    derived: Mapping[str, Value]


class RowField(NamedTuple):
    """How to read a field of a row."""

    kind: Kind
    read: Callable[[Row], Value]


def dimension(row: Row, name: str) -> float | None:
    """The mean of those of a dimension's four traits that are known, negatives inverted; None where none is."""
    traits: Any = row.traits or {}
    try:
        return sum([1 - traits[trait] if negative else traits[trait] for trait, negative in _SIGNED[name]]) / 4  # type: ignore[no-any-return]
    except (KeyError, TypeError):  # a trait that was not given, or does not apply
        return _mean_of_known(traits, _SIGNED[name])


def _mean_of_known(traits: Mapping[str, float | None], signed: Sequence[tuple[str, bool]]) -> float | None:
    scores = ((traits.get(trait), negative) for trait, negative in signed)
    values = [1 - score if negative else score for score, negative in scores if score is not None]
    return sum(values) / len(values) if values else None


def _trait(name: str) -> RowField:
    return RowField("number", lambda row: row.traits.get(name) if row.traits else None)


def _dimension(name: str) -> RowField:
    return RowField("number", lambda row: dimension(row, name))


def _attribute(name: str, kind: Kind) -> RowField:
    return RowField(kind, lambda row: getattr(row, name))


def _deference(name: str) -> RowField:
    return RowField("number", lambda row: getattr(row.deference, name) if row.deference else None)


def _whole_replies(row: Row) -> float:
    return float(sum(loop.scope in WHOLE_REPLIES for loop in row.loops)) if row.loops else 0.0


FIELDS: dict[str, RowField] = (
    {name: _trait(name) for name in TRAITS}
    | {name: _dimension(name) for name in DIMENSIONS}
    | {name: _attribute(name, "number") for name in ("total", "density", "triage", "position")}
    | {name: _attribute(name, "number") for name in ("sentiment_score", "code_change_delta")}
    | {name: _attribute(name, "boolean") for name in ("sampled", "latency_drop")}
    | {name: _attribute(name, "text") for name in ("tier", "tier_before", "width", "observed", "state", "role")}
    | {name: _attribute(name, "text") for name in ("agent", "target", "conversation", "judge")}
    | {"loops": RowField("number", lambda row: float(len(row.loops)))}
    | {"replies": RowField("number", _whole_replies)}
    | {name: _deference(name) for name in ("apologies", "corrections")}
    | {"directed": RowField("boolean", lambda row: row.target is not None)}
    | {DOWNSTREAM: RowField("boolean", lambda row: isinstance(row, DownstreamRow))}
)
# what belongs to the words of a message, and goes where they go; all else belongs to the place where they were said
MESSAGE_ATTRIBUTES = (
    "traits", "indicators", "signals", "flags", "total", "density", "hits", "labels", "hard_constraints", "loops",
    "deference", "triage", "sentiment_score", "code_change_delta", "latency_drop", "judge", "judge_hash",
)  # fmt: skip
MESSAGE_FIELDS = FIELDS.keys() & {*MESSAGE_ATTRIBUTES, *TRAITS, *DIMENSIONS, "replies", "apologies", "corrections"}
# of the place in the sequence: hours since the read row before, and event time in days; unknown without times
PLACE_FIELDS: dict[str, Kind] = {"gap_hours": "number", "day": "number"}


def has_indicator(row: Row, name: str) -> bool | None:
    """Whether a judge saw an indicator; None where indicators were not judged."""
    return None if row.indicators is None else any(indicator.id == name for indicator in row.indicators)


def has_flag(row: Row, name: str) -> bool:
    """Whether the scan flagged a trait or a label of this name."""
    if row.flags.get(name, 0) > 0 or name in row.labels:
        return True
    return bool(row.hits) and any(name in (hit.label, hit.trait) for hit in row.hits)


# functions of one row that take a quoted name
ROW_FUNCTIONS: dict[str, tuple[Kind, Callable[[Row, str], Value]]] = {
    "indicator": ("boolean", has_indicator),
    "flag": ("boolean", has_flag),
    "signal": ("number", lambda row, name: row.signals.get(name)),
}


def of_row_alone(tree: Node) -> bool:
    """Whether an expression mentions fields of the row and no column."""
    return all(part.name in FIELDS for part in walk(tree) if isinstance(part, Field))


def row_leaf(node: Node) -> Evaluate:
    """The function of a leaf that depends on a row: it takes a Context."""
    if isinstance(node, Call):
        read, name = ROW_FUNCTIONS[node.name][1], node.arguments[0]
        if not isinstance(name, Text):
            raise TypeError(f"{node.name}() takes a quoted name")
        wanted = name.value
        return lambda context: read(context.row, wanted)
    if not isinstance(node, Field | Member):
        raise TypeError(f"{node} has no value for a row")
    if node.name in FIELDS:
        of_row = FIELDS[node.name].read
        return lambda context: of_row(context.row)
    column = node.name
    return lambda context: context.derived[column]
