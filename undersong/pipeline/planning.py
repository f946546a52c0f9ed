"""Cost planning before anything is spent: messages, tokens and cost per tier, and what a budget leaves unread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from undersong.judges.ledger import SQLLedger
from undersong.judges.llm.model_spec import tier_specs_of
from undersong.judges.llm.pricing import Price, load_prices, price_of
from undersong.judges.llm.prompt_fingerprint import questions_hash
from undersong.judges.llm.prompts import render_segment, shipped_prompts
from undersong.judges.llm.response import confirm_schema
from undersong.judges.llm.tokens import AnswerSizes, TokenRates, rates, rule_of_thumb, schema_bytes
from undersong.judges.protocol import Question, Segment, asks_models, is_paid, open_judge, panel_names
from undersong.models import TIERS, Problem, Record, Route, Row, Scan, Tier, Width
from undersong.pipeline.evaluate import RoutedThread, questions_of
from undersong.pipeline.options import Options, Progress, silent
from undersong.pipeline.partwise import reads_all
from undersong.pipeline.sequence_plan import SequencePlan, plan_sequences, scanned_rows
from undersong.pipeline.stages import ingest_and_scan, routed_threads
from undersong.routing.budget import RANKS, TRIAGE, rank_of
from undersong.scan import load_book
from undersong.stores.sqlite import temporary_store
from undersong.verdict import constraint_segments, segments, session_verdict

SUMMED = ("messages", "tokens_in", "tokens_out")
SAMPLE = TRIAGE - 0.5  # the rank of the audit sample: after what rules ask for, before what is only probable


class PlanLine(Record, frozen=True, kw_only=True):
    """One line of a plan: ``tokens_in`` and ``tokens_out`` are estimates, ``cost`` in USD or None = price not known.

    ``judge`` is who reads this tier; ``learned_from`` how many kept answers the estimate stands on, 0 = rule of thumb.
    ``thinking`` are the tokens an answer that are assumed for thinking, ``cached`` is the measured share of the input
    that comes from the provider's cache, None = all but the first question are assumed to find the instructions there.
    """

    name: str
    width: Width
    judge: str
    learned_from: int
    messages: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    thinking: int = 0
    cached: float | None = None


class Cutoff(Record, frozen=True, kw_only=True):
    """What a budget in USD pays for, most urgent first, and what it would leave unread of what is routed.

    ``left`` counts these by rank; ``share`` of all messages is the same budget as ``--budget-share``, to which a run
    adds the audit sample: ``sample_left`` USD of it are beyond the budget. ``harmful_left`` is the sum of the triage
    probabilities of those left. ``secondary`` of ``cost`` is set aside for questions about flagged places, which a run
    asks along the way.
    """

    budget: float
    cost: float
    secondary: float
    read: int
    left: dict[str, int]
    share: float
    sample_left: float
    harmful_left: float


class AuditPlan(Record, frozen=True, kw_only=True):
    """``parts`` per tier, then the audit sample; ``left_out`` is what no rule, budget or sample reads.

    ``prices`` are of the judges of the parts. ``secondary`` are the questions about flagged places, None for a judge
    that is asked none; ``sequences`` are whole ones, None for a judge that reads none.
    """

    judge: str
    prices: tuple[Price, ...]
    prices_as_of: str
    messages: int
    everything: bool
    parts: tuple[PlanLine, ...]
    left_out: int
    routed_by: str
    secondary: ConfirmationPlan | None = None
    sequences: SequencePlan | None = None
    cutoff: Cutoff | None = None


class Cell(msgspec.Struct):
    """Messages of one rank and triage score."""

    messages: int = 0
    cost: float | None = 0.0
    harmful: float = 0.0


class PartSums(msgspec.Struct):
    """Messages of one line of a plan, their tokens, and their cost in USD or None = price not known."""

    messages: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0

    def add(self, tokens_in: int, tokens_out: int, cost: float | None) -> None:
        """Add one message."""
        self.messages += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        self.cost = None if cost is None or self.cost is None else self.cost + cost


class TierJudge(NamedTuple):
    """Who reads a tier, at what price, and how many tokens that takes."""

    name: str
    price: Price
    rates: TokenRates

    def cost(self, tokens_in: int, tokens_out: int, stable: float, *, first: bool) -> float | None:
        """USD of a question whose ``stable`` part of so many tokens is the same in every other.

        Where nothing was measured, the first one puts that part into the provider's cache and the others read it there.
        """
        if self.rates.cached is not None:
            return self.price.cost(tokens_in, tokens_out, cached=round(self.rates.cached * tokens_in))
        if self.price.cached is None:
            return self.price.cost(tokens_in, tokens_out)
        part = min(round(stable), tokens_in)
        return self.price.cost(tokens_in, tokens_out, cached=0 if first else part, written=part if first else 0)


Readers = dict[Tier, tuple[TierJudge, ...]]  # of a panel two read a tier
Cells = dict[tuple[float, float], Cell]


def plan(
    paths: Sequence[str | Path],
    options: Options,
    *,
    budget: float | None = None,
    ledger: SQLLedger | None = None,
    progress: Progress = silent,
) -> tuple[AuditPlan, list[Problem]]:
    """Scan and route the files as an audit would, and count; nothing is asked and nothing is stored.

    ``ledger`` holds answers that were paid before: from 20 of a model on, its tokens are predicted from them. Raises
    UsageError for a judge that is not known.
    """
    readers = readers_of(options, ledger)
    everything = options.read_all or (not is_paid(options.judge) and reads_all(open_judge(options.judge), options))
    parts: dict[tuple[str, Width], PartSums] = {}
    cells: Cells = {}
    asked = set[str]()
    places = FlaggedPlaces()
    twice, whole, scanned = is_paid(options.judge), asks_models(options.judge), list[Row]()
    sequences: SequencePlan | None = None
    with temporary_store() as store:
        corpus = ingest_and_scan(paths, store, load_book(), options, progress)
        for thread in routed_threads(corpus, store, options):
            if twice:
                places.add(thread)
            if whole:
                scanned += scanned_rows(thread)
            for question in questions_of(thread, read_all=everything):
                scan, route = question.scan, question.route
                tokens_in, tokens_out, cost = size_of(question, readers[route.tier], asked)
                parts.setdefault(_line(route, everything), PartSums()).add(tokens_in, tokens_out, cost)
                cell = cells.setdefault((_rank(route, scan), -(scan.triage or 0.0)), Cell())
                cell.messages += 1
                cell.cost = None if cost is None or cell.cost is None else cell.cost + cost
                cell.harmful += scan.triage or 0.0
        if whole:
            deep = [(each.price, each.rates) for each in readers["deep"]]
            sequences = plan_sequences(scanned, store, deep, options.seed, options.rules)
    reads = sum(cell.messages for cell in cells.values())
    again = _plan_confirmation(places, reads, readers, ledger) if twice else None
    lines = tuple(_part(key, parts[key], readers) for key in sorted(parts, key=_order))
    result = AuditPlan(
        judge=options.judge,
        prices=tuple({each.name: each.price for judges in readers.values() for each in judges}.values()),
        prices_as_of=load_prices().as_of.isoformat(),
        messages=corpus.messages,
        everything=everything,
        parts=lines,
        left_out=corpus.messages - sum(part.messages for part in lines),
        routed_by=corpus.cut.why,
        secondary=again,
        sequences=sequences,
        cutoff=None if budget is None else cut_off(cells, budget, corpus.messages, again),
    )
    return result, corpus.problems


def cut_off(cells: Cells, budget: float, messages: int, again: ConfirmationPlan | None = None) -> Cutoff | None:
    """How far a budget in USD goes, cell by cell, never beyond it; None where a price is not known.

    What questions about flagged places take is set aside first: they are asked along with the reading.
    """
    aside = 0.0 if again is None else again.cost
    if aside is None or any(cell.cost is None for cell in cells.values()):
        return None
    aside = min(aside, budget)
    spent, read, shared, harmful, sample_left = aside, 0, 0, 0.0, 0.0
    left: dict[str, int] = {}
    paying = True
    for (rank, _), cell in sorted(cells.items()):
        cost = cell.cost or 0.0
        paying = paying and spent + cost <= budget
        if paying:
            spent, read = spent + cost, read + cell.messages
            shared += cell.messages if rank != SAMPLE else 0
        else:
            name = "audit sample" if rank == SAMPLE else RANKS[int(rank)]
            left[name] = left.get(name, 0) + cell.messages
            harmful += cell.harmful
            sample_left += cost if rank == SAMPLE else 0.0
    return Cutoff(
        budget=budget,
        cost=spent,
        secondary=aside,
        read=read,
        left=left,
        share=shared / messages if messages else 0.0,
        sample_left=sample_left,
        harmful_left=harmful,
    )


def price_words(options: Options, readings: Sequence[Sequence[Question]], ledger: AnswerSizes | None) -> str:
    """What questions will cost at most, in a sentence; ``readings`` are asked one after the other."""
    readers, sums, asked = readers_of(options, ledger), PartSums(), set[str]()
    for question in (question for questions in readings for question in questions):
        sums.add(*size_of(question, readers[question.route.tier], asked))
    cost = "at a price that is not known" if sums.cost is None else f"for about {sums.cost:,.2f} USD"
    budget = "" if options.terms.budget is None else f", within {options.terms.budget:,.2f} USD"
    tokens = f"about {sums.tokens_in:,} tokens in and {sums.tokens_out:,} out"
    count = sums.messages * len(panel_names(options.judge))
    asks = f"will ask {options.judge} {count:,} questions, {tokens}, {cost}{budget}"
    return f"{asks}; kept answers are not paid again"


def readers_of(options: Options, ledger: AnswerSizes | None) -> Readers:
    """Who reads each tier; a judge that reads for free counts by the rule of thumb, as a paid one would."""
    own_prices = options.terms.price_in, options.terms.price_out
    by_judge = [_tier_judges(name, own_prices, ledger) for name in panel_names(options.judge)]
    return {tier: tuple(each[tier] for each in by_judge) for tier in TIERS if tier in by_judge[0]}


def _tier_judges(
    name: str, own_prices: tuple[float | None, float | None], ledger: AnswerSizes | None
) -> dict[Tier, TierJudge]:
    """Who reads each tier for one judge."""
    if not asks_models(name) or name.startswith("replay:"):
        judge = TierJudge(name, price_of(name, *own_prices), rule_of_thumb(load_prices().tokens))
        return dict.fromkeys(TIERS, judge)
    names = {tier: spec.name for tier, spec in tier_specs_of(name).items()}
    by_name = {name: TierJudge(name, price_of(name, *own_prices), rates(name, ledger)) for name in set(names.values())}
    return {tier: by_name[name] for tier, name in names.items()}


def size_of(question: Question, judges: Sequence[TierJudge], asked: set[str]) -> tuple[int, int, float | None]:
    """Tokens of question and answer, and cost, over all judges; an agent's history is not known yet.

    ``asked`` are the judges that were asked anything before, and are added to.
    """
    sums = PartSums()
    for judge in judges:
        tokens_in, tokens_out = judge.rates.of(question)
        stable = judge.rates.fixed["thorough" if question.route.depth == "thorough" else "standard"]
        sums.add(tokens_in, tokens_out, judge.cost(tokens_in, tokens_out, stable, first=judge.name not in asked))
        asked.add(judge.name)
    return sums.tokens_in, sums.tokens_out, sums.cost


def _rank(route: Route, scan: Scan) -> float:
    """The rank at which a routed message is paid for; what only a judge of everything reads comes last."""
    if route.sampled:
        return SAMPLE
    if any(reason.startswith("triage ") for reason in route.reasons):
        return TRIAGE
    return rank_of(route.tier, bool(scan.total), route.reasons)


def _line(route: Route, everything: bool) -> tuple[str, Width]:
    if route.sampled and not everything:
        return "audit sample", route.width
    return route.tier, "message" if route.width == "none" else route.width


def _order(key: tuple[str, Width]) -> tuple[int, str]:
    names: tuple[str, ...] = TIERS
    return (names.index(key[0]) if key[0] in names else len(names)), key[1]


def _part(key: tuple[str, Width], sums: PartSums, readers: Readers) -> PlanLine:
    tier: Tier = key[0] if key[0] in readers else "standard"
    judges = readers[tier]
    cached = [each.rates.cached for each in judges if each.rates.cached is not None]
    return PlanLine(
        name=key[0],
        width=key[1],
        judge=",".join(each.name for each in judges),
        learned_from=min(each.rates.learned_from for each in judges),
        messages=sums.messages,
        tokens_in=sums.tokens_in,
        tokens_out=sums.tokens_out,
        cost=sums.cost,
        thinking=max(each.rates.thinking for each in judges),
        cached=sum(cached) / len(cached) if len(cached) == len(judges) else None,
    )


def total(parts: Iterable[PlanLine]) -> tuple[int, int, int, float | None]:
    """Messages, tokens in, tokens out and cost of all lines; no cost where one is not known."""
    listed = list(parts)
    costs = [part.cost for part in listed if part.cost is not None]
    messages, tokens_in, tokens_out = (sum(map(attrgetter(name), listed)) for name in SUMMED)
    return messages, tokens_in, tokens_out, sum(costs) if len(costs) == len(listed) else None


class ConfirmationPlan(Record, frozen=True, kw_only=True):
    """The second questions of a run, to the judge of ``deep``.

    ``known`` places stand on the words, code and tool results of the sessions alone. ``expected`` adds those that the
    judge itself will see while it reads, as often as in ``learned_from`` kept readings; without these it is ``known``,
    the least that will be asked. Tokens and cost (USD, None = price not known) are of ``expected``.
    """

    judge: str
    known: int
    expected: int
    learned_from: int
    tokens_in: int
    tokens_out: int
    cost: float | None


class ConfirmationHistory(NamedTuple):
    """A judge's history in a ledger: readings, second questions, and the bytes and tokens of these."""

    readings: int = 0
    questions: int = 0
    sent: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class FlaggedPlaces(msgspec.Struct):
    """Flagged places of the sessions of a run, counted one session after the other."""

    count: int = 0
    sent: int = 0  # UTF-8 bytes of the questions' user parts

    def add(self, thread: RoutedThread) -> None:
        """Count the places of a session as they are before any message of it is read."""
        for segment in _flagged_segments(thread):
            self.count += 1
            self.sent += len(render_segment(segment).user.encode())


