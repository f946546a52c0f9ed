"""Each message of a report beside the same message of the inputs: who said it to whom, when, and at which place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from undersong.core.hashing import text_hash
from undersong.models import Conversation, Message, Row
from undersong.report.writer import CASE, CONVERSATIONS, EVALUATIONS
from undersong.verify.content import Content
from undersong.verify.manifest_check import Discrepancy

# source_ref is left out, since a report may be checked elsewhere than where it was made
FACTS = ("position", "author", "agent", "role", "target", "time", "reply_to", "branch", "observed", "model", "latency",
         "tokens", "tool_calls", "tool_results")  # fmt: skip
LONG = frozenset({"tool_calls", "tool_results"})  # named without their values
Turn = Message | Row


class ReportPart(NamedTuple):
    """What one file of the report holds of a conversation; ``whole`` where it must hold every message."""

    file: str
    turns: list[Turn]
    whole: bool


def parts_of(content: Content) -> dict[str, list[ReportPart]]:
    """Conversation → what each file of the report holds of it."""
    parts: dict[str, list[ReportPart]] = {}
    for conversation in content.conversations:
        parts.setdefault(conversation.id, []).append(ReportPart(CONVERSATIONS, list(conversation.messages), whole=True))
    for file, turns, whole in ((EVALUATIONS, content.rows, True), (CASE, content.case.cited, False)):
        for name, grouped in _by_conversation(turns).items():
            parts.setdefault(name, []).append(ReportPart(file, grouped, whole))
    return parts


def unlike_input(parts: Sequence[ReportPart], conversation: Conversation) -> Iterator[Discrepancy]:
    """How the messages of a report differ from a conversation of the inputs; each difference once."""
    differences: dict[Discrepancy, None] = {}
    own = {message.id: message for message in conversation.messages}
    for part in parts:
        for turn in part.turns:
            if turn.id in own:
                differences |= dict.fromkeys(_facts(turn, own[turn.id]))
            else:
                differences[Discrepancy(what=f"is in {part.file} and in no input", where=turn.id)] = None
        if part.whole:
            differences |= dict.fromkeys(_order(part, list(own)))
    yield from differences


def unknown(parts: Mapping[str, Sequence[ReportPart]], conversations: Sequence[str]) -> Iterator[Discrepancy]:
    """Conversations of the report that none of the inputs has."""
    for name in parts.keys() - set(conversations):
        for part in parts[name]:
            yield Discrepancy(what=f"is in {part.file} and in no input", where=f"conversation {name}")


def _by_conversation(turns: Sequence[Turn]) -> dict[str, list[Turn]]:
    grouped: dict[str, list[Turn]] = {}
    for turn in turns:
        grouped.setdefault(turn.conversation, []).append(turn)
    return grouped


def _facts(turn: Turn, own: Message) -> Iterator[Discrepancy]:
    for name in FACTS:
        actual, expected = getattr(turn, name, getattr(own, name)), getattr(own, name)
        if actual != expected:
            values = {} if name in LONG else {"expected": _shown(expected), "found": _shown(actual)}
            yield Discrepancy(what=f"{name} does not agree with the input", where=turn.id, **values)
    if isinstance(turn, Message) and text_hash(turn.text) != text_hash(own.text):
        yield Discrepancy(what="text does not agree with the input", where=turn.id)


def _order(part: ReportPart, own: Sequence[str]) -> Iterator[Discrepancy]:
    """Messages that a file leaves out or holds at another place, counted from 1 among those that both have."""
    input_ids = set(own)
    reported = [turn.id for turn in part.turns if turn.id in input_ids]
    present = set(reported)
    both = [each for each in own if each in present]
    for message_id in own:
        if message_id not in present and part.file != EVALUATIONS:  # rows that are missing are named by the scan
            yield Discrepancy(what=f"is in the inputs and not in {part.file}", where=message_id)
    for place, message_id in enumerate(reported):
        if both[place : place + 1] != [message_id]:
            sides = {"expected": str(both.index(message_id) + 1), "found": str(place + 1)}
            yield Discrepancy(what=f"place in {part.file} does not agree with the input", where=message_id, **sides)


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "none" if value is None else str(value)
