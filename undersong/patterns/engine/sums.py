"""Exact sums of many float64 values, and their quotients rounded once.

A value is split into three whole numbers (``LIMB`` bits each): v = a·2**-24 + b·2**-48 + c·2**-72. Sums of whole
numbers are exact in any order, differences of running sums too. So a mean over any window is the exact mean, rounded
once, as ``windows.Sums`` has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

F = npt.NDArray[np.float64]
I = npt.NDArray[np.int64]  # noqa: E741 - beside F and B
LIMB = 24
_UNIT = float(1 << LIMB)
_SPLIT = 134_217_729.0  # 2**27 + 1: Veltkamp's constant, halves a float64
_EXACT = 1 << 53  # whole numbers below it are float64 values


class Unsuited(Exception):  # noqa: N818 - says that the reference must do it
    """These values or this rule are beyond what the engine does exactly."""


class Total(NamedTuple):
    """Exact sums: the three limbs of each."""

    a: I
    b: I
    c: I

    def __sub__(self, other: Total) -> Total:
        return Total(self.a - other.a, self.b - other.b, self.c - other.c)

    def plus(self, other: Total) -> Total:
        """The sums of both."""
        return Total(self.a + other.a, self.b + other.b, self.c + other.c)

    def at(self, places: npt.NDArray[np.integer]) -> Total:
        """The sums at some places."""
        return Total(self.a[places], self.b[places], self.c[places])


def limbs(values: F) -> Total:
    """The limbs of known values; raises Unsuited for one below 2**-72 or too large for the number of values."""
    rest, found = values, []
    for _ in range(3):
        rest = rest * _UNIT
        whole = np.floor(rest)
        rest = rest - whole
        found.append(whole)
    largest = max((float(np.abs(part).max(initial=0.0)) for part in found), default=0.0)
    if rest.any() or largest * max(len(values), 1) >= _EXACT:
        raise Unsuited("a value has digits beyond 2**-72, or is too large")
    return Total(*(part.astype(np.int64) for part in found))


def running(values: F) -> Total:
    """Running sums: element i is the sum before value i, the last one that of all."""
    parts = limbs(values)
    return Total(*(_before(part) for part in parts))


def counts(counted: npt.NDArray[np.bool_]) -> I:
    """Running numbers of counted rows, before each row and after the last."""
    return _before(counted.astype(np.int64))


def total(sums: Total) -> F:
    """The sums, rounded once."""
    return _pair(sums)[0]


def mean(sums: Total, number: I) -> F:
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


def _pair(sums: Total) -> tuple[F, F]:
    """The exact sums as the nearest float64 and what is left."""
    a, b, c = sums.a / _UNIT, sums.b / _UNIT**2, sums.c / _UNIT**3
    high = a + b
    back = high - a
    low = (a - (high - back)) + (b - back) + c
    near = high + low
    back = near - high
    return near, (high - (near - back)) + (low - back)


def _before(values: I) -> I:
    found = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=found[1:])
    return found
