"""Leads: the agents of a run in the order in which a person may look at them, by what is counted and no accusation."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from statistics import fmean

import msgspec

from undersong.models import Finding, Lead, LeadEvidence, Row, SignalBand, lead_order, ranked_leads
from undersong.models.lead import stretches
from undersong.patterns.detect import MessageKey
from undersong.patterns.lead_reasons import level_reason, own_reason, pair_reason, side_of
from undersong.patterns.lead_sums import MeasuredMessage, SourceSums, joined_sums, measured_messages
from undersong.patterns.lead_talk import Talk, TalkPart
from undersong.patterns.lead_weights import lead_weights

STRONGEST = 3  # messages that a lead names
HIGHEST = 5  # levels of wording of a speaker that are compared beside the mean of all
OF_SIDE = 6  # of one of two, whose name stands in it
STRETCHES = 3  # early, in between, late: as many of its messages are from each
DIGITS = 4  # of evidence and scores


def leads_of(
    rows: Iterable[Row],
    findings: Iterable[Finding],
    bands: Mapping[str, SignalBand] | None = None,
    *,
    by_part: bool = True,
) -> tuple[Lead, ...]:
    """Every agent with enough messages, the highest score first; tools and the system are none.

    The lead of an agent is the stronger of all its talk and (``by_part``) of the part of it that is strongest: what it
    writes to one other, or to nobody by name in one conversation. ``bands`` are the null bands of the run's signals.
    Quotes are left to ``with_quotes``. The order of ``rows`` does not matter.
    """
    talk = Talk(measured_messages(rows, bands or {}))
    confidences: dict[str, float] = {}
    for finding in findings:
        if finding.is_lead:
            sure = finding.confidence or 0.0
            confidences[finding.agent] = max(sure, confidences.get(finding.agent, sure))
    people = {name: own for name in talk.agents if (own := talk.whole(name)).sums.messages >= lead_weights().least}
    run = SourceSums()
    for own in people.values():
        run.add_means(own.sums)
    beside = _Run(talk, run, bands or {}, _pairs(talk))
    leads = {name: _lead(name, own, beside, confidences.get(name)) for name, own in people.items()}
    if by_part:
        leads = {name: _stronger(lead, beside) for name, lead in leads.items()}
        leads |= {name: _without_answers(leads[name], whose, beside) for name, whose in _harmed(leads).items()}
    return ranked_leads(_beside_the_cut(lead) for lead in leads.values())


def _beside_the_cut(lead: Lead) -> Lead:
    """The lead, which says on which side of the cut it is: of those below it nothing is said but figures."""
    weights = lead_weights()
    is_above = lead.score > weights.cut
    return msgspec.structs.replace(lead, above_cut=is_above, reason=lead.reason if is_above else weights.below)


def _harmed(leads: Mapping[str, Lead]) -> dict[str, set[str]]:
    """Agents above the cut → those who are above it for what they write to these, unless these answer with worse."""
    cut, harmed = lead_weights().cut, dict[str, set[str]]()
    for lead in leads.values():
        other = leads.get(lead.target or "")
        if other is None or min(lead.score, other.score) <= cut:
            continue
        if other.target != lead.agent or (other.score, other.agent) < (lead.score, lead.agent):
            harmed.setdefault(other.agent, set()).add(lead.agent)
    return harmed


def _without_answers(lead: Lead, to: Collection[str], run: _Run) -> Lead:
    """The lead of an agent without what it writes to some: answers to harm are not held against who gives them."""
    own = run.talk.whole(lead.agent, without=to)
    if own.sums.messages < lead_weights().least:
        return msgspec.structs.replace(lead, score=min(lead.score, lead_weights().cut))
    return _stronger(_lead(lead.agent, own, run, None), run, without=to)


def shown_leads(leads: Sequence[Lead]) -> tuple[Lead, ...]:
    """Those that a person is shown: above the measured cut, each conversation of two once, as many as one looks at.

    Who is named for exact words is not named for what was counted, too, nor is the conversation in which it is said.
    Of the places of those for exact words ``counted`` are left to what was counted, where there is so much.
    """
    weights = lead_weights()
    above = sorted((lead for lead in leads if lead.score > weights.cut), key=lambda lead: (-lead.score, lead.agent))
    exact = [lead for lead in above if lead.kind == "message"]
    named = {lead.agent for lead in exact} | {lead.conversation for lead in exact}
    first: dict[tuple[str, str | None], Lead] = {}
    for lead in above:
        between_two = lead.kind == "conversation"
        if lead.kind != "message" and (lead.conversation if between_two else lead.agent) not in named:
            first.setdefault(("", lead.conversation) if between_two else (lead.agent, None), lead)
    shown: list[Lead] = []
    for decided in (False, True):
        words, counts = ([each for each in group if bool(each.decided) is decided] for group in (exact, first.values()))
        left = weights.shown - len(shown)
        shown += words[: max(0, left - min(len(counts), weights.counted))]
        shown += counts[: weights.shown - len(shown)]
    return tuple(sorted(shown, key=lead_order))


def places_of(lead: Lead) -> list[MessageKey]:
    """Conversation and id of the messages that a lead names."""
    return list(zip(lead.message_conversations, lead.message_ids, strict=True))


class _Run(msgspec.Struct, frozen=True, gc=False):
    """What an agent is held against: all talk, the means of all agents, the bands of the signals.

    ``pairs`` has the messages of each conversation of two who speak nowhere else.
    """

    talk: Talk
    agents: SourceSums
    bands: Mapping[str, SignalBand]
    pairs: Mapping[str, Sequence[MeasuredMessage]]


def _pairs(talk: Talk) -> dict[str, list[MeasuredMessage]]:
    """The conversations between two of whom neither speaks elsewhere, each with its messages in order.

    Of the two sides of such a conversation, ranks and signals name the wrong one about as often as the right one on
    text that the offline judge never saw (right for 7 of the 12 clear pairs in train/labels/written, before it learnt
    from them), so without levels a lead names the conversation.
    """
    homes = {agent: {home for home, _ in cells} for agent, cells in talk.agents.items()}
    parties: dict[str, list[str]] = {}
    for agent, names in homes.items():
        for home in names:
            parties.setdefault(home, []).append(agent)
    return {
        name: sorted(
            (each for agent in sides for each in talk.whole(agent).messages), key=lambda each: each.row.position
        )
        for name, sides in parties.items()
        if len(sides) == 2 and all(len(homes[agent]) == 1 for agent in sides)
    }


def _lead(agent: str, own: TalkPart, run: _Run, sure: float | None) -> Lead:
    """The lead of one agent for all its talk, without its rank."""
    messages, sums, means = own.messages, own.sums, SourceSums()
    names = sorted({message.row.conversation for message in messages})
    others = joined_sums(run.talk.conversations[name] for name in names).without(sums)
    means.add_means(sums)
    pair = run.pairs.get(names[0]) if sums.mean("level") is None else None  # a level does tell who it is
    strongest_levels = _strongest_levels(*_sides(pair, agent)) if pair else (None, None)
    beside = (
        others if pair else run.agents.without(means)
    )  # what stands beside a conversation of two moves nobody in it
    evidence = tuple(_evidence(sums, others, beside, strongest_levels, sure))
    side = side_of(pair, agent) if pair else None
    strongest = _strongest(messages, OF_SIDE) if side else sorted(pair or messages, key=_strength)[:STRONGEST]
    reason = level_reason(messages, sums, run.agents.without(means)) or (
        pair_reason(pair, run.bands, side, sums) if pair else own_reason(own, others, run.bands)
    )
    score = _score(evidence, len(messages))
    return Lead(
        id=hashlib.sha256(f"lead\0agent\0{agent}".encode("utf-8", "surrogatepass")).hexdigest(),
        rank=0,
        kind="conversation" if pair else "agent",
        agent=agent,
        conversation=names[0] if len(names) == 1 else None,
        message_ids=tuple(message.row.id for message in strongest),
        message_conversations=tuple(message.row.conversation for message in strongest),
        reason=reason,
        evidence=evidence,
        score=score if reason else min(score, lead_weights().cut),  # where there is nothing to say nobody is shown
    )


def _stronger(lead: Lead, run: _Run, without: Collection[str] = ()) -> Lead:
    """The lead of an agent, or in its place that of the strongest part of its talk, if this is stronger; also where all
    its talk is above the cut, and that part by itself no less.

    Who has many parts has as many chances of a high one: what the highest of so many parts of ordinary talk is worth is
    taken from the score of each (``leads.yaml``). Of scores that are levels only those of all talk were measured.
    """
    if lead.kind == "conversation":  # between two of whom neither speaks elsewhere: it is one part
        return lead
    every = run.talk.parts(lead.agent, lead_weights().least_of_part)
    parts = [part for part in every if part.target not in without and part.sums.mean("level") is None]
    scored = [(_score(evidence := tuple(_part_evidence(part)), len(part.messages)), part, evidence) for part in parts]
    score, part, evidence = max(scored, key=itemgetter(0), default=(0.0, None, ()))
    alone, score = score, round(score - chances_of(len(parts)), DIGITS)
    if lead_weights().cut < lead.score <= alone:
        score = max(score, lead.score)
    elif score <= lead.score:
        return lead
    if part is None or not (reason := own_reason(part, part.others, run.bands)):
        return lead
    strongest = _strongest(part.messages, OF_SIDE)
    homes = {message.row.conversation for message in part.messages}
    return msgspec.structs.replace(
        lead,
        target=part.target,
        conversation=min(homes) if len(homes) == 1 else None,
        message_ids=tuple(message.row.id for message in strongest),
        message_conversations=tuple(message.row.conversation for message in strongest),
        reason=reason,
        evidence=evidence,
        score=score,
    )


def chances_of(parts: int) -> float:
    """What is taken from the score of each of so many parts: where ``exp(-score / for_chances)`` is how many parts of
    ordinary talk are as high, the highest of several is then above a cut as seldom as one by itself."""
    return lead_weights().for_chances * math.log1p(parts)


def _part_evidence(part: TalkPart) -> Iterator[LeadEvidence]:
    """The figures of a part, beside those of the other side alone: what stands beside them in a run moves nobody."""
    return _evidence(part.sums, part.others, part.others, _strongest_levels(part.messages, part.answers), None)


def _sides(pair: Sequence[MeasuredMessage], agent: str) -> tuple[list[MeasuredMessage], list[MeasuredMessage]]:
    own = [each for each in pair if each.row.agent == agent]
    return own, [each for each in pair if each.row.agent != agent]


def _strongest_levels(
    own: Iterable[MeasuredMessage], answers: Iterable[MeasuredMessage]
) -> tuple[float | None, float | None]:
    """The mean of the highest levels of wording of one of two, and of the other; None where there are too few."""
    sides = ([each.wording for each in side if each.wording is not None] for side in (own, answers))
    means = (fmean(sorted(levels)[-HIGHEST:]) if len(levels) >= lead_weights().least else None for levels in sides)
    return next(means), next(means)


def _evidence(
    own: SourceSums, others: SourceSums, run: SourceSums, highest: tuple[float | None, float | None], sure: float | None
) -> Iterator[LeadEvidence]:
    """The figures in the order of ``leads.yaml``; a source that nothing is known of is left out."""
    usual = SourceSums.of_wording(lead_weights().usual)
    beside = {
        "wording": ("wording", usual),
        "wording_in_conversation": ("wording", others),
        "signals_in_run": ("signal", run),
        "signals_in_conversation": ("signal", others),
        "traits_in_conversation": ("harm", others),
        "traits_in_run": ("harm", run),
        "levels_in_run": ("level", run),
        "over_band": ("over", others),
        "phrases": ("phrases", others),
        "triage": ("triage", others),
    }
    for name in lead_weights().sources:
        if name in beside:
            source, rest = beside[name]
            value, other = own.mean(source), rest.mean(source)
            if value is not None:
                compared = None if other is None else round(other, DIGITS)
                yield LeadEvidence(source=name, value=round(value, DIGITS), compared_with=compared)
        elif name == "strongest_in_conversation" and highest[0] is not None and highest[1] is not None:
            value, other = (round(level, DIGITS) for level in highest if level is not None)
            yield LeadEvidence(source=name, value=value, compared_with=other)
        elif name == "findings" and sure is not None:
            yield LeadEvidence(source=name, value=round(sure, DIGITS))


def _score(evidence: Iterable[LeadEvidence], messages: int) -> float:
    """The weighted sum of differences, less where there are few messages; what has nothing beside it adds nothing."""
    weights = lead_weights()
    by_source = {each.source: each for each in evidence}
    other_weights = dict[str, float]()
    if not by_source.keys() & {"signals_in_run", "traits_in_run"}:
        other_weights = weights.unread
    elif "levels_in_run" in by_source:
        other_weights = weights.measured
    total = 0.0
    for name, source in weights.sources.items():
        weight = other_weights.get(name, source.weight)
        figure = by_source.get(name)
        if figure is not None and name == "findings":
            total += weight * figure.value
        elif figure is not None and figure.compared_with is not None:
            total += weight * (figure.value - figure.compared_with)
    return round(total * messages / (messages + weights.prior), DIGITS)


def _strongest(messages: Sequence[MeasuredMessage], count: int) -> list[MeasuredMessage]:
    """As many of early messages as of later and of late ones, the strongest of each and of all first: how it grows."""
    ordered = sorted(messages, key=lambda message: (message.row.conversation, message.row.position))
    parts = stretches(ordered, STRETCHES)
    chosen = [each for part in parts for each in sorted(part, key=_strength)[: -(-count // STRETCHES)]]
    return sorted(chosen, key=_strength)[:count]


def _strength(message: MeasuredMessage) -> tuple[bool, float, float, str, int, str]:
    """What puts a message before others: the level of its negative traits where that is known, else signals, traits and
    wording by their weights, then triage; then its place. What owns up to a fault comes last."""
    row, sources = message.row, lead_weights().sources
    place = row.conversation, row.position, row.id
    if message.level is not None:
        return message.owns_up, -round(message.level, DIGITS), 0.0, *place
    signal = sources["signals_in_run"].weight * (message.signal or 0.0)
    harm = sources["traits_in_conversation"].weight * (message.harm or 0.0)
    wording = sources["wording"].weight * (message.wording or 0.0)
    return message.owns_up, -round(signal + harm + wording, DIGITS), -(row.triage or 0.0), *place
