"""Noise resampling: would a match be there had the judge read the messages once more, with its noise?"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.core.batches import even_batches
from undersong.datafiles import yaml_loader
from undersong.models import DIMENSIONS, TRAITS, Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Field, Node
from undersong.patterns.reference.partitions import Entry, Partition
from undersong.patterns.reference.search import search_partition
from undersong.patterns.significance.permutations import (
    CombinedRows,
    SequenceBatch,
    key_of,
    looks_elsewhere,
    scope,
    together_or_apart,
)
from undersong.patterns.vectorized.dimensions import dimension_of
from undersong.patterns.vectorized.exact_sum import F, I
from undersong.patterns.vectorized.row_source import RowSource
from undersong.patterns.vectorized.vector_logic import Vectors

FILE = "noise.yaml"
ALIKE = 0.5  # least Jaccard index of two sets of message ids that count as the same finding
_DICE = 12  # the sum of so many uniform numbers has a standard deviation of 1, and is the same on every machine
_STEP = 2.0**-20  # of a difference; with finer ones a score could come so near to 0 that sums of it are not exact
ALL_REPLICAS = 1_000  # rows of a timeline up to which it has every replica; a longer one has fewer in proportion
FEWEST = 10
_CELLS = 100_000  # rows of replicas that are made together


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``noise.yaml``: the mean absolute difference of two readings, for the traits that it is known of and the rest."""

    known: dict[str, float]
    others: float

    def spread(self, trait: str) -> float:
        """The standard deviation of a normal difference with that mean absolute value."""
        return self.known.get(trait, self.others) * math.sqrt(math.pi / 2)


@cache
def noise() -> Noise:
    """The shipped table."""
    return yaml_loader.read(yaml_loader.RULES / FILE, Noise)


def assumed() -> dict[str, float]:
    """The shipped table for each of the twelve traits."""
    return {trait: noise().known.get(trait, noise().others) for trait in TRAITS}


class Survival(NamedTuple):
    """Of each match asked for the share of replicas in which it survives."""

    shares: tuple[float, ...]
    replicas: int


def survivals(
    rule: PatternRule,
    partitions: Sequence[Partition],
    matches: Sequence[Sequence[Sequence[str]]],
    *,
    seed: int,
    replicas: int,
    table: Noise,
) -> list[Survival]:
    """In what share of noisy replicas of its sequence each match is found again; ``matches`` are their message ids.

    A replica adds to every trait of every row of the agent's timeline a normal difference of the size that two readings
    of a message have, and keeps it within 0 to 1. Everything else of a row stays, and so do the rows that ``where``
    chose. A match survives where the same rule finds in the same sequence a match whose message ids have a Jaccard
    index of at least .5 with it. What comes out for a sequence does not depend on the others.
    """

    def of(partition: Partition, ids: Sequence[Sequence[str]], number: int) -> _NoiseTest:
        return _NoiseTest(number, rule, partition, ids, key_of(seed, "stability", rule, partition), replicas, table)

    def together(items: Sequence[_Sequence]) -> list[Survival]:
        search = _NoiseSearch(rule, [partition for partition, _ in items])
        return _survived([of(*each, number) for number, each in enumerate(items)], search.matches)

    def searched(item: _Sequence) -> Survival:
        test = of(*item, 0)
        return _survived([test], lambda noises: {0: [_searched(rule, test.scoped, noise) for noise in noises[0]]})[0]

    return together_or_apart(list(zip(partitions, matches, strict=True)), together, searched)


_Sequence = tuple[Partition, Sequence[Sequence[str]]]
_ReplicaMatches = list[list[frozenset[str]]]  # of each replica the message ids of its matches


def _survived(
    tests: Sequence[_NoiseTest], search: Callable[[Mapping[int, F]], Mapping[int, _ReplicaMatches]]
) -> list[Survival]:
    pending = [test for test in tests if test.ahead]
    while pending:
        for some in even_batches(pending, _CELLS, lambda test: test.ahead * test.rows):
            for number, replica_matches in search({test.number: test.noises() for test in some}).items():
                tests[number].take(replica_matches)
        pending = [test for test in pending if test.ahead]
    return [test.result for test in tests]


