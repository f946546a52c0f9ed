"""The evidence of a report: every quote stands verbatim in a message that has the hash of the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from undersong.manifest import Manifest, text_hash
from undersong.models import Confirmed, Deduction, Message, Moment, Quote
from undersong.verify.content import Content
from undersong.verify.discrepancy import Discrepancy


def evidence(content: Content, manifest: Manifest) -> Iterator[Discrepancy]:
    """Cited messages, messages of the transcript and quotes that do not agree."""
    hashes = {(each.conversation, each.id): each.sha256 for each in manifest.messages}
    texts: dict[str, list[Message]] = {}
    for message in content.case.cited:
        digest = text_hash(message.text)
        texts.setdefault(digest, []).append(message)
        if hashes.get((message.conversation, message.id)) != digest:
            yield Discrepancy(what="cited message does not agree with its hash", where=message.id)
    for message in (each for conversation in content.conversations for each in conversation.messages):
        if hashes.get((message.conversation, message.id), text_hash(message.text)) != text_hash(message.text):
            yield Discrepancy(what="message of the transcript does not agree with its hash", where=message.id)
    yield from (
        Discrepancy(what="quote does not stand in its message", where=quote.message_id)
        for quote in _quotes(content)
        if not any(message.text[quote.start : quote.end] == quote.text for message in texts.get(quote.sha256, ()))
    )


def _quotes(content: Content) -> Iterable[Quote]:
    for finding in content.findings:
        yield from finding.quotes
        yield from (each.sentence for each in finding.why or () if each.sentence is not None)
        if finding.outcome is not None:
            yield from filter(None, (finding.outcome.request, finding.outcome.reply))
    for session in content.case.sessions:
        claims: tuple[Deduction | Moment | Confirmed, ...] = (
            *session.deductions, *session.moments, *session.confirmations
        )  # fmt: skip
        for claim in claims:
            yield from claim.quotes
