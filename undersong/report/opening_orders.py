"""What a first screen says of orders to whoever reads a message: one thing to look at for each speaker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from undersong.core.sanitize import one_line
from undersong.core.text import counted, in_words
from undersong.models import Case, Moment, SessionVerdict
from undersong.models.verdict import AGENT_ORDERS, ORDERS, SPREADS
from undersong.patterns.order_leads import order_lead_id, what_is_ordered
from undersong.report.opening_choice import Point
from undersong.report.opening_phrases import at_turn, name_of, sentence_start, session_name
from undersong.report.opening_sentences import sentences

ORDER = 100  # characters of an order to models within a sentence


class Order(NamedTuple):
    """A noted turn with the session that it is in."""

    session: SessionVerdict
    turn: Moment


def model_orders(case: Case) -> Iterator[Point]:
    """Who tells models that read it to drop their instructions, and nothing graver, the most orders first."""
    graver = _by_speaker(case, (AGENT_ORDERS,))
    speakers = {name: own for name, own in _by_speaker(case, (ORDERS,)).items() if name not in graver}
    for own in sorted(speakers.values(), key=lambda own: -sum(len(order.turn.quotes) for order in own)):
        strongest = max(own, key=lambda order: len(order.turn.quotes))
        who = name_of(strongest.turn.agent, strongest.session.conversation)
        words = one_line(strongest.turn.quotes[0].text, ORDER)
        orders = f"{sentences().moments[ORDERS].format(who=who)}: “{words}”"
        yield _point(case, own, strongest, orders, strongest.turn.quotes[-1].text, ORDERS)


def agent_orders(case: Case, code: str) -> Iterator[Point]:
    """Who tells agents that read it to hand over keys or money; or, with that code, to keep its words or pass them on.

    Who does both is told once, under the first; the most kinds of orders first.
    """
    codes = (AGENT_ORDERS, SPREADS, ORDERS) if code == AGENT_ORDERS else (AGENT_ORDERS, SPREADS)
    for own in sorted(_by_speaker(case, codes).values(), key=lambda own: -len(_kinds(own))):
        grave = [order for order in own if order.turn.code == AGENT_ORDERS]
        if bool(grave) is (code == AGENT_ORDERS) and any(order.turn.code != ORDERS for order in own):
            strongest = (grave or own)[0]
            who = name_of(strongest.turn.agent, strongest.session.conversation)
            orders = sentences().moments[AGENT_ORDERS].format(who=who, does=in_words(_kinds(own)))
            yield _point(case, own, strongest, orders, strongest.turn.quotes[0].text, code)


def _by_speaker(case: Case, codes: tuple[str, ...]) -> dict[str, list[Order]]:
    speakers: dict[str, list[Order]] = {}
    for session in case.sessions:
        for item in session.moments:
            if item.code in codes and item.quotes:
                speakers.setdefault(item.agent, []).append(Order(session, item))
    return speakers


def _kinds(own: list[Order]) -> list[str]:
    """What readers are told to do, each once, keys and money first."""
    ordered = sorted(own, key=lambda order: order.turn.code != AGENT_ORDERS)
    return list(dict.fromkeys(what_is_ordered(order.turn) for order in ordered))


def _point(case: Case, own: list[Order], strongest: Order, orders: str, quote: str, code: str) -> Point:
    session, turn = strongest
    lead_id = order_lead_id(session.conversation, turn.agent)
    messages = {(order.session.conversation, order.turn.message_id) for order in own}
    place = at_turn(case, session, turn.position)
    where = place if len(messages) == 1 else f"{counted(len(messages), 'message')}, first {place}"
    return Point(
        kind="moment",
        sentence=f"{sentence_start(orders)} ({where}).",
        sure=sentences().how_sure[code],
        quote=quote,
        speaker=name_of(turn.agent, session.conversation),
        conversation=session.conversation,
        message_id=turn.message_id,
        id=turn.message_id,
        title=session_name(session),
        state="lead" if code == SPREADS else "finding",
        lead_id=lead_id,
        rank=next((lead.rank for lead in case.leads if lead.id == lead_id), 0),
    )
