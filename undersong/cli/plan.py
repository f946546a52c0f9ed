"""``undersong plan``: what reading would take, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from undersong.cli.help import SectionedCommand, examples
from undersong.cli.options import (
    DEFAULT_STORE,
    NumberRange,
    budget_options,
    check_existing,
    echo,
    finish,
    optional_corpus_options,
    options_of,
    price_options,
    require_messages,
)
from undersong.cli.progress import progress_bar
from undersong.errors import UsageError
from undersong.models import encode

if TYPE_CHECKING:
    from undersong.judges.ledger import SQLLedger
    from undersong.judges.limits import RunLimits
    from undersong.judges.llm.pricing import Price
    from undersong.pipeline.planning import AuditPlan, ConfirmationPlan, Cutoff

USD = NumberRange(min=0)


@click.command(
    "plan",
    cls=SectionedCommand,
    **examples(
        ("undersong plan logs/ --judge anthropic:claude-sonnet-5-5", "what it would cost"),
        ("undersong plan logs/ --judge openai:gpt-6.1-terra --budget 5", "what $5 would leave unread"),
    ),
)
@optional_corpus_options
@budget_options
@click.option("--judge", default="offline", show_default=True, metavar="NAME", help="Who would score the messages.")
@click.option("--all", "read_all", is_flag=True, help="As if every message were read.")
@click.option("--budget", type=USD, metavar="USD", help="Say what this much money would leave unread.")
@click.option(
    "--messages",
    type=click.IntRange(min=1),
    metavar="N",
    help="Without PATH: the cost table of the original design for N messages, today's prices beside it.",
)
@price_options
@click.option("--store", metavar="FILE", help="Learn tokens from the answers kept there; default: an audit's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    paths: tuple[str, ...],
    budget: float | None,
    messages: int | None,
    terms: RunLimits,
    store: str | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Scan and route as an audit would, and print what a judge would cost; nothing is asked."""
    if messages is not None:
        if paths:
            raise UsageError("--messages stands for files that are not there", remedy="leave PATH or --messages away")
        _print_table(messages, chosen["judge"], terms, as_json)
        return
    if not paths:
        raise UsageError("no PATH", remedy="name files or folders, or give --messages N")
    from undersong.pipeline.planning import plan

    options = options_of(**chosen, terms=terms)
    with progress_bar() as progress, stored_answers(store) as ledger:
        spending_plan, problems = plan(paths, options, budget=budget, ledger=ledger, progress=progress)
    require_messages(spending_plan.left_out + sum(part.messages for part in spending_plan.parts), problems)
    if as_json:
        click.echo(encode(spending_plan))
    else:
        echo(_lines(spending_plan, budget))
    finish(problems)


def _print_table(messages: int, judge: str, terms: RunLimits, as_json: bool) -> None:
    from undersong.pipeline.cost_table import cost_table, table_lines

    table = cost_table(messages, () if judge == "offline" else (judge,), terms)
    if as_json:
        click.echo(encode(table))
    else:
        echo(table_lines(table))


def _lines(spending_plan: AuditPlan, budget: float | None) -> Iterator[str]:
    from undersong.judges.llm.pricing import dates_of, old_price_words
    from undersong.pipeline.planning import total

    yield f"{'tier':<20}{'width':<20}{'messages':>10}{'tokens in':>14}{'tokens out':>12}{'USD':>12}"
    for part in spending_plan.parts:
        numbers = f"{part.messages:>10,}{part.tokens_in:>14,}{part.tokens_out:>12,}{_usd(part.cost):>12}"
        yield f"{part.name:<20}{part.width:<20}{numbers}"
    messages, tokens_in, tokens_out, cost = total(spending_plan.parts)
    yield f"{'read':<40}{messages:>10,}{tokens_in:>14,}{tokens_out:>12,}{_usd(cost):>12}"
    if (again := spending_plan.secondary) is not None:
        numbers = f"{again.expected:>10,}{again.tokens_in:>14,}{again.tokens_out:>12,}{_usd(again.cost):>12}"
        yield f"{'flagged places, asked about again':<40}{numbers}"
    if (whole := spending_plan.sequences) is not None:
        numbers = f"{whole.windows:>10,}{whole.tokens_in:>14,}{whole.tokens_out:>12,}{_usd(whole.cost):>12}"
        yield f"{'or whole sequences (--read sequences)':<40}{numbers}"
        if whole.pairs:
            yield f"{'  of these pairs of conversations':<40}{whole.pairs:>10,}"
    yield f"{'left unread':<40}{spending_plan.left_out:>10,}"
    routed = f"routed by: {spending_plan.routed_by}; the audit sample on top"
    by = "the judge reads everything" if spending_plan.everything else routed
    learned = max((part.learned_from for part in spending_plan.parts), default=0)
    how = f"as {learned} kept answers of the judge took" if learned else "4 bytes each"
    yield f"{by}. Tokens are estimated, {how}, instructions and schema included, without an agent's history."
    yield from _assumptions(spending_plan)
    if again is not None:
        yield _places_line(again)
    for price in spending_plan.prices:
        if price.input is None or price.output is None:
            yield f"The price of judge {price.name} is not known ({price.source})."
        else:
            rate = f"{price.input:g} in, {price.output:g} out, USD a million"
            read = f"{price.source}{f', {price.as_of.isoformat()}' if price.as_of else ''}"
            yield f"Price of judge {price.name}: {rate} ({read}).{_derived_words(price)}"
    yield from old_price_words(dates_of(spending_plan.prices), date.today())
    if budget is not None:
        yield _budget_line(spending_plan.cutoff)


