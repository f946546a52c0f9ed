"""What of a session is put to a judge a second time: each flagged place, with the messages that bear on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from undersong.judges import Segment
from undersong.models import Conversation, Deduction, Message, Moment, SessionVerdict

TURNS_ROUND = frozenset(
    {"epistemic_instability", "epistemic_drift"}
)  # one speaker says a thing, and later its opposite
ALONE = frozenset({"semantic_camouflage"})  # one message shows it; the others are context
BEFORE, AFTER = 4, 2  # messages around a place that are shown as context


def segments(conversation: Conversation, verdict: SessionVerdict) -> tuple[Segment, ...]:
    """One for each deduction and candidate, in the order of the talk; repeats of one episode are asked about once.

    A turnabout is put as two messages of its speaker, at any distance; a promise or a blame as the message and the one
    that contradicts it, where that is another; anything else as the message alone.
    """
    messages = [message for message in conversation.messages if message.branch is None]
    places = {message.id: place for place, message in enumerate(messages)}
    by_episode: dict[tuple[str, str], Segment] = {}
    for mechanism, episode, claim in _flagged(verdict):
        shown = _shown(mechanism, claim, messages, places)
        if shown:
            around = _around(claim, shown, messages, places)
            segment = Segment(mechanism=mechanism, messages=shown, around=around, at=claim.message_id)
            by_episode.setdefault((mechanism, episode), segment)
    return tuple(sorted(by_episode.values(), key=lambda entry: (places[entry.at], entry.mechanism)))


def _flagged(verdict: SessionVerdict) -> Iterator[tuple[str, str, Deduction | Moment]]:
    """Mechanism, episode and claim."""
    for deduction in verdict.deductions:
        yield deduction.mechanism, deduction.episode or deduction.message_id, deduction
    for moment in verdict.moments:
        if moment.kind == "candidate":
            yield moment.code, moment.message_id, moment


def _shown(
    mechanism: str, claim: Deduction | Moment, messages: Sequence[Message], places: dict[str, int]
) -> tuple[Message, ...]:
    """The message and, where the mechanism lies between two, the other one; () where that one is missing."""
    turn = messages[places[claim.message_id]]
    quoted = [messages[places[name]] for name in _quoted(claim) if name in places and name != turn.id]
    if mechanism in TURNS_ROUND:
        earlier = [each for each in quoted if each.agent == turn.agent and places[each.id] < places[turn.id]]
        before = _before(turn, quoted, messages, places)
        other = earlier[0] if earlier else before
        return () if other is None else (other, turn)
    if mechanism in ALONE or not quoted:
        return (turn,)
    return tuple(sorted((turn, quoted[0]), key=lambda message: places[message.id]))


def _quoted(claim: Deduction | Moment) -> tuple[str, ...]:
    return tuple(dict.fromkeys(quote.message_id for quote in claim.quotes))


def _before(
    turn: Message, quoted: Sequence[Message], messages: Sequence[Message], places: dict[str, int]
) -> Message | None:
    """What the speaker said last before the other side's words that are quoted, or else before anybody answered."""
    others = [places[each.id] for each in quoted if places[each.id] < places[turn.id]]
    asked = (place for place in range(places[turn.id] - 1, -1, -1) if messages[place].agent != turn.agent)
    end = min(others) if others else next(asked, 0)
    return next((each for each in reversed(messages[:end]) if each.agent == turn.agent and each.text.strip()), None)


def _around(
    claim: Deduction | Moment, shown: Sequence[Message], messages: Sequence[Message], places: dict[str, int]
) -> tuple[Message, ...]:
    """What else the claim quotes, and the nearest messages; of two shown ones those between them."""
    at = places[claim.message_id]
    first = places[shown[0].id] if len(shown) > 1 else 0
    last = places[shown[-1].id] if len(shown) > 1 else len(messages) - 1
    near = [*range(max(first, at - BEFORE), at), *range(at + 1, min(last, at + AFTER) + 1)]
    wanted = {*near, *(places[name] for name in _quoted(claim) if name in places)}
    own = {each.id for each in shown}
    return tuple(
        messages[place] for place in sorted(wanted) if messages[place].id not in own and messages[place].text.strip()
    )
