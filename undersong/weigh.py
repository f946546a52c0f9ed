"""Findings → the same findings with how sure they are: chance, q and stability; pure, the seed is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Finding, Noun, Row, RuleOutcome
from undersong.options import Effort
from undersong.patterns.chance import Chance, chance
from undersong.patterns.discovery import false_discovery, family_of
from undersong.patterns.partitions import Partition, Timeline, groups, timelines
from undersong.patterns.replicas import Noise, noise, survival
from undersong.patterns.rules import PatternRule
from undersong.patterns.search import filtered
from undersong.ranks import levelled

Place = tuple[str, str | None, str | None]  # agent, target, conversation (None: across conversations)


class Weighed(Noun, frozen=True, kw_only=True):
    """The findings; ``family``: the (sequence, rule) pairs that q is corrected for, ``tested`` those with a match."""

    findings: tuple[Finding, ...]
    family: int
    tested: int = 0


class _Sequence(NamedTuple):
    """A rule, a sequence in which it matched, and the places of its findings among all."""

    rule: PatternRule
    partition: Partition
    indices: tuple[int, ...]


def weigh(
    findings: Sequence[Finding],
    outcomes: Iterable[RuleOutcome],
    rows: Iterable[Row],
    rules: Sequence[PatternRule],
    effort: Effort,
    measured_noise: Mapping[str, float] | None = None,
    *,
    family: int | None = None,
) -> Weighed:
    """Fill ``chance``, ``q`` and ``stability`` of findings that ``detect`` made from these rows and rules.

    All findings of one rule in one sequence have one chance, that of the strongest of them. Chance and stability depend
    on the seed, the rule and the agent's own rows, whatever else the run holds; q depends on the whole run.
    ``measured_noise`` is the judge's own, per trait; without it the shipped table stands for it. ``family`` is that of
    the whole run where ``rows`` are only those of agents with findings.
    """
    known, shipped = timelines(levelled(rows)), noise()
    table = Noise(known=dict(measured_noise), others=shipped.others) if measured_noise else shipped
    ran = {outcome.pattern for outcome in outcomes if outcome.status != "not_applicable"}
    tried = [rule for rule in rules if rule.id in ran]
    family = family_of(tried, known) if family is None else family
    weighed = list(findings)
    measured: list[tuple[_Sequence, Chance]] = []
    for sequence in _sequences(findings, tried, known):
        _stability(weighed, sequence, effort, table)
        if not effort.draws:
            continue
        found = chance(sequence.rule, sequence.partition, seed=effort.seed, draws=effort.draws, block=effort.block)
        if found is not None:
            measured.append((sequence, found))
    corrected = false_discovery([found.value for _, found in measured], family)
    for (sequence, found), q in zip(measured, corrected, strict=True):
        for index in sequence.indices:
            weighed[index] = msgspec.structs.replace(weighed[index], chance=found.value, q=q, shuffles=tuple(found))
    return Weighed(findings=tuple(weighed), family=family, tested=len(measured))


def _stability(weighed: list[Finding], sequence: _Sequence, effort: Effort, table: Noise) -> None:
    if not effort.replicas:
        return
    ids = [weighed[index].message_ids for index in sequence.indices]
    found = survival(sequence.rule, sequence.partition, ids, seed=effort.seed, replicas=effort.replicas, table=table)
    for index, share in zip(sequence.indices, found.shares, strict=True):
        weighed[index] = msgspec.structs.replace(weighed[index], stability=share, replicas=found.replicas)


def _sequences(
    findings: Sequence[Finding], rules: Iterable[PatternRule], known: Iterable[Timeline]
) -> Iterator[_Sequence]:
    """The sequences with findings, rule by rule and in the order of the timelines."""
    untimed = {timeline.conversation for timeline in known if timeline.conversation is not None}
    for rule in rules:
        places: dict[Place, list[int]] = {}
        for index, finding in enumerate(findings):
            if finding.rule_hash == rule.hash:
                places.setdefault(_place_of(finding, rule, untimed), []).append(index)
        agents = {agent for agent, _, _ in places}
        for timeline in known:
            if timeline.agent not in agents:
                continue
            for partition in _partitions(rule, timeline, places):
                yield _Sequence(rule, partition, tuple(places[_place(partition)]))


def _partitions(rule: PatternRule, timeline: Timeline, wanted: Iterable[Place]) -> Iterator[Partition]:
    """The partitions of a timeline that are wanted; no other is put together."""
    for group in groups(filtered(rule, timeline), rule.file.partition_by):
        for target in group.targets:
            if (timeline.agent, target, group.conversation or timeline.conversation) in wanted:
                yield group.partition(target)


def _place(partition: Partition) -> Place:
    timeline = partition.timeline
    return timeline.agent, partition.target, partition.conversation or timeline.conversation


def _place_of(finding: Finding, rule: PatternRule, untimed: Iterable[str | None]) -> Place:
    """The sequence of a finding: untimed conversations stand alone, and a rule may ask for one each."""
    conversation = finding.conversations[0]
    alone = conversation in untimed or "conversation" in rule.file.partition_by
    return finding.agent, finding.target, conversation if alone else None
