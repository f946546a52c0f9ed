"""Exact sums of many float64 values, and their quotients rounded once.

A value is split into three whole numbers (``LIMB`` bits each): v = a·2**-24 + b·2**-48 + c·2**-72. Sums of whole
numbers are exact in any order, differences of running sums too; they are kept as float64, which holds them. So a mean
over any window is the exact mean, rounded once, as ``windows.Sums`` has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.patterns.vectorized.jit import kernel

F = npt.NDArray[np.float64]
I = npt.NDArray[np.int64]  # noqa: E741 - beside F and B
LIMB = 24
_UNIT = float(1 << LIMB)
_SPLIT = 134_217_729.0  # 2**27 + 1: Veltkamp's constant, halves a float64
EXACT = 1 << 53  # whole numbers below it are float64 values


class NotVectorizable(Exception):  # noqa: N818 - says that the reference must do it
    """These values or this rule are beyond what the engine does exactly."""


class ExactTotal(NamedTuple):
    """Exact sums: the three limbs of each."""

    a: F
    b: F
    c: F

    def __sub__(self, other: ExactTotal) -> ExactTotal:
        return ExactTotal(self.a - other.a, self.b - other.b, self.c - other.c)

    def plus(self, other: ExactTotal) -> ExactTotal:
        """The sums of both."""
        return ExactTotal(self.a + other.a, self.b + other.b, self.c + other.c)

    def at(self, places: npt.NDArray[np.integer]) -> ExactTotal:
        """The sums at some places."""
        return ExactTotal(self.a[places], self.b[places], self.c[places])


def limbs(values: F) -> ExactTotal:
    """The limbs of known values; raises Unsuited for one below 2**-72 or too large for the number of values."""
    parts, rest = limbs_and_rest(values)
    largest = max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)
    if rest.any() or largest * max(len(values), 1) >= EXACT:
        raise NotVectorizable("a value has digits beyond 2**-72, or is too large")
    return parts


def limbs_and_rest(values: F) -> tuple[ExactTotal, F]:
    """The limbs of known values, however large, and what is left of each: 0 where they hold it."""
    rest, parts = values, []
    for _ in range(3):
        rest = rest * _UNIT
        whole = np.floor(rest)
        rest = rest - whole
        parts.append(whole + 0.0)  # no negative zero
    return ExactTotal(*parts), rest


def running(values: F) -> ExactTotal:
    """Running sums: element i is the sum before value i, the last one that of all."""
    return ExactTotal(*(_before(part) for part in limbs(values)))


def counts(counted: npt.NDArray[np.bool_]) -> I:
    """Running numbers of counted rows, before each row and after the last."""
    result = np.zeros(len(counted) + 1, dtype=np.int64)
    np.cumsum(counted, out=result[1:])
    return result


def total(sums: ExactTotal) -> F:
    """The sums, rounded once."""
    return _pair(sums)[0]


def mean(sums: ExactTotal, number: I) -> F:
    """The sums over their numbers of values, rounded once; NaN over none.

    The remainder of the first quotient is exact, and no such quotient lies so near the middle between two float64
    values, without being the middle, that the second one's rounding could matter: a sum is a multiple of 2**-72.
    """
    high, low = _pair(sums)
    n = np.where(number > 0, number, 1).astype(np.float64)
    first = high / n
    upper = first * _SPLIT - (first * _SPLIT - first)
    product = first * n
    error = (upper * n - product) + (first - upper) * n
    second = (((high - product) - error) + low) / n
    return np.where(number > 0, first + second, np.nan)


def _pair(sums: ExactTotal) -> tuple[F, F]:
    """The exact sums as the nearest float64 and what is left."""
    a, b, c = sums.a / _UNIT, sums.b / _UNIT**2, sums.c / _UNIT**3
    high = a + b
    back = high - a
    low = (a - (high - back)) + (b - back) + c
    near = high + low
    back = near - high
    return near, (high - (near - back)) + (low - back)


@kernel
def quotient(a: float, b: float, c: float, n: float) -> float:
    """An exact sum over a positive whole number, rounded once."""
    upper, middle, lower = a / _UNIT, b / _UNIT**2, c / _UNIT**3
    high = upper + middle
    back = high - upper
    low = (upper - (high - back)) + (middle - back) + lower
    near = high + low
    back = near - high
    low = (high - (near - back)) + (low - back)
    first = near / n
    upper = first * _SPLIT - (first * _SPLIT - first)
    product = first * n
    error = (upper * n - product) + (first - upper) * n
    return first + (((near - product) - error) + low) / n


@kernel
def split(value: float, values: float) -> tuple[float, float, float, bool]:
    """The limbs of a value, and whether they hold it and sums of so many."""
    rest = value * _UNIT
    first = np.floor(rest)
    rest = (rest - first) * _UNIT
    second = np.floor(rest)
    rest = (rest - second) * _UNIT
    third = np.floor(rest)
    return first, second, third, rest == third and abs(first) * values < EXACT


def _before(values: F) -> F:
    result = np.zeros(len(values) + 1)
    np.cumsum(values, out=result[1:])
    return result
