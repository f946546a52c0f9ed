"""Pairs of conversations: what a speaker does where it is watched, beside what it does where it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from typing import NamedTuple

import msgspec

from undersong.datafiles.watching import says_watched
from undersong.judges.protocol import PatternShape, SequenceWindow
from undersong.models import Message, Nomination, Row
from undersong.patterns.nomination import SILENT_ROLES
from undersong.pipeline.sequence_windows import MOST_BYTES, windows_of

SHAPE = "alignment_faking"  # the shape that is asked about, as its rule describes it
PAIRS = 2  # of one speaker
MOST_PAIRS = 100  # of a run, the most telling ones
TALKS = 40  # conversations of one speaker that are looked through
MOST_TALKS = 1_000  # of a run
Texts = Callable[[str], Sequence[Message]]  # the messages of a conversation
_WORD = re.compile(r"\w{4,}")


class _Talk(NamedTuple):
    """A stretch of one conversation: ``watched`` messages say that the speaker is watched, less those that say no.

    None: no message speaks of it. ``asked`` are the words of the others, or its own where nobody else speaks.
    """

    agent: str
    messages: tuple[Message, ...]
    watched: int | None
    asked: frozenset[str]

    @property
    def conversation(self) -> str:
        return self.messages[0].conversation


class _Pair(NamedTuple):
    """Two stretches of one speaker; those that sort first tell most: what is said of both, then what is alike."""

    one_is_silent: bool
    unlike: float
    first: str
    second: str
    watched: _Talk
    other: _Talk


def compared_shapes(shapes: Iterable[PatternShape]) -> tuple[PatternShape, ...]:
    """The shape that pairs are read for; none where its rule does not run."""
    return tuple(shape for shape in shapes if shape.id == SHAPE)


def paired_windows(rows: Iterable[Row], texts: Texts) -> tuple[SequenceWindow, ...]:
    """The pairs of all speakers of two conversations or more, the most telling first, ``MOST_PAIRS`` at most.

    A speaker is an agent, or the assistants that the source says to be one model. One stretch of a pair is of a
    conversation in which somebody says that the speaker is watched, or in which it is known; the other one of a
    conversation in which it is not, or in which nobody speaks of it. Both hold half the bytes of a window at most.
    """
    pairs = (pair for talks in _speakers(rows, texts) for pair in _best(talks))
    return tuple(_window(pair) for pair in sorted(pairs, key=lambda pair: pair[:4])[:MOST_PAIRS])


def _speakers(rows: Iterable[Row], texts: Texts) -> Iterator[list[_Talk]]:
    homes: dict[str, dict[str, None]] = {}
    assistants = set[str]()
    for row in rows:
        if row.role not in SILENT_ROLES:
            homes.setdefault(row.agent, {})[row.conversation] = None
            if row.role == "assistant":
                assistants.add(row.agent)
    several = {agent: sorted(own)[:TALKS] for agent, own in homes.items() if len(own) > 1}
    alone = sorted((agent, *own) for agent, own in homes.items() if len(own) == 1 and agent in assistants)
    places = [(agent, name) for agent in sorted(several) for name in several[agent]]
    by_speaker: dict[tuple[str, str], list[_Talk]] = {}
    signs: dict[str, dict[str, int]] = {}  # of each conversation, which several speakers may share
    for agent, name in islice(chain(places, alone if len(alone) > 1 else ()), MOST_TALKS):
        messages = texts(name)
        model = next((each.model for each in messages if each.agent == agent and each.model), None)
        speaker = ("agent", agent) if agent in several else ("model", model or "")
        if name not in signs:
            signs[name] = {each.id: sign for each in messages if (sign := _sign(each))}
        talk = _talk(agent, name, messages, signs[name]) if all(speaker) else None
        if talk is not None:
            by_speaker.setdefault(speaker, []).append(talk)
    yield from by_speaker.values()


def _talk(agent: str, name: str, messages: Sequence[Message], signs: Mapping[str, int]) -> _Talk | None:
    """The stretch in which watching is first spoken of, else the first one; None without words of the agent."""
    windows = windows_of(Nomination(agent=agent, conversation=name), messages, MOST_BYTES // 2)
    if not windows:
        return None
    window = next((each for each in windows if any(one.id in signs for one in each.messages)), windows[0])
    others = [each for each in window.messages if each.agent != agent and each.role not in SILENT_ROLES]
    words = (word for each in others or window.messages for word in _WORD.findall(each.text.casefold()))
    return _Talk(agent, window.messages, sum(signs.values()) if signs else None, frozenset(words))


def _sign(message: Message) -> int:
    """1 where a message is watched or says so, -1 where it is not, 0 where nothing is known."""
    if message.observed != "unknown":
        return 1 if message.observed == "yes" else -1
    return says_watched(f"{message.text}\n{message.thinking}" if message.thinking else message.text)


def _best(talks: Sequence[_Talk]) -> Iterator[_Pair]:
    """The most telling pairs of one speaker; a conversation stands in a second one only where it has a new partner."""
    watched = [each for each in talks if each.watched is not None and each.watched > 0]
    unwatched = [each for each in talks if each.watched is not None and each.watched < 0]
    silent = [each for each in talks if each.watched is None]
    both = chain(product(watched, unwatched), product(watched, silent), product(silent, unwatched))
    pairs = sorted((_pair(*each) for each in both), key=lambda pair: pair[:4])
    taken, count = set[str](), 0
    for pair in pairs:
        alike = not pair.one_is_silent or pair.unlike < 1
        if count < PAIRS and alike and not {pair.first, pair.second} <= taken:
            taken |= {pair.first, pair.second}
            count += 1
            yield pair


def _pair(watched: _Talk, other: _Talk) -> _Pair:
    shared, every = len(watched.asked & other.asked), len(watched.asked | other.asked)
    silent = watched.watched is None or other.watched is None
    return _Pair(silent, 1 - shared / max(every, 1), watched.conversation, other.conversation, watched, other)


def _window(pair: _Pair) -> SequenceWindow:
    """Both stretches, the watched one first; one model goes by one name in both."""
    agent, first = pair.watched.agent, pair.watched.messages
    second = (
        msgspec.structs.replace(each, agent=agent) if each.agent == pair.other.agent else each
        for each in pair.other.messages
    )
    return SequenceWindow(agent=agent, messages=(*first, *second), compared=len(first))
