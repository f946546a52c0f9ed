"""Maps from a judge's scores to labels: what `judge validate --apply` records, and their use on later scores."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping

import msgspec

from undersong.models import Record, Row, TraitScores


class ScoreMap(Record, frozen=True, kw_only=True):
    """A rising map from score to label of one trait: ``knots`` (score, label), linear between them, flat outside.

    ``labels`` is how many it was fitted on; ``before`` and ``after`` are mean absolute errors of scores and of mapped
    scores on messages of authors that the map was not fitted on.
    """

    knots: tuple[tuple[float, float], ...]
    labels: int
    before: float
    after: float

    def __call__(self, score: float) -> float:
        """The label that is expected for a score, to three decimals."""
        place = bisect_right(self.knots, score, key=lambda knot: knot[0])
        if place in (0, len(self.knots)):
            return round(self.knots[min(place, len(self.knots) - 1)][1], 3)
        (x, y), (right, top) = self.knots[place - 1 : place + 1]
        return round(y + (top - y) * (score - x) / (right - x), 3)


def mapped_traits(traits: TraitScores, maps: Mapping[str, ScoreMap]) -> TraitScores:
    """The scores with those mapped that have a map; one that does not apply stays missing."""
    return {
        trait: score if score is None or trait not in maps else maps[trait](score) for trait, score in traits.items()
    }


def mapped_row(row: Row, maps: Mapping[str, ScoreMap]) -> Row:
    """The row with mapped scores, and the judge's own in its reading; the same row where nothing is mapped."""
    if not maps or row.traits is None or row.reading is None:
        return row
    reading = msgspec.structs.replace(row.reading, unmapped=row.traits)
    return msgspec.structs.replace(row, traits=mapped_traits(row.traits, maps), reading=reading)


def maps_hash(maps: Mapping[str, ScoreMap]) -> str:
    """SHA-256 over the maps."""
    return hashlib.sha256(msgspec.json.encode(maps, order="sorted")).hexdigest()


def maps_of(parameters: Mapping[str, object]) -> dict[str, ScoreMap]:
    """The maps that the parameters of a report hold; none where its scores are the judge's own."""
    return msgspec.convert(parameters.get(PARAMETER, {}), dict[str, ScoreMap])


PARAMETER = "score_maps"  # in a report's parameters, and the name of their hash
