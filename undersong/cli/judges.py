"""``undersong judges``: who could judge on this machine, at what price, and what is known of their quality."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from undersong.cli.help import examples
from undersong.cli.options import echo

if TYPE_CHECKING:
    from undersong.judges.llm.at_hand import AtHand


@click.command("judges", **examples(("undersong judges", "what is at hand, and the command for each")))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(as_json: bool) -> None:
    """List the judges at hand: keys in the environment, servers that answer on this machine, programs.

    No key is shown or sent. Servers are asked for their models at the usual ports of Ollama, LM Studio, llama.cpp and
    vLLM on 127.0.0.1 alone.
    """
    from undersong.judges.llm.at_hand import INSTALL, judge_command, judges_at_hand, libraries

    at_hand = judges_at_hand()
    if as_json:
        for judge in at_hand:
            click.echo(msgspec.json.encode(judge._asdict() | {"ready": judge.ready}))
        return
    echo(_offline_lines())
    installed = (f"{name} {number or 'not installed'}" for name, number in libraries().items())
    click.echo(
        f"\nlibraries for LLM judges: {', '.join(installed)}{'' if all(libraries().values()) else f' ({INSTALL})'}"
    )
    for judge in at_hand:
        echo(_lines(judge))
    if not any(judge.ready for judge in at_hand):
        click.echo("\nNo LLM judge is ready here: no key is set and no server answers on this machine. With a key:")
        click.echo(f"  {judge_command(['audit', 'PATH'])}")


def _offline_lines() -> Iterator[str]:
    yield "offline: ships with undersong, needs nothing"
    yield "  price     $0"
    yield "  quality   a triage: mean rank correlation .53 with labels of agent posts, ranks alone on other text"
    yield "  use it    undersong audit PATH"


def _lines(judge: AtHand) -> Iterator[str]:
    yield f"\n{judge.judge}: {judge.because}"
    yield f"  price     {price_words(judge)}"
    if judge.price.context:
        yield f"  context   {judge.price.context:,} tokens"
    yield f"  quality   {judge.quality}"
    if judge.missing:
        yield f"  missing   {judge.missing}"
    yield f"  try it    undersong judge check {shlex.quote(judge.judge)}"
    yield f"  use it    undersong audit PATH --judge {shlex.quote(judge.judge)}{'' if judge.free else ' --budget 5'}"


def price_words(judge: AtHand) -> str:
    """``$2 in, $10 out for a million tokens (read on 2026-11-23)``."""
    price = judge.price
    if price.input is None or price.output is None:
        return f"not known ({price.source})"
    if judge.free:
        return "$0: it runs on this machine"
    return f"${price.input:g} in, ${price.output:g} out for a million tokens (read on {price.as_of})"
