"""What is in a message, in words: what its speaker does in it, what rests on it, and what a judge that reads said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from undersong.core.sanitize import one_line
from undersong.core.text import plain_name
from undersong.models import Message
from undersong.models.verdict import REQUEST
from undersong.report.narrative import moment_label
from undersong.report.sureness import lead_words, sure_words

if TYPE_CHECKING:
    from undersong.models import Evaluation, Lead, Scan, SessionVerdict
    from undersong.stores.protocol import Store

QUOTED = 200  # characters of a quote or a reason
NOTHING = "Nothing in its words was noted, and nothing that was found rests on it."


def in_words(
    store: Store,
    message: Message,
    scan: Scan,
    verdict: SessionVerdict,
    leads: Sequence[Lead],
    evaluations: Sequence[Evaluation],
) -> Iterator[str]:
    """What a person would want to know of a message, before any number; a line that says so where that is nothing."""
    lines = [
        *_moment_lines(verdict, message.id),
        *_kind_lines(leads, message),
        *_label_lines(scan, message),
        *(line for each in evaluations for line in _reading_lines(each)),
        *_resting_lines(store, message, leads),
    ]
    yield from lines or [NOTHING]


def _moment_lines(verdict: SessionVerdict, message_id: str) -> Iterator[str]:
    """What is noted at the turn; requests have lines of their own."""
    for moment in verdict.moments:
        if moment.message_id == message_id and moment.code != REQUEST and moment.quotes:
            yield f"noted: {moment_label(moment)}: “{one_line(moment.quotes[0].text, QUOTED)}”"


def _kind_lines(leads: Sequence[Lead], message: Message) -> Iterator[str]:
    """What its speaker does in it, by the leads of the conversation."""
    for kind in (kind for lead in leads if lead.conversation == message.conversation for kind in lead.kinds):
        yield from (
            f"{kind.does}: “{one_line(quote.text, QUOTED)}”" for quote in kind.quotes if quote.message_id == message.id
        )


def _label_lines(scan: Scan, message: Message) -> Iterator[str]:
    """The phrases that were matched, one of each kind."""
    first = {hit.label: hit for hit in reversed(scan.hits)}
    for label, hit in sorted(first.items(), key=lambda item: item[1].start):
        words = " ".join(message.text[hit.start : hit.end].split())
        yield f"words of {label.replace('_', ' ')}: “{one_line(words, QUOTED)}”"


def _reading_lines(evaluation: Evaluation) -> Iterator[str]:
    """What an LLM judge quoted, and its short reasons for negative marks."""
    if evaluation.reading is None:
        return
    yield f"read by {evaluation.judge}:"
    for seen in (*(evaluation.indicators or ()), *evaluation.reading.mechanisms):
        yield f"  {seen.id}: “{one_line(seen.quote or '', QUOTED)}”"
    for trait, reason in evaluation.reading.reasons.items():
        yield f"  {trait}, in the judge's words: {one_line(reason, QUOTED)}"


def _resting_lines(store: Store, message: Message, leads: Sequence[Lead]) -> Iterator[str]:
    """The findings and leads that rest on the message, each with how sure it is."""
    place = message.conversation, message.id
    for finding in store.findings(message.agent):
        if place in zip(finding.message_conversations, finding.message_ids, strict=False):
            kind = "lead" if finding.is_lead else "finding"
            yield f"part of a {kind}, {finding.title} ({finding.finding_id[:16]}): {sure_words(finding)}"
    for lead in leads:
        if lead.above_cut and place in zip(lead.message_conversations, lead.message_ids, strict=False):
            yield f"part of a lead about {plain_name(lead.agent)} ({lead.id[:12]}): {lead_words(lead, leads)}"
