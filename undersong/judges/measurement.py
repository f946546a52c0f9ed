"""What was measured of a judge: agreement with labels, and how far two readings of the same messages differ.

What `judge validate --apply` records are maps from a judge's scores to labels, which its later scores go through.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from undersong.models import NEGATIVE_TRAITS, TRAITS, Evaluation, Record, Row, TraitScores

RetestKind = Literal["repeat", "context", "framing"]
PRESENT = 0.5
DISAGREE = 0.5  # a difference of two scores from here on is a disagreement: two of the four steps of a mark
PARAMETER = "score_maps"  # in a report's parameters, and the name of their hash


class IntervalEstimate(Record, frozen=True, kw_only=True):
    """A figure with its 95 % interval over resampled groups; None where it cannot be computed."""

    value: float | None
    low: float | None = None
    high: float | None = None


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


class Calibration(Record, frozen=True, kw_only=True):
    """A judge against labels, bound to the judge's and the prompts' hash and to the file of labels.

    ``learnt_from`` of the messages are among those that the judge was trained on, and their figures say nothing; None
    where nobody knows. ``figures`` maps a measure to a trait's figure; ``harmful`` is the AUC of the highest negative
    trait for "any negative label of .5 or more". ``messages`` were scored, of ``asked``. ``fitted`` are maps from the
    scores to these labels; ``maps`` those that later scores go through, {} where none was asked for.
    """

    judge: str
    judge_hash: str
    labels: str
    labels_sha256: str
    messages: int
    asked: int
    groups: int
    learnt_from: int | None = None
    figures: dict[str, dict[str, IntervalEstimate]]
    harmful: IntervalEstimate
    fitted: dict[str, ScoreMap] = {}
    maps: dict[str, ScoreMap] = {}


class Shift(Record, frozen=True, kw_only=True):
    """Two readings compared: ``moved`` is the mean difference per trait (second minus first), ``apart`` the mean
    absolute one, both over the messages where both readings gave a score, and without a trait of which there is none;
    ``flips`` how many messages change on "any negative trait of .5 or more".

    ``width`` is what the first reading saw; ``messages`` were scored in both readings, of ``asked``.
    """

    kind: RetestKind
    judge: str
    judge_hash: str
    width: str
    asked: int
    messages: int
    moved: dict[str, float]
    apart: dict[str, float]
    flips: int


def shift(kind: RetestKind, judge: str, judge_hash: str, pairs: Sequence[tuple[Evaluation, Evaluation]]) -> list[Shift]:
    """One Shift per width, over the messages that both readings scored."""
    shifts = []
    for width in sorted({one.width for one, _ in pairs}):
        asked = [(one, other) for one, other in pairs if one.width == width]
        both = [(one.traits, other.traits) for one, other in asked if one.traits and other.traits]
        differences = {trait: own for trait in TRAITS if (own := _differences(both, trait))}
        shifts.append(
            Shift(
                kind=kind,
                judge=judge,
                judge_hash=judge_hash,
                width=width,
                asked=len(asked),
                messages=len(both),
                moved={trait: round(sum(each) / len(each), 4) for trait, each in differences.items()},
                apart={trait: round(sum(map(abs, each)) / len(each), 4) for trait, each in differences.items()},
                flips=sum(is_harmful(one) != is_harmful(other) for one, other in both),
            )
        )
    return shifts


def noise_of(shifts: Sequence[Shift], assumed: Mapping[str, float]) -> dict[str, float]:
    """Mean absolute difference per trait for ``stability``: repeats, and on top what context moves, as independent.

    The larger of several widths counts. ``assumed`` stands for repeats that nobody made, and for traits that have no
    score in both readings of any message. Empty where neither was measured.
    """
    repeats = [each for each in shifts if each.kind == "repeat" and each.messages]
    context = [each for each in shifts if each.kind == "context" and each.messages]
    if not repeats and not context:
        return {}
    noise = {trait: _most(repeats, trait, assumed.get(trait, 0.0)) for trait in TRAITS} if repeats else assumed
    moved = {trait: max((abs(each.moved.get(trait, 0.0)) for each in context), default=0.0) for trait in TRAITS}
    return {trait: round((noise[trait] ** 2 + moved[trait] ** 2) ** 0.5, 4) for trait in TRAITS}


def _differences(pairs: Sequence[tuple[TraitScores, TraitScores]], trait: str) -> list[float]:
    both = ((one.get(trait), other.get(trait)) for one, other in pairs)
    return [second - first for first, second in both if first is not None and second is not None]


def _most(shifts: Sequence[Shift], trait: str, assumed: float) -> float:
    return max((each.apart[trait] for each in shifts if trait in each.apart), default=assumed)


def is_harmful(traits: TraitScores) -> bool:
    """Whether any negative trait has .5 or more."""
    return any(score is not None and score >= PRESENT for score in map(traits.get, NEGATIVE_TRAITS))


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


def maps_of(parameters: Mapping[str, object]) -> dict[str, ScoreMap]:
    """The maps that the parameters of a report hold; none where its scores are the judge's own."""
    return msgspec.convert(parameters.get(PARAMETER, {}), dict[str, ScoreMap])


def panel_agreement(rows: Iterable[Row]) -> dict[str, Any]:
    """How far the judges of a panel agree over rows, as a report's parameters hold it; nothing without a panel.

    ``apart`` is the mean absolute difference per trait, of the messages to which both gave a score; ``flips`` how many
    of ``both`` disagree on "any negative trait of .5 or more"; ``one`` were scored by one of them alone.
    """
    panels = [row.reading.panel for row in rows if row.reading is not None and row.reading.panel]
    if not panels:
        return {}
    scored = [[each.traits for each in panel if each.traits is not None] for panel in panels]
    pairs = [(each[0], each[1]) for each in scored if len(each) == 2]
    apart: dict[str, float] = {}
    for trait in TRAITS:
        differences = [abs(both[0] - both[1]) for pair in pairs if (both := scores_for(pair, trait)) and len(both) == 2]
        if differences:
            apart[trait] = round(sum(differences) / len(differences), 4)
    agreement = {
        "judges": [each.judge for each in panels[0]],
        "both": len(pairs),
        "one": sum(len(each) == 1 for each in scored),
        "apart": apart,
        "flips": sum(is_harmful(one) != is_harmful(other) for one, other in pairs),
    }
    return {"judge_agreement": agreement}


def disagree(row: Row, names: Iterable[str]) -> bool:
    """Whether the judges of a panel lie DISAGREE or more apart on one of these traits of a message."""
    panel = row.reading.panel if row.reading is not None else ()
    scored = [each.traits for each in panel if each.traits is not None]
    pairs = (scores_for(scored, trait) for trait in names if trait in TRAITS)
    return any(len(both) == 2 and abs(both[0] - both[1]) >= DISAGREE for both in pairs)


def scores_for(pair: Sequence[TraitScores], trait: str) -> list[float]:
    return [score for traits in pair if (score := traits.get(trait)) is not None]