def _assumptions(spending_plan: AuditPlan) -> Iterator[str]:
    """What is assumed, or was measured, of thinking and of the provider's cache."""
    thinking = max((part.thinking for part in spending_plan.parts), default=0)
    if thinking:
        assumed = f"Of each answer {thinking:,} tokens are assumed to be thinking"
        yield f"{assumed}, until 20 answers of the model are kept; +low behind its name thinks less."
    shares = {part.judge: part.cached for part in spending_plan.parts if part.cached is not None}
    for judge, share in shares.items():
        yield f"{share:.0%} of the input of {judge} came from the provider's cache so far, and is counted so."
    priced = {price.name for price in spending_plan.prices if price.cached is not None and price.input}
    if priced - shares.keys():
        assumed = "The first question is assumed to put the instructions into the provider's cache"
        yield f"{assumed}, the others to find them there."


def _derived_words(price: Price) -> str:
    if not price.derived:
        return ""
    return f" Not listed, so derived from the input price: that of {' and '.join(price.derived)} input."


def _places_line(again: ConfirmationPlan) -> str:
    scan_words = f"{again.known:,} flagged places of sessions are known from the scan"
    if again.learned_from:
        readings = f"{again.learned_from:,} kept readings of the judge"
        return f"{scan_words}, {again.expected:,} are expected, as in {readings}."
    scope = "and priced here; the judge is also asked about what it sees itself as it reads."
    return f"{scan_words} {scope} How much that is, is not known before, and not included."


@contextmanager
def stored_answers(store: str | None) -> Iterator[SQLLedger | None]:
    """The ledger of a store; None where none is named and there is none in this folder.

    Raises UsageError for a named one that is not there: asking for a plan makes no store.
    """
    from undersong.judges.ledger import open_ledger

    if store is None and not Path(DEFAULT_STORE).exists():
        yield None
        return
    check_existing(store or DEFAULT_STORE)
    with open_ledger(store or DEFAULT_STORE) as ledger:
        yield ledger


def _budget_line(cutoff: Cutoff | None) -> str:
    if cutoff is None:
        return "What the budget would leave unread cannot be told without a price."
    begun = f"{cutoff.budget:,.2f} USD read {cutoff.read:,} of these messages for {cutoff.cost:,.2f} USD"
    if cutoff.secondary:
        begun += f" ({cutoff.secondary:,.2f} of them set aside for flagged places)"
    if not cutoff.left:
        return f"{begun}; none is left unread."
    left = ", ".join(f"{count:,} {name}" for name, count in cutoff.left.items())
    advice = f"`--budget-share {int(cutoff.share * 1e4) / 1e4:g}` keeps to it"
    if cutoff.sample_left:
        advice += f" but for the audit sample, of which {cutoff.sample_left:,.2f} USD come on top"
    return f"{begun} and leave unread: {left} (harmful among them, by triage: {cutoff.harmful_left:,.1f}); {advice}."


def _usd(cost: float | None) -> str:
    return "not known" if cost is None else f"{cost:,.2f}"
