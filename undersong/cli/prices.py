"""``undersong prices``: what judges charge, and a list of one's own in place of the shipped one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from undersong.cli.help import examples
from undersong.cli.options import echo

if TYPE_CHECKING:
    from undersong.judges.llm.pricing import Price


@click.command(
    "prices",
    **examples(
        ("undersong prices", "the list in force"),
        ("undersong prices --update mine.yaml", "keep a list of yours"),
    ),
)
@click.option("--update", "source", type=click.Path(path_type=Path), metavar="FILE", help="Keep this list as your own.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(source: Path | None, as_json: bool) -> None:
    """Print the prices in force, or check a list and keep it: its entries go before the shipped ones.

    FILE is YAML or JSON with `as_of`, a date, and `judges`, a list of {name: "anthropic:MODEL", input: USD, output:
    USD, source: "where it was read"}; `cached`, `written`, `batch`, `thinking` and `context` may be added. It is kept
    in the folder of your configuration, or at UNDERSONG_PRICES.
    """
    from undersong.judges.llm.pricing import (
        dates_of,
        load_prices,
        old_price_words,
        price_files,
        price_of,
        update_prices,
    )

    if source is not None:
        kept_file = update_prices(source)
        click.echo(f"kept as {kept_file.name}, list of {kept_file.as_of}, sha256 {kept_file.sha256}", err=True)
    prices = [price_of(price.name) for price in load_prices().judges]
    if as_json:
        click.echo(
            msgspec.json.encode({"files": [each._asdict() for each in price_files()], "judges": prices}).decode()
        )
        return
    echo(_price_lines(prices))
    for file in price_files():
        click.echo(f"{file.name}: list of {file.as_of}, sha256 {file.sha256}")
    for sentence in old_price_words(dates_of(prices), date.today()):
        click.echo(sentence)


def _price_lines(prices: list[Price]) -> Iterator[str]:
    yield f"{'USD for a million tokens':<34}{'in':>9}{'cached':>9}{'written':>9}{'out':>9}  read on"
    for price in prices:
        if price.input is None:
            yield f"{price.name:<34}{'not known':>9}  {price.source}"
            continue
        numbers = "".join(f"{_usd(getattr(price, name)):>9}" for name in ("input", "cached", "written", "output"))
        mark = f" ({', '.join(price.derived)} derived)" if price.derived else ""
        yield f"{price.name:<34}{numbers}  {price.as_of}{mark}"


def _usd(price: float | None) -> str:
    return "as in" if price is None else f"{price:g}"
