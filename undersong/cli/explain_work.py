"""What ``undersong explain`` says of work: the check, the edit and the claim in their order, with their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from undersong.cli.open_session import open_command
from undersong.core.sanitize import one_line
from undersong.core.text import turn_at
from undersong.models import Bypass, Conversation, LedgerClaim, Message, SessionVerdict
from undersong.report.claims_view import CHECKED, WORDS
from undersong.report.escape import first_upper, moment
from undersong.report.message_times import LOCAL
from undersong.report.opening_sentences import sentences
from undersong.report.opening_work import aside_words

LINES, BEFORE = 12, 4  # lines of an output that are shown, and how many of them before the one that says so
LINE, SENTENCE, COMMAND = 200, 400, 160  # characters of a line, a sentence, a command
EDITS = 3  # edits between a check and a claim that are shown, the last ones
ASKS = ("user", "participant")  # whose message begins a request
STALE = "since the last change"  # in the reason of a claim whose check came too early


class WorkStep(NamedTuple):
    """What happened at a turn: a heading, and lines of the log."""

    position: int
    heading: str
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def work_lines(conversation: Conversation, verdict: SessionVerdict, message_id: str) -> Iterator[str]:
    """The story of the claims and ways round a check of a message, and what opens the session; nothing without them."""
    steps = sorted(dict.fromkeys(_steps(conversation, verdict, message_id)), key=lambda step: step.position)
    if not steps:
        return
    yield f"session: “{one_line(verdict.title or conversation.id, LINE)}”"
    zone = conversation.source_format != LOCAL
    for step in steps:
        message = conversation.messages[step.position]
        time = f", {moment(message.time, zone=zone)}" if message.time else ""
        yield f"{turn_at(step.position)}{time}: {step.heading}"
        yield from (f"  {line}" for line in step.notes)
        yield from (f"    {line}" for line in step.lines)
    yield f"open the session: {_open_words(conversation)}"
    yield ""


def _steps(conversation: Conversation, verdict: SessionVerdict, message_id: str) -> Iterator[WorkStep]:
    messages = conversation.messages
    position = next(message.position for message in messages if message.id == message_id)
    asked = max((each.position for each in messages[:position] if each.role in ASKS), default=-1)
    until = next((each.position for each in messages[position + 1 :] if each.role in ASKS), len(messages))
    claims = [claim for claim in verdict.claims if claim.message_id == message_id]
    items = [item for item in verdict.bypasses if item.message_id == message_id]
    if claims:
        items += [item for item in verdict.bypasses if asked < item.position < position and item.diff]
    elif items:
        claims = [claim for claim in verdict.claims if position < claim.position < until and _checkable(claim)]
    for item in items:
        yield from _bypass_steps(messages, item, verdict)
    places = {message.id: message.position for message in messages}
    for claim in claims:
        yield from _claim_steps(messages, places, claim)


def _checkable(claim: LedgerClaim) -> bool:
    return claim.kind in CHECKED or claim.kind == "fixed"


def _bypass_steps(messages: Sequence[Message], item: Bypass, verdict: SessionVerdict) -> Iterator[WorkStep]:
    if item.failed_check:
        output = _around(messages[item.failed_at].text, item.failed_line)
        yield WorkStep(item.failed_at, f"this failed: {one_line(item.failed_check, COMMAND)}", output)
    place = f" ({one_line(item.path, LINE)})" if item.path else ""
    done = f"{sentences().bypasses[item.kind]}{aside_words(item, verdict)}{place}"
    shown = item.diff or tuple(f"| {one_line(line, LINE)}" for line in item.lines)
    yield WorkStep(item.position, f"way round a check: {done}", shown)


def _claim_steps(messages: Sequence[Message], places: dict[str, int], claim: LedgerClaim) -> Iterator[WorkStep]:
    checked = -1
    for quote in claim.evidence:
        checked = places[quote.message_id]
        by = f": {one_line(claim.check, COMMAND)}" if claim.check else ""
        output = _around(messages[checked].text, quote.text.strip().split("\n", 1)[0])
        yield WorkStep(checked, f"the check{by}" if messages[checked].role == "tool" else "the answer", output)
    if claim.state == "unsupported" and STALE in claim.reason and checked >= 0:
        yield from list(_edits(messages[checked + 1 : claim.position + 1]))[-EDITS:]
    heading = f"claim: {claim.kind}, {WORDS[claim.state]}: “{one_line(claim.sentence.text, SENTENCE)}”"
    thought = (f"before it answered, it wrote: {one_line(claim.thought, SENTENCE)}",) if claim.thought else ()
    yield WorkStep(claim.position, heading, notes=(f"{first_upper(claim.reason.removesuffix('.'))}.", *thought))


def _edits(messages: Sequence[Message]) -> Iterator[WorkStep]:
    """The edits of some messages as lines with - and +."""
    from undersong.pipeline.session_check import edited

    for message in messages:
        for path, lines in edited(message):
            yield WorkStep(message.position, f"an edit of {one_line(path, LINE)}", tuple(lines))


def _around(text: str, line: str) -> tuple[str, ...]:
    """An output from a few lines before the one that says so; its beginning where that is not one of them."""
    lines = [one_line(part, LINE) for part in text.splitlines() if part.strip()]
    wanted = one_line(line, LINE).rstrip("…")
    place = next((number for number, part in enumerate(lines) if wanted and wanted in part), 0)
    first = max(place - BEFORE, 0) if len(lines) > LINES else 0
    shown = [f"| {part}" for part in lines[first : first + LINES]]
    left = len(lines) - first - LINES
    return (*shown, f"… {left:,} more") if left > 0 else tuple(shown)


def _open_words(conversation: Conversation) -> str:
    first = conversation.source_ref or conversation.messages[0].source_ref
    file = first.file if first else conversation.id
    path = Path(file)
    return open_command(conversation.source_format, conversation.id, file, path if path.is_file() else None)
