"""Noise resampling: would a match be there had the judge read the messages once more, with its noise?"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.datafiles import yaml_loader
from undersong.models import DIMENSIONS, TRAITS, Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Field, Node
from undersong.patterns.reference.partitions import Entry, Partition
from undersong.patterns.reference.search import search_partition
from undersong.patterns.significance.permutations import (
    CombinedRows,
    SequencePositions,
    key_of,
    looks_elsewhere,
    scope,
)
from undersong.patterns.vectorized.dimensions import dimension_of
from undersong.patterns.vectorized.exact_sum import F, NotVectorizable
from undersong.patterns.vectorized.row_source import RowSource

FILE = "noise.yaml"
ALIKE = 0.5  # least Jaccard index of two sets of message ids that count as the same finding
_DICE = 12  # the sum of so many uniform numbers has a standard deviation of 1, and is the same on every machine
_CHUNK = 4096  # rows whose noise is made together
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


def noise_hashes() -> dict[str, str]:
    """File name → SHA-256 of the table, for the manifest."""
    return {FILE: yaml_loader.file_hash(yaml_loader.RULES / FILE)}


class Survival(NamedTuple):
    """Of each match asked for the share of replicas in which it survives."""

    shares: tuple[float, ...]
    replicas: int


def survival(
    rule: PatternRule, partition: Partition, matches: Sequence[Sequence[str]], *, seed: int, replicas: int, table: Noise
) -> Survival:
    """In what share of noisy replicas each match (its message ids) is found again.

    A replica adds to every trait of every row of the agent's timeline a normal difference of the size that two readings
    of a message have, and keeps it within 0 to 1. Everything else of a row stays, and so do the rows that ``where``
    chose. A match survives where the same rule finds in the same sequence a match whose message ids have a Jaccard
    index of at least .5 with it.
    """
    wanted = [frozenset(ids) for ids in matches]
    survived = [0] * len(wanted)
    scoped = scope(rule, partition)
    count = replicas_for(len(scoped.timeline.entries), replicas)
    key = key_of(seed, "stability", rule, partition)
    for replica in _replica_matches(rule, partition, scoped, [_noise(key, n, scoped, table) for n in range(count)]):
        holders = _holders(replica)
        for index, ids in enumerate(wanted):
            near = {other for name in ids for other in holders.get(name, ())}
            survived[index] += any(alike(ids, replica[other]) for other in near)
    return Survival(tuple(number / count for number in survived), count)


def _replica_matches(
    rule: PatternRule, whole: Partition, scoped: Partition, noises: Sequence[F]
) -> Iterator[list[frozenset[str]]]:
    """Of each replica the message ids of its matches: many replicas at once, or one after another where need be."""
    together = max(1, _CELLS // len(scoped.timeline.entries))
    readings: _NoiseSearch | None = _NoiseSearch(rule, whole)
    for first in range(0, len(noises), together):
        some = noises[first : first + together]
        try:
            results = None if readings is None else readings.matches(some)
        except (NotVectorizable, FloatingPointError):
            results = readings = None
        yield from results if results is not None else [_searched(rule, scoped, noise) for noise in some]


class _NoiseSearch:
    """The replicas of a sequence, many searched at once."""

    def __init__(self, rule: PatternRule, partition: Partition) -> None:
        self.places = SequencePositions(rule, partition)
        everything = np.arange(len(self.places.entries))
        self.noisy = everything if looks_elsewhere(rule) else self.places.own  # whose noise is made, in this order
        self.scores = [self.places.source.number(Field(trait)) for trait in TRAITS]

    def matches(self, noises: Sequence[F]) -> list[list[frozenset[str]]]:
        """Of each replica the message ids of its matches; raises NotVectorizable where arrays do not do."""
        places, count = self.places, len(noises)
        traits: dict[str, F] = {
            name: self._noisy_scores(t, [noise[:, t] for noise in noises]) for t, name in enumerate(TRAITS)
        }
        readings = NoisyRows(places.source, count, traits)
        match_arrays = places.find(readings, count)
        result: list[list[frozenset[str]]] = [[] for _ in noises]
        for k in places.matches(match_arrays).tolist():
            result[match_arrays.timelines[k]].append(places.named(match_arrays, k))
        return result

    def _noisy_scores(self, trait: int, differences: Sequence[F]) -> F:
        """A trait (its number) in all replicas, as ``_noisy`` has it."""
        values = np.tile(self.scores[trait], (len(differences), 1))
        values[:, self.noisy] = np.minimum(1.0, np.maximum(0.0, values[:, self.noisy] + np.stack(differences)))
        return values.ravel()


class NoisyRows(CombinedRows):
    """Some rows again and again, each time with other traits: ``traits[t]`` has those of all times, one by one."""

    def __init__(self, rows: RowSource, count: int, traits: Mapping[str, F]) -> None:
        again = np.tile(np.arange(rows.size), count)
        super().__init__(rows, again, again)
        self.traits = traits

    def number(self, node: Node) -> F:
        """A number of every row, NaN where it is unknown."""
        if isinstance(node, Field) and node.name in TRAITS:
            return self.traits[node.name]
        if isinstance(node, Field) and node.name in DIMENSIONS:
            return dimension_of({trait: self.traits[trait] for trait in DIMENSIONS[node.name]})
        return super().number(node)


def _searched(rule: PatternRule, scoped: Partition, noise: F) -> list[frozenset[str]]:
    entries = scoped.timeline.entries
    noisy = tuple(_noisy(entry, each) for entry, each in zip(entries, noise.tolist(), strict=True))
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


def _noise(key: bytes, replica: int, scoped: Partition, table: Noise) -> F:
    """For each row of the timeline the normal differences of its traits, made from the key and the number alone."""
    rows, key = len(scoped.timeline.entries), key + replica.to_bytes(8, "big")
    spreads = np.array([table.spread(trait) for trait in TRAITS])
    parts = [_normal(key, first, min(_CHUNK, rows - first)) * spreads for first in range(0, rows, _CHUNK)]
    return np.concatenate(parts)


def _normal(key: bytes, first: int, rows: int) -> F:
    shape = rows, len(TRAITS), _DICE
    numbers = hashlib.shake_256(key + first.to_bytes(8, "big")).digest(4 * math.prod(shape))
    dice = np.frombuffer(numbers, dtype=">u4").reshape(shape)
    return np.asarray(dice.sum(axis=2, dtype=np.uint64) / 2.0**32 - _DICE / 2)


def _noisy(entry: Entry, differences: Sequence[float]) -> Entry:
    scores = entry.row.traits
    if not entry.read or not scores:
        return entry
    traits = {
        trait: min(1.0, max(0.0, score + difference))
        for trait, difference in zip(TRAITS, differences, strict=True)
        if (score := scores.get(trait)) is not None
    }
    row: Row = msgspec.structs.replace(entry.row, traits=traits)
    return entry._replace(row=row)
