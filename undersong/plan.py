"""What reading would take, before anything is spent: messages, tokens, cost per tier, and what a budget leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from undersong.budget import RANKS, TRIAGE, rank_of
from undersong.evaluate import PRIOR_MESSAGES, Thread
from undersong.judges import JUDGES, open_judge
from undersong.models import TIERS, Noun, Problem, Route, Scan, Width
from undersong.passes import Options, Progress, ingest_and_scan, reads_all, routed_threads, silent
from undersong.prices import Price, Tokens, load_prices
from undersong.scan import load_book
from undersong.stores.sqlite import temporary_store

SAMPLE = TRIAGE - 0.5  # the rank of the audit sample: after what rules ask for, before what is only probable


class Part(Noun, frozen=True, kw_only=True):
    """One line of a plan: ``tokens_in`` and ``tokens_out`` are estimates, ``cost`` in USD or None = price not known."""

    name: str
    width: Width
    messages: int
    tokens_in: int
    tokens_out: int
    cost: float | None


class Cutoff(Noun, frozen=True, kw_only=True):
    """What a budget in USD pays for, most urgent first, and what it would leave unread of what is routed.

    ``left`` counts these by rank; ``share`` of all messages is the same budget as ``--budget-share``, the audit sample
    apart; ``harmful_left`` is the sum of the triage probabilities of those left.
    """

    budget: float
    cost: float
    read: int
    left: dict[str, int]
    share: float
    harmful_left: float


class Plan(Noun, frozen=True, kw_only=True):
    """``parts`` per tier, then the audit sample; ``left_out`` is what no rule, budget or sample reads."""

    judge: str
    price: Price
    prices_as_of: str
    messages: int
    everything: bool
    parts: tuple[Part, ...]
    left_out: int
    routed_by: str
    cutoff: Cutoff | None = None


class Cell(msgspec.Struct):
    """Messages of one rank and triage score."""

    messages: int = 0
    tokens_in: int = 0
    harmful: float = 0.0


Cells = dict[tuple[float, float], Cell]


def plan(
    paths: Sequence[str | Path],
    options: Options,
    price: Price,
    *,
    budget: float | None = None,
    progress: Progress = silent,
) -> tuple[Plan, list[Problem]]:
    """Scan and route the files as an audit would, and count; nothing is asked and nothing is stored."""
    tokens = load_prices().tokens
    name = options.judge.partition(":")[0]
    everything = options.read_all or (name in JUDGES and reads_all(open_judge(options.judge), options))
    parts: dict[tuple[str, Width], list[int]] = {}
    cells: Cells = {}
    with temporary_store() as store:
        corpus = ingest_and_scan(paths, store, load_book(), options, progress)
        for thread in routed_threads(corpus, store, options):
            for scan, each, size in _sizes(thread, tokens, everything):
                part = parts.setdefault(_line(each, everything), [0, 0])
                part[0] += 1
                part[1] += size
                cell = cells.setdefault((_rank(each, scan), -(scan.triage or 0.0)), Cell())
                cell.messages += 1
                cell.tokens_in += size
                cell.harmful += scan.triage or 0.0
    lines = tuple(_part(key, parts[key], tokens, price) for key in sorted(parts, key=_order))
    found = Plan(
        judge=options.judge,
        price=price,
        prices_as_of=load_prices().as_of.isoformat(),
        messages=corpus.messages,
        everything=everything,
        parts=lines,
        left_out=corpus.messages - sum(part.messages for part in lines),
        routed_by=corpus.cut.why,
        cutoff=None if budget is None else cut_off(cells, budget, price, tokens, corpus.messages),
    )
    return found, corpus.problems


def cut_off(cells: Cells, budget: float, price: Price, tokens: Tokens, messages: int) -> Cutoff | None:
    """How far a budget in USD goes, cell by cell, never beyond it; None where the price is not known."""
    if price.input is None or price.output is None:
        return None
    spent, read, shared, harmful = 0.0, 0, 0, 0.0
    left: dict[str, int] = {}
    paying = True
    for (rank, _), cell in sorted(cells.items()):
        cost = price.cost(cell.tokens_in, cell.messages * tokens.answer) or 0.0
        paying = paying and spent + cost <= budget
        if paying:
            spent, read = spent + cost, read + cell.messages
            shared += cell.messages if rank != SAMPLE else 0
        else:
            name = "audit sample" if rank == SAMPLE else RANKS[int(rank)]
            left[name] = left.get(name, 0) + cell.messages
            harmful += cell.harmful
    share = shared / messages if messages else 0.0
    return Cutoff(budget=budget, cost=spent, read=read, left=left, share=share, harmful_left=harmful)


def _sizes(thread: Thread, tokens: Tokens, everything: bool) -> Iterator[tuple[Scan, Route, int]]:
    """(scan, route, tokens of the question) of what would be read."""
    sizes = [len(message.text.encode("utf-8", "surrogatepass")) for message in thread.conversation.messages]
    upto = [0, *accumulate(sizes)]
    for index, (scan, each) in enumerate(zip(thread.scans, thread.routes, strict=True)):
        if not everything and each.depth == "skip":
            continue
        if each.width == "prior_messages":
            extent = upto[index + 1] - upto[max(0, index - PRIOR_MESSAGES)]
        elif each.width == "thread_and_history":
            extent = sizes[index] + min(upto[-1] - sizes[index], tokens.thread_most * tokens.bytes_each)
        else:
            extent = sizes[index]
        yield scan, each, tokens.instructions + -(-extent // tokens.bytes_each)


def _rank(each: Route, scan: Scan) -> float:
    """The rank at which a routed message is paid for; what only a judge of everything reads comes last."""
    if each.sampled:
        return SAMPLE
    if any(reason.startswith("triage ") for reason in each.reasons):
        return TRIAGE
    return rank_of(each.tier, bool(scan.total), each.reasons)


def _line(each: Route, everything: bool) -> tuple[str, Width]:
    if each.sampled and not everything:
        return "audit sample", each.width
    return each.tier, "message" if each.width == "none" else each.width


def _order(key: tuple[str, Width]) -> tuple[int, str]:
    names: tuple[str, ...] = TIERS
    return (names.index(key[0]) if key[0] in names else len(names)), key[1]


def _part(key: tuple[str, Width], counted: list[int], tokens: Tokens, price: Price) -> Part:
    messages, tokens_in = counted
    tokens_out = messages * tokens.answer
    return Part(
        name=key[0],
        width=key[1],
        messages=messages,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=price.cost(tokens_in, tokens_out),
    )


def total(parts: Iterable[Part]) -> tuple[int, int, int, float | None]:
    """Messages, tokens in, tokens out and cost of all lines; no cost where one is not known."""
    listed = list(parts)
    costs = [part.cost for part in listed]
    known = [cost for cost in costs if cost is not None]
    sums = [sum(getattr(part, name) for part in listed) for name in ("messages", "tokens_in", "tokens_out")]
    return sums[0], sums[1], sums[2], sum(known) if len(known) == len(costs) else None
