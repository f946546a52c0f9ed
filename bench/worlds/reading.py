"""Who reads what, and with which marks: triage, tiers, and a judge that does not say the same thing twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.worlds.people import RoughMessage
from bench.worlds.pool import NEGATIVE, Marks, worst

BLUR = 0.55  # noise of the triage's impression: AUC about .8 for bad messages (TF-IDF on the Moltbook data: .78)
LOOK_BACK = 0.35  # how much a message gains where its writer's next ones look worse
AHEAD = 6  # how many of the writer's later messages that looks at
TIERS = (("deep_with_context", 0.04), ("deep", 0.12), ("focused", 0.45))  # largest shares of messages, cumulative
AUDIT = 0.02  # share of messages routed deep by lot
SHARED = 0.6  # weight of a read's harshness, common to its 12 marks, against that of one mark's own noise
MOVES = 1.25  # a mark moves one step beyond this many sigmas: 21 % of marks
LEAVES_ZERO = 1.6  # a clean zero takes more
GLITCH = 0.003  # share of marks that move two steps at once
NULLS = 0.004  # share of marks that the judge leaves out


def impressions(rng: np.random.Generator, messages: Sequence[RoughMessage]) -> NDArray[np.float64]:
    """How bad each message looks to a triage that sees its text, and a little of what its writer does next."""
    look = worst(np.array([message.alone for message in messages])) + rng.normal(0, BLUR, len(messages))
    own: dict[str, list[int]] = {}
    for place, message in enumerate(messages):
        own.setdefault(message.author, []).append(place)
    gain = np.zeros(len(messages))
    for places in own.values():
        for turn, place in enumerate(places):
            later = places[turn + 1 : turn + 1 + AHEAD]
            gain[place] = LOOK_BACK * max(0.0, float(look[later].max())) if later else 0.0
    return look + gain


def routed(rng: np.random.Generator, messages: Sequence[RoughMessage], look: NDArray[np.float64]) -> list[str]:
    """The tier of each message, by its impression, by lot, or as a plant says."""
    rank = np.argsort(np.argsort(-look, kind="stable"), kind="stable") / len(messages)
    rank = np.where(rng.random(len(messages)) < AUDIT, rng.uniform(0, TIERS[1][1], len(messages)), rank)
    deep = TIERS[1][1]
    tiers = []
    for message, place in zip(messages, rank, strict=True):
        if message.tier == "deep":
            place = rng.uniform(0, deep)
        elif message.tier == "shallow":
            place = max(place, deep + (1 - deep) * rng.random())
        tiers.append(next((tier for tier, share in TIERS if place < share), "standard"))
    return tiers


def chosen(
    rng: np.random.Generator,
    messages: Sequence[RoughMessage],
    look: NDArray[np.float64],
    tiers: Sequence[str],
    share: float,
    least: dict[str, float],
) -> NDArray[np.bool_]:
    """Which messages are read: deep tiers, at least a share of every stage (``least`` by tag), then by impression."""
    read = np.array([tier.startswith("deep") for tier in tiers])
    eager = look + rng.logistic(0, 0.35, len(messages))
    stages: dict[tuple[str, str], list[int]] = {}
    for place, message in enumerate(messages):
        if message.part and message.stage:
            stages.setdefault((message.part, message.stage), []).append(place)
    for (tag, _), places in stages.items():
        wanted = max(1, round(least[tag] * len(places)))
        first = sorted(places, key=lambda place: (not read[place], -eager[place]))
        read[first[:wanted]] = True
    rest = np.flatnonzero(~read)
    room = max(0, round(share * len(messages)) - int(read.sum()))
    read[rest[np.argsort(-eager[rest], kind="stable")[:room]]] = True
    return read


def judged(rng: np.random.Generator, marks: Marks, step: float) -> Marks:
    """One read of each message: shape (n, 12), multiples of ``step`` in [0, 1], NaN where a mark is left out.

    A harsh read moves negative traits up and positive ones down, so errors within a message go together.
    """
    harsh = rng.normal(size=(len(marks), 1)) * np.where(NEGATIVE, 1.0, -1.0)
    lean = SHARED * harsh + np.sqrt(1 - SHARED**2) * rng.normal(size=marks.shape)
    upward = lean > np.where(marks == 0, LEAVES_ZERO, MOVES)
    moved = marks + step * (upward.astype(float) - (lean < -MOVES))
    slip = np.where(rng.random(marks.shape) < GLITCH, 2 * step * rng.choice([-1, 1], size=marks.shape), 0.0)
    read = np.clip(np.round(moved + slip, 4), 0.0, 1.0)
    return np.asarray(np.where(rng.random(marks.shape) < NULLS, np.nan, read))
