"""What is in the messages of a speaker, kind by kind and word for word; said only of those who are leads already."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache

from undersong.datafiles.verdict_config import HarmKind, harm_kinds_config, pattern
from undersong.models import LeadKind, Message, Quote
from undersong.models.lead import told_apart
from undersong.verdict.claims import sentence
from undersong.verdict.detectors.requests import FLAGS, is_undone, request_place
from undersong.verdict.transcript import quote, trimmed

Place = tuple[int, int]
Placed = tuple[Message, Place]
ASSISTANT = "assistant"
ANSWERED = 12.0  # hours within which what the other writes is an answer
_APOSTROPHE = re.compile(r"'(?!\?)")  # phones leave it out


def harm_kinds(messages: Sequence[Message], agent: str) -> tuple[LeadKind, ...]:
    """The kinds of harm that words of ``agent`` name in a conversation, in the order of ``harm_kinds.yaml``.

    ``messages`` are those of the whole conversation in their order, since what the others answer is shown, too.
    """
    spoken = [message for message in messages if message.branch is None and message.text.strip()]
    own = [message for message in spoken if message.agent == agent]
    whose = "assistants" if own and own[0].role == ASSISTANT else "people"
    return tuple(_kinds(spoken, own, agent, whose))


def _kinds(spoken: Sequence[Message], own: Sequence[Message], agent: str, whose: str) -> Iterator[LeadKind]:
    config = harm_kinds_config()
    for name, kind in config.kinds.items():
        if kind.of == whose and len(places := _places(name, kind, own)) >= kind.least:
            yield _lead_kind(name, kind.does, places, spoken, agent)
    if whose == "people" and (waits := list(_unanswered(spoken, agent))):
        yield LeadKind(
            kind="unanswered",
            does=config.unanswered.does,
            message_ids=tuple(message.id for message in waits),
            quotes=tuple(quote(message, *_whole(message)) for message in waits),
        )


def _lead_kind(name: str, does: str, places: Sequence[Placed], spoken: Sequence[Message], agent: str) -> LeadKind:
    quotes = tuple(quote(message, *place) for message, place in places)
    shown = [each.message_id for each in told_apart(quotes, harm_kinds_config().quotes)]
    answers = (_answer(message, spoken, agent) for message, _ in places if message.id in (shown[0], shown[-1]))
    return LeadKind(
        kind=name,
        does=does,
        message_ids=tuple(message.id for message, _ in places),
        quotes=quotes,
        answers=tuple(answer for answer in answers if answer is not None),
    )


def _answer(message: Message, spoken: Sequence[Message], agent: str) -> Quote | None:
    """What the next other speaker writes right after a message."""
    after = next((one for one in spoken if one.position > message.position), None)
    if after is None or after.agent == agent or _hours(message, after) > ANSWERED:
        return None
    return quote(after, *_whole(after))


def _whole(message: Message) -> Place:
    return trimmed(message.text, 0, len(message.text))


def _places(name: str, kind: HarmKind, own: Sequence[Message]) -> list[Placed]:
    places = {message.id: place for message in own if (place := _place(name, kind, message)) is not None}
    if places and kind.beside:
        for message in own:
            beside = _beside(name).search(_folded(message))
            if message.id not in places and beside is not None:
                places[message.id] = trimmed(message.text, *sentence(_folded(message), *beside.span()))
    return [(message, places[message.id]) for message in own if message.id in places]


def _place(name: str, kind: HarmKind, message: Message) -> Place | None:
    text = _folded(message)
    asked = (request_place(request, message) for request in kind.requests)
    place = next((one for one in asked if one is not None), None)
    if place is not None or not kind.patterns or (kind.unless and pattern((kind.unless,)).search(text)):
        return place
    matches = _pattern(name).finditer(text)
    match = next((one for one in matches if not is_undone(kind.negatable, text, one.start())), None)
    return None if match is None else trimmed(text, *sentence(text, *match.span()))


def _unanswered(spoken: Sequence[Message], agent: str) -> Iterator[Message]:
    """Of each long silence of the speaker the last message in which the other asks what is wrong."""
    rule, expression = harm_kinds_config().unanswered, _compiled(harm_kinds_config().unanswered.patterns)
    since: Message | None = None
    asked: list[Message] = []
    for message in spoken:
        if message.agent != agent:
            asked += [message] if since is not None and expression.search(_folded(message)) else []
            continue
        if len(asked) >= rule.asked and _hours(asked[0], message) >= rule.hours:
            yield asked[-1]
        since, asked = message, []


def _hours(first: Message, last: Message) -> float:
    return 0.0 if first.time is None or last.time is None else (last.time - first.time) / timedelta(hours=1)


def _folded(message: Message) -> str:
    return message.text[: harm_kinds_config().looked_at].replace("’", "'")


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return _compiled(harm_kinds_config().kinds[name].patterns)


@cache
def _beside(name: str) -> re.Pattern[str]:
    return _compiled(harm_kinds_config().kinds[name].beside)


@cache
def _compiled(expressions: tuple[str, ...]) -> re.Pattern[str]:
    """Some patterns as one, with what stands for people and for how phones write; apostrophes may be left out."""
    config = harm_kinds_config()
    whole = "|".join(f"(?:{one})" for one in expressions)
    for part, words in {"circle": config.circle, "your": config.your, "you": config.you, "im": config.im}.items():
        whole = whole.replace(f"{{{part}}}", words)
    return re.compile(_APOSTROPHE.sub("'?", whole.replace("{your}", config.your)), FLAGS)
