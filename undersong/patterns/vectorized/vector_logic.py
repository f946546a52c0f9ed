"""Expressions over whole columns, with the same three-valued logic as ``logic``.

A number that is unknown is NaN, a text that is unknown has code -1. A condition is two arrays: where it holds and where
it fails; where neither is, it is unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from undersong.patterns.language.expressions import (  # fmt: skip
    Arithmetic,
    Both,
    Call,
    Compare,
    Either,
    Field,
    IsNull,
    Node,
    Not,
    Number,
    OneOf,
    Text,
    Truth,
)
from undersong.patterns.language.fields import Kind
from undersong.patterns.language.logic import FUNCTIONS
from undersong.patterns.vectorized.exact_sum import F

B = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]
Masks = np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]
UNKNOWN = -1  # the code of no text
_FOREIGN = -2  # the code of a text that no row has
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "=": "!=", "!=": "="}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
_PLAIN = frozenset({Both, Either, Not, Truth, Compare, OneOf, IsNull, Field, tuple})  # they do no sums; a tuple: bits
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_Asked: TypeAlias = Node | tuple[Node | None, ...]
_Remembered: TypeAlias = dict[tuple[str, _Asked], Any]


def mask_type(bits: int) -> np.dtype[np.unsignedinteger]:
    """The narrowest masks of so many bits."""
    return np.dtype(next(f"u{size}" for size in (1, 2, 4, 8) if bits <= 8 * size))


class Leaves(Protocol):
    """Leaf values of expressions: the fields, windows and aggregates of rows."""

    @property
    def codes(self) -> Mapping[str, int]:
        """The code of each text."""
        ...

    def kind(self, node: Node) -> Kind:
        """What a leaf is."""
        ...

    def number(self, node: Node) -> F:
        """The values of a leaf that is a number."""
        ...

    def text(self, node: Node) -> Codes:
        """The codes of a leaf that is a text."""
        ...

    def truth(self, node: Node, wanted: bool) -> B:
        """Where a leaf that is a condition holds (``wanted``) or fails."""
        ...


class Vectors:
    """Evaluates trees over the same leaves, each distinct part once but for arithmetic."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self._known: _Remembered = {}

    def kind(self, node: Node) -> Kind:
        """Number, text or boolean."""
        if isinstance(node, Number | Arithmetic):
            return "number"
        if isinstance(node, Text):
            return "text"
        if isinstance(node, Truth | Not | Both | Either | Compare | OneOf | IsNull):
            return "boolean"
        if isinstance(node, Call) and node.name in FUNCTIONS:
            return self.kind(node.arguments[0])
        return self.leaves.kind(node)

    def number(self, node: Node) -> F:
        """The values of a number, NaN where it is unknown."""
        return self.once("number", node, self._number)  # type: ignore[no-any-return]

    def text(self, node: Node) -> Codes:
        """The codes of a text."""
        return self.once("text", node, self._text)  # type: ignore[no-any-return]

    def holds(self, node: Node) -> B:
        """Where a condition is true."""
        return self.once("holds", node, self._holds)  # type: ignore[no-any-return]

    def fails(self, node: Node) -> B:
        """Where a condition is false."""
        return self.once("fails", node, self._fails)  # type: ignore[no-any-return]

    def unknown(self, node: Node) -> B:
        """Where a value is unknown."""
        kind = self.kind(node)
        if kind == "number":
            return np.isnan(self.number(node))
        if kind == "text":
            return np.asarray(self.text(node) == UNKNOWN)
        return ~(self.holds(node) | self.fails(node))

    def bits(self, nodes: tuple[Node | None, ...]) -> Masks:
        """A bit for each condition, set where it holds; None holds everywhere."""
        return self.once("bits", nodes, self._bits)  # type: ignore[no-any-return]

    def _bits(self, nodes: tuple[Node | None, ...]) -> Any:
        kind = mask_type(len(nodes))
        masks: Any = kind.type(0)
        for index, node in enumerate(nodes):
            holds = np.True_ if node is None else self.holds(node)
            masks = masks | np.multiply(holds, kind.type(1 << index), dtype=kind)
        return masks

    def once(self, what: str, node: Any, work: Callable[[Any], Any]) -> Any:
        """What ``work`` makes of a node, worked out the first time.

        Sums and products are made anew: they take eight bytes a row, and conditions on them, which stay, one.
        """
        key = what, node
        values = self._known.get(key)
        if values is not None:
            return values
        if type(node) in _PLAIN:
            values = work(node)  # its parts are computed in turn, and it computes no number
        else:
            with np.errstate(over="raise", divide="ignore", invalid="ignore"):
                values = work(node)
        if not isinstance(node, Arithmetic):
            self._known[key] = values
        return values

    def _number(self, node: Node) -> Any:
        if isinstance(node, Number):
            return np.float64(node.value)
        if isinstance(node, Arithmetic):
            left, right = self.number(node.left), self.number(node.right)
            if node.operator == "/":
                return np.where(np.equal(right, 0), np.nan, np.divide(left, right))
            return _ARITHMETIC[node.operator](left, right)
        if isinstance(node, Call) and node.name in FUNCTIONS:
            return _FUNCTIONS[node.name]([self.number(part) for part in node.arguments])
        return self.leaves.number(node)

    def _text(self, node: Node) -> Any:
        if isinstance(node, Text):
            return np.int32(self.leaves.codes.get(node.value, _FOREIGN))
        if isinstance(node, Call) and node.name == "coalesce":
            codes = self.text(node.arguments[0])
            for part in node.arguments[1:]:
                codes = np.where(np.equal(codes, UNKNOWN), self.text(part), codes)
            return codes
        return self.leaves.text(node)

    def _holds(self, node: Node) -> Any:
        return self._truth(node, True)

    def _fails(self, node: Node) -> Any:
        return self._truth(node, False)

    def _truth(self, node: Node, wanted: bool) -> Any:
        """Where a condition is ``wanted``."""
        builder = _TRUTHS.get(type(node))
        if builder is not None:
            return builder(self, node, wanted)
        if isinstance(node, Call) and node.name == "coalesce":
            return self._first_known(node.arguments, wanted)
        return self.leaves.truth(node, wanted)

    def is_(self, node: Node, wanted: bool) -> Any:
        """Where a condition has an answer."""
        return self.holds(node) if wanted else self.fails(node)

    def _first_known(self, parts: tuple[Node, ...], wanted: bool) -> Any:
        result, left = self.is_(parts[0], wanted), self.unknown(parts[0])
        for part in parts[1:]:
            result, left = result | (left & self.is_(part, wanted)), left & self.unknown(part)
        return result


