"""A conversation as a page shows it: a stretch of its turns with what stands at each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from undersong.core.text import mechanism_name
from undersong.models import (
    NEGATIVE_TRAITS,
    Conversation,
    Evaluation,
    Finding,
    LedgerClaim,
    Message,
    Scan,
    SessionVerdict,
    applicable_scores,
)
from undersong.models.scan import COUNTED
from undersong.report.claims_view import state_words
from undersong.report.escape import own_name
from undersong.report.narrative import moment_label
from undersong.serve.library import Library
from undersong.serve.marking import MarkedRun, Span, marked
from undersong.serve.problems import missing
from undersong.serve.runs import Run
from undersong.stores.listing import FindingQuery

TURNS = 60  # turns of a page
WHOLE = 3_000  # messages of a conversation whose phrases are looked up; a longer one is shown without them
CLAIM_STYLES = {"contradicted": "high", "disputed": "high", "unsupported": "medium", "backed": "aligned"}


@dataclass(frozen=True)
class Badge:
    """What stands at a turn: a CSS class of ours, words, and where it leads ("" nowhere)."""

    style: str
    text: str
    href: str = ""


@dataclass(frozen=True)
class Turn:
    """One turn: its text in runs, and what stands at it."""

    message: Message
    speaker: str
    runs: tuple[MarkedRun, ...]
    badges: tuple[Badge, ...]
    state: str
    harm: tuple[str, float] | None
    cut: bool


@dataclass(frozen=True)
class TranscriptPage:
    """A stretch of a conversation; ``before`` and ``after`` are the positions of the stretches beside it, or None."""

    head: Conversation
    turns: tuple[Turn, ...]
    length: int
    at: int
    before: int | None
    after: int | None
    findings: tuple[Finding, ...]
    claims: tuple[LedgerClaim, ...]
    session: tuple[Run, SessionVerdict] | None
    phrases: bool


def transcript_page(library: Library, name: str, at: int) -> TranscriptPage:
    """The stretch of a conversation in which the position ``at`` stands; raises ProblemError where it is not there."""
    store = library.store
    head, length = store.conversation_head(name), store.length(name)
    if head is None or length is None:
        raise missing("there is no such conversation", name)
    first = max(0, min(at, length - 1)) // TURNS * TURNS
    scans = _scans(library, name, length)
    messages = store.transcript(name, first, first + TURNS - 1)
    findings = store.list_findings(FindingQuery(conversation=name, sort="level"), None, 200).items
    claims = tuple(claim for claim in store.claims(name))
    session = library.session(name)
    marks = _marks(name, findings, claims, session[1] if session else None)
    answers = store.answers_at(name, [message.id for message in messages])
    turns = []
    for message in messages:
        spans, badges = marks[message.id]
        hits = list(_hits(scans.get(message.id)))
        scored = [each for each in answers.get(message.id, ()) if each.traits]
        harm = _harm(scored[0]) if scored else None
        state = scored[0].state if scored else next((each.state for each in answers.get(message.id, ())), "unread")
        turns.append(
            Turn(
                message=message,
                speaker=own_name(message.author or message.agent, name),
                runs=marked(message.text, [*spans, *hits]),
                badges=tuple(dict.fromkeys(badges)),
                state=state,
                harm=harm,
                cut=len(message.text) > sum(len(run.text) for run in marked(message.text, ())),
            )
        )
    return TranscriptPage(
        head=head,
        turns=tuple(turns),
        length=length,
        at=first,
        before=first - TURNS if first else None,
        after=first + TURNS if first + TURNS < length else None,
        findings=findings,
        claims=claims,
        session=session,
        phrases=length <= WHOLE,
    )


def _harm(evaluation: Evaluation) -> tuple[str, float] | None:
    """The highest harmful trait with its score."""
    scores = applicable_scores(evaluation.traits or {})
    harmful = [(trait, score) for trait, score in scores.items() if trait in NEGATIVE_TRAITS]
    return max(harmful, key=lambda pair: pair[1], default=None)


def _scans(library: Library, name: str, length: int) -> dict[str, Scan]:
    if length > WHOLE:
        return {}
    return {scan.message_id: scan for scan in library.store.conversation(name)[1]}


def _hits(scan: Scan | None) -> Iterator[Span]:
    for hit in scan.hits if scan else ():
        if hit.trait in COUNTED:
            yield Span(hit.start, hit.end, "phrase", f"phrase: {hit.label.replace('_', ' ')}")


def _marks(
    name: str, findings: Iterable[Finding], claims: Iterable[LedgerClaim], verdict: SessionVerdict | None
) -> defaultdict[str, tuple[list[Span], list[Badge]]]:
    """Message id → spans and badges."""
    marks: defaultdict[str, tuple[list[Span], list[Badge]]] = defaultdict(lambda: ([], []))
    for finding in findings:
        homes = finding.message_conversations or (name,) * len(finding.message_ids)
        here = {each for each, home in zip(finding.message_ids, homes, strict=True) if home == name}
        for stage, message_id in finding.stages or tuple(("", each) for each in finding.message_ids):
            if message_id in here:
                text = f"{finding.title}{f', {stage.lower()}' if stage else ''}"
                marks[message_id][1].append(Badge(finding.level, text, f"/findings/{finding.finding_id}"))
        for quote in finding.quotes:
            if quote.message_id in here:
                marks[quote.message_id][0].append(Span(quote.start, quote.end, "quote", f"evidence: {finding.title}"))
    for claim in claims:
        title = f"claim: {state_words(claim)}"
        quote = claim.sentence
        marks[quote.message_id][0].append(Span(quote.start, quote.end, f"claim {claim.state}", title))
        style = CLAIM_STYLES.get(claim.state, "low")
        marks[claim.message_id][1].append(Badge(style, title, f"/claims/{claim.claim_id}"))
    if verdict is not None:
        for taken in verdict.deductions:
            badge = Badge("high", f"−{taken.points} {mechanism_name(taken.mechanism)}")
            marks[taken.message_id][1].append(badge)
        for moment in verdict.moments:
            style = "aligned" if moment.kind == "protective" else "low"
            marks[moment.message_id][1].append(Badge(style, moment_label(moment)))
    return marks
