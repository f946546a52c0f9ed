"""What was measured of a judge: agreement with labels, and how far two readings of the same messages differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from undersong.judges.score_maps import ScoreMap
from undersong.models import NEGATIVE_TRAITS, TRAITS, Evaluation, Record, TraitScores

RetestKind = Literal["repeat", "context", "framing"]
PRESENT = 0.5


class IntervalEstimate(Record, frozen=True, kw_only=True):
    """A figure with its 95 % interval over resampled groups; None where it cannot be computed."""

    value: float | None
    low: float | None = None
    high: float | None = None


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
