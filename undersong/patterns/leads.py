"""Leads: the agents of a run in the order in which a person may look at them, by what is counted and no accusation."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import (
    NEGATIVE_TRAITS,
    Finding,
    Lead,
    LeadEvidence,
    Row,
    SignalBand,
    lead_order,
    ranked_leads,
)
from undersong.patterns.detect import MessageKey
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.nomination import SILENT_ROLES

STRONGEST = 3  # messages that a lead names
HIGHEST = 5  # levels of wording of a speaker that are compared beside the mean of all
OF_SIDE = 6  # of one of two, whose name stands in it
SHOWN_NAME = 60  # characters of a name in a reason
DIGITS = 4  # of evidence and scores
PROTECTS = ("pushback", "de_escalation", "points_to_help")  # signals of an assistant that does what it should
OWNS_UP, CLEARLY = "fault_admission", 0.5  # a signal, and the level from which on a message is quoted after all others


def leads_of(
    rows: Iterable[Row], findings: Iterable[Finding], bands: Mapping[str, SignalBand] | None = None
) -> tuple[Lead, ...]:
    """Every agent with enough messages, the highest score first; tools and the system are none.

    ``bands`` are the null bands of the run's signals. Quotes are left to ``with_quotes``. The order of
    ``rows`` does not matter.
    """
    bands = bands or {}
    agents: dict[str, list[_Measured]] = {}
    conversations: dict[str, _Sums] = {}
    for message in _measured(rows, bands):
        agents.setdefault(message.row.agent, []).append(message)
        conversations.setdefault(message.row.conversation, _Sums()).add(message)
    people = {name: own for name, own in agents.items() if len(own) >= lead_weights().least}
    pairs = _pairs(agents)
    run = _Sums()
    for own in people.values():
        run.add_means(_Sums().add_all(own))
    confidences: dict[str, float] = {}
    for finding in findings:
        if finding.is_lead:
            sure = finding.confidence or 0.0
            confidences[finding.agent] = max(sure, confidences.get(finding.agent, sure))
    beside = _Run(conversations, run, bands, pairs)
    leads = [_lead(name, own, beside, confidences.get(name)) for name, own in people.items()]
    cut = lead_weights().cut
    return ranked_leads(msgspec.structs.replace(lead, above_cut=lead.score > cut) for lead in leads)


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


class _Measured(msgspec.Struct, frozen=True, gc=False):
    """One message: its mean signal, rank and level of its negative traits (None: not known), bands that it exceeds.

    ``owns_up``: it reads as owning up to a fault, and is no proof of anything worse."""

    row: Row
    signal: float | None
    harm: float | None
    level: float | None
    wording: float | None
    over: tuple[str, ...]
    owns_up: bool


def _measured(rows: Iterable[Row], bands: Mapping[str, SignalBand]) -> list[_Measured]:
    """The messages of agents; ranks of negative traits are among the messages with scores on the same scale."""
    names = lead_weights().signals
    spoken = sorted(
        (row for row in rows if row.role not in SILENT_ROLES), key=lambda row: (row.conversation, row.position, row.id)
    )
    harms = [_harm(row) for row in spoken]
    tables: dict[str, list[float]] = {}
    for row, harm in zip(spoken, harms, strict=True):
        if harm is not None:
            tables.setdefault(row.scale or "level", []).append(harm)
    for table in tables.values():
        table.sort()
    measured = []
    for row, harm in zip(spoken, harms, strict=True):
        own = [name for name in names if name in row.signals] if row.state == "scored" else []
        measured.append(
            _Measured(
                row,
                fmean(row.signals[name] for name in own) if own else None,
                None if harm is None else _rank(harm, tables[row.scale or "level"]),
                None if row.absolute_scores is None else harm,
                _wording(row),
                tuple(name for name in own if name in bands and row.signals[name] > bands[name].high),
                row.signals.get(OWNS_UP, 0.0) >= CLEARLY,
            )
        )
    return measured


def _wording(row: Row) -> float | None:
    """The level of manipulative wording; 0 of an assistant that objects, calms, or points to help."""
    level = row.signals.get(lead_weights().wording) if row.state == "scored" else None
    protects = row.role == "assistant" and any(row.signals.get(name, 0.0) >= CLEARLY for name in PROTECTS)
    return 0.0 if protects and level is not None else level


def _harm(row: Row) -> float | None:
    """The mean of the negative traits that apply to a message, a level or a rank."""
    traits = row.traits or {}
    scores = [score for trait in NEGATIVE_TRAITS if (score := traits.get(trait)) is not None]
    return sum(sorted(scores)) / len(scores) if scores else None  # sorted: the order of a set is not fixed


def _rank(value: float, table: Sequence[float]) -> float:
    """The share of lower values, equal ones counting half."""
    return (bisect_left(table, value) + bisect_right(table, value)) / 2 / len(table)


SOURCES = ("signal", "harm", "level", "wording", "over", "phrases", "triage")


class _Sums:
    """Sums and counts by source, of messages or of agents' means."""

    def __init__(self) -> None:
        self.messages = 0
        self._sums = dict.fromkeys(SOURCES, 0.0)
        self._counts = dict.fromkeys(SOURCES, 0)

    @classmethod
    def of_wording(cls, level: float) -> _Sums:
        """A mean of wording that was measured elsewhere."""
        sums = cls()
        sums._take("wording", level)
        return sums

    def add(self, message: _Measured) -> None:
        """Count one message."""
        row, scored = message.row, message.signal is not None
        self.messages += 1
        self._take("signal", message.signal)
        self._take("harm", message.harm)
        self._take("level", message.level)
        self._take("wording", message.wording)
        self._take("over", float(bool(message.over)) if scored else None)
        self._take("phrases", float(row.total > 0))
        self._take("triage", row.triage)

    def add_all(self, messages: Iterable[_Measured]) -> _Sums:
        """Count messages, and return these sums."""
        for message in messages:
            self.add(message)
        return self

    def add_means(self, agent: _Sums) -> None:
        """Count the means of an agent, each as one value."""
        for source in SOURCES:
            self._take(source, agent.mean(source))

    def _take(self, source: str, value: float | None) -> None:
        if value is not None:
            self._sums[source] += value
            self._counts[source] += 1

    def mean(self, source: str) -> float | None:
        """The mean, None of nothing."""
        return self._sums[source] / self._counts[source] if self._counts[source] else None

    def count(self, source: str) -> tuple[int, int]:
        """Of a source that is 0 or 1: how many are 1, of how many."""
        return round(self._sums[source]), self._counts[source]

    def join(self, other: _Sums, sign: int = 1) -> None:
        """Add other sums, or take them away."""
        self.messages += sign * other.messages
        for source in SOURCES:
            self._sums[source] += sign * other._sums[source]
            self._counts[source] += sign * other._counts[source]

    def without(self, own: _Sums) -> _Sums:
        """These sums without those that are among them."""
        rest = _joined((self,))
        rest.join(own, -1)
        return rest


