"""Permutation tests and their correction: how often the same rows in another order match at least as strongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.core.batches import batches, even_batches
from undersong.core.processes import Share, in_turn
from undersong.models import Finding, Record, Row, RuleOutcome
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.reference.partitions import Partition, Timeline, groups, timelines
from undersong.patterns.reference.search import filtered
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.necessary_conditions import family_size
from undersong.patterns.significance.noise_resampling import Noise, Survival, noise, survivals
from undersong.patterns.significance.permutations import (
    GAVE_UP,
    NOTHING,
    Permutations,
    SequenceBatch,
    Strengths,
    draw_permutations,
    key_of,
    strongest_permuted,
    strongest_searched,
    together_or_apart,
)
from undersong.patterns.vectorized import jit
from undersong.patterns.vectorized.exact_sum import F, I
from undersong.patterns.vectorized.row_source import SearchesByRule, TimelineSearch
from undersong.patterns.vectorized.vector_logic import B
from undersong.rows.corpus_scales import absolute_rows

ENOUGH = 10  # draws as strong as what was found; then it is known well enough that chance is not small
MOST = 100_000  # draws that may be asked for
ALL_DRAWS = 500  # rows of a sequence up to which it has every draw; a longer one has fewer in proportion
FEWEST = 19  # draws of the longest sequences: the least with which chance can be .05
_FIRST = 32  # draws of a sequence that are searched together, at least: most sequences stop soon
_LEAST = 2 * jit.ENOUGH  # rows that are searched together, at least, where there are so many: enough for machine code
_CELLS = 200_000  # and at most, or a little more
_SHARED = 4_000  # rows that go to another process together, or a little more: so few that all end at about one time


class Chance(NamedTuple):
    """In how many of the drawn orders a match was at least as strong."""

    as_strong: int
    draws: int

    @property
    def value(self) -> float:
        """(1 + as strong) / (1 + draws): the order that was found counts as one of them."""
        return (1 + self.as_strong) / (1 + self.draws)


NO_DRAWS = Chance(0, 0)
NO_REPLICAS = Survival((), 0)


def chance(rule: PatternRule, partition: Partition, *, seed: int, draws: int, block: int = 1) -> Chance | None:
    """The permutation test of one sequence: see ``chances``."""
    return chances(rule, [partition], ResamplingConfig(seed=seed, draws=draws, block=block))[0]


def chances(rule: PatternRule, partitions: Sequence[Partition], effort: ResamplingConfig) -> list[Chance | None]:
    """The permutation test of a rule on each sequence; its statistic is the highest strength there.

    None where it did not match, or where the search of the sequence itself gave up. A draw whose search gives up counts
    as at least as strong. What comes out for a sequence does not depend on the others: they are only searched together.
    """

    def together(some: Sequence[Partition]) -> list[Chance | None]:
        batch = SequenceBatch(rule, some)
        return _tested(rule, some, batch.sizes, effort, partial(strongest_permuted, batch))

    def searched(partition: Partition) -> Chance | None:
        def strengths(permutations: Mapping[int, Permutations]) -> Strengths:
            return {0: strongest_searched(rule, partition, permutations[0])}

        return _tested(rule, [partition], np.array([len(partition.rows)]), effort, strengths)[0]

    return together_or_apart(partitions, together, searched)


def _tested(
    rule: PatternRule,
    partitions: Sequence[Partition],
    sizes: I,
    effort: ResamplingConfig,
    strengths: Callable[[Mapping[int, Permutations]], Strengths],
) -> list[Chance | None]:
    """The test of each sequence; a draw of one takes so many rows (``sizes``)."""
    unchanged = {n: np.arange(len(each.rows), dtype=np.intp)[None, :] for n, each in enumerate(partitions)}
    observed = strengths(unchanged)
    tests = [
        _SequentialTest(
            n, key_of(effort.seed, "chance", rule, each), len(each.rows), int(sizes[n]), effort, observed[n][0]
        )
        for n, each in enumerate(partitions)
    ]
    while pending := [test for test in tests if test.pending]:
        least = max(_FIRST, _LEAST // sum(test.size for test in pending))
        for some in even_batches(pending, _CELLS, lambda test: test.ahead(least) * test.size):  # noqa: B023 - used at once
            permutations = {test.number: test.orders(test.ahead(least)) for test in some}
            for number, values in strengths(permutations).items():
                tests[number].take(values)
    return [test.result if test.matched else None for test in tests]


class _SequentialTest:
    """How far the draws of one sequence have come; ``size`` rows are searched for each of them."""

    def __init__(
        self, number: int, key: bytes, rows: int, size: int, effort: ResamplingConfig, observed: float
    ) -> None:
        self.number, self.key, self.rows, self.size = number, key, rows, size
        self.most, self.block, self.observed = draws_for(rows, effort.draws), effort.block, observed
        self.matched = observed not in (NOTHING, GAVE_UP)
        self.result = NO_DRAWS

    @property
    def pending(self) -> bool:
        """Whether more draws can change the result."""
        return self.matched and self.result.as_strong < ENOUGH and self.result.draws < self.most

    def ahead(self, least: int) -> int:
        """How many draws to search next: about as many as it takes to the tenth strong one, and at least so many.

        However many are searched together, the tenth ends the test.
        """
        strong, drawn = self.result
        wanted = (ENOUGH - strong) * drawn // max(strong, 1)
        return min(max(wanted, least), max(1, _CELLS // self.size), self.most - drawn)

    def orders(self, count: int) -> Permutations:
        """The next draws."""
        return draw_permutations(self.key, self.result.draws, count, self.rows, self.block)

    def take(self, strengths: F) -> None:
        """Count them."""
        self.result = sequential(strengths >= self.observed, self.result)


def sequential(exceeds: Sequence[bool] | B, so_far: Chance = NO_DRAWS) -> Chance:
    """Count draw by draw and stop at the tenth that is as strong.

    Stopping on the count of the strong ones alone keeps the test valid: with h strong ones in the first L draws, h / L
    is the p-value of Besag and Clifford (1991), and (1 + h) / (1 + L) is never smaller.
    """
    strong = so_far.as_strong + np.cumsum(exceeds, dtype=np.int64)
    drawn = int(np.searchsorted(strong, ENOUGH)) + 1
    if drawn > len(strong):
        return Chance(int(strong[-1]) if len(strong) else so_far.as_strong, so_far.draws + len(strong))
    return Chance(ENOUGH, so_far.draws + drawn)


def draws_for(rows: int, draws: int) -> int:
    """How many draws a sequence of so many rows gets: known before the first, so that it does not bias the test."""
    fewer = draws * ALL_DRAWS // max(rows, ALL_DRAWS)
    return min(MOST, draws, max(FEWEST, fewer))


def false_discovery(values: Sequence[float], family: int) -> list[float]:
    """The q of each p-value among ``family`` tests; those that are not given count as 1.

    q is the smallest share of false discoveries to expect if this test and all with a smaller p-value are believed:
    the least p * family / rank over this rank and those above it (Benjamini and Hochberg 1995). Raises ValueError where
    more values than tests are given.
    """
    q_values = HypothesisFamily(family, values).q_values()
    return [q_values[value] for value in values]


class HypothesisFamily:
    """The tests of a run and the p-values of those that were made; families of parts of a run add up (``merge``)."""

    def __init__(self, size: int = 0, values: Iterable[float] = ()) -> None:
        self.size, self.values = size, Counter(values)

    def merge(self, other: HypothesisFamily) -> None:
        """Take the tests of another part of the run."""
        self.size += other.size
        self.values.update(other.values)

    def q_values(self) -> dict[float, float]:
        """Each p-value with its q, as ``false_discovery`` has it; raises ValueError for more values than tests."""
        rank = self.values.total()
        if rank > self.size:
            raise ValueError(f"{rank} p-values for {self.size} tests")
        least, q_values = 1.0, dict[float, float]()
        for value in sorted(self.values, reverse=True):
            q_values[value] = least = min(least, value * self.size / rank)
            rank -= self.values[value]
        return q_values

    def corrected(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings of these tests, with q where they have a chance: all of one sequence have one."""
        q_values = self.q_values()
        return tuple(
            each if each.chance is None else msgspec.structs.replace(each, q=q_values[each.chance]) for each in findings
        )


