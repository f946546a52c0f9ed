"""Outcomes of findings: did the agent then ask the target for something, and what was answered? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from undersong.core.text import text_hash
from undersong.datafiles.yaml_loader import RULES, read
from undersong.models import Answer, Finding, Message, Outcome, Quote

FILE = RULES / "outcomes.yaml"
BEFORE, AFTER = 80, 160  # characters of a quote around its phrase


class PhraseExamples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Texts in which a kind of phrase is found, and ones in which it is not."""

    hits: tuple[str, ...]
    near_misses: tuple[str, ...]


class OutcomeBook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``rules/outcomes.yaml``: phrases of asking, refusing and complying, and how far a request is looked for."""

    within: int
    asks: tuple[str, ...]
    refuses: tuple[str, ...]
    complies: tuple[str, ...]
    cases: dict[str, PhraseExamples]


@cache
def outcome_book() -> OutcomeBook:
    """The shipped phrases, read once; raises RuleError with file and line."""
    return read(FILE, OutcomeBook)


def phrase_span(kind: str, text: str) -> tuple[int, int] | None:
    """The span of the first phrase of ``asks``, ``refuses`` or ``complies`` in a text."""
    match = _phrases(kind).search(text.replace("’", "'"))
    return match.span() if match else None


def with_outcome(finding: Finding, messages: Iterable[Message]) -> Finding:
    """The finding with its outcome, from all messages of its conversations; unchanged where it has no target.

    A request is the agent's first message with a phrase of asking that is aimed at the target, or public where the
    target speaks too, after the first message of the finding. The answer is the target's reply to it, or else its next
    message in that conversation.
    """
    if finding.target is None:
        return finding
    ordered = sorted(messages, key=lambda m: (m.time is not None, m.time and m.time.timestamp(), m.position, m.id))
    request, place = _request(finding, ordered)
    if request is None:
        return msgspec.structs.replace(finding, outcome=Outcome(answer="no_request"))
    reply = _reply(request, finding.target, ordered[place + 1 :])
    return msgspec.structs.replace(
        finding,
        outcome=Outcome(
            answer=_answer(reply),
            conversation=request.conversation,
            request=_quote(request, phrase_span("asks", request.text)),
            reply=_quote(reply, phrase_span("refuses", reply.text) or phrase_span("complies", reply.text))
            if reply
            else None,
        ),
    )


def _request(finding: Finding, ordered: Sequence[Message]) -> tuple[Message | None, int]:
    bound = set(zip(finding.message_conversations, finding.message_ids, strict=True))
    places = [place for place, message in enumerate(ordered) if (message.conversation, message.id) in bound]
    if not places:
        return None, 0
    shared = {message.conversation for message in ordered if message.agent == finding.target}
    for place in range(places[0] + 1, min(len(ordered), places[-1] + 1 + outcome_book().within)):
        message = ordered[place]
        aimed = message.target == finding.target or (message.target is None and message.conversation in shared)
        if message.agent == finding.agent and aimed and phrase_span("asks", message.text):
            return message, place
    return None, 0


def _reply(request: Message, target: str, later: Sequence[Message]) -> Message | None:
    own = [each for each in later if each.agent == target and each.conversation == request.conversation]
    direct = (each for each in own if each.reply_to == request.id)
    return next(direct, None) or next(iter(own), None)


def _answer(reply: Message | None) -> Answer:
    if reply is None:
        return "not_answered"
    refused, complied = phrase_span("refuses", reply.text), phrase_span("complies", reply.text)
    if (refused is None) == (complied is None):
        return "unclear"
    return "refused" if refused else "complied"


def _quote(message: Message, span: tuple[int, int] | None) -> Quote:
    first, last = span or (0, 0)
    start, end = max(0, first - BEFORE), min(len(message.text), last + AFTER)
    text = message.text
    return Quote(message_id=message.id, text=text[start:end], start=start, end=end, sha256=text_hash(text))


@cache
def _phrases(kind: str) -> re.Pattern[str]:
    phrases: tuple[str, ...] = getattr(outcome_book(), kind)
    words = (r"\s+".join(map(re.escape, phrase.split())) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)