class _Run(msgspec.Struct, frozen=True, gc=False):
    """What an agent is held against: each conversation, the means of all agents, the bands of the signals.

    ``pairs`` has the messages of each conversation of two who speak nowhere else.
    """

    conversations: Mapping[str, _Sums]
    agents: _Sums
    bands: Mapping[str, SignalBand]
    pairs: Mapping[str, Sequence[_Measured]]


def _pairs(agents: Mapping[str, Sequence[_Measured]]) -> dict[str, list[_Measured]]:
    """The conversations between two of whom neither speaks elsewhere, each with its messages in order.

    Of the two sides of such a conversation, ranks and signals name the wrong one about as often as the right one on
    text that the offline judge never saw (right for 7 of the 12 clear pairs in train/labels/written, before it learnt
    from them), so without levels a lead names the conversation.
    """
    homes: dict[str, set[str]] = {}
    parties: dict[str, set[str]] = {}
    for agent, messages in agents.items():
        for message in messages:
            homes.setdefault(agent, set()).add(message.row.conversation)
            parties.setdefault(message.row.conversation, set()).add(agent)
    return {
        name: sorted((each for agent in sides for each in agents[agent]), key=lambda each: each.row.position)
        for name, sides in parties.items()
        if len(sides) == 2 and all(len(homes[agent]) == 1 for agent in sides)
    }


