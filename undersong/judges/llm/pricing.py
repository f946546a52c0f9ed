"""Judge → price and facts of its model: ``rules/prices.yaml``, with their dates; what nobody looked up is None."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from typing import NamedTuple

import msgspec

from undersong.datafiles.yaml_loader import RULES, did_you_mean, read
from undersong.errors import UsageError
from undersong.judges.protocol import JUDGES, PAID, plugins

MILLION = 1_000_000
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")


class _StrictPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of ``prices.yaml``."""


class Tokens(_StrictPrices, frozen=True, kw_only=True):
    """How tokens are estimated: see the file."""

    bytes_each: int
    answer: int
    confirmation: int
    thinking: int
    learn_from: int


class CacheRatios(_StrictPrices, frozen=True, kw_only=True):
    """What input read from a prompt cache, and input put there, costs as a share of other input."""

    cached: float
    written: float


class LongPrompt(_StrictPrices, frozen=True, kw_only=True):
    """Factors on the prices of a request whose input has more than ``above`` tokens."""

    above: int
    input: float
    output: float


class Price(_StrictPrices, frozen=True, kw_only=True):
    """USD for a million tokens, None = not known; ``cached`` and ``written`` None = as input.

    ``batch`` is the share of the price that the provider's batch interface takes; ``derived`` names the prices that no
    list gives and that follow from the input price. ``thinking`` is the room in tokens for thinking that the model does
    by default and counts as output, ``context`` its window; None = not known. ``as_of`` None: the date of the file.
    """

    name: str
    input: float | None
    output: float | None
    source: str
    cached: float | None = None
    written: float | None = None
    batch: float = 1.0
    long: LongPrompt | None = None
    thinking: int | None = None
    context: int | None = None
    as_of: date | None = None
    derived: tuple[str, ...] = ()

    def cost(self, tokens_in: int, tokens_out: int, *, cached: int = 0, written: int = 0) -> float | None:
        """USD of one request, None where a price is not known; ``tokens_in`` includes ``cached`` and ``written``."""
        if self.input is None or self.output is None:
            return None
        reading = self.input if self.cached is None else self.cached
        writing = self.input if self.written is None else self.written
        fresh = tokens_in - cached - written
        taken = fresh * self.input + cached * reading + written * writing
        if self.long is not None and tokens_in > self.long.above:
            return (taken * self.long.input + tokens_out * self.output * self.long.output) / MILLION
        return (taken + tokens_out * self.output) / MILLION


class Prices(_StrictPrices, frozen=True, kw_only=True):
    """The whole file."""

    as_of: date
    tokens: Tokens
    derived: dict[str, CacheRatios]
    sources: dict[str, str]
    judges: tuple[Price, ...]


class ModelFacts(NamedTuple):
    """What is known of a model beside its price, in tokens; None = nobody looked it up.

    ``thinking`` is the room for thinking that it does by default and counts as output, ``context`` its window.
    """

    thinking: int | None = None
    context: int | None = None


@cache
def load_prices() -> Prices:
    """The shipped file, read once, each price with its date and source; raises RuleError with file and line."""
    prices = read(RULES / "prices.yaml", Prices)
    judges = tuple(
        msgspec.structs.replace(
            price, as_of=price.as_of or prices.as_of, source=prices.sources.get(price.source, price.source)
        )
        for price in prices.judges
    )
    return msgspec.structs.replace(prices, judges=judges)


def price_of(judge: str, price_in: float | None = None, price_out: float | None = None) -> Price:
    """The price of ``NAME`` or ``NAME:MODEL``, or as given; raises UsageError for no such judge.

    An effort or an address behind the model does not matter: a server of one's own has no price unless it is given.
    Prices of cached and written input that are not given follow from the input price.
    """
    provider = judge.partition(":")[0]
    prices = {price.name: price for price in load_prices().judges}
    judges = {*prices, *JUDGES, *PAID}
    if None in (price_in, price_out) and provider not in judges and provider not in plugins():
        remedy = f"{did_you_mean(provider, sorted(judges))}, or give --price-in and --price-out"
        raise UsageError(f"unknown judge '{provider}'", remedy=remedy)
    price = prices.get(provider, Price(name=judge, input=None, output=None, source="not in prices.yaml"))
    if "@" not in judge:
        price = _listed(judge) or price
    price = msgspec.structs.replace(price, name=judge)
    if price_in is not None or price_out is not None:
        price = _overridden(price, price_in, price_out)
    return price if "@" in judge else _with_cache_prices(price, provider)


def model_facts(judge: str) -> ModelFacts:
    """What is known of the model of ``NAME:MODEL``, wherever it runs; of one that is not listed, nothing."""
    price = _listed(judge)
    return ModelFacts() if price is None else ModelFacts(price.thinking, price.context)


def _listed(judge: str) -> Price | None:
    """The entry of a model, or that of the family that a dated id belongs to."""
    provider, _, argument = judge.partition(":")
    name = f"{provider}:{re.split('[+@]', argument, maxsplit=1)[0]}"
    prices = {price.name: price for price in load_prices().judges}
    return prices.get(name) or prices.get(_DATED.sub("", name))


def _overridden(price: Price, price_in: float | None, price_out: float | None) -> Price:
    """The price with what the user gives; cached and written input cost the same share of it as in the list."""
    factor = price_in / price.input if price_in is not None and price.input else None
    return msgspec.structs.replace(
        price,
        input=price.input if price_in is None else price_in,
        output=price.output if price_out is None else price_out,
        cached=_scaled(price.cached, factor) if price_in is not None else price.cached,
        written=_scaled(price.written, factor) if price_in is not None else price.written,
        source="as given",
        as_of=None,
    )


def _scaled(price: float | None, factor: float | None) -> float | None:
    return None if price is None or factor is None else price * factor


def _with_cache_prices(price: Price, provider: str) -> Price:
    """The price with those of cached and written input that it lacks, by the vendor's usual ratios."""
    ratios = load_prices().derived.get(provider)
    if ratios is None or price.input is None:
        return price
    usual = {"cached": price.input * ratios.cached, "written": price.input * ratios.written}
    lacking = tuple(name for name in usual if getattr(price, name) is None)
    return msgspec.structs.replace(price, **{name: usual[name] for name in lacking}, derived=lacking)
