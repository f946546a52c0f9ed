"""Assembly of a Case from the results of an audit: quotes, attribution, cited messages, counts, parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec

from undersong.core.text import text_hash
from undersong.judges.attribution import TraitContributions, top_words
from undersong.judges.protocol import Judge, asks_models
from undersong.ml.trait_heads import Heads
from undersong.models import (
    LEVELS,
    TRAITS,
    Case,
    Confirmed,
    Conversation,
    Deduction,
    Finding,
    Lead,
    Message,
    Moment,
    Quote,
    Review,
    Row,
    SequenceReading,
    SessionVerdict,
    Spending,
    Usage,
    Why,
)
from undersong.models.verdict import TO_CHECK, WORDS_ONLY
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import quote, strongest_sentences
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.inputs import inputs_by_stage, stage_inputs
from undersong.patterns.lead_decisions import reviewed_places, with_decisions
from undersong.patterns.lead_quotes import with_quotes
from undersong.patterns.leads import places_of, shown_leads
from undersong.patterns.outcome import with_outcome
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import Significance
from undersong.pipeline.judged_findings import with_disagreement
from undersong.pipeline.lead_kinds import with_kinds
from undersong.pipeline.options import Options
from undersong.pipeline.partwise import judge_named, reads_all
from undersong.pipeline.stages import AuditCorpus, AuditState
from undersong.routing.budget import RANKS, BudgetCutoff
from undersong.routing.route import load_policy
from undersong.stores.protocol import Store

NO_RESAMPLING = ResamplingConfig(draws=0, replicas=0)  # how the parameters of a run without chance are written
DOUBLE_CHECK = "double_check"  # beside the tiers, in what was spent
T = TypeVar("T")


def count(values: Iterable[T]) -> dict[T, int]:
    """How often each value occurs, in sorted order."""
    counts: dict[T, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: str(item[0])))


def spending(
    rows: Iterable[Row], sessions: Iterable[SessionVerdict] = (), sequences: Iterable[SequenceReading] = ()
) -> Spending | None:
    """The spending for the answers behind these rows, verdicts and sequences; None where none was paid."""
    read = ((row.tier or "standard", row.conversation, row.reading.usage) for row in rows if row.reading is not None)
    confirmed = (("confirm", each.conversation, place.usage) for each in sessions for place in each.confirmations)
    whole = (("sequence", each.conversation or "", each.usage) for each in sequences)
    return _summed(None, (used for used in (*read, *confirmed, *whole) if used[2].calls))


def with_double_check(case: Case, used: Iterable[tuple[str, Usage]]) -> Case:
    """The case with the spending for second readings of messages, each by the conversation of its message."""
    spent = _summed(case.spent, [(DOUBLE_CHECK, *each) for each in used if each[1].calls])
    return msgspec.structs.replace(case, spent=spent, cost=(spent.total.cost or 0.0) if spent else case.cost)


def _summed(so_far: Spending | None, used: Iterable[tuple[str, str, Usage]]) -> Spending | None:
    """Spending with more usage, each of a tier and a conversation."""
    tiers, conversations = (dict(so_far.tiers), dict(so_far.conversations)) if so_far else ({}, {})
    for tier, conversation, usage in used:
        tiers[tier] = tiers.get(tier, Usage()) + usage
        conversations[conversation] = conversations.get(conversation, Usage()) + usage
    if not tiers:
        return None
    return Spending(total=sum(tiers.values(), Usage()), tiers=dict(sorted(tiers.items())), conversations=conversations)


def judge_calls(rows: Iterable[Row], sessions: Iterable[SessionVerdict]) -> int:
    """The number of answers used, asked in this run or stored: about messages and about flagged places."""
    answered = [row.state != "failed" or row.reading is not None for row in rows if row.state != "unread"]
    places = [each for session in sessions for each in session.confirmations if each.state != "unread"]
    return sum(answered) + sum(each.state != "failed" or each.usage.calls > 0 for each in places)


def highest(rows: Iterable[Row]) -> dict[str, float]:
    highest: dict[str, float] = {}
    for row in rows:
        for trait, score in (row.absolute_scores or {}).items():
            highest[trait] = max(score, highest.get(trait, 0.0))
    return highest


class ConversationSource(Protocol):
    """Where conversations are: a store, or what stands for one."""

    def conversation(self, name: str, /) -> tuple[Conversation, *tuple[Any, ...]]:
        """A conversation by its id, and what else is stored of it."""
        ...


def quoted(
    findings: Sequence[Finding],
    rows: Iterable[Row],
    store: ConversationSource,
    judge: Judge,
    rules: Sequence[PatternRule],
) -> tuple[Finding, ...]:
    """Each finding with verbatim quotes of its messages, with what moved the scores where the judge gives that.

    And with what came of it where it has a target.
    """
    places = {place for finding in findings for place in _bound(finding)}
    messages = _messages(sorted(places), store)
    bound = [row for row in rows if (row.conversation, row.id) in places]
    strongest = strongest_sentences(bound)
    quoted_findings = tuple(
        finding if finding.is_read else _outcome(quote(finding, messages, strongest=strongest), store)
        for finding in findings
    )
    if judge.heads is None:
        return quoted_findings
    return with_attribution(quoted_findings, bound, messages, rules, judge.heads)


class _Conversations:
    """Conversations by their ids, where there is no store."""

    def __init__(self, conversations: Mapping[str, Conversation]) -> None:
        self._conversations = conversations

    def conversation(self, name: str) -> tuple[Conversation]:
        return (self._conversations[name],)


def completed(
    findings: Sequence[Finding], bound: Sequence[Row], conversations: Mapping[str, Conversation], options: Options
) -> tuple[Finding, ...]:
    """Weighed findings as a report has them, from the rows and the conversations that they name alone."""
    rules = options.rules or load_rules()
    noted = with_disagreement(findings, bound, rules)
    return quoted(noted, bound, _Conversations(conversations), judge_named(options.judge), rules)


def _outcome(finding: Finding, store: ConversationSource) -> Finding:
    if finding.target is None:
        return finding
    return with_outcome(finding, (m for name in finding.conversations for m in store.conversation(name)[0].messages))


def _bound(finding: Finding) -> Iterator[tuple[str, str]]:
    return zip(finding.message_conversations, finding.message_ids, strict=True)


def _messages(places: Iterable[tuple[str, str]], store: ConversationSource) -> dict[tuple[str, str], Message]:
    """Messages by conversation and id; each conversation is read once."""
    wanted: dict[str, set[str]] = {}
    for conversation, message_id in places:
        wanted.setdefault(conversation, set()).add(message_id)
    return {
        (name, message.id): message
        for name, ids in wanted.items()
        for message in store.conversation(name)[0].messages
        if message.id in ids
    }


def quoted_leads(
    leads: Sequence[Lead], rows: Iterable[Row], store: ConversationSource, reviews: Sequence[Review] = ()
) -> tuple[Lead, ...]:
    """The leads, with what people decided of them, those that are shown with verbatim quotes of their messages."""
    texts = {place: message.text for place, message in _messages(reviewed_places(leads, reviews), store).items()}
    leads = with_decisions(leads, reviews, texts)
    places = {place for lead in shown_leads(leads) for place in places_of(lead)}
    quoted = with_quotes(leads, rows, _messages(sorted(places), store))
    return with_kinds(quoted, lambda name: store.conversation(name)[0])


def cited(
    findings: Iterable[Finding], leads: Sequence[Lead], reviews: Sequence[Review], run: AuditState, store: Store
) -> tuple[Message, ...]:
    """The messages that the report quotes or links, in full, in the order of their conversation and position."""
    places: set[tuple[str, str]] = set()
    for finding in findings:
        places.update(_bound(finding))
        passed_over = (*finding.gap_ids, *finding.unread_ids)
        places.update((name, message_id) for name in finding.conversations for message_id in passed_over)
        places.update(_outcome_places(finding))
    places.update(reviewed_places(leads, reviews))
    for lead in shown_leads(leads):
        places.update(places_of(lead))
        places.update((lead.conversation or "", name) for kind in lead.kinds for name in kind.cited_ids)
    for session in run.sessions:
        claims: tuple[Deduction | Moment | Confirmed, ...] = (
            *session.deductions, *session.moments, *session.confirmations
        )  # fmt: skip
        places.update((session.conversation, quote.message_id) for claim in claims for quote in claim.quotes)
        against = (claim for claim in session.claims if claim.state in TO_CHECK)
        places.update((session.conversation, quote.message_id) for claim in against for quote in claim.quotes)
        places.update((session.conversation, bypass.message_id) for bypass in session.bypasses)
    constrained = [(row.conversation, row.id) for row in run.rows if row.hard_constraints]
    places.update(constrained[:WORDS_ONLY])
    messages = _messages(places, store).values()
    return tuple(sorted(messages, key=lambda message: (message.conversation, message.position, message.id)))


def _outcome_places(finding: Finding) -> Iterator[tuple[str, str]]:
    outcome = finding.outcome
    if outcome is not None and outcome.conversation is not None:
        yield from (
            (outcome.conversation, each.message_id) for each in (outcome.request, outcome.reply) if each is not None
        )


def read_up_to(cut: BudgetCutoff) -> str:
    """Where the budget ended, in words."""
    return f"{RANKS[cut.rank]}, triage {cut.score:.3f} ({cut.why})"


def parameters(options: Options, judge: Judge, corpus: AuditCorpus, weighed: Significance) -> dict[str, Any]:
    resampling = {
        f"chance_{name}": value for name, value in msgspec.structs.asdict(options.effort or NO_RESAMPLING).items()
    }
    policy = options.policy or load_policy()
    return {
        "judge": judge.name,
        "judge_hash": judge.hash,
        "judge_gives": sorted(judge.gives),
        **({"judge_folder": judge.own_folder} if judge.own_folder else {}),
        "calibrated": judge.calibrated,
        "read_all": reads_all(judge, options),
        "read": options.read,
        "recall": options.recall,
        "budget_share": options.budget_share,
        "read_up_to": read_up_to(corpus.cut),
        "seed": options.seed,
        **(_paid_facts(options, judge) if asks_models(options.judge) else {}),
        "budget_usd": options.terms.budget,
        "max_calls": options.terms.max_calls,
        "max_failed": options.terms.max_failed,
        "only": list(options.only),
        "since": options.since.isoformat() if options.since else None,
        "source_format": options.source_format,
        **({"dates": options.dates} if options.dates else {}),
        **({"fields": options.fields} if options.fields else {}),
        **({"profile": options.profile} if options.profile else {}),
        **({} if options.thinking else {"thinking": False}),
        **({"add": True} if options.add else {}),
        "audit_sample_rate": corpus.rate,
        "chance_family": weighed.family,
        "chance_tested": weighed.tested,
        **resampling,
    } | {f"router_{name}": value for name, value in msgspec.structs.asdict(policy).items()}


def _paid_facts(options: Options, judge: Judge) -> dict[str, Any]:
    """The lists of prices that costs were counted with, and addresses that the environment named."""
    from undersong.judges.llm.model_spec import model_specs, redirections
    from undersong.judges.llm.pricing import dates_of, price_files, price_of

    environment = os.environ if options.terms.environment is None else options.terms.environment
    files = [{"list": each.name, "as_of": each.as_of.isoformat(), "sha256": each.sha256} for each in price_files()]
    for own in files[1:]:
        own["list"] = "own"  # a path of one machine says nothing on another
    own_prices = options.terms.price_in, options.terms.price_out
    names = sorted(spec.name for spec in model_specs(judge.name))  # a replay's judge is the one it recorded
    dates = {name: as_of.isoformat() for name, as_of in dates_of(price_of(name, *own_prices) for name in names).items()}
    redirected = redirections(options.judge, environment)
    facts = {"prices": files if dates else [], "price_dates": dates, "judge_addresses": redirected}
    return {name: value for name, value in facts.items() if value}


WORDS = 3  # told per trait
MOST = 200  # findings whose scores are told, the gravest first: those that a report tells in full
MessageKey = tuple[str, str]


def with_attribution(
    findings: Sequence[Finding],
    rows: Iterable[Row],
    messages: Mapping[MessageKey, Message],
    rules: Iterable[PatternRule],
    heads: Heads,
) -> tuple[Finding, ...]:
    """The findings, the gravest of them with what moved the scores that each stage of their rule asks for.

    ``rows`` and ``messages`` are those of the findings, others are passed over; ``heads`` gave the traits. A row of
    ranks has signals alone: its trait scores counted for nothing.
    """
    names = {rule.hash: inputs_by_stage(rule) for rule in rules}
    chosen = {each.finding_id for each in _most_severe(findings)}
    scored = {(row.conversation, row.id): row for row in rows if row.state == "scored"}
    contributions = cache(lambda place: TraitContributions(heads, messages[place].text))  # findings share messages

    def reasons(finding: Finding) -> Iterator[Why]:
        stages = finding.stages or tuple(("", message_id) for message_id in finding.message_ids)
        for (stage, _), place in zip(stages, _places(finding), strict=False):
            if place in scored and place in messages:
                wanted = stage_inputs(names.get(finding.rule_hash, {}), stage)
                yield from _traits(scored[place], wanted, contributions)
                yield from _signals(scored[place], messages[place], wanted)

    return tuple(
        msgspec.structs.replace(each, why=tuple(reasons(each))) if each.finding_id in chosen else each
        for each in findings
    )


def _traits(
    row: Row, wanted: Collection[str], contributions: Callable[[MessageKey], TraitContributions]
) -> Iterator[Why]:
    levels, place = row.absolute_scores or {}, (row.conversation, row.id)
    for trait in (trait for trait in TRAITS if trait in wanted and trait in levels):
        words = top_words(contributions(place), trait, WORDS)
        yield Why(conversation=place[0], message_id=place[1], name=trait, score=levels[trait], words=words)


def _signals(row: Row, message: Message, wanted: Collection[str]) -> Iterator[Why]:
    for name, (start, end) in sorted(row.spans.items()):
        if name in wanted and start >= 0 and message.text[start:end].strip():
            digest = text_hash(message.text)
            sentence = Quote(message_id=row.id, text=message.text[start:end], start=start, end=end, sha256=digest)
            score = row.signals.get(name, 0.0)
            yield Why(conversation=row.conversation, message_id=row.id, name=name, score=score, sentence=sentence)


def _places(finding: Finding) -> Iterator[MessageKey]:
    return zip(finding.message_conversations, finding.message_ids, strict=False)  # a forged report may differ


def _most_severe(findings: Sequence[Finding]) -> list[Finding]:
    ranked = sorted(findings, key=lambda finding: (-LEVELS.index(finding.level), -finding.strength, finding.finding_id))
    return ranked[:MOST]