def _lead(agent: str, messages: Sequence[_Measured], run: _Run, sure: float | None) -> Lead:
    """The lead of one agent, without its rank."""
    own, means = _Sums().add_all(messages), _Sums()
    names = sorted({message.row.conversation for message in messages})
    others = _joined(run.conversations[name] for name in names).without(own)
    means.add_means(own)
    pair = run.pairs.get(names[0]) if own.mean("level") is None else None  # a level does tell who it is
    strongest_levels = _strongest_levels(pair, agent) if pair else (None, None)
    beside = (
        others if pair else run.agents.without(means)
    )  # what stands beside a conversation of two moves nobody in it
    evidence = tuple(_evidence(own, others, beside, strongest_levels, sure))
    side = _side_of(pair, agent) if pair else None
    strongest = sorted(messages if side else pair or messages, key=_strength)[: OF_SIDE if side else STRONGEST]
    return Lead(
        id=hashlib.sha256(f"lead\0agent\0{agent}".encode("utf-8", "surrogatepass")).hexdigest(),
        rank=0,
        kind="conversation" if pair else "agent",
        agent=agent,
        conversation=names[0] if len(names) == 1 else None,
        message_ids=tuple(message.row.id for message in strongest),
        message_conversations=tuple(message.row.conversation for message in strongest),
        reason=_level_reason(messages, own, run.agents.without(means))
        or (_pair_reason(pair, run.bands, side, own) if pair else _reason(messages, own, others, run.bands)),
        evidence=evidence,
        score=_score(evidence, len(messages)),
    )


def _joined(several: Iterable[_Sums]) -> _Sums:
    total = _Sums()
    for part in several:
        total.join(part)
    return total


def _strongest_levels(pair: Sequence[_Measured], agent: str) -> tuple[float | None, float | None]:
    """The mean of the highest levels of wording of one of two, and of the other; None where there are too few."""
    own = [each.wording for each in pair if each.wording is not None and each.row.agent == agent]
    other = [each.wording for each in pair if each.wording is not None and each.row.agent != agent]
    means = (
        fmean(sorted(levels)[-HIGHEST:]) if len(levels) >= lead_weights().least else None for levels in (own, other)
    )
    return next(means), next(means)


def _evidence(
    own: _Sums, others: _Sums, run: _Sums, highest: tuple[float | None, float | None], sure: float | None
) -> Iterator[LeadEvidence]:
    """The figures in the order of ``leads.yaml``; a source that nothing is known of is left out."""
    usual = _Sums.of_wording(lead_weights().usual)
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


def _strength(message: _Measured) -> tuple[bool, float, float, str, int, str]:
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


def _reason(messages: Sequence[_Measured], own: _Sums, others: _Sums, bands: Mapping[str, SignalBand]) -> str:
    """What can be counted by hand, behind how the wording reads; an agent is it, people are they."""
    name = one_line(messages[0].row.agent.rpartition("/")[2], SHOWN_NAME)
    return " ".join(filter(None, (_wording_reason(own, name), _counts(messages, own, others, bands))))


def _counts(messages: Sequence[_Measured], own: _Sums, others: _Sums, bands: Mapping[str, SignalBand]) -> str:
    whose = "its" if messages[0].row.role == "agent" else "their"
    (over, _), (phrases, _) = own.count("over"), own.count("phrases")
    if over and _more(own, others, "over"):
        kinds, beside = _kinds(messages, bands), _beside(others, "over", whose)
        return f"{over} of {whose} {counted(len(messages), 'message')} {_signals(over)} {kinds}{beside}."
    harm, other = own.mean("harm"), others.mean("harm")
    if harm is not None and harm > (0.5 if other is None else other):
        beside = "" if other is None else f"; those of the others in the same conversations than {other:.0%}"
        ranked = f"{whose.title()} {len(messages)} messages rank higher in negative traits"
        return f"{ranked} than {harm:.0%} of all messages{beside}."
    if phrases and _more(own, others, "phrases"):
        verb = "hold" if phrases > 1 else "holds"
        beside = _beside(others, "phrases", whose)
        return f"{phrases} of {whose} {counted(len(messages), 'message')} {verb} phrases of harmful kinds{beside}."
    return f"Nothing that was counted stands out in {whose} {len(messages)} messages."


