"""The rows of one sequence dealt in another order: what was said moves, the place where it was said stays.

A place is a row's time, target, conversation, tier, ``observed`` and the unread messages around it. What was said are
traits, indicators, signals and everything that the scan found in the same text; they move together. The order of draw
``d`` depends on nothing but the key and ``d``: it sorts the places by SHAKE-256 of both, the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import FIELDS, MESSAGE_ATTRIBUTES, MESSAGE_FIELDS
from undersong.patterns.reference.partitions import Entry, Partition, Timeline
from undersong.patterns.reference.search import local_mask
from undersong.patterns.significance.resampled import CombinedRows, SequencePositions, looks_elsewhere
from undersong.patterns.vectorized.exact_sum import F, I
from undersong.patterns.vectorized.vector_logic import Vectors

Permutations = npt.NDArray[np.intp]  # draws × rows: which row's words stand at each place
_TABLE = 20_000  # masks that are worked out beforehand, one per row and kind of place
_CARDS = 1_000_000  # cards that all shuffles share; where there would be more, each batch makes those that it needs


def key_of(seed: int, purpose: str, rule: PatternRule, partition: Partition) -> bytes:
    """What all randomness about one rule on one sequence comes from."""
    parts = [seed, purpose, rule.hash, partition.key(rule.file.partition_by)]
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).digest()


def draw_permutations(key: bytes, first: int, count: int, rows: int, block: int = 1) -> Permutations:
    """The orders of draws ``first`` to ``first + count - 1``.

    With ``block`` above 1 runs of so many rows move as one and keep their inner order; the oldest rows that do not fill
    a block stay. Every order of the blocks is equally likely.
    """
    blocks = rows // block
    stay = rows - blocks * block
    if blocks == 0:
        return np.broadcast_to(np.arange(rows, dtype=np.intp), (count, rows))
    keys = (hashlib.shake_256(key + draw.to_bytes(8, "big")) for draw in range(first, first + count))
    numbers = b"".join(each.digest(8 * blocks) for each in keys)
    sorts = np.frombuffer(numbers, dtype=">u8").reshape(count, blocks).argsort(axis=1, kind="stable")
    moved = (sorts[:, :, None] * block + np.arange(block)).reshape(count, blocks * block) + stay
    fixed = np.broadcast_to(np.arange(stay), (count, stay))
    return np.concatenate([fixed, moved], axis=1).astype(np.intp)


class SequenceShuffler:
    """The read rows of one sequence, to be dealt again and again for one rule.

    A row's words at another place make a new row. Two places that the rule cannot tell apart give the same one, so each
    is made, and its conditions are tried, once.
    """

    def __init__(self, rule: PatternRule, partition: Partition) -> None:
        self.rule = rule
        self.partition = scope(rule, partition)
        self.rows = self.partition.rows
        looked = [FIELDS[name] for name in sorted(rule.needs & FIELDS.keys() - MESSAGE_FIELDS)]
        kinds: dict[object, int] = {}
        self.kinds = [
            kinds.setdefault((entry.row.target, *(field.read(entry.row) for field in looked)), len(kinds))
            for entry in self.rows
        ]
        self.samples = {kind: entry.row for kind, entry in zip(self.kinds, self.rows, strict=True)}
        self._combined: dict[tuple[int, int], tuple[Row, int]] = {}

    def combined(self, source: int, kind: int) -> tuple[Row, int]:
        """The words of row ``source`` at a kind of place, and the mask of the conditions that this alone decides."""
        result = self._combined.get((source, kind))
        if result is None:
            words = self.rows[source].row
            row = msgspec.structs.replace(
                self.samples[kind], **{name: getattr(words, name) for name in MESSAGE_ATTRIBUTES}
            )
            result = self._combined[source, kind] = row, local_mask(self.rule, row)
        return result

    def masks(self, permutations: Permutations) -> npt.NDArray[np.uint64] | None:
        """The masks of many orders, draws × rows; None where there are too many kinds of places to work them out."""
        if len(self.rows) * len(self.samples) > _TABLE:
            return None
        kinds = range(len(self.samples))
        table = [[self.combined(said, kind)[1] for kind in kinds] for said in range(len(self.rows))]
        masks: npt.NDArray[np.uint64] = np.array(table, dtype=np.uint64)[permutations, np.array(self.kinds)]
        return masks

    def reordered(self, order: Sequence[int]) -> tuple[Partition, list[int]]:
        """The sequence in another order, and the mask of each row."""
        combined = [self.combined(said, kind) for said, kind in zip(order, self.kinds, strict=True)]
        rows = tuple(Entry(row, old.time, old.place) for (row, _), old in zip(combined, self.rows, strict=True))
        return replaced(self.partition, rows), [mask for _, mask in combined]


class PermutationSearch:
    """The orders of a deck's rows, many searched at once."""

    def __init__(self, shuffler: SequenceShuffler, partition: Partition) -> None:
        self.places = SequencePositions(shuffler.rule, partition)
        self.kinds = np.array(shuffler.kinds, dtype=np.int64)
        examples = dict(zip(shuffler.kinds, self.places.own.tolist(), strict=True))
        self.kind_examples = np.array([examples[kind] for kind in range(len(examples))], dtype=np.int64)

    def strongest(self, permutations: Permutations) -> F:
        """Of each order the strength of its strongest match; raises Unsuited where arrays do not do."""
        count = len(permutations)
        if len(self.kinds) * len(self.kind_examples) <= _CARDS:
            combined_rows, rows = self._shared
            matches = self.places.find(rows, combined_rows, self._row_numbers(permutations), count)
        else:
            combined_rows = self._made(permutations)
            matches = self.places.find(Vectors(combined_rows), combined_rows, None, count)
        return self.places.strongest(matches, count)

    @cached_property
    def _shared(self) -> tuple[CombinedRows, Vectors]:
        """Every row as it stands, then the words of each read row at each kind of place."""
        own, stands = self.places.own, np.arange(len(self.places.entries))
        words = np.concatenate([stands, np.repeat(own, len(self.kind_examples))])
        places = np.concatenate([stands, np.tile(self.kind_examples, len(own))])
        combined_rows = CombinedRows(self.places.source, words, places, MESSAGE_FIELDS)
        return combined_rows, Vectors(combined_rows)

    def _row_numbers(self, permutations: Permutations) -> I:
        """The cards of some orders, one order after the other."""
        size = len(self.places.entries)
        numbers = np.tile(np.arange(size), (len(permutations), 1))
        numbers[:, self.places.own] = size + permutations * len(self.kind_examples) + self.kinds
        return numbers.ravel()

    def _made(self, permutations: Permutations) -> CombinedRows:
        stands = np.tile(np.arange(len(self.places.entries)), (len(permutations), 1))
        words = stands.copy()
        words[:, self.places.own] = self.places.own[permutations]
        return CombinedRows(self.places.source, words.ravel(), stands.ravel(), MESSAGE_FIELDS)


def replaced(partition: Partition, rows: tuple[Entry, ...]) -> Partition:
    """The sequence with other rows at its places, in its timeline too."""
    entries = list(partition.timeline.entries)
    for entry in rows:
        entries[entry.place] = entry
    return partition._replace(rows=rows, timeline=partition.timeline._replace(entries=tuple(entries)))


def scope(rule: PatternRule, partition: Partition) -> Partition:
    """The sequence in the least timeline that the rule needs: without what the agent wrote elsewhere, unless a column
    looks there.
    """
    if looks_elsewhere(rule):
        return partition
    rows = tuple(entry._replace(place=place) for place, entry in enumerate(partition.rows))
    timeline = Timeline(partition.timeline.agent, partition.timeline.conversation, rows)
    return partition._replace(rows=rows, timeline=timeline)