SequenceKey = tuple[str, str | None, str | None]  # agent, target, conversation (None: across conversations)


class Significance(Record, frozen=True, kw_only=True):
    """The findings; ``family``: the (sequence, rule) pairs that q is corrected for.

    ``chances`` are those of the sequences with a match.
    """

    findings: tuple[Finding, ...]
    family: int
    chances: tuple[float, ...] = ()

    @property
    def tested(self) -> int:
        """How many pairs had a match whose chance was estimated."""
        return len(self.chances)


class _MatchedSequence(NamedTuple):
    """A sequence in which a rule matched, and the places of its findings among all."""

    partition: Partition
    indices: tuple[int, ...]


class _Test(NamedTuple):
    """A rule, sequences in which it matched, and of each the message ids of its matches."""

    rule: PatternRule
    sequences: list[_MatchedSequence]
    ids: list[list[tuple[str, ...]]]


class _TestedSequence(NamedTuple):
    """The places of a sequence's findings among all, its chance, and of each finding the share of replicas."""

    indices: tuple[int, ...]
    chance: Chance | None
    shares: tuple[float, ...]
    replicas: int


def estimate_significance(
    findings: Sequence[Finding],
    outcomes: Iterable[RuleOutcome],
    rows: Iterable[Row] | SearchesByRule,
    rules: Sequence[PatternRule],
    effort: ResamplingConfig,
    measured_noise: Mapping[str, float] | None = None,
    *,
    family: int | None = None,
    tick: Callable[[], object] | None = None,
    share: Share = in_turn,
) -> Significance:
    """Fill ``chance``, ``q`` and ``stability`` of findings that ``detect`` made from these rows and rules.

    All findings of one rule in one sequence have one chance, that of the strongest of them. Chance and stability depend
    on the seed, the rule and the agent's own rows, whatever else the run holds; q depends on the whole run.
    ``measured_noise`` is the judge's own, per trait; without it the shipped table stands for it. ``family`` is that of
    the whole run where ``rows`` are only those of agents with findings. A search that has been made already
    (``RowSearch``) stands for its rows: rules that ask for what findings set are tested on rows that have it. ``tick``
    is called for each rule that ran. ``share`` may have other processes test sequences.
    """
    search = TimelineSearch(timelines(absolute_rows(rows))) if isinstance(rows, Iterable) else rows
    shipped = noise()
    table = Noise(known=dict(measured_noise), others=shipped.others) if measured_noise else shipped
    ran = {outcome.pattern for outcome in outcomes if outcome.status != "not_applicable"}
    tried = [rule for rule in rules if rule.id in ran]
    if family is None:
        family = sum(pairs_of(rule, search) for rule in tried)
    weighed = list(findings)
    measured: list[Chance] = []
    most = _CELLS if share is in_turn else _SHARED
    tests = _tests(findings, tried, search, most, tick)
    for sequence in chain.from_iterable(share(partial(_of_sequences, effort, table), tests)):
        for index, stability in zip(sequence.indices, sequence.shares, strict=False):
            weighed[index] = msgspec.structs.replace(weighed[index], stability=stability, replicas=sequence.replicas)
        if sequence.chance is None:
            continue
        measured.append(sequence.chance)
        facts = {"chance": sequence.chance.value, "shuffles": tuple(sequence.chance)}
        for index in sequence.indices:
            weighed[index] = msgspec.structs.replace(weighed[index], **facts)
    values = tuple(result.value for result in measured)
    return Significance(findings=HypothesisFamily(family, values).corrected(weighed), family=family, chances=values)