def _constant(_vectors: Vectors, node: Truth, wanted: bool) -> Any:
    return np.bool_(node.value is wanted)


def _not(vectors: Vectors, node: Not, wanted: bool) -> Any:
    return vectors.is_(node.part, not wanted)


def _joined(vectors: Vectors, node: Both | Either, wanted: bool) -> Any:
    everywhere = isinstance(node, Both) is wanted  # all must hold; or, for it to fail, one must fail
    result = vectors.is_(node.parts[0], wanted)
    for part in node.parts[1:]:
        other = vectors.is_(part, wanted)
        result = result & other if everywhere else result | other
    return result


def _compare(vectors: Vectors, node: Compare, wanted: bool) -> Any:
    by = {"number": _numbers, "text": _texts, "boolean": _conditions}[vectors.kind(node.left)]
    return by(vectors, node.operator if wanted else _OPPOSITE[node.operator], node.left, node.right)


def _numbers(vectors: Vectors, how: str, left: Node, right: Node) -> Any:
    one, other = vectors.number(left), vectors.number(right)
    result = _COMPARE[how](one, other)  # false where one is NaN, but for !=
    return result & ~(np.isnan(one) | np.isnan(other)) if how == "!=" else result


def _texts(vectors: Vectors, how: str, left: Node, right: Node) -> Any:
    if isinstance(left, Text) and isinstance(right, Text):
        return np.bool_(_COMPARE[how](left.value, right.value))
    if isinstance(left, Text):
        vectors.text(right)  # first: the text has a code once the column that it is in has been read
    one, other = vectors.text(left), vectors.text(right)
    result = _COMPARE[how](one, other)
    for part, codes in ((left, one), (right, other)):
        if not isinstance(part, Text):
            result = result & np.not_equal(codes, UNKNOWN)
    return result


def _conditions(vectors: Vectors, how: str, left: Node, right: Node) -> Any:
    same = how == "="
    both = vectors.holds(left) & vectors.is_(right, same)
    return both | (vectors.fails(left) & vectors.is_(right, not same))


def _one_of(vectors: Vectors, node: OneOf, wanted: bool) -> Any:
    kind = vectors.kind(node.part)
    if kind == "boolean":
        listed = [option for option in (True, False) if (option in node.options) is wanted]
        result = np.bool_(False)
        for option in listed:
            result = result | vectors.is_(node.part, option)
        return result
    if kind == "number":
        inside = np.isin(vectors.number(node.part), [float(option) for option in node.options])
    else:
        codes = vectors.leaves.codes
        texts = vectors.text(node.part)
        wanted_codes = [codes.get(str(option), _FOREIGN) for option in node.options]  # they are few
        inside = np.logical_or.reduce([np.equal(texts, code) for code in wanted_codes])
    return inside if wanted else ~inside & ~vectors.unknown(node.part)


def _is_null(vectors: Vectors, node: IsNull, wanted: bool) -> Any:
    unknown = vectors.unknown(node.part)
    return unknown if wanted else ~unknown


_TRUTHS: dict[type, Callable[[Vectors, Any, bool], Any]] = {
    Truth: _constant, Not: _not, Both: _joined, Either: _joined, Compare: _compare, OneOf: _one_of, IsNull: _is_null,
}  # fmt: skip


def _chosen(better: Callable[[Any, Any], Any]) -> Callable[[list[Any]], Any]:
    """Python's ``min`` and ``max``: of equals the first; unknown as soon as one value is."""

    def choose(values: list[Any]) -> Any:
        best = values[0]
        for value in values[1:]:
            best = np.where(better(value, best) | np.isnan(value), value, best)  # nothing is better than NaN
        return best

    return choose


def _clip(values: list[Any]) -> Any:
    value = values[0]
    low = np.where(np.greater(value, 0.0), value, 0.0)
    return np.where(np.isnan(value), np.nan, np.where(np.less(low, 1.0), low, 1.0))


def _first_number(values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = np.where(np.isnan(result), value, result)
    return result


_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "abs": lambda values: np.abs(values[0]),
    "clip": _clip,
    "coalesce": _first_number,
    "least": _chosen(np.less),
    "greatest": _chosen(np.greater),
}
