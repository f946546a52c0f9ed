"""Confidence: of findings like this one in the reference sets, how many were true, at a stated prevalence."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

import msgspec

from undersong.datafiles.yaml_loader import RULES, read
from undersong.models import Finding, Row
from undersong.models.finding import OWN_RULE, UNMEASURED_READER
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.significance.finding_features import Message, finding_features, places

FILE = "confidence.yaml"
PLATFORM, OWN = 0.01, 0.2  # one bad agent in a hundred on a platform, one speaker in five in a person's own export
ASSUMED_PREVALENCE = "assumed_prevalence"  # among the parameters of a case: share → speakers of findings weighed by it
Prevalence = float | Mapping[str, float] | None  # of every speaker; of each agent; None: what is usual by its rows
BY_PROFILE: Mapping[str, float] = {"coding": PLATFORM, "agents": PLATFORM, "companion": OWN, "messenger": OWN}


class ReadingCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a reader of sequences said of the speakers of the reference conversations.

    ``planted`` and ``innocent`` count the speakers; ``right`` and ``wrong`` how often a shape that was named with
    certainty 1, 2, 3 and 4 was so. ``readers`` are the judges of which that was counted, as findings name them; of any
    other it is not known how often it is right.
    """

    planted: int
    innocent: int
    right: tuple[int, int, int, int]
    wrong: tuple[int, int, int, int]
    readers: tuple[str, ...] = ()

    def measured(self, finding: Finding) -> bool:
        """Whether a finding is the reading of judges that were all measured."""
        return finding.is_read and bool(finding.judges) and set(finding.judges) <= set(self.readers)

    def times(self, certainty: int) -> int:
        """How often a shape was named with this certainty, 1 to 4."""
        return self.right[certainty - 1] + self.wrong[certainty - 1]

    def ratio(self, certainty: int) -> float:
        """How much likelier this certainty is of a planted speaker than of an innocent one."""
        planted = (self.right[certainty - 1] + 0.5) / (self.planted + 1)
        return planted / ((self.wrong[certainty - 1] + 0.5) / (self.innocent + 1))

    @property
    def silence(self) -> float:
        """How much likelier it is of a planted speaker than of an innocent one that a reader names no shape."""
        missed, left = self.planted - sum(self.right), self.innocent - sum(self.wrong)
        return (missed + 0.5) / (self.planted + 1) / ((left + 0.5) / (self.innocent + 1))


class LogisticWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A logistic regression over the features of findings, and the share of bad agents where it was fitted.

    ``patterns`` are offsets by pattern; one that is not there was not measured.
    """

    share: float
    intercept: float
    weights: dict[str, float]
    patterns: dict[str, float]

    def odds(self, pattern: str, features: Mapping[str, float], prevalence: float) -> float | None:
        """The odds that a finding is true at this prevalence; None for a pattern that was not measured."""
        if pattern not in self.patterns:
            return None
        total = self.intercept + self.patterns[pattern]
        total += sum(weight * features[name] for name, weight in self.weights.items())
        return math.exp(min(50.0, max(-50.0, total))) * _odds(prevalence) / _odds(self.share)


class ReferenceFigures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``confidence.yaml``: readings of sequences, and rules by their kind (``rule_kind``)."""

    readings: ReadingCounts
    scores: LogisticWeights
    sums: LogisticWeights
    indicators: LogisticWeights


@cache
def reference_figures() -> ReferenceFigures:
    """The shipped figures; raises RuleError with file and line."""
    return read(RULES / FILE, ReferenceFigures)


def confidence(certainty: int, prevalence: float, counts: ReadingCounts | None = None) -> float | None:
    """The share of true ones among findings that a reader named with this certainty, 0 to 1.

    ``prevalence`` is the share of speakers that show a shape, above 0 and below 1. A certainty says as much more of a
    planted speaker than of an innocent one as both were named with it in the reference conversations (half a case is
    added to each count, Jeffreys' prior; no certainty says less than a lower one). None for a certainty that was never
    given there.
    """
    counts = counts or reference_figures().readings
    if not counts.times(certainty):
        return None
    ratio = max(counts.ratio(level) for level in range(1, certainty + 1) if counts.times(level))
    return _probability(ratio * _odds(prevalence))


def usual_prevalence(
    rows: Iterable[Row],
    profiles: Mapping[str, str] = MappingProxyType({}),
    shares: Mapping[str, float] = BY_PROFILE,
    *,
    named: bool = False,
) -> dict[str, float]:
    """Agent → the share of speakers that is assumed to show a shape, by the profile of most of its messages.

    ``profiles``: conversation → profile, ``shares``: profile → share. Unless a person ``named`` the profile, whoever
    speaks in the role of an agent is one of ``agents``; a conversation without a profile is of a ``companion``. Of as
    many messages of each, the higher share holds.
    """
    counts: dict[str, Counter[float]] = {}
    for row in rows:
        is_agent = row.role == "agent" and not (named and row.conversation in profiles)
        profile = "agents" if is_agent else profiles.get(row.conversation, "companion")
        counts.setdefault(row.agent, Counter())[shares.get(profile, OWN)] += 1
    return {agent: max((count, share) for share, count in own.items())[1] for agent, own in counts.items()}


def prevalence_of(prevalence: Prevalence, rows: Iterable[Row]) -> Callable[[str], float]:
    """What gives the prevalence of an agent: one for all, that of a mapping, or (None) what is usual by its rows."""
    if isinstance(prevalence, float | int):
        usual, other = dict[str, float](), float(prevalence)
    else:
        usual, other = dict(usual_prevalence(rows) if prevalence is None else prevalence), OWN
    return lambda agent: usual.get(agent, other)


