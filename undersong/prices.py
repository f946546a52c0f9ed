"""Judge → price: ``rules/prices.yaml``, with its date; a price that nobody looked up is None."""

from __future__ import annotations

from datetime import date
from functools import cache

import msgspec

from undersong.errors import UsageError
from undersong.judges import JUDGES
from undersong.rulebook import RULES, did_you_mean, read

MILLION = 1_000_000


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of ``prices.yaml``."""


class Tokens(_Strict, frozen=True, kw_only=True):
    """How tokens are estimated: see the file."""

    bytes_each: int
    instructions: int
    answer: int
    thread_most: int


class Price(_Strict, frozen=True, kw_only=True):
    """USD for a million tokens, None = not known."""

    name: str
    input: float | None
    output: float | None
    source: str

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        """USD, None where either price is not known."""
        if self.input is None or self.output is None:
            return None
        return (tokens_in * self.input + tokens_out * self.output) / MILLION


class Prices(_Strict, frozen=True, kw_only=True):
    """The whole file."""

    as_of: date
    tokens: Tokens
    judges: tuple[Price, ...]


@cache
def load_prices() -> Prices:
    """The shipped file, read once; raises RuleError with file and line."""
    return read(RULES / "prices.yaml", Prices)


def price_of(judge: str, price_in: float | None = None, price_out: float | None = None) -> Price:
    """The price of ``NAME`` or ``NAME:ARGUMENT``, or as given; raises UsageError for no such judge."""
    name = judge.partition(":")[0]
    known = {price.name: price for price in load_prices().judges}
    if name not in known and name not in JUDGES and None in (price_in, price_out):
        remedy = f"{did_you_mean(name, sorted({*known, *JUDGES}))}, or give --price-in and --price-out"
        raise UsageError(f"unknown judge '{name}'", remedy=remedy)
    price = known.get(name, Price(name=name, input=None, output=None, source="not in prices.yaml"))
    if price_in is None and price_out is None:
        return price
    return Price(
        name=name,
        input=price.input if price_in is None else price_in,
        output=price.output if price_out is None else price_out,
        source="as given",
    )
