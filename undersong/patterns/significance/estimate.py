"""Permutation tests and their correction: how often the same rows in another order match at least as strongly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.models import Finding, Record, Row, RuleOutcome
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.reference.partitions import Partition, Timeline, groups, timelines
from undersong.patterns.reference.search import Match, filtered, search_partition
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.necessary_conditions import family_size
from undersong.patterns.significance.noise_resampling import Noise, noise, survival
from undersong.patterns.significance.permutations import (
    GAVE_UP,
    NOTHING,
    Permutations,
    SequencePositions,
    draw_permutations,
    key_of,
    permuted,
    scope,
    strongest_permuted,
)
from undersong.patterns.vectorized.exact_sum import F, NotVectorizable
from undersong.rows.percentile_ranks import absolute_rows

ENOUGH = 10  # draws as strong as what was found; then it is known well enough that chance is not small
MOST = 100_000  # draws that may be asked for
ALL_DRAWS = 500  # rows of a sequence up to which it has every draw; a longer one has fewer in proportion
FEWEST = 19  # draws of the longest sequences: the least with which chance can be .05
_FIRST = 64  # draws that are searched together at first: most sequences stop soon
_NEXT = 40_000  # rows of the draws that are searched after these, at least: enough for machine code
_CELLS = 200_000  # rows searched together, at most


class Chance(NamedTuple):
    """In how many of the drawn orders a match was at least as strong."""

    as_strong: int
    draws: int

    @property
    def value(self) -> float:
        """(1 + as strong) / (1 + draws): the order that was found counts as one of them."""
        return (1 + self.as_strong) / (1 + self.draws)


def strength_of(match: Match) -> float:
    """The strength that a finding carries: 0 to 1, and 0 where it could not be computed."""
    value = match.measures.get("strength")
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.0


def chance(rule: PatternRule, partition: Partition, *, seed: int, draws: int, block: int = 1) -> Chance | None:
    """The permutation test of a rule on a sequence in which it matched; its statistic is the highest strength there.

    None where it did not match, or where the search of the sequence itself gave up. A draw whose search gives up counts
    as at least as strong.
    """
    table = PermutationStrengths(rule, partition)
    rows = len(partition.rows)
    observed = float(table.of(np.arange(rows, dtype=np.intp)[None, :])[0])
    if observed in (NOTHING, GAVE_UP):
        return None
    key = key_of(seed, "chance", rule, partition)
    return sequential(_exceeds(table, observed, key, draws_for(rows, draws), block))


class PermutationStrengths:
    """The strongest match of each of many orders: all at once or, where arrays do not do, one search after another."""

    def __init__(self, rule: PatternRule, partition: Partition) -> None:
        self.rule, self.scoped = rule, scope(rule, partition)
        self.at_once: SequencePositions | None = SequencePositions(rule, partition)

    def of(self, permutations: Permutations) -> F:
        """Per order the highest strength: NOTHING where nothing matches, GAVE_UP where the search did."""
        if self.at_once is not None:
            try:
                return strongest_permuted(self.at_once, permutations)
            except (NotVectorizable, FloatingPointError):
                self.at_once = None
        return np.array([self._searched(order) for order in permutations.tolist()], dtype=np.float64)

    def _searched(self, order: list[int]) -> float:
        result = search_partition(self.rule, permuted(self.scoped, order))
        return GAVE_UP if result.gave_up else max(map(strength_of, result.matches), default=NOTHING)


def sequential(exceeds: Iterable[bool]) -> Chance:
    """Count draw by draw and stop at the tenth that is as strong.

    Stopping on the count of the strong ones alone keeps the test valid: with h strong ones in the first L draws, h / L
    is the p-value of Besag and Clifford (1991), and (1 + h) / (1 + L) is never smaller.
    """
    strong = drawn = 0
    for drawn, exceeded in enumerate(exceeds, 1):  # noqa: B007 - the last number is the count
        strong += exceeded
        if strong == ENOUGH:
            break
    return Chance(strong, drawn)


def draws_for(rows: int, draws: int) -> int:
    """How many draws a sequence of so many rows gets: known before the first, so that it does not bias the test."""
    fewer = draws * ALL_DRAWS // max(rows, ALL_DRAWS)
    return min(MOST, draws, max(FEWEST, fewer))


def _exceeds(table: PermutationStrengths, observed: float, key: bytes, most: int, block: int) -> Iterator[bool]:
    """Draw after draw, whether its strongest match is at least as strong as what was observed."""
    rows = len(table.scoped.rows)
    first, count = 0, _FIRST
    while first < most:
        count = min(count, max(1, _CELLS // rows), most - first)
        yield from (table.of(draw_permutations(key, first, count, rows, block)) >= observed).tolist()
        first += count
        count = max(4 * count, _NEXT // rows)


def false_discovery(values: Sequence[float], family: int) -> list[float]:
    """The q of each p-value among ``family`` tests; those that are not given count as 1.

    q is the smallest share of false discoveries to expect if this test and all with a smaller p-value are believed:
    the least p * family / rank over this rank and those above it (Benjamini and Hochberg 1995). Raises ValueError where
    more values than tests are given.
    """
    if len(values) > family:
        raise ValueError(f"{len(values)} p-values for {family} tests")
    order = sorted(range(len(values)), key=lambda index: values[index], reverse=True)
    q_values = [1.0] * len(values)
    least = 1.0
    for rank, index in zip(range(len(values), 0, -1), order, strict=True):
        least = min(least, values[index] * family / rank)
        q_values[index] = least
    return q_values


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
    """The sequence of a finding: an untimed conversation is its own sequence, and a rule may ask for one each."""
    conversation = finding.conversations[0]
    alone = conversation in untimed or "conversation" in rule.file.partition_by
    target = finding.target if "target" in rule.file.partition_by else None
    return finding.agent, target, conversation if alone else None
