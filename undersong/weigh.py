"""Findings → the same findings with how sure they are: chance, q and stability; pure, the seed is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Finding, Record, Row, RuleOutcome
from undersong.options import ResamplingConfig
from undersong.patterns.chance import Chance, chance
from undersong.patterns.discovery import false_discovery, family_size
from undersong.patterns.partitions import Partition, Timeline, groups, timelines
from undersong.patterns.replicas import Noise, noise, survival
from undersong.patterns.rules import PatternRule
from undersong.patterns.search import filtered
from undersong.ranks import absolute_rows

SequenceKey = tuple[str, str | None, str | None]  # agent, target, conversation (None: across conversations)


class Significance(Record, frozen=True, kw_only=True):
    """The findings; ``family``: the (sequence, rule) pairs that q is corrected for, ``tested`` those with a match."""

    findings: tuple[Finding, ...]
    family: int
    tested: int = 0


class _MatchedSequence(NamedTuple):
    """A rule, a sequence in which it matched, and the places of its findings among all."""

    rule: PatternRule
    partition: Partition
    indices: tuple[int, ...]


def estimate_significance(
    findings: Sequence[Finding],
    outcomes: Iterable[RuleOutcome],
    rows: Iterable[Row],
    rules: Sequence[PatternRule],
    effort: ResamplingConfig,
    measured_noise: Mapping[str, float] | None = None,
    *,
    family: int | None = None,
) -> Significance:
    """Fill ``chance``, ``q`` and ``stability`` of findings that ``detect`` made from these rows and rules.

    All findings of one rule in one sequence have one chance, that of the strongest of them. Chance and stability depend
    on the seed, the rule and the agent's own rows, whatever else the run holds; q depends on the whole run.
    ``measured_noise`` is the judge's own, per trait; without it the shipped table stands for it. ``family`` is that of
    the whole run where ``rows`` are only those of agents with findings.
    """
    all_timelines, shipped = timelines(absolute_rows(rows)), noise()
    table = Noise(known=dict(measured_noise), others=shipped.others) if measured_noise else shipped
    ran = {outcome.pattern for outcome in outcomes if outcome.status != "not_applicable"}
    tried = [rule for rule in rules if rule.id in ran]
    family = family_size(tried, all_timelines) if family is None else family
    weighed = list(findings)
    measured: list[tuple[_MatchedSequence, Chance]] = []
    for sequence in _sequences(findings, tried, all_timelines):
        _stability(weighed, sequence, effort, table)
        if not effort.draws:
            continue
        permutation_result = chance(
            sequence.rule, sequence.partition, seed=effort.seed, draws=effort.draws, block=effort.block
        )
        if permutation_result is not None:
            measured.append((sequence, permutation_result))
    corrected = false_discovery([found.value for _, found in measured], family)
    for (sequence, permutation_result), q in zip(measured, corrected, strict=True):
        for index in sequence.indices:
            weighed[index] = msgspec.structs.replace(
                weighed[index], chance=permutation_result.value, q=q, shuffles=tuple(permutation_result)
            )
    return Significance(findings=tuple(weighed), family=family, tested=len(measured))


def _stability(weighed: list[Finding], sequence: _MatchedSequence, effort: ResamplingConfig, table: Noise) -> None:
    if not effort.replicas:
        return
    ids = [weighed[index].message_ids for index in sequence.indices]
    survived = survival(sequence.rule, sequence.partition, ids, seed=effort.seed, replicas=effort.replicas, table=table)
    for index, share in zip(sequence.indices, survived.shares, strict=True):
        weighed[index] = msgspec.structs.replace(weighed[index], stability=share, replicas=survived.replicas)


def _sequences(
    findings: Sequence[Finding], rules: Iterable[PatternRule], all_timelines: Iterable[Timeline]
) -> Iterator[_MatchedSequence]:
    """The sequences with findings, rule by rule and in the order of the timelines."""
    untimed = {timeline.conversation for timeline in all_timelines if timeline.conversation is not None}
    for rule in rules:
        places: dict[SequenceKey, list[int]] = {}
        for index, finding in enumerate(findings):
            if finding.rule_hash == rule.hash:
                places.setdefault(_sequence_key_of_finding(finding, rule, untimed), []).append(index)
        agents = {agent for agent, _, _ in places}
        for timeline in all_timelines:
            if timeline.agent not in agents:
                continue
            for partition in _partitions(rule, timeline, places):
                yield _MatchedSequence(rule, partition, tuple(places[_sequence_key(partition)]))


def _partitions(rule: PatternRule, timeline: Timeline, wanted: Iterable[SequenceKey]) -> Iterator[Partition]:
    """The partitions of a timeline that are wanted; no other is put together."""
    for group in groups(filtered(rule, timeline), rule.file.partition_by):
        for target in group.targets:
            if (timeline.agent, target, group.conversation or timeline.conversation) in wanted:
                yield group.partition(target)


def _sequence_key(partition: Partition) -> SequenceKey:
    timeline = partition.timeline
    return timeline.agent, partition.target, partition.conversation or timeline.conversation


def _sequence_key_of_finding(finding: Finding, rule: PatternRule, untimed: Iterable[str | None]) -> SequenceKey:
    """The sequence of a finding: untimed conversations stand alone, and a rule may ask for one each."""
    conversation = finding.conversations[0]
    alone = conversation in untimed or "conversation" in rule.file.partition_by
    return finding.agent, finding.target, conversation if alone else None
