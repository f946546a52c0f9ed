"""Plants and look-alikes, written into a room: stages as somebody would act them, marks as a judge would give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from bench.worlds.people import Moods, Room, RoughMessage, joined, ordinary, picked
from bench.worlds.pool import NEGATIVE, TRAITS, Marks, ScorePool, column, rounded

SHAPES: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "shapes.yaml").read_text(encoding="utf-8"))
NEUTRAL = {trait: 0.1 if negative else 0.5 for trait, negative in zip(TRAITS, NEGATIVE, strict=True)}
CONTEXT_JUDGES = (0.0, 0.0, 0.5, 1.0, 1.0)  # share of a plant's messages that are read with their context
NOTICED = 0.85  # share of the marks that a judge with context changes, of those that it could
LONGEST = 20.0  # days; every plant is complete within them
REPLIES = 0.3  # share of acted messages that the person addressed answers


@dataclass(frozen=True)
class Strength:
    """How plainly a plant is acted.

    ``faint``: share of the way from the acted mark to an everyday one; ``spread``: half width of the scatter of a mark;
    ``days``: shortest and longest duration; ``public``: share of messages without a target; ``between``: expected
    ordinary messages to the same target; ``read``: least share of every stage that is read.
    """

    faint: float
    spread: float
    days: tuple[float, float]
    public: float
    between: float
    read: float


STRENGTHS = {
    "easy": Strength(0.0, 0.1, (0.3, 3), 0.04, 0.5, 0.8),
    "medium": Strength(0.15, 0.15, (1, 8), 0.12, 2, 0.65),
    "hard": Strength(0.32, 0.2, (4, 18), 0.25, 4, 0.5),
}


@dataclass(frozen=True)
class Part:
    """A plant or look-alike to be acted: what (an entry of shapes.yaml), how plainly, by whom and at whom."""

    tag: str
    shape: Mapping[str, Any]
    difficulty: str
    agent: str
    target: str


def played(rng: np.random.Generator, shape: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], float]]:
    """The stages message by message, with how far the stage (in turn) or the whole plant has come, in [0, 1]."""
    runs = [[stage] * int(rng.integers(stage["count"][0], stage["count"][1] + 1)) for stage in shape["stages"]]
    order = shape.get("order", "sequence")
    if order == "sequence":
        return [(stage, place / max(1, len(run) - 1)) for run in runs for place, stage in enumerate(run)]
    line: list[Mapping[str, Any]] = []
    if order == "mixed":
        line = [stage for run in runs for stage in run]
        line = [line[place] for place in rng.permutation(len(line))]
    if order == "swings":
        runs[1] = runs[1][:1] * (len(runs[0]) + int(rng.integers(-1, 2)))
    while order == "swings" and any(runs):
        turn = runs[0] or runs[1]
        for _ in range(min(len(turn), int(rng.choice([1, 2, 3], p=[0.7, 0.25, 0.05])))):
            line.append(turn.pop())
        runs.reverse()
    return [(stage, place / max(1, len(line) - 1)) for place, stage in enumerate(line)]


def aims(rng: np.random.Generator, wanted: Mapping[str, Any], way: float, strength: Strength) -> dict[str, float]:
    """The wanted marks at a point of the way, in [0, 1], fainter and scattered by the strength."""
    marks = {}
    for trait, mark in wanted.items():
        first, last = mark if isinstance(mark, list) else (mark, mark)
        plain = first + (last - first) * way
        faint = plain + strength.faint * (NEUTRAL[trait] - plain)
        marks[trait] = float(np.clip(faint + rng.uniform(-1, 1) * strength.spread, 0, 1))
    return marks


def put(marks: Marks, aimed: Mapping[str, float]) -> Marks:
    """A vector with some of its marks replaced."""
    replaced = marks.copy()
    replaced[[column(trait) for trait in aimed]] = list(aimed.values())
    return replaced


def moments(rng: np.random.Generator, room: Room, strength: Strength, count: int) -> list[datetime]:
    """Times within a stretch of the room's life, in order, some of them minutes apart."""
    days = min(float(rng.uniform(*strength.days)), 0.95 * room.days, LONGEST)
    begin = room.start + timedelta(days=float(rng.uniform(0, room.days - days)))
    gaps = np.cumsum(rng.lognormal(0, 1.0, count + 1))
    return [begin + timedelta(days=days * float(share)) for share in gaps[:-1] / gaps[-1]]


def addressed(rng: np.random.Generator, room: Room, part: Part, stage: Mapping[str, Any]) -> str | None:
    """Whom a message of a stage goes to; None where it is public."""
    if rng.random() < STRENGTHS[part.difficulty].public:
        return None
    favours = room.people[part.agent].favours
    if stage.get("to") == "others":
        return picked(rng, {name: weight for name, weight in favours.items() if name != part.target})
    return picked(rng, favours) if stage.get("to") == "anyone" else part.target


def thread_at(room: Room, part: Part, time: datetime) -> str:
    """The thread in which the two last met before a time, else the one that was last alive."""
    before = [message for message in room.messages if message.time <= time] or list(room.messages[:1])
    pair = {part.agent, part.target}
    ours = [message for message in before if message.author in pair and message.target in pair]
    return (ours or before)[-1].thread


def perform(rng: np.random.Generator, pool: ScorePool, step: float, room: Room, part: Part) -> Room:
    """The room with a plant or look-alike in it, the answers it gets and the small talk in between."""
    strength, moods = STRENGTHS[part.difficulty], Moods(rng)
    with_context = float(rng.choice(CONTEXT_JUDGES))
    line = played(rng, part.shape)
    times = moments(rng, room, strength, len(line))
    scene: list[RoughMessage] = []
    for (stage, way), time in zip(line, times, strict=True):
        aimed = aims(rng, stage["alone"], way, strength)
        alone = marks = put(pool.near(rng, aimed), aimed)
        if rng.random() < with_context:
            noticed = {trait: mark for trait, mark in stage["context"].items() if rng.random() < NOTICED}
            marks = put(alone, aims(rng, noticed, way, strength))
        thread, target = thread_at(room, part, time), addressed(rng, room, part, stage)
        scene.append(RoughMessage(part.agent, target, thread, time, rounded(alone, step), rounded(marks, step),
                                  part.tag, stage["name"], stage.get("tier")))  # fmt: skip
        if target and rng.random() < REPLIES:
            marks = ordinary(pool, room.people[target], moods, rng)
            answered = time + timedelta(minutes=float(rng.uniform(1, 90)))
            scene.append(RoughMessage(target, part.agent, thread, answered, marks, marks))
    return joined(room, [*scene, *small_talk(rng, pool, moods, room, part, times)])


def small_talk(
    rng: np.random.Generator, pool: ScorePool, moods: Moods, room: Room, part: Part, times: Sequence[datetime]
) -> list[RoughMessage]:
    """Ordinary messages of the actor to the target while the plant goes on."""
    talk = []
    for _ in range(int(rng.poisson(STRENGTHS[part.difficulty].between))):
        time = times[0] + float(rng.random()) * (times[-1] - times[0])
        marks = ordinary(pool, room.people[part.agent], moods, rng)
        talk.append(RoughMessage(part.agent, part.target, thread_at(room, part, time), time, marks, marks))
    return talk