def _confirmation_history(judges: set[str], deep: str, ledger: SQLLedger | None) -> ConfirmationHistory:
    """What a ledger has of the judges of all tiers, and of the one that is asked twice."""
    if ledger is None:
        return ConfirmationHistory()
    taken = {name: ledger.totals_by_depth(name, questions_hash()) for name in judges}
    readings = sum(each.answers for depths in taken.values() for depth, each in depths.items() if depth != "confirm")
    asked = taken[deep].get("confirm")
    return ConfirmationHistory(readings, *asked) if asked is not None else ConfirmationHistory(readings)


def _plan_confirmation(
    places: FlaggedPlaces, messages: int, readers: Readers, ledger: SQLLedger | None
) -> ConfirmationPlan:
    """The second questions of a run that reads so many messages; of a panel both are asked each."""
    count = len(readers["deep"])
    by_judge = [
        _confirmations_by(places, messages, {tier: each[number] for tier, each in readers.items()}, ledger)
        for number in range(count)
    ]
    costs = [each.cost for each in by_judge if each.cost is not None]
    return ConfirmationPlan(
        judge=",".join(each.judge for each in by_judge),
        known=places.count,
        expected=max(each.expected for each in by_judge),
        learned_from=min(each.learned_from for each in by_judge),
        tokens_in=sum(each.tokens_in for each in by_judge),
        tokens_out=sum(each.tokens_out for each in by_judge),
        cost=sum(costs) if len(costs) == count else None,
    )


