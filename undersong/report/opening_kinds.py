"""What a first screen says is in the messages of a lead: each kind with how often, when, and one or two sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from undersong.core.text import turns_listed
from undersong.datafiles.verdict_config import harm_kinds_config
from undersong.models import Case, Lead, LeadKind, Message, Quote
from undersong.models.lead import told_apart
from undersong.report.message_times import MessageTimes
from undersong.report.opening_choice import DatedLine, KindLines, Point
from undersong.report.opening_phrases import name_of, times_words, whole
from undersong.report.opening_sentences import sentences

DAY = 10  # characters of a date
LISTED = 200  # sentences of a kind that are listed
ANSWER = "the answer"  # why a line of the other side is shown


def kinds_of_leads(case: Case, times: MessageTimes) -> dict[str, tuple[KindLines, ...]]:
    """Lead id → what is in the messages of its speaker, for those leads of which that is known."""
    messages = {(message.conversation, message.id): message for message in case.cited}
    return {lead.id: tuple(_lines(lead, messages, times)) for lead in case.leads if lead.kinds}


def _lines(lead: Lead, messages: Mapping[tuple[str, str], Message], times: MessageTimes) -> Iterator[KindLines]:
    home = lead.conversation or ""
    for kind in lead.kinds:
        cited = [messages[home, name] for name in kind.message_ids if (home, name) in messages]
        every = tuple(_line(quote, home, messages, times, "") for quote in kind.quotes)
        shown = [(quote, "") for quote in told_apart(kind.quotes, harm_kinds_config().quotes)]
        shown += [(quote, ANSWER) for quote in kind.answers]
        places = {name: message.position for (where, name), message in messages.items() if where == home}
        shown.sort(key=lambda one: places.get(one[0].message_id, 0))
        lines = tuple(_line(quote, home, messages, times, why) for quote, why in shown)
        yield KindLines(kind.does, _when(kind, cited, times), lines, every[:LISTED])


def _when(kind: LeadKind, cited: list[Message], times: MessageTimes) -> str:
    """``at least 3 times, 2025-02-27 to 2025-05-11``; turns where no time is known. Other wordings may be missed."""
    often = f"at least {times_words(len(kind.message_ids))}"
    days = [day for message in cited if (day := times.of(message)[:DAY])]
    if days:
        return f"{often}, {days[0] if days[0] == days[-1] else f'{days[0]} to {days[-1]}'}"
    return f"{often}, {turns_listed(sorted({message.position for message in cited}))}" if cited else often


def _line(
    quote: Quote, home: str, messages: Mapping[tuple[str, str], Message], times: MessageTimes, why: str
) -> DatedLine:
    message = messages.get((home, quote.message_id))
    words = whole(quote.text, message.text if message else None)
    if message is None:
        return DatedLine(quote.message_id, "", words, why)
    return DatedLine(quote.message_id, name_of(message.agent, home), words, why, times.of(message))


def with_kinds_of(point: Point, kinds: tuple[KindLines, ...]) -> Point:
    """A point with what is in the messages of its lead, whose sentences stand in place of its own lines.

    The lines of exact words stay, since each says its kind, and what they say is not said again.
    """
    if not kinds:
        return point
    head = sentences().kinds_head.format(who=kinds[0].lines[0].speaker)
    if point.kind == "lead":
        first = kinds[0].lines[0]
        return msgspec.structs.replace(
            point, kinds_head=head, kinds=kinds, lines=(), quote=first.quote, speaker=first.speaker, when=first.when,
            message_id=first.message_id, id=first.message_id,
        )  # fmt: skip
    noted = {why for line in point.lines for why in line.why.split("; ")}
    others = tuple(kind for kind in kinds if kind.does not in noted)
    return msgspec.structs.replace(point, kinds_head=head, kinds=others) if others else point