def with_confidence(
    findings: Sequence[Finding],
    rows: Sequence[Row],
    rules: Iterable[PatternRule],
    prevalence: Prevalence = None,
    figures: ReferenceFigures | None = None,
) -> tuple[Finding, ...]:
    """The findings of rules, each with its confidence at this prevalence (None: what is usual for its agent).

    A mapping has the prevalence of each agent.
    ``findings`` and ``rows`` are all of these agents. None stays where the pattern was not found by such a rule in the
    reference sets, and by a rule of one's own, which was not measured and borrows no figures (``own_rules``).
    """
    if not findings:
        return ()
    figures, rules = figures or reference_figures(), tuple(rules)
    kinds, own = {rule.hash: rule_kind(rule) for rule in rules}, own_rules(rules)
    share_of = prevalence_of(prevalence, rows)
    odds: dict[int, float | None] = {}
    for judged in (True, False):
        places_of_kind = [place for place, each in enumerate(findings) if _judged(each, kinds) == judged]
        chosen = [findings[place] for place in places_of_kind]
        for place, finding, features in zip(places_of_kind, chosen, finding_features(chosen, rows), strict=True):
            weights: LogisticWeights = getattr(figures, kinds.get(finding.rule_hash, "scores"))
            unmeasured = finding.rule_hash in own
            odds[place] = None if unmeasured else weights.odds(finding.pattern, features, share_of(finding.agent))
    rivals = _rival_odds(findings, odds)
    weighed = []
    for place, finding in enumerate(findings):
        mine, others = odds[place], 0.0 if _judged(finding, kinds) else rivals[place]
        value = None if mine is None else round(mine / (1 + mine + others), 4)
        weighed.append(msgspec.structs.replace(as_of_own_rule(finding, own), confidence=value))
    return tuple(weighed)


@cache
def _measured_rules() -> dict[str, object]:
    return {rule.hash: rule.file.reading for rule in all_rules()}


def own_rules(rules: Iterable[PatternRule]) -> frozenset[str]:
    """The hashes of rules that do not ship, or ship with another prose for readers: nobody measured them."""
    measured = _measured_rules()
    return frozenset(
        rule.hash for rule in rules if rule.hash not in measured or measured[rule.hash] != rule.file.reading
    )


def as_of_own_rule(finding: Finding, own: Collection[str]) -> Finding:
    """The finding, with the note that says so where its rule is among ``own``."""
    if finding.rule_hash not in own or OWN_RULE in finding.notes:
        return finding
    return msgspec.structs.replace(finding, notes=(*finding.notes, OWN_RULE))


def reading_confidence(finding: Finding, prevalence: float) -> float | None:
    """The confidence of a finding that a reader named; None for a rule of one's own."""
    return None if OWN_RULE in finding.notes else confidence(round(finding.measures["certainty"]), prevalence)


def as_of_unmeasured_reader(finding: Finding, counts: ReadingCounts | None = None) -> Finding:
    """A reading's finding, with the note that says so where its confidence is that of other readers."""
    counts = counts or reference_figures().readings
    if finding.confidence is None or counts.measured(finding) or UNMEASURED_READER in finding.notes:
        return finding
    return msgspec.structs.replace(finding, notes=(*finding.notes, UNMEASURED_READER))


def rule_kind(rule: PatternRule) -> str:
    """What a rule goes by: ``indicators``, ``sums`` of scores (a further way to find a pattern), or ``scores``."""
    if "indicators" in rule.needs:
        return "indicators"
    return "scores" if rule.file.variant_of is None else "sums"


def _judged(finding: Finding, kinds: Mapping[str, str]) -> bool:
    return kinds.get(finding.rule_hash) == "indicators"


def _rival_odds(findings: Sequence[Finding], odds: Mapping[int, float | None]) -> list[float]:
    """Of each finding the odds of the other patterns over some of its messages, the strongest of each: one thing or
    another happened there, hardly two at a time."""
    bounds = [(finding.agent, frozenset(places(finding))) for finding in findings]
    by_message: dict[tuple[str, Message], dict[str, float]] = {}
    for place, (finding, (agent, messages)) in enumerate(zip(findings, bounds, strict=True)):
        for message in messages:
            strongest = by_message.setdefault((agent, message), {})
            strongest[finding.pattern] = max(strongest.get(finding.pattern, 0.0), odds[place] or 0.0)
    there = {bound: _strongest(by_message, *bound) for bound in set(bounds)}  # many rules find the same messages
    totals = []
    for finding, bound in zip(findings, bounds, strict=True):
        patterns, values = there[bound]
        own = bisect_left(patterns, finding.pattern)
        totals.append(sum(values[:own] + values[own + 1 :]))
    return totals


def _strongest(
    by_message: Mapping[tuple[str, Message], Mapping[str, float]], agent: str, messages: Iterable[Message]
) -> tuple[list[str], list[float]]:
    """The patterns over some messages of an agent, sorted, and the highest odds of each."""
    strongest: dict[str, float] = {}
    for message in messages:
        for pattern, value in by_message[agent, message].items():
            strongest[pattern] = max(strongest.get(pattern, 0.0), value)
    patterns = sorted(strongest)
    return patterns, [strongest[pattern] for pattern in patterns]


def doubted(value: float | None, counts: ReadingCounts | None = None) -> float | None:
    """A confidence of rules after a reader of the whole sequence named no such shape."""
    if value is None:
        return None
    counts = counts or reference_figures().readings
    return round(_probability(_odds(min(value, 0.9999)) * counts.silence), 4)


def _odds(probability: float) -> float:
    return probability / (1 - probability)


def _probability(odds: float) -> float:
    return odds / (1 + odds)
