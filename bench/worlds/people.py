"""A room of people who talk: habits, moods, favourites, topics and threads, without any plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from bench.worlds.pool import Marks, ScorePool

FOUL = 0.3  # share of messages written in a foul mood
MOOD_LASTS = 5.0  # messages, on average, before a mood is drawn anew
WORSE = 2.6  # how many times likelier a bad message is in a foul mood than overall
REPLY = 0.4  # share of messages after which the person addressed answers
AGAIN = 0.2  # share of messages after which the same person goes on
NEW_THREAD = 0.12


@dataclass(frozen=True)
class Person:
    """Somebody's habits: shares in [0, 1], leanings around 0, and how much they like to address whom."""

    name: str
    busy: float
    directed: float
    bad_rate: float
    warmth: float
    rigour: float
    favours: dict[str, float]


@dataclass(frozen=True)
class RoughMessage:
    """One message before anybody has read it.

    ``alone`` is how bad or good it looks by itself (triage sees this), ``marks`` what the judge will give to it apart
    from noise: both of shape (12,). ``part`` names the plant or look-alike that it belongs to, ``tier`` is deep or
    shallow where the plant decides that.
    """

    author: str
    target: str | None
    thread: str
    time: datetime
    alone: Marks
    marks: Marks
    part: str | None = None
    stage: str | None = None
    tier: str | None = None


@dataclass(frozen=True)
class Room:
    """People and what they wrote to one another, in order of time."""

    people: dict[str, Person]
    messages: tuple[RoughMessage, ...]
    start: datetime
    days: float


def habit(rng: np.random.Generator) -> float:
    """The share of bad messages that a person writes: near 0 for most, 5 to 40 % for some."""
    return float(0.05 + 0.35 * rng.beta(1.2, 2.0) if rng.random() < 0.3 else 0.03 * rng.random())


def gathering(rng: np.random.Generator) -> dict[str, Person]:
    """5 to 15 people; a few write most of what is written, and everybody has favourites."""
    names = [f"a{int(number):07x}" for number in rng.choice(2**28, int(rng.integers(5, 16)), replace=False)]
    people = {}
    for name in names:
        liking = rng.lognormal(0.0, 1.2, len(names))
        people[name] = Person(
            name, float(rng.lognormal(0.0, 1.1)), float(rng.uniform(0.35, 0.85)), habit(rng),
            float(rng.normal(0, 0.5)), float(rng.normal(0, 0.5)),
            {other: float(weight) for other, weight in zip(names, liking, strict=True) if other != name},
        )  # fmt: skip
    return people


def picked(rng: np.random.Generator, weights: dict[str, float]) -> str:
    """One key, as likely as its weight."""
    values = np.array(list(weights.values()))
    return list(weights)[int(rng.choice(len(values), p=values / values.sum()))]


class Moods:
    """Who is in a foul mood now; a mood lasts for several messages of its owner."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._foul: dict[str, bool] = {}

    def bad(self, person: Person) -> bool:
        """Whether the person's next message is a bad one; in the long run at the person's own rate."""
        if person.name not in self._foul or self._rng.random() < 1 / MOOD_LASTS:
            self._foul[person.name] = bool(self._rng.random() < FOUL)
        in_foul = min(0.95, WORSE * person.bad_rate)
        in_good = (person.bad_rate - FOUL * in_foul) / (1 - FOUL)
        return bool(self._rng.random() < (in_foul if self._foul[person.name] else in_good))


class Threads:
    """The threads of a room: the younger ones go on, and every one has a topic that makes talk warmer or drier."""

    def __init__(self, rng: np.random.Generator, prefix: str) -> None:
        self._rng = rng
        self._prefix = prefix
        self.topics: dict[str, tuple[float, float]] = {}

    def pick(self) -> str:
        """An open thread, or a new one."""
        if not self.topics or self._rng.random() < NEW_THREAD:
            name = f"{self._prefix}{len(self.topics)}"
            self.topics[name] = (float(self._rng.normal(0, 0.4)), float(self._rng.normal(0, 0.4)))
            return name
        recent = list(self.topics)[-6:]
        return recent[int(self._rng.integers(len(recent)))]


def speaker(rng: np.random.Generator, people: dict[str, Person], last: RoughMessage | None) -> tuple[str, str | None]:
    """Who writes next and, in a reply, to whom."""
    chance = rng.random()
    if last and last.target and chance < REPLY:
        return last.target, last.author
    if last and chance > 1 - AGAIN:
        return last.author, last.target
    author = people[picked(rng, {name: person.busy for name, person in people.items()})]
    return author.name, picked(rng, author.favours) if rng.random() < author.directed else None


def conversation(
    rng: np.random.Generator, pool: ScorePool, prefix: str, start: datetime, talkative: float = 1.0
) -> Room:
    """A room without any plant: 60 to 250 messages, times ``talkative``, over 4 to 28 days, in bursts."""
    people, moods, threads = gathering(rng), Moods(rng), Threads(rng, prefix)
    count, days = int(np.clip(rng.lognormal(4.9, 0.5), 60, 250) * talkative), float(rng.uniform(4, 28))
    gaps = np.cumsum(rng.lognormal(0, 1.7, count + 1))
    messages: list[RoughMessage] = []
    for share in gaps[:-1] / gaps[-1]:
        last = messages[-1] if messages else None
        author, target = speaker(rng, people, last)
        goes_on = last and last.target and target in (last.author, last.target)
        thread = last.thread if last and goes_on else threads.pick()
        marks = ordinary(pool, people[author], moods, rng, threads.topics[thread])
        messages.append(RoughMessage(author, target, thread, start + timedelta(days=days * float(share)), marks, marks))
    return Room(people, tuple(messages), start, days)


def ordinary(
    pool: ScorePool, person: Person, moods: Moods, rng: np.random.Generator, topic: tuple[float, float] = (0.0, 0.0)
) -> Marks:
    """The marks of a message without any plan, by the writer's habit and mood and the topic."""
    return pool.draw(rng, moods.bad(person), person.warmth + topic[0], person.rigour + topic[1])


def joined(room: Room, more: Sequence[RoughMessage]) -> Room:
    """The room with further messages, in order of time."""
    return replace(room, messages=tuple(sorted((*room.messages, *more), key=lambda message: message.time)))
