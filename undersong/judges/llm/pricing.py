"""Judge → price and facts of its model: ``rules/prices.yaml``, with their dates; what nobody looked up is None."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from undersong.datafiles.yaml_loader import RULES, did_you_mean, file_hash, read
from undersong.errors import RuleError, UsageError
from undersong.judges.protocol import JUDGES, PAID, plugins

MILLION = 1_000_000
STALE_DAYS = 90  # days after which a price is called old: both vendors changed prices within that time in 2026
OWN_LIST = "UNDERSONG_PRICES"
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")


class _StrictPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of ``prices.yaml``."""


class Tokens(_StrictPrices, frozen=True, kw_only=True):
    """How tokens are estimated: see the file."""

    bytes_each: int
    answer: int
    confirmation: int
    sequence: int
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
    """The whole file that is shipped."""

    as_of: date
    tokens: Tokens
    derived: dict[str, CacheRatios]
    sources: dict[str, str]
    judges: tuple[Price, ...]


class OwnPrices(_StrictPrices, frozen=True, kw_only=True):
    """A user's list: its entries go before the shipped ones of the same name. ``sources`` are short names of them."""

    as_of: date
    judges: tuple[Price, ...]
    sources: dict[str, str] = {}


class PriceFile(NamedTuple):
    """A file of prices in force: ``shipped`` or its path, its date, and the SHA-256 of its bytes."""

    name: str
    as_of: date
    sha256: str


class ModelFacts(NamedTuple):
    """What is known of a model beside its price, in tokens; None = nobody looked it up.

    ``thinking`` is the room for thinking that it does by default and counts as output, ``context`` its window.
    """

    thinking: int | None = None
    context: int | None = None


@cache
def _shipped() -> Prices:
    prices = read(RULES / "prices.yaml", Prices)
    return msgspec.structs.replace(prices, judges=_dated(prices))


@cache
def _own(path: Path, changed: int) -> tuple[Price, ...]:  # noqa: ARG001 - a file that changed is read again
    prices = read(path, OwnPrices)
    for price in prices.judges:
        if any(value is not None and value < 0 for value in (price.input, price.output, price.cached, price.written)):
            raise RuleError(f"the price of {price.name} is negative", where=str(path), remedy="write USD, 0 or more")
    return _dated(prices)


def _dated(prices: Prices | OwnPrices) -> tuple[Price, ...]:
    """The entries, each with its date and its source in full."""
    return tuple(
        msgspec.structs.replace(
            price, as_of=price.as_of or prices.as_of, source=prices.sources.get(price.source, price.source)
        )
        for price in prices.judges
    )


def load_prices() -> Prices:
    """The prices in force, each with its date and source: the user's before the shipped ones of the same name.

    Raises RuleError with file and line, and UsageError where ``UNDERSONG_PRICES`` names no file.
    """
    shipped, path = _shipped(), own_prices_path()
    if not path.exists():
        if os.environ.get(OWN_LIST):
            remedy = f"write it with `undersong prices --update FILE`, or unset {OWN_LIST}"
            raise UsageError("no such list of prices", where=str(path), remedy=remedy)
        return shipped
    judges = {price.name: price for price in shipped.judges}
    judges |= {price.name: price for price in _own(path, path.stat().st_mtime_ns)}
    return msgspec.structs.replace(shipped, judges=tuple(judges.values()))


def own_prices_path() -> Path:
    """The file of the user's own prices, there or not: ``UNDERSONG_PRICES``, or in the user's configuration folder."""
    import click

    return Path(os.environ.get(OWN_LIST) or Path(click.get_app_dir("undersong")) / "prices.yaml")


def price_files() -> tuple[PriceFile, ...]:
    """The files of prices in force, the shipped one first."""
    shipped, path = RULES / "prices.yaml", own_prices_path()
    files = [PriceFile("shipped", _shipped().as_of, file_hash(shipped))]
    if path.exists():
        files.append(PriceFile(str(path), read(path, OwnPrices).as_of, file_hash(path)))
    return tuple(files)


def update_prices(source: Path) -> PriceFile:
    """Check a list and keep it as the user's own, in place of an earlier one; raises RuleError with file and line."""
    if not _own(source, source.stat().st_mtime_ns if source.exists() else 0):
        raise RuleError("lists no price", where=str(source), remedy="see `undersong prices` for the form of an entry")
    target = own_prices_path()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    partial.write_bytes(source.read_bytes())
    partial.replace(target)
    return price_files()[-1]


def dates_of(prices: Iterable[Price]) -> dict[str, date]:
    """Judge → when its price was read; a price that the user gave, none and 0 have no date that matters."""
    return {price.name: price.as_of for price in prices if price.as_of is not None and (price.input or price.output)}


def old_price_words(dates: Mapping[str, date], today: date) -> Iterator[str]:
    """A sentence for each price that was read so long ago that it may have changed."""
    for name, as_of in dates.items():
        if (today - as_of).days > STALE_DAYS:
            age = f"{(today - as_of).days} days old ({as_of.isoformat()})"
            yield f"The price of {name} is {age} and may have changed: see `undersong prices --update FILE`."


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
