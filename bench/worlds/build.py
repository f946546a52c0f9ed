"""One world and its truth: rooms of people, a few of whom have a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from bench.worlds.acting import SHAPES, STRENGTHS, Part, perform
from bench.worlds.people import Person, Room, conversation, picked
from bench.worlds.pool import TRAITS, Marks, ScorePool
from bench.worlds.reading import chosen, impressions, judged, routed

EPOCH = datetime(2026, 3, 1, tzinfo=UTC)
ROOMS = (5, 8)  # fewest and most rooms of a world
PLANTED = (0.085, 0.19)  # least and largest share of a world's agents who have a plan
GOLDEN = 0.618034  # multiples of it, modulo 1, cover a range evenly
LOOK_ALIKES = (5, 9)  # fewest and most in a world
QUARTERS = 0.8  # share of worlds whose judge gives quarter steps; the others' goes by .05, as the source does
FINE_NOISE = 0.15  # how far a mark of the finer judge moves

World = dict[str, Any]


def deck(rng: np.random.Generator) -> list[tuple[Mapping[str, Any], str]]:
    """Every plant at every strength, shuffled, and none a second time before all were dealt once."""
    shapes = [{"pattern": name, **shape} for name, shape in SHAPES["plants"].items()]
    levels = [rng.permutation(list(STRENGTHS)) for _ in shapes]
    rounds = [rng.permutation(len(shapes)) for _ in STRENGTHS]
    return [(shapes[place], str(levels[place][turn])) for turn, order in enumerate(rounds) for place in order]


def cast(rng: np.random.Generator, rooms: list[Room], planted: float) -> list[tuple[int, Part]]:
    """Who acts what in which room, with a share ``planted`` of plans: nobody acts twice, busy people sooner."""
    everybody = {name: (place, person) for place, room in enumerate(rooms) for name, person in room.people.items()}
    plans = deck(rng)[: round(planted * len(everybody))]
    likes = SHAPES["look_alikes"]
    picks = rng.choice(len(likes), int(rng.integers(LOOK_ALIKES[0], LOOK_ALIKES[1] + 1)), replace=False)
    plans += [(likes[int(pick)], str(rng.choice(list(STRENGTHS)))) for pick in picks]
    free: dict[str, float] = {name: person.busy**0.5 for name, (_, person) in everybody.items()}
    parts = []
    for number, (shape, level) in enumerate(plans):
        agent = picked(rng, free)
        del free[agent]
        place, person = everybody[agent]
        parts.append((place, Part(f"s{number}", shape, level, agent, victim(rng, person))))
    return parts


def victim(rng: np.random.Generator, person: Person) -> str:
    """Whom a plan is aimed at: a favourite, sooner than others."""
    return picked(rng, {name: weight**0.5 for name, weight in person.favours.items()})


def build_world(
    seed: int, number: int, vectors: Marks, share: float, planted: bool = True, talkative: float = 1.0
) -> tuple[World, World]:
    """A blind world and its truth, the same for the same arguments.

    ``vectors``: real score vectors, shape (n, 12); ``share``: of messages that are read, in (0, 1); ``talkative``: how
    many times as much people write in the same days, so that more of them are busy. The truth's list of ambiguous
    patterns is always empty: what matches by chance is a false alarm.
    """
    rng = np.random.default_rng([seed, number, int(planted)])
    step = 0.25 if rng.random() < QUARTERS else 0.05
    pool = ScorePool(vectors, step)
    begins = [EPOCH + timedelta(days=float(rng.uniform(0, 6))) for _ in range(rng.integers(ROOMS[0], ROOMS[1] + 1))]
    rooms = [conversation(rng, pool, f"t{place}x", begin, talkative) for place, begin in enumerate(begins)]
    plans = PLANTED[0] + (PLANTED[1] - PLANTED[0]) * (number * GOLDEN % 1) if planted else 0.0
    cast_list = cast(rng, rooms, plans)
    for place, part in cast_list:
        rooms[place] = perform(rng, pool, step, rooms[place], part)
    messages = sorted((message for room in rooms for message in room.messages), key=lambda message: message.time)
    parts = [part for _, part in cast_list]
    look = impressions(rng, messages)
    tiers = routed(rng, messages, look)
    least = {part.tag: STRENGTHS[part.difficulty].read for part in parts}
    read = chosen(rng, messages, look, tiers, share, least)
    marks = judged(rng, np.array([message.marks for message in messages]), max(step, FINE_NOISE))
    world_id = f"r{seed}_{number:03d}"
    rows = [
        {"id": f"m{place:05d}", "agent": message.author, "target": message.target, "thread": message.thread,
         "ts": message.time.isoformat(timespec="microseconds"), "tier": tiers[place], "scored": bool(read[place]),
         "traits": written(marks[place]) if read[place] else None}
        for place, message in enumerate(messages)
    ]  # fmt: skip
    truth: World = {"world_id": world_id, "n_scored": int(read.sum())}
    truth |= {"truth": [], "hard_negatives": [], "ambiguous": []}
    for part in parts:
        acts = [(row, message.stage) for row, message in zip(rows, messages, strict=True) if message.part == part.tag]
        truth["hard_negatives" if "kind" in part.shape else "truth"].append(entry(part, acts))
    return {"world_id": world_id, "messages": rows}, truth


def written(marks: Marks) -> dict[str, float | None]:
    """Marks by trait, None where the judge left one out."""
    return {trait: None if math.isnan(mark) else float(mark) for trait, mark in zip(TRAITS, marks, strict=True)}


def entry(part: Part, acts: list[tuple[World, str | None]]) -> World:
    """What the truth says of a plant or look-alike."""
    ids = [row["id"] for row, _ in acts]
    common = {"agent": part.agent, "pattern": part.shape["pattern"], "difficulty": part.difficulty, "tag": part.tag}
    if "kind" in part.shape:
        return {**common, "kind": part.shape["kind"], "message_ids": ids}
    read = [row["id"] for row, _ in acts if row["scored"]]
    return {**common, "target": part.target, "message_ids": ids, "read_ids": read,
            "stages": [stage for _, stage in acts], "start": acts[0][0]["ts"], "end": acts[-1][0]["ts"]}  # fmt: skip
