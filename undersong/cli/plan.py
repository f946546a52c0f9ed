"""``undersong plan``: what reading would take, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from undersong.cli.options import budget_options, corpus_options, exit_code, options_of, progress_bar, show_problems

if TYPE_CHECKING:
    from undersong.plan import Cutoff, Plan

USD = click.FloatRange(min=0)


@click.command("plan", short_help="Messages, tokens and cost per tier, before anything is spent.")
@corpus_options
@budget_options
@click.option("--judge", default="offline", show_default=True, metavar="NAME", help="Who would score the messages.")
@click.option("--all", "read_all", is_flag=True, help="As if every message were read.")
@click.option("--budget", type=USD, metavar="USD", help="Say what this much money would leave unread.")
@click.option("--price-in", type=USD, metavar="USD", help="Price of a million tokens of questions.")
@click.option("--price-out", type=USD, metavar="USD", help="Price of a million tokens of answers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    paths: tuple[str, ...],
    budget: float | None,
    price_in: float | None,
    price_out: float | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Scan and route as an audit would, and print what a judge would cost; nothing is asked."""
    from undersong.models import encode
    from undersong.plan import plan
    from undersong.prices import price_of

    options = options_of(**chosen)
    price = price_of(options.judge, price_in, price_out)
    with progress_bar() as progress:
        found, problems = plan(paths, options, price, budget=budget, progress=progress)
    if as_json:
        click.echo(encode(found))
    else:
        for line in _lines(found, budget):
            click.echo(line)
    show_problems(problems)
    raise SystemExit(exit_code(problems))


def _lines(found: Plan, budget: float | None) -> Iterator[str]:
    from undersong.plan import total

    yield f"{'tier':<20}{'width':<20}{'messages':>10}{'tokens in':>14}{'tokens out':>12}{'USD':>12}"
    for part in found.parts:
        numbers = f"{part.messages:>10,}{part.tokens_in:>14,}{part.tokens_out:>12,}{_usd(part.cost):>12}"
        yield f"{part.name:<20}{part.width:<20}{numbers}"
    messages, tokens_in, tokens_out, cost = total(found.parts)
    yield f"{'read':<40}{messages:>10,}{tokens_in:>14,}{tokens_out:>12,}{_usd(cost):>12}"
    yield f"{'left unread':<40}{found.left_out:>10,}"
    by = "the judge reads everything" if found.everything else f"routed by: {found.routed_by}; the audit sample on top"
    yield f"{by}. Tokens are estimated, 4 bytes each and a fixed part for each question."
    price = found.price
    if price.input is None or price.output is None:
        yield f"The price of judge {found.judge} is not known ({price.source})."
    else:
        yield f"Price of judge {found.judge}: {price.input:g} in, {price.output:g} out, USD a million ({price.source})."
    if budget is not None:
        yield _budget_line(found.cutoff)


def _budget_line(cutoff: Cutoff | None) -> str:
    if cutoff is None:
        return "What the budget would leave unread cannot be told without a price."
    begun = f"{cutoff.budget:,.2f} USD read {cutoff.read:,} of these messages for {cutoff.cost:,.2f} USD"
    if not cutoff.left:
        return f"{begun}; none is left unread."
    left = ", ".join(f"{count:,} {name}" for name, count in cutoff.left.items())
    advice = f"`--budget-share {int(cutoff.share * 1e4) / 1e4:g}` keeps to it"
    return f"{begun} and leave unread: {left} (harmful among them, by triage: {cutoff.harmful_left:,.1f}); {advice}."


def _usd(cost: float | None) -> str:
    return "not known" if cost is None else f"{cost:,.2f}"