def _confirmations_by(
    places: FlaggedPlaces, messages: int, tier_judges: dict[Tier, TierJudge], ledger: SQLLedger | None
) -> ConfirmationPlan:
    deep, tokens = tier_judges["deep"], load_prices().tokens
    history = _confirmation_history({judge.name for judge in tier_judges.values()}, deep.name, ledger)
    learned = history.readings if history.readings >= tokens.learn_from else 0
    expected = max(places.count, round(messages * history.questions / history.readings)) if learned else places.count
    sent = places.sent / places.count if places.count else history.sent / max(history.questions, 1)
    fixed, answer = _rates(history, deep.rates)
    tokens_in, tokens_out = round(fixed + deep.rates.per_byte * sent), round(answer)
    cost = deep.cost(tokens_in, tokens_out, fixed, first=False)
    return ConfirmationPlan(
        judge=deep.price.name,
        known=places.count,
        expected=expected,
        learned_from=learned,
        tokens_in=expected * tokens_in,
        tokens_out=expected * tokens_out,
        cost=None if cost is None else expected * cost,
    )


def _rates(history: ConfirmationHistory, rates: TokenRates) -> tuple[float, float]:
    """Tokens of a question beside its user part, and of its answer: as stored, or by the rule of thumb."""
    if history.questions:
        fixed = history.tokens_in - rates.per_byte * history.sent
        return fixed / history.questions, history.tokens_out / history.questions
    sent = len(shipped_prompts().confirming.encode()) + schema_bytes(confirm_schema)
    return rates.per_byte * sent, float(load_prices().tokens.confirmation + rates.thinking)


def _flagged_segments(thread: RoutedThread) -> tuple[Segment, ...]:
    verdict = session_verdict(thread.conversation, thread.scans, thread.thread, tuple(scanned_rows(thread)))
    return segments(thread.conversation, verdict) + constraint_segments(thread.conversation, thread.scans)
