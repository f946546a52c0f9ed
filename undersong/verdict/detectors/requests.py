"""What one speaker asks of another, word for word, where several kinds of it together are worth a look."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from undersong.core.text import in_words
from undersong.datafiles.stored import stored
from undersong.datafiles.verdict_config import pattern, requests_config
from undersong.models import Message, Moment
from undersong.models.verdict import REQUEST
from undersong.verdict.claims import sentence
from undersong.verdict.required_words import ExpressionFilter, Needs, required_words
from undersong.verdict.transcript import moment, quote, trimmed

Place = tuple[int, int]
Asked = dict[str, list[tuple[Message, Place]]]  # kind → the messages with their first place of it
FLAGS = re.IGNORECASE | re.MULTILINE
NOT_PEOPLE = frozenset({"system", "tool"})


def requests(every: Sequence[Message]) -> Iterator[Moment]:
    """One noted turn for each message with a request of a speaker whose requests together are worth a look.

    Worth a look are those of at least two kinds that are not weak, one of them grave, in at least two messages
    (``requests.yaml``). What the user asks of an assistant is no request between people, and is left out.
    """
    spoken = [message for message in every if message.branch is None]
    is_assisted = any(message.role == "assistant" for message in spoken)
    speakers: dict[str, list[Message]] = {}
    for message in spoken:
        if message.role not in NOT_PEOPLE and not (message.role == "user" and is_assisted):
            speakers.setdefault(message.agent, []).append(message)
    for messages in speakers.values():
        if len(messages) >= requests_config().messages:
            yield from _noted(_asked(messages))


def _asked(messages: list[Message]) -> Asked:
    """What a speaker asks, by kind; nothing where none of it is grave, as of nearly everybody."""
    config = requests_config()
    possible = _possible(messages)
    grave = {name for name, kind in config.asks.items() if kind.weight == "grave"}
    asked = {name: _places(name, possible.get(name, [])) for name in config.asks if name in grave}
    if any(asked.values()):
        asked |= {name: _places(name, possible.get(name, [])) for name in config.asks if name not in grave}
    return {name: asked[name] for name in config.asks if asked.get(name)}


def _possible(messages: list[Message]) -> dict[str, list[Message]]:
    """For each kind the messages in which one of its patterns matches."""
    found_in: dict[str, list[Message]] = {}
    for message in messages:
        for name in _matched(_folded(message)):
            found_in.setdefault(name, []).append(message)
    return found_in


@lru_cache(maxsize=4_096)  # a conversation that goes on is looked at again with each message
def _matched(text: str) -> frozenset[str]:
    expressions = _expressions()
    possible = (expressions[place] for place in _filter().possible(text))
    return frozenset(kind for kind, expression in possible if _compiled(expression).search(text))


def _noted(asked: Asked) -> Iterator[Moment]:
    config = requests_config()
    ids = {message.id for places in asked.values() for message, _ in places}
    strong = [name for name in asked if config.asks[name].weight != "weak"]
    if len(ids) < config.messages or len(strong) < config.kinds:
        return
    together = f"In this conversation the speaker {in_words([config.asks[name].does for name in asked])}."
    for name, places in asked.items():
        does = config.asks[name].does
        for message, place in places:
            title = does[0].upper() + does[1:]
            yield moment(message, "conduct", REQUEST, title, together, (quote(message, *place),))


def _places(name: str, messages: list[Message]) -> list[tuple[Message, Place]]:
    """The messages that ask so, each with the first sentence that does."""
    places = ((message, request_place(name, message)) for message in messages)
    return [(message, place) for message, place in places if place is not None]


def request_place(name: str, message: Message) -> Place | None:
    """The first sentence of a message with a kind of request, None where it has none."""
    kind, text = requests_config().asks[name], _folded(message)
    if kind.unless and pattern((kind.unless,)).search(text):
        return None
    match = next(
        (one for one in _pattern(name).finditer(text) if not is_undone(kind.negatable, text, one.start())), None
    )
    return None if match is None else trimmed(text, *sentence(text, *match.span()))


def _folded(message: Message) -> str:
    """The part of a text that is looked at, place by place, with the apostrophe of a keyboard for that of a phone."""
    return message.text[: requests_config().looked_at].replace("’", "'")


def is_undone(negatable: bool, text: str, start: int) -> bool:
    """Whether what stands right before a place says that it is none, such as a warning or another's words."""
    return negatable and pattern((requests_config().negation,)).search(text[max(0, start - 60) : start]) is not None


@cache
def _filter() -> ExpressionFilter:
    """Most messages need no search: they lack the words without which no pattern matches."""
    return ExpressionFilter(stored("requests-words", repr(_expressions()).encode(), tuple[Needs, ...], _needs))


def _needs() -> tuple[Needs, ...]:
    return tuple(required_words(expression) for _, expression in _expressions())


@cache
def _expressions() -> tuple[tuple[str, str], ...]:
    """Every pattern with its kind before it."""
    return tuple((name, one) for name in requests_config().asks for one in _whole(name))


@cache  # of hundreds, an ordinary conversation needs a few
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, FLAGS)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """All patterns of a kind as one."""
    return re.compile("|".join(f"(?:{one})" for one in _whole(name)), FLAGS)


def _whole(name: str) -> tuple[str, ...]:
    """The patterns of a kind with what stands for sums, money and others."""
    config = requests_config()
    money = config.money.replace("{sum}", config.sum)
    parts = {"sum": config.sum, "money": money, "others": config.others}
    patterns = config.asks[name].patterns
    for part, words in parts.items():
        patterns = tuple(one.replace(f"{{{part}}}", words) for one in patterns)
    return patterns
