"""The geometry of an agent's traits over its messages, with the matched stages marked; the template draws it as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from undersong.core.text import counted, turn_at
from undersong.models import TRAITS, Finding
from undersong.report.escape import label

WIDTH, LEFT, RIGHT = 400.0, 8.0, 8.0  # as wide as a phone, so that the letters keep their size there
TOP, STRIP, GAP, FOOT = 24.0, 34.0, 20.0, 20.0  # heights: numbers of stages, a trait, its name, positions
STRIPS = 4  # traits that are drawn
LEAST = 2  # messages below which there is no course to draw
AROUND, MOST = 20, 240  # messages before and after the match, and messages that are drawn at most


@dataclass(frozen=True)
class TraitReading:
    """One message of an agent with the levels of its traits, None where it was not scored."""

    conversation: str
    id: str
    position: int
    time: datetime | None
    scores: Mapping[str, float] | None


@dataclass(frozen=True)
class TraitStrip:
    """One trait: the runs of scored messages as points, lines between neighbours, dots at the stages."""

    name: str
    title_y: float
    top: float
    base: float
    lines: tuple[str, ...]
    dots: tuple[tuple[float, float, str], ...]
    stages: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True)
class StageLine:
    """A stage of the match: its number and where it stands."""

    number: str
    x: float


@dataclass(frozen=True)
class TraitChart:
    """Everything that the template draws, in user units."""

    label: str
    height: float
    strips: tuple[TraitStrip, ...]
    stages: tuple[StageLine, ...]
    ticks: tuple[tuple[float, str], ...]
    caption: str
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT


def trait_chart(finding: Finding, asked: Sequence[str], readings: Sequence[TraitReading]) -> TraitChart | None:
    """The traits that the rule asks for over the agent's messages around the match; None where none has a score.

    ``readings`` are the agent's messages in any order; those with a time come in its order, others by position.
    """
    homes = finding.message_conversations or finding.conversations[:1] * len(finding.message_ids)
    stages = finding.stages or tuple(("", message_id) for message_id in finding.message_ids)
    names = {(home, message_id): name for home, (name, message_id) in zip(homes, stages, strict=False)}
    shown = _around(sorted(readings, key=_order), set(names))
    traits = [trait for trait in TRAITS if trait in asked and any(_score(one, trait) is not None for one in shown)]
    if not traits or len(shown) < LEAST:
        return None
    step = (WIDTH - LEFT - RIGHT) / len(shown)
    xs = [round(LEFT + (place + 0.5) * step, 2) for place in range(len(shown))]
    marked = [(xs[place], names[one.conversation, one.id], one) for place, one in enumerate(shown)
              if (one.conversation, one.id) in names]  # fmt: skip
    strips = tuple(
        _strip(trait, TOP + number * (STRIP + GAP), shown, xs, {x for x, _, _ in marked})
        for number, trait in enumerate(traits[:STRIPS])
    )
    listed = "; ".join(f"{n} {label(name, 40) or 'message'} ({turn_at(one.position)})" for n, (_, name, one) in
                       enumerate(marked, 1))  # fmt: skip
    drawn = ", ".join(trait.replace("_", " ") for trait in traits[:STRIPS])
    return TraitChart(
        label=f"{drawn} over {counted(len(shown), 'message')}, the matched ones numbered: {listed}",
        height=TOP + len(strips) * (STRIP + GAP) + FOOT,
        strips=strips,
        stages=tuple(StageLine(str(n), x) for n, (x, _, _) in enumerate(marked, 1)),
        ticks=((xs[0], f"{turn_at(shown[0].position)}"), (xs[-1], f"{turn_at(shown[-1].position)}")),
        caption=f"Each strip is one trait from 0 to 1, message by message. Numbered lines are the messages that match: "
        f"{listed}. A gap in a line is a message without a score.",
    )


def _order(one: TraitReading) -> tuple[bool, float, str, int]:
    return one.time is None, one.time.timestamp() if one.time else 0.0, one.conversation, one.position


def _around(readings: Sequence[TraitReading], matched: set[tuple[str, str]]) -> Sequence[TraitReading]:
    """The messages from AROUND before the first that matches to AROUND after the last, at most MOST of them."""
    places = [place for place, one in enumerate(readings) if (one.conversation, one.id) in matched]
    if not places:
        return ()
    first = max(0, places[0] - AROUND)
    return readings[first : min(places[-1] + AROUND + 1, first + MOST)]


def _score(one: TraitReading, trait: str) -> float | None:
    return (one.scores or {}).get(trait)


def _strip(
    trait: str, top: float, shown: Sequence[TraitReading], xs: Sequence[float], matched: set[float]
) -> TraitStrip:
    base = top + GAP - 6 + STRIP
    points = [
        (x, round(base - STRIP * min(max(score, 0.0), 1.0), 2), f"{turn_at(one.position)}: {score:.2f}")
        if (score := _score(one, trait)) is not None
        else None
        for x, one in zip(xs, shown, strict=True)
    ]
    lines = tuple(f"M{one[0]} {one[1]}L{two[0]} {two[1]}" for one, two in pairwise(points) if one and two)
    dots = tuple(point for point in points if point)
    return TraitStrip(
        name=trait.replace("_", " "),
        title_y=top + 8,
        top=base - STRIP,
        base=base,
        lines=lines,
        dots=tuple(point for point in dots if point[0] not in matched),
        stages=tuple(point for point in dots if point[0] in matched),
    )