def pairs_of(rule: PatternRule, search: SearchesByRule) -> int:
    """In how many sequences a rule could match: its part of the family of a run, which parts of the rows add up to."""
    searched = search.of(rule)
    return family_size([rule], searched.timelines, searched.run)


def _tests(
    findings: Sequence[Finding],
    rules: Sequence[PatternRule],
    search: SearchesByRule,
    most: int,
    tick: Callable[[], object] | None,
) -> Iterator[_Test]:
    """What is to be tested, some sequences of a rule together."""
    of_rule: dict[str, list[int]] = {}
    for index, finding in enumerate(findings):
        of_rule.setdefault(finding.rule_hash, []).append(index)
    for rule in rules:
        if tick is not None:
            tick()
        own = {index: findings[index] for index in of_rule.get(rule.hash, ())}
        sequences = _sequences(own, rule, search.of(rule).timelines)
        for some in batches(sequences, most, lambda sequence: len(sequence.partition.timeline.entries)):
            ids = [[findings[index].message_ids for index in sequence.indices] for sequence in some]
            yield _Test(rule, some, ids)


def _of_sequences(effort: ResamplingConfig, table: Noise, test: _Test) -> list[_TestedSequence]:
    """Chance and stability; any process may work them out, since they depend on nothing else."""
    rule, partitions = test.rule, [sequence.partition for sequence in test.sequences]
    results = chances(rule, partitions, effort) if effort.draws else [None] * len(partitions)
    survived = [NO_REPLICAS] * len(partitions)
    if effort.replicas:
        survived = survivals(rule, partitions, test.ids, seed=effort.seed, replicas=effort.replicas, table=table)
    parts = zip(test.sequences, results, survived, strict=True)
    return [_TestedSequence(sequence.indices, result, *survival) for sequence, result, survival in parts]


def _sequences(
    findings: Mapping[int, Finding], rule: PatternRule, all_timelines: Iterable[Timeline]
) -> Iterator[_MatchedSequence]:
    """The sequences in which a rule has findings (by number), in the order of the timelines."""
    untimed = {timeline.conversation for timeline in all_timelines if timeline.conversation is not None}
    places: dict[SequenceKey, list[int]] = {}
    for index, finding in findings.items():
        places.setdefault(_sequence_key_of_finding(finding, rule, untimed), []).append(index)
    agents = {agent for agent, _, _ in places}
    for timeline in all_timelines:
        if timeline.agent in agents:
            for partition in _partitions(rule, timeline, places):
                yield _MatchedSequence(partition, tuple(places[_sequence_key(partition)]))


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
