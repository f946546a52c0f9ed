"""The check of a report: hashes first, then the pure steps recomputed where the hashes agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from undersong.core.manifest import NAME, Manifest
from undersong.core.text import text_hash
from undersong.errors import UndersongError, UsageError
from undersong.models import Confirmed, Deduction, Message, Moment, Quote, Record, evidence_hash
from undersong.verify.environment import Model, differences, installed_hashes, model_of
from undersong.verify.inputs import compare_inputs, in_order
from undersong.verify.manifest_check import (
    Content,
    Discrepancy,
    NotPossibleError,
    bytes_of,
    compare_digest,
    files,
    read_content,
    read_manifest,
)
from undersong.verify.signatures import compare_signatures, not_shown
from undersong.verify.ssh_signature import PublicKey

Step = tuple[str, Callable[[], Iterator[Discrepancy]]]


class Verification(Record, frozen=True, kw_only=True):
    """What a check found: ``discrepancies``, what was ``checked``, and what was ``skipped`` with the reason.

    ``not_shown`` is what no check without more at hand could show.
    """

    discrepancies: tuple[Discrepancy, ...]
    checked: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()


def verify(
    report_dir: Path,
    inputs: Sequence[Path] = (),
    installed: Mapping[str, str] | None = None,
    *,
    rules: Sequence[str | Path] | None = None,
    digest: str | None = None,
    judge: str | None = None,
) -> tuple[Discrepancy, ...]:
    """Everything that differs from the manifest of ``report_dir``; empty where all agrees. See ``check``."""
    return check(report_dir, inputs, installed, rules=rules, digest=digest, judge=judge).discrepancies


def check(
    report_dir: Path,
    inputs: Sequence[Path] = (),
    installed: Mapping[str, str] | None = None,
    *,
    rules: Sequence[str | Path] | None = None,
    digest: str | None = None,
    judge: str | None = None,
    keys: Sequence[PublicKey] | None = None,
) -> Verification:
    """Compare a report folder with its manifest, its inputs and this installation, and do its pure steps again.

    ``inputs`` are the files or folders that the report was made from; without any, inputs are not compared. ``digest``
    is the manifest's, or its first 16 digits or more, kept elsewhere. ``rules`` are the pattern files where the report
    was made with others than the shipped ones, and ``judge`` is ``offline:DIR`` where its offline model is in a folder:
    what a model of one's own scored is not done again without it. ``installed`` maps names of rules, prompts and models
    to SHA-256 and stands for another installation than this one: nothing is then done again. ``keys`` are those of whom
    the report must be signed by. Broken files are named, never raised; no digest covers ``run.json``, only a signature
    does. Raises UsageError where there is no such folder, for a digest that is
    none and for a judge that is no offline model; JudgeError for a model that cannot be used.
    """
    report_dir = Path(report_dir)
    if not report_dir.is_dir():
        what = "is not a folder" if report_dir.exists() else "no such folder"
        raise UsageError(what, where=str(report_dir), remedy="name the folder of a report, such as undersong-report")
    result = _check(report_dir, [Path(path) for path in inputs], installed, rules=rules, digest=digest, judge=judge)
    strangers = tuple(compare_signatures(report_dir, keys)) if keys is not None else ()
    signed = ("the signature",) if keys is not None and not strangers else ()
    return msgspec.structs.replace(
        result,
        discrepancies=(*strangers, *result.discrepancies),
        checked=(*signed, *result.checked),
        not_shown=tuple(not_shown(report_dir, keys)),
    )


def _check(
    report_dir: Path,
    inputs: list[Path],
    installed: Mapping[str, str] | None,
    *,
    rules: Sequence[str | Path] | None,
    digest: str | None,
    judge: str | None,
) -> Verification:
    data = bytes_of(report_dir / NAME)
    if isinstance(data, Discrepancy):
        return Verification(discrepancies=(data,))
    discrepancies = [] if digest is None else list(compare_digest(data, digest))
    manifest, broken = read_manifest(data)
    discrepancies += broken
    if manifest is None:
        return Verification(discrepancies=tuple(discrepancies))
    discrepancies += files(report_dir, manifest)
    content, broken = read_content(report_dir)
    discrepancies += [each for each in broken if each.where not in {known.where for known in discrepancies}]
    reported = {problem.where for problem in content.case.problems} if content else set()
    discrepancies += compare_inputs(inputs, manifest, reported)
    if content:
        discrepancies += evidence(content, manifest)
    model = None if installed is not None else model_of(manifest, judge)
    here, broken = ({}, []) if installed is not None else installed_hashes(manifest, rules, model)
    discrepancies += broken
    discrepancies += differences(manifest, here if installed is None else installed, model)
    checked = [f"{len(manifest.files)} files", *([f"{len(manifest.inputs)} inputs"] if inputs else [])]
    if content is None or discrepancies or installed is not None:
        reason = "another installation was given" if not discrepancies else "the hashes do not agree"
        return Verification(
            discrepancies=tuple(discrepancies), checked=tuple(checked), skipped=(f"nothing was done again: {reason}",)
        )
    return _again(report_dir, content, manifest, rules, checked, inputs, model)


def _again(
    report_dir: Path,
    content: Content,
    manifest: Manifest,
    rules: Sequence[str | Path] | None,
    checked: list[str],
    inputs: list[Path],
    model: Model | None,
) -> Verification:
    from undersong.patterns.catalog import all_rules
    from undersong.verify import recompute
    from undersong.verify.replay import replay_inputs

    patterns = all_rules(rules)
    steps: list[Step] = [
        ("detect", lambda: recompute.recompute_findings(content, patterns)),
        ("leads", lambda: recompute.recompute_leads(content)),
        ("counts and agents", lambda: recompute.recompute_counts(content, manifest)),
        ("report", lambda: recompute.recompute_files(report_dir, content, patterns)),
    ]
    skipped = []
    if content.case.parameters.get("redacted"):
        skipped.append("scan, verdict, offline scores, what moved them, and route: the texts are redacted")
    else:
        steps += [
            ("scan and verdict", lambda: recompute.recompute_scans(content)),
            ("offline scores", lambda: recompute.recompute_offline_scores(content, model)),
            ("what moved the scores", lambda: recompute.recompute_attribution(content, patterns, model)),
        ]
        if inputs:
            replayed = "scan, route and verdict from the inputs"
            steps.append((replayed, lambda: replay_inputs(content, in_order(inputs, manifest))))
        else:
            skipped.append("route: no input was given")
    discrepancies: list[Discrepancy] = []
    for name, step in steps:
        try:
            for discrepancy in step():
                discrepancies.append(discrepancy)  # noqa: PERF402 - what was found before a step gives up counts
            checked.append(f"{name} done again")
        except NotPossibleError as reason:
            skipped.append(f"{name}: {reason}")
        except UndersongError as error:
            discrepancies.append(Discrepancy(what=f"could not be done again: {error.what}", where=name))
    return Verification(discrepancies=tuple(discrepancies), checked=tuple(checked), skipped=tuple(skipped))


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
    yield from _ledger_quotes(content)
    yield from _confirmed_places(content)
    yield from _read_messages(content)
    yield from _reviewed_messages(content)


def _reviewed_messages(content: Content) -> Iterator[Discrepancy]:
    """Reviews that are not of the messages that they name, or not in the order of time."""
    reviews = content.case.reviews
    for review in reviews:
        if review.evidence != evidence_hash(review.rows):
            what = "a review's evidence is not the hash of its messages"
            yield Discrepancy(what=what, where=f"{review.kind} {review.id[:16]}")
    if list(reviews) != sorted(reviews, key=lambda review: (review.at, review.key)):
        yield Discrepancy(what="reviews do not stand in the order of time", where="reviews.jsonl")


def _read_messages(content: Content) -> Iterator[Discrepancy]:
    """Messages and agents that a reading of a sequence names and no row has."""
    agents = {row.agent for row in content.rows}
    places = {(row.conversation, row.id) for row in content.rows}
    for reading in content.case.sequences:
        if reading.agent not in agents:
            yield Discrepancy(what="a reading names an agent who wrote no message", where=reading.agent)
        for place in zip(reading.message_conversations, reading.message_ids, strict=False):
            if place not in places:
                yield Discrepancy(what="a reading names a message that is not there", where=place[1])


def _confirmed_places(content: Content) -> Iterator[Discrepancy]:
    """Messages that a confirmation names and the transcript of its session, where it is held, does not have."""
    ids = {conversation.id: {message.id for message in conversation.messages} for conversation in content.conversations}
    for session in content.case.sessions:
        for place in session.confirmations if session.conversation in ids else ():
            for message_id in (place.at, *place.message_ids, *(quote.message_id for quote in place.quotes)):
                if message_id not in ids[session.conversation]:
                    yield Discrepancy(what="a confirmation names a message that is not there", where=message_id)


def _ledger_quotes(content: Content) -> Iterator[Discrepancy]:
    """The quotes of the ledger that do not stand in the transcript, as far as it is in the report."""
    texts = {
        (message.conversation, message.id): message.text for each in content.conversations for message in each.messages
    }
    thoughts: dict[tuple[str, str], list[str]] = {}
    for message in (message for each in content.conversations for message in each.messages):
        thoughts.setdefault((message.conversation, message.agent), []).append(message.thinking)
    for claim in (claim for session in content.case.sessions for claim in session.claims):
        for quote in (claim.sentence, *claim.evidence):
            text = texts.get((claim.conversation, quote.message_id))
            if text is not None and text[quote.start : quote.end] != quote.text:
                yield Discrepancy(what="quote of a claim does not stand in its message", where=quote.message_id)
        own = thoughts.get((claim.conversation, claim.agent))
        if claim.thought and own is not None and not any(claim.thought in thought for thought in own):
            yield Discrepancy(what="a thought beside a claim does not stand in the transcript", where=claim.message_id)


def _quotes(content: Content) -> Iterable[Quote]:
    for finding in content.findings:
        yield from finding.quotes
        yield from (each.sentence for each in finding.why or () if each.sentence is not None)
        if finding.outcome is not None:
            yield from filter(None, (finding.outcome.request, finding.outcome.reply))
    for lead in content.case.leads:
        yield from lead.quotes
        yield from (quote for kind in lead.kinds for quote in (*kind.quotes, *kind.answers))
    for session in content.case.sessions:
        claims: tuple[Deduction | Moment | Confirmed, ...] = (
            *session.deductions, *session.moments, *session.confirmations
        )  # fmt: skip
        for claim in claims:
            yield from claim.quotes