def _side_of(messages: Sequence[_Measured], agent: str) -> str | None:
    """This agent's name if its messages weigh more in wording (without levels of it: rank higher in negative traits)
    than those of the other side; else None, since counting cannot tell."""
    own, other = _Sums(), _Sums()
    for message in messages:
        (own if message.row.agent == agent else other).add(message)
    source = "harm" if own.mean("wording") is None or other.mean("wording") is None else "wording"
    levels = own.mean(source), other.mean(source)
    if levels[0] is None or levels[1] is None or levels[0] <= levels[1]:
        return None
    return one_line(agent.removeprefix(f"{messages[0].row.conversation}/"), SHOWN_NAME)


def _wording_reason(own: _Sums, name: str) -> str:
    """How much of ordinary talk reads less manipulative, in words; "" under half of it."""
    weights, level = lead_weights(), own.mean("wording")
    below = [share for share, limit in weights.levels.items() if level is not None and level > limit]
    return weights.reads.format(name=name, share=100 * max(below)) if below else ""


def _level_reason(messages: Sequence[_Measured], own: _Sums, run: _Sums) -> str:
    """Where scores are levels: the two negative traits that are highest, beside all others of the run; else ""."""
    level, other = own.mean("level"), run.mean("level")
    if level is None or other is None or level <= other:
        return ""
    scores = [message.row.absolute_scores or {} for message in messages]
    means = {
        trait: fmean(values)
        for trait in sorted(NEGATIVE_TRAITS)
        if (values := [one[trait] for one in scores if one.get(trait) is not None])
    }
    worst = sorted(means, key=lambda trait: (-means[trait], trait))[:2]
    names = " and ".join(f"{trait.replace('_', ' ')} ({means[trait]:.2f})" for trait in worst)
    beside = f"{level:.2f} on average in negative traits, the others of this run {other:.2f}"
    return f"{counted(len(messages), 'message')} score {beside}; most in {names}."


def _pair_reason(messages: Sequence[_Measured], bands: Mapping[str, SignalBand], side: str | None, own: _Sums) -> str:
    """The same of a conversation of two, which is named in place of either side, and the side that more speaks for."""
    if side and (reads := _wording_reason(own, side)):
        return reads
    counts, weights = _pair_counts(messages, bands), lead_weights()
    return f"{counts} {weights.side.format(name=side) if side else weights.which}"


def _pair_counts(messages: Sequence[_Measured], bands: Mapping[str, SignalBand]) -> str:
    both = _Sums().add_all(messages)
    (over, _), (phrases, _) = both.count("over"), both.count("phrases")
    size = counted(len(messages), "message")
    if over:
        return f"{over} of the {size} {_signals(over)} {_kinds(messages, bands)}."
    if phrases:
        return f"{phrases} of the {size} {'hold' if phrases > 1 else 'holds'} phrases of harmful kinds."
    harm = both.mean("harm")
    if harm is not None and harm > 0.5:
        return f"The {size} rank higher in negative traits than {harm:.0%} of all messages."
    return f"The {size} stand out by the sum of small signs."


def _signals(over: int) -> str:
    """What messages are counted by that are over the band of any signal, of which the most usual are named."""
    return f"{'show' if over > 1 else 'shows'} a signal of harm, most of all"


def _more(own: _Sums, others: _Sums, source: str) -> bool:
    return (own.mean(source) or 0.0) > (others.mean(source) or 0.0)


def _beside(others: _Sums, source: str, whose: str) -> str:
    count, of = others.count(source)
    if not of:
        return ""
    return f"; of the {of:,} by others in {whose} conversations, {count:,} {'does' if count == 1 else 'do'}"


def _kinds(messages: Sequence[_Measured], bands: Mapping[str, SignalBand]) -> str:
    """``pressure``, or the two kinds that are above their band in more messages than is usual in this run."""
    excess: dict[str, float] = {}
    for message in messages:
        for name in message.over:
            usual = bands[name].over / max(bands[name].messages, 1) * len(messages)
            excess[name] = excess.get(name, -usual) + 1
    names = sorted(sorted(excess, key=lambda name: (-excess[name], name))[:2])
    return " or ".join(lead_weights().signals[name] for name in names)
