"""Messages that give orders to models that read them, word for word: attacks on whoever reads on, or talk of such."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from undersong.datafiles.verdict_config import orders_config, pattern
from undersong.models import Moment
from undersong.models.verdict import ORDERS, TALK_OF_ORDERS
from undersong.verdict.claims import sentence
from undersong.verdict.transcript import Transcript, moment, quote

LOOKED_AT = 200_000  # characters of a message that are looked at
QUOTED = 5  # orders of a message that are quoted
LONGEST = 300  # characters of a quoted sentence


def orders_to_models(transcript: Transcript) -> Iterator[Moment]:
    """One noted turn for each message that tells models to drop their instructions, with the sentences that do.

    The system, and the user of an assistant, may say so. Where the message speaks of such attacks, too, the turn has
    the code ``talk_of_orders``, else ``orders_to_models``.
    """
    config = orders_config()
    orders, talk, sign = pattern(config.orders), pattern((config.talk,)), pattern((config.sign,))
    is_assisted = any(turn.message.role == "assistant" for turn in transcript.turns)
    for turn in transcript.turns:
        message, text = turn.message, turn.message.text[:LOOKED_AT]
        if message.role == "system" or (message.role == "user" and is_assisted):
            continue
        if not sign.search(text):
            continue
        places = dict.fromkeys(_place(text, *each.span()) for each in islice(orders.finditer(text), QUOTED))
        if not places:
            continue
        is_talk = talk.search(text) is not None
        title, why = (config.talk_title, config.talk_explanation) if is_talk else (config.title, config.explanation)
        quotes = tuple(quote(message, *place) for place in places)
        yield moment(message, "conduct", TALK_OF_ORDERS if is_talk else ORDERS, title, why, quotes)


def _place(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentence of an order without the blanks around it; the order and what follows where that is long."""
    first, last = sentence(text, start, end)
    if last - first > LONGEST:
        first, last = start, min(last, max(end, start + LONGEST))
    words = text[first:last]
    return first + len(words) - len(words.lstrip()), last - (len(words) - len(words.rstrip()))