class _NoiseTest:
    """How far the replicas of one sequence have come."""

    def __init__(
        self,
        number: int,
        rule: PatternRule,
        partition: Partition,
        matches: Sequence[Sequence[str]],
        key: bytes,
        replicas: int,
        table: Noise,
    ) -> None:
        self.number, self.key, self.wanted = number, key, [frozenset(ids) for ids in matches]
        self.scoped = scope(rule, partition)
        self.rows = len(self.scoped.timeline.entries)
        self.spreads = np.array([table.spread(trait) for trait in noisy_traits(rule)])
        self.most = replicas_for(self.rows, replicas)
        self.survived, self.drawn = [0] * len(matches), 0
        self._holders, self._survivors = _holders(self.wanted), dict[frozenset[str], tuple[int, ...]]()

    @property
    def ahead(self) -> int:
        """How many replicas to search next; 0 where that is enough."""
        return min(max(1, _CELLS // self.rows), self.most - self.drawn)

    @property
    def result(self) -> Survival:
        """The shares so far."""
        return Survival(tuple(number / self.drawn for number in self.survived), self.drawn)

    def noises(self) -> F:
        """The differences of the next replicas: replicas x traits x rows of the timeline."""
        return _noises(self.key, self.drawn, self.ahead, self.rows, self.spreads)

    def take(self, replica_matches: _ReplicaMatches) -> None:
        """Count where the matches survived."""
        self.drawn += len(replica_matches)
        for found_again in replica_matches:
            for index in set().union(*map(self._alike, found_again)):
                self.survived[index] += 1

    def _alike(self, ids: frozenset[str]) -> tuple[int, ...]:
        """Which of the matches survive in this one; replicas find the same ones again and again."""
        if ids not in self._survivors:
            near = {index for name in ids for index in self._holders.get(name, ())}
            self._survivors[ids] = tuple(index for index in near if alike(self.wanted[index], ids))
        return self._survivors[ids]


@lru_cache(maxsize=256)
def noisy_traits(rule: PatternRule) -> tuple[str, ...]:
    """The traits that a rule asks for, by themselves or within a dimension: the noise of others changes nothing."""
    of_dimensions = {trait for name in DIMENSIONS if name in rule.needs for trait in DIMENSIONS[name]}
    return tuple(trait for trait in TRAITS if trait in rule.needs or trait in of_dimensions)


class _NoiseSearch:
    """The replicas of some sequences, searched together."""

    def __init__(self, rule: PatternRule, partitions: Sequence[Partition]) -> None:
        self.traits, self.batch = noisy_traits(rule), SequenceBatch(rule, partitions)
        self.everything = looks_elsewhere(rule)  # else the rows of the sequence alone are noisy

    def matches(self, noises: Mapping[int, F]) -> dict[int, _ReplicaMatches]:
        """Of each replica of each sequence the message ids of its matches; raises NotVectorizable."""
        batch = self.batch
        counts = [len(each) for each in noises.values()]
        owners = np.repeat(np.array([*noises], dtype=np.int64), counts)
        places = batch.places(owners)
        replicas = NoisyRows(batch.source, places, self._scores(noises, places))
        match_arrays = batch.find(replicas, Vectors(replicas), owners, places)
        results: _ReplicaMatches = [[] for _ in owners]
        versions = match_arrays.arrays.timelines[match_arrays.inside].tolist()
        for version, ids in zip(versions, batch.named(match_arrays), strict=True):
            results[version].append(ids)
        ends = np.cumsum(counts).tolist()
        return {number: results[end - count : end] for number, end, count in zip(noises, ends, counts, strict=True)}

    def _scores(self, noises: Mapping[int, F], places: I) -> dict[str, F]:
        """The traits of all rows of all replicas, as ``_noisy`` has them."""
        batch, at = self.batch, [self._noisy_places(number) for number in noises]
        differences = np.zeros((len(self.traits), len(places)))
        first = 0
        for (number, noise), own in zip(noises.items(), at, strict=True):
            last = first + len(noise) * int(batch.sizes[number])
            for values, of_trait in zip(differences, noise.swapaxes(0, 1), strict=True):
                values[first:last].reshape(len(noise), -1)[:, own] = of_trait
            first = last
        scores = (batch.source.number(Field(trait))[places] for trait in self.traits)
        noisy = (np.minimum(1.0, np.maximum(0.0, own + more)) for own, more in zip(scores, differences, strict=True))
        return dict(zip(self.traits, noisy, strict=True))

    def _noisy_places(self, number: int) -> I:
        batch = self.batch
        whole = np.arange(batch.sizes[number])
        return whole if self.everything else np.asarray(batch.own[number] - batch.first[number])


class NoisyRows(CombinedRows):
    """Some rows (``places`` in a source) with other traits: ``traits`` has those that differ."""

    def __init__(self, rows: RowSource, places: I, traits: Mapping[str, F]) -> None:
        super().__init__(rows, places, places)
        self.traits = traits

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        if isinstance(node, Field) and node.name in self.traits:
            return self.traits[node.name]
        if isinstance(node, Field) and node.name in DIMENSIONS:
            return dimension_of({trait: self.traits[trait] for trait in DIMENSIONS[node.name]})
        return super().number(node)


def _searched(rule: PatternRule, scoped: Partition, noise: F) -> list[frozenset[str]]:
    entries, traits = scoped.timeline.entries, noisy_traits(rule)
    noisy = tuple(
        _noisy(entry, dict(zip(traits, each, strict=True)))
        for entry, each in zip(entries, noise.T.tolist(), strict=True)
    )
    rows = tuple(noisy[entry.place] for entry in scoped.rows)
    replica = scoped._replace(rows=rows, timeline=scoped.timeline._replace(entries=noisy))
    return [frozenset(entry.row.id for _, entry in match.named) for match in search_partition(rule, replica).matches]


def _holders(matches: Sequence[frozenset[str]]) -> dict[str, list[int]]:
    """Per message id the matches that hold it, so that only those that share a message are compared."""
    holders: dict[str, list[int]] = {}
    for index, ids in enumerate(matches):
        for name in ids:
            holders.setdefault(name, []).append(index)
    return holders


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two findings name mostly the same messages."""
    return len(one & other) >= ALIKE * len(one | other)


def replicas_for(rows: int, replicas: int) -> int:
    """How many replicas a timeline of so many rows gets."""
    return min(replicas, max(FEWEST, replicas * ALL_REPLICAS // max(rows, ALL_REPLICAS)))


def _noises(key: bytes, first: int, count: int, rows: int, spreads: F) -> F:
    """The normal differences of some traits of each row (replicas x traits x rows).

    Those of a replica are made from the key and its number alone.
    """
    size = 2 * len(spreads) * rows * _DICE
    keys = (hashlib.shake_256(key + replica.to_bytes(8, "big")) for replica in range(first, first + count))
    dice = np.frombuffer(b"".join(each.digest(size) for each in keys), dtype=">u2").astype(np.float64)
    sums = (dice.reshape(-1, _DICE) @ np.ones(_DICE)).reshape(count, len(spreads), rows)  # whole numbers: exact
    normal = (sums + _DICE / 2) / 2.0**16 - _DICE / 2
    return np.asarray(np.rint(normal * spreads[:, None] / _STEP) * _STEP)


def _noisy(entry: Entry, differences: Mapping[str, float]) -> Entry:
    scores = entry.row.traits
    if not entry.read or not scores:
        return entry
    traits = {
        trait: score if score is None else min(1.0, max(0.0, score + differences.get(trait, 0.0)))
        for trait, score in scores.items()
    }
    row: Row = msgspec.structs.replace(entry.row, traits=traits)
    return msgspec.structs.replace(entry, row=row)
