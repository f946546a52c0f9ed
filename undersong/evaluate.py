"""Ask a judge about the routed messages; what it answered before is not asked again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from undersong.judges import Judge, Question
from undersong.models import Conversation, Evaluation, Message, Noun, Route, Scan, ThreadScan

PRIOR_MESSAGES = 5  # for deep reading: the first seed's "3-5", always the same number so that scores compare


class Thread(Noun, frozen=True, kw_only=True):
    """A conversation with what scan and route said of it; all aligned with its messages."""

    conversation: Conversation
    scans: tuple[Scan, ...]
    thread: ThreadScan
    routes: tuple[Route, ...]


class Ledger(Protocol):
    """Where answers are kept."""

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]: ...

    def put_answers(self, answers: Sequence[tuple[str, Evaluation]]) -> None: ...


class Answers(Noun, frozen=True, kw_only=True):
    """The evaluations of some threads, each aligned with its messages; ``asked`` counts those asked just now."""

    evaluations: tuple[tuple[Evaluation, ...], ...]
    asked: int = 0


def evaluate(threads: Sequence[Thread], judge: Judge, ledger: Ledger, *, read_all: bool = False) -> Answers:
    """One Evaluation per message: read now, read before, or unread with the reason.

    Everything is read with ``read_all``, else what is routed; so an answer kept from a run that read more is used only
    where this one reads. New answers are kept in the ledger in one transaction before they are used.
    """
    known = [_known(thread, judge, ledger, read_all) for thread in threads]
    asked = [
        (place, question)
        for place, thread in enumerate(threads)
        for question in _questions(thread, read_all)
        if question.message.id not in known[place]
    ]
    new = judge.evaluate([question for _, question in asked]) if asked else []
    pairs = list(zip(asked, new, strict=True))
    if pairs:
        ledger.put_answers([(question.message.conversation, answer) for (_, question), answer in pairs])
    for (place, _), answer in pairs:
        known[place][answer.message_id] = answer
    evaluations = tuple(
        tuple(found.get(message.id) or unread(message, judge) for message in thread.conversation.messages)
        for thread, found in zip(threads, known, strict=True)
    )
    return Answers(evaluations=evaluations, asked=len(pairs))


def message_hash(message: Message) -> str:
    """SHA-256 of a message's text in UTF-8."""
    return hashlib.sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()


def unread(message: Message, judge: Judge) -> Evaluation:
    """The state of a message that the router left out."""
    return Evaluation(
        message_id=message.id,
        state="unread",
        judge=judge.name,
        judge_hash=judge.hash,
        message_hash=message_hash(message),
        width="none",
        reason="not routed: no flag or signal asks for it within the budget, and not in the audit sample",
    )


def _known(thread: Thread, judge: Judge, ledger: Ledger, read_all: bool) -> dict[str, Evaluation]:
    """Stored answers that still hold: the same judge read the same text."""
    stored = ledger.answers(thread.conversation.id, judge.hash)
    if not stored:
        return {}
    return {
        message.id: stored[message.id]
        for message, route in zip(thread.conversation.messages, thread.routes, strict=True)
        if (read_all or route.depth != "skip")
        and message.id in stored
        and stored[message.id].message_hash == message_hash(message)
    }


def _questions(thread: Thread, read_all: bool) -> list[Question]:
    messages = thread.conversation.messages
    return [
        Question(message=message, scan=scan, route=route, prior=_prior(messages, index, route))
        for index, (message, scan, route) in enumerate(zip(messages, thread.scans, thread.routes, strict=True))
        if read_all or route.depth != "skip"
    ]


def _prior(messages: tuple[Message, ...], index: int, route: Route) -> tuple[Message, ...]:
    if route.width not in {"prior_messages", "thread_and_history"}:
        return ()
    return messages[max(0, index - PRIOR_MESSAGES) : index]
