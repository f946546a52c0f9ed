"""Messages that give orders to models and agents that read them, word for word: attacks on readers, or talk of such."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice

from undersong.datafiles.orders_config import agent_orders_config, orders_config
from undersong.datafiles.verdict_config import pattern
from undersong.models import Message, Moment
from undersong.models.verdict import ORDERS, TALK_OF_ORDERS, Profile
from undersong.verdict.any_of import any_of
from undersong.verdict.claims import sentence
from undersong.verdict.transcript import moment, quote, trimmed

LOOKED_AT = 200_000  # characters of a message that are looked at
QUOTED = 5  # orders of a message that are quoted
LONGEST = 300  # characters of a quoted sentence
REMEMBERED = 1_024  # texts, so that a conversation that goes on is not searched again with every message


def orders_to_models(messages: Sequence[Message]) -> Iterator[Moment]:
    """One noted turn for each message that tells models to drop their instructions, with the sentences that do.

    The system, and the user of an assistant, may say so. Where the message speaks of such attacks, too, the turn has
    the code ``talk_of_orders``, else ``orders_to_models``.
    """
    config = orders_config()
    is_assisted = any(message.role == "assistant" for message in messages)
    for message in messages:
        if message.role == "system" or (message.role == "user" and is_assisted):
            continue
        places = _model_orders(message.text)
        if not places:
            continue
        is_talk = pattern((config.talk,)).search(message.text[:LOOKED_AT]) is not None
        title, why = (config.talk_title, config.talk_explanation) if is_talk else (config.title, config.explanation)
        quotes = tuple(quote(message, *place) for place in places)
        yield moment(message, "conduct", TALK_OF_ORDERS if is_talk else ORDERS, title, why, quotes)


@lru_cache(maxsize=REMEMBERED)
def _model_orders(text: str) -> tuple[tuple[int, int], ...]:
    """The sentences that tell models to drop their instructions."""
    config, text = orders_config(), text[:LOOKED_AT]
    lower = text.lower()
    if not any(part in lower for part in config.parts) or not any_of("orders-signs", config.sign).search(text):
        return ()
    orders = islice(any_of("orders", *config.orders).finditer(text), QUOTED)
    return tuple(dict.fromkeys(_place(text, *each.span()) for each in orders))


def _place(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentence of an order without the blanks around it; the order and what follows where that is long."""
    first, last = sentence(text, start, end)
    if last - first > LONGEST:
        first, last = start, min(last, max(end, start + LONGEST))
    return trimmed(text, first, last)


def orders_to_agents(messages: Sequence[Message], profile: Profile) -> Iterator[Moment]:
    """A noted turn for each thing that a message tells the agents that read it to do: hand over keys, send money, put
    its words into their memory, pass it on.

    What stands beside words about such attacks, in quotation marks, or behind a "never" or "it tries to", is none.
    Where a coding agent works such lines are its work; what people ask of each other is told as requests.
    """
    if any(message.tool_calls or message.role in ("user", "assistant") for message in messages):
        return
    roles = ("agent",) if profile == "messenger" else ("agent", "participant")
    for message in messages:
        if message.role in roles:
            yield from _told_agents(message)


def _told_agents(message: Message) -> Iterator[Moment]:
    config = agent_orders_config()
    for name, place in _agent_orders(message.text):
        code, does = config.kinds[name].code, config.kinds[name].does
        why = config.explanation.format(does=does)
        yield moment(message, "conduct", code, config.title.format(does=does), why, (quote(message, *place),))


@lru_cache(maxsize=REMEMBERED)
def _agent_orders(text: str) -> tuple[tuple[str, tuple[int, int]], ...]:
    """The kinds of orders in a text, each with its sentence."""
    config, text = agent_orders_config(), text[: agent_orders_config().looked_at]
    if not pattern((config.sign,)).search(text):
        return ()
    places = {name: place for name in config.kinds if (place := _agent_order(name, text)) is not None}
    if not any(config.kinds[name].alone for name in places):
        return ()
    return tuple((name, _place(text, *place)) for name, place in places.items())


def _agent_order(name: str, text: str) -> tuple[int, int] | None:
    """The first place of a text that gives such an order and is no talk of one."""
    return next((each.span() for each in _agent_patterns(name).finditer(text) if not _is_told(text, each)), None)


def _is_told(text: str, order: re.Match[str]) -> bool:
    """Whether the order is forbidden, quoted, told of somebody, or beside words about such attacks."""
    config, (start, end) = agent_orders_config(), order.span()
    verb = start + len(order[0]) - len(order[0].lstrip(" \n.,:;!?"))
    first = text.rfind("\n", 0, verb) + 1
    line = text[first:verb]
    if line.count('"') % 2 or line.count("“") > line.count("”") or text.startswith(">", first):
        return True
    if pattern((config.undone,)).search(text[max(0, verb - 100) : verb]):
        return True
    before, after = config.around
    near = f"{text[: config.title_length]}\n{text[max(0, start - before) : end + after]}"
    return pattern((config.talk,)).search(near) is not None


@cache
def _agent_patterns(name: str) -> re.Pattern[str]:
    """All patterns of a kind as one."""
    config = agent_orders_config()
    patterns = config.kinds[name].patterns
    for part, words in config.places.items():
        patterns = tuple(one.replace(f"{{{part}}}", words) for one in patterns)
    return pattern(patterns)
