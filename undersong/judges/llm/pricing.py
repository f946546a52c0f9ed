"""Judge → price: ``rules/prices.yaml``, with its date; a price that nobody looked up is None."""

from __future__ import annotations

from datetime import date
from functools import cache

import msgspec

from undersong.datafiles.yaml_loader import RULES, did_you_mean, read
from undersong.errors import UsageError
from undersong.judges.protocol import JUDGES, PAID, plugins

MILLION = 1_000_000


class _StrictPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of ``prices.yaml``."""


class Tokens(_StrictPrices, frozen=True, kw_only=True):
    """How tokens are estimated: see the file."""

    bytes_each: int
    answer: int
    confirmation: int
    learn_from: int


class Price(_StrictPrices, frozen=True, kw_only=True):
    """USD for a million tokens, None = not known; ``cached`` and ``written`` None = as input.

    ``batch`` is the share of the price that the provider's batch interface takes.
    """

    name: str
    input: float | None
    output: float | None
    source: str
    cached: float | None = None
    written: float | None = None
    batch: float = 1.0

    def cost(self, tokens_in: int, tokens_out: int, *, cached: int = 0, written: int = 0) -> float | None:
        """USD, None where a price is not known; ``tokens_in`` includes those ``cached`` and ``written``."""
        if self.input is None or self.output is None:
            return None
        reading = self.input if self.cached is None else self.cached
        writing = self.input if self.written is None else self.written
        fresh = tokens_in - cached - written
        return (fresh * self.input + cached * reading + written * writing + tokens_out * self.output) / MILLION


class Prices(_StrictPrices, frozen=True, kw_only=True):
    """The whole file."""

    as_of: date
    tokens: Tokens
    judges: tuple[Price, ...]


@cache
def load_prices() -> Prices:
    """The shipped file, read once; raises RuleError with file and line."""
    return read(RULES / "prices.yaml", Prices)


def price_of(judge: str, price_in: float | None = None, price_out: float | None = None) -> Price:
    """The price of ``NAME`` or ``NAME:MODEL``, or as given; raises UsageError for no such judge.

    An effort or an address behind the model does not matter: a server of one's own has no price unless it is given.
    """
    provider, _, argument = judge.partition(":")
    prices = {price.name: price for price in load_prices().judges}
    judges = {*prices, *JUDGES, *PAID}
    if None in (price_in, price_out) and provider not in judges and provider not in plugins():
        remedy = f"{did_you_mean(provider, sorted(judges))}, or give --price-in and --price-out"
        raise UsageError(f"unknown judge '{provider}'", remedy=remedy)
    price = prices.get(provider, Price(name=judge, input=None, output=None, source="not in prices.yaml"))
    if "@" not in argument:
        price = prices.get(f"{provider}:{argument.partition('+')[0]}", price)
    price = msgspec.structs.replace(price, name=judge)
    if price_in is None and price_out is None:
        return price
    return Price(
        name=judge,
        input=price.input if price_in is None else price_in,
        output=price.output if price_out is None else price_out,
        source="as given",
    )
