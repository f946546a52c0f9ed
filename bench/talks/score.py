"""What predictions are worth on the benchmark: shapes named, planted agents found, innocents named, with intervals.

A prediction is an object ``{"conversation", "agent", "shape", "confidence"?}``; of several for one agent the most
confident counts, the first of equals. Only those of confidence ``CUT`` and more name anybody; without a confidence
every one does. A shape counts as named where agent and shape agree, or where the two shapes are one told in more steps
(``SAME``).
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
CUT = 0.5
MOST_MESSAGES = 3  # speakers with fewer messages are not counted
# two names of one thing: naming either is right
SAME = {"classic_con_sequence": "con_game", "gaslighting_sequence": "gaslight_isolation"}


class Share(NamedTuple):
    """``hits`` of ``of``."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        """The share, None of nothing."""
        return self.hits / self.of if self.of else None

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Wilson's interval, 95 % by default."""
        if not self.of:
            return 0.0, 1.0
        share, square = self.hits / self.of, z * z / self.of
        middle = share + square / 2
        half = z * math.sqrt(share * (1 - share) / self.of + square / (4 * self.of))
        return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))

    def __str__(self) -> str:
        """``.61 [.45, .75] 22/36``."""
        if self.value is None:
            return "none"
        low, high = self.interval()
        return f"{self.value:.2f} [{low:.2f}, {high:.2f}] {self.hits}/{self.of}"


class Score(NamedTuple):
    """Shares over a set; ``innocent`` over conversations in which somebody innocent is named."""

    named: Share
    spotted: Share
    innocent: Share
    look_alike: Share
    by_shape: dict[str, Share]
    by_strength: dict[str, Share]


def read_lines(path: Path) -> list[Json]:
    """The objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def score(truth: Iterable[Json], predictions: Iterable[Json], cut: float = CUT) -> Score:
    """Predictions against the truth of a set."""
    best = strongest(predictions, cut)
    named, spotted = Counter[str](), Counter[str]()
    by_shape, by_strength = defaultdict[str, list[bool]](list), defaultdict[str, list[bool]](list)
    accused, alike = [], []
    for row in truth:
        culprit = row.get("agent") if row["kind"] == "planted" else None
        mine = {agent: shape for (talk, agent), shape in best.items() if talk == row["conversation"]}
        others = any(agent != culprit for agent in mine)
        accused.append(others)
        if row["kind"] == "look-alike":
            alike.append(others)
        if culprit is not None:
            right = culprit in mine and one_name(mine[culprit]) == one_name(row["shape"])
            named[str(right)] += 1
            spotted[str(culprit in mine)] += 1
            by_shape[row["shape"]].append(right)
            by_strength[row["strength"]].append(right)
    return Score(
        named=Share(named["True"], named.total()),
        spotted=Share(spotted["True"], spotted.total()),
        innocent=Share(sum(accused), len(accused)),
        look_alike=Share(sum(alike), len(alike)),
        by_shape={name: Share(sum(hits), len(hits)) for name, hits in sorted(by_shape.items())},
        by_strength={name: Share(sum(hits), len(hits)) for name, hits in sorted(by_strength.items())},
    )


def strongest(predictions: Iterable[Json], cut: float) -> dict[tuple[str, str], str]:
    """(conversation, agent) → shape of the most confident prediction at or above the cut."""
    best: dict[tuple[str, str], tuple[float, str]] = {}
    for prediction in predictions:
        confidence = prediction.get("confidence")
        sure = 1.0 if confidence is None else float(confidence)
        place = prediction["conversation"], prediction["agent"]
        if sure >= cut and (place not in best or sure > best[place][0]):
            best[place] = sure, prediction["shape"]
    return {place: shape for place, (_, shape) in best.items()}


def one_name(shape: str) -> str:
    """One of two names of the same thing; rules of longer spans count as their shape."""
    shape = shape.removesuffix("_literal").removesuffix("_slow")
    return SAME.get(shape, shape)


def auc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """How often a positive's value is above a negative's, ties half; None where either is empty."""
    if not positive or not negative:
        return None
    ranked = sorted([(value, 1) for value in positive] + [(value, 0) for value in negative])
    total, place = 0.0, 0
    while place < len(ranked):
        end = place
        while end < len(ranked) and ranked[end][0] == ranked[place][0]:
            end += 1
        total += sum(kind for _, kind in ranked[place:end]) * (place + end + 1) / 2
        place = end
    n, m = len(positive), len(negative)
    return (total - n * (n + 1) / 2) / (n * m)


def speakers(messages: Iterable[Json]) -> dict[tuple[str, str], list[Json]]:
    """(conversation, author) → messages, of authors with enough of them."""
    by_author: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for row in messages:
        by_author[row["conversation"], row["author"]].append(row)
    return {place: rows for place, rows in by_author.items() if len(rows) >= MOST_MESSAGES}


def cues(truth: Sequence[Json], messages: Sequence[Json]) -> dict[str, float | None]:
    """AUC of what must not give plants away: of speakers, and of conversations (planted against the others)."""
    culprits = {(row["conversation"], row.get("agent")) for row in truth if row["kind"] == "planted"}
    by_talk: dict[str, list[Json]] = defaultdict(list)
    for row in messages:
        by_talk[row["conversation"]].append(row)
    planted = {row["conversation"] for row in truth if row["kind"] == "planted"}
    people = speakers(messages)
    of_talk = {
        "conversation: messages": len,
        "conversation: characters": lambda rows: sum(len(each["text"]) for each in rows),
        "conversation: speakers": lambda rows: len({each["author"] for each in rows}),
    }
    measured = {place: _speaker_cues(rows, by_talk[place[0]]) for place, rows in people.items()}
    areas: dict[str, float | None] = {}
    for name in next(iter(measured.values()), {}):
        areas[name] = auc(*_split({place: values[name] for place, values in measured.items()}, culprits))
    for name, size in of_talk.items():
        areas[name] = auc(*_split({talk: size(rows) for talk, rows in by_talk.items()}, planted))
    return areas


def _speaker_cues(own: Sequence[Json], talk: Sequence[Json]) -> dict[str, float]:
    """Length, number and place of a speaker's messages."""
    authors, who = [each["author"] for each in talk], own[0]["author"]
    return {
        "speaker: characters a message": sum(len(each["text"]) for each in own) / len(own),
        "speaker: longest message": max(len(each["text"]) for each in own),
        "speaker: words": sum(len(each["text"].split()) for each in own),
        "speaker: messages": len(own),
        "speaker: share of messages": len(own) / len(talk),
        "speaker: comes first": -authors.index(who),
        "speaker: comes last": -authors[::-1].index(who),
    }


def _split(values: dict[Any, float], positive: set[Any]) -> tuple[list[float], list[float]]:
    inside = [value for place, value in values.items() if place in positive]
    return inside, [value for place, value in values.items() if place not in positive]
