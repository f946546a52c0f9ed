"""The ledger of a session: every claim of an agent about the work, with what the session has for or against it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from undersong.datafiles.verdict_config import ledger_config, pattern
from undersong.models import Deduction, Quote
from undersong.models.verdict import LedgerClaim, LedgerKind
from undersong.verdict.check_claims import NEVER, STALE, CheckHistory, Ruling, kinds_of, of_kinds, rule_on, since_change
from undersong.verdict.claims import Claim, sentence
from undersong.verdict.transcript import ASKS, PlacedOutcome, Transcript, TranscriptTurn, quote

OBJECT = 80  # characters of what a claim speaks of
SAID = 400  # characters of a person's next words in which they may say that it does not work
RUNS_BACK = 2  # requests before the claim's own in which a call may have done what is claimed
_CUT = re.compile(r"[.;:!?\n]|,\s|\s[–—-]\s")
_HOW_DONE = re.compile(r"[ ](?:inline|via|by|in|with|through|at|on|per|when|for|as|\w+ly)\b", re.IGNORECASE)
_EDGES = " *_`\"'#|-–—>:.,"


class _Session(NamedTuple):
    """What the rulings of a session need."""

    transcript: Transcript
    history: CheckHistory
    contradicted: Mapping[tuple[str, int], Deduction]
    disputed: Mapping[str, Quote]


def claim_ledger(
    transcript: Transcript, history: CheckHistory, deductions: Iterable[Deduction]
) -> tuple[LedgerClaim, ...]:
    """The claims of all agents in order; a claim for which points were deducted is contradicted."""
    contradicted = {
        (each.message_id, each.quotes[0].start): each
        for each in deductions
        if each.mechanism == "false_promise" and each.quotes
    }
    session = _Session(transcript, history, contradicted, dict(_disputes(transcript)))
    entries: dict[tuple[str, LedgerKind, int, bool], LedgerClaim] = {}
    for turn in transcript.turns:
        for claim in turn.claims:
            kind = ledger_kind(claim, turn.prose)
            if kind:
                entry = _entry(session, turn, claim, kind)
                key = (entry.message_id, kind, entry.sentence.start, entry.state == "contradicted")
                entries.setdefault(key, entry)
    return tuple(entries.values())


def ledger_kind(claim: Claim, text: str) -> LedgerKind | None:
    """The kind under which the ledger lists a claim; None where it says how things are, and not what was done."""
    words, config = text[claim.start : claim.end], ledger_config()
    if claim.checks:
        return "tests" if len(claim.checks) > 1 else _CHECKED[claim.checks[0]]
    if claim.kind == "works" and not pattern((config.changed_words,)).search(words):
        return None
    if claim.kind == "done" and _HOW_DONE.match(text, claim.end):
        return None
    if claim.kind != "act":
        return _PLAIN[claim.kind]
    if claim.passive or words.strip(_EDGES).lower() in config.imperatives or _is_heading(text, claim):
        return None
    return config.words.get(claim.word) or next((config.acts[act] for act in claim.acts if act in config.acts), None)


def _is_heading(text: str, claim: Claim) -> bool:
    words = text[slice(*sentence(text, claim.start, claim.end))].strip()
    return words.startswith("#") or words.endswith((":**", "**:", "**"))


_CHECKED: dict[str, LedgerKind] = {"tests": "tests", "build": "build", "lint": "lint"}
_PLAIN: dict[str, LedgerKind] = {
    "fix": "fixed", "works": "fixed", "done": "done", "verified": "verified", "read": "read", "tests": "tests",
}  # fmt: skip


def _entry(session: _Session, turn: TranscriptTurn, claim: Claim, kind: LedgerKind) -> LedgerClaim:
    ruling, evidence = _ruling(session, turn, claim, kind)
    outcome = ruling.check.outcome.outcome if ruling.check and ruling.check.outcome else None
    if outcome is not None and ruling.check and ruling.check.outcome and not evidence and outcome.end > outcome.start:
        evidence = (quote(ruling.check.outcome.turn.message, outcome.start, outcome.end),)
    return LedgerClaim(
        conversation=turn.message.conversation,
        message_id=turn.message.id,
        position=turn.message.position,
        agent=turn.message.agent,
        time=turn.message.time,
        kind=kind,
        object=_object(turn.prose, claim),
        sentence=quote(turn.message, *_trimmed(turn.prose, *sentence(turn.prose, claim.start, claim.end))),
        state=ruling.state,
        reason=ruling.reason,
        evidence=evidence,
        check=(outcome.command or outcome.tool)[: OBJECT * 2] if outcome else "",
        masked=outcome.masked if outcome else False,
    )


def _ruling(
    session: _Session, turn: TranscriptTurn, claim: Claim, kind: LedgerKind
) -> tuple[Ruling, tuple[Quote, ...]]:
    deduction = session.contradicted.get((turn.message.id, claim.start))
    if deduction is not None:
        return Ruling("contradicted", deduction.explanation), deduction.quotes[1:]
    if claim.hedged:
        return Ruling("hedged", "the message leaves it open"), ()
    ruling = rule_on(turn, claim, session.history) if claim.checks else _evidence(session, turn, kind, claim)
    if ruling.state in ("contradicted", "hedged"):
        return ruling, ()
    taken_back = _taken_back(session, turn, claim)
    if taken_back:
        return Ruling("withdrawn", "the agent takes it back, or goes on with what failed"), (taken_back,)
    if turn.message.id in session.disputed and kind in ledger_config().disputable:
        return Ruling("disputed", "the next words of the person say that it does not work"), (
            session.disputed[turn.message.id],
        )
    return ruling, ()


def _evidence(session: _Session, turn: TranscriptTurn, kind: LedgerKind, claim: Claim) -> Ruling:
    """What speaks for a claim that names no check: an edit, a call, or a check behind the last change."""
    if kind in ("fixed", "done"):
        return _checked(session, turn, claim)
    families, words = ledger_config().evidence[kind], ledger_config().tools.get(kind, frozenset())
    own = [
        placed
        for placed in session.transcript.outcomes_before(turn.place, turn.run - RUNS_BACK)
        if placed.outcome.family in families and placed.outcome.state != "failed"
    ]
    fits = [placed for placed in own if not words or words & (placed.outcome.words | placed.outcome.inputs)]
    if fits:
        return Ruling("backed", f"by {_named(fits[-1])}")
    if "edit" in families and any(each.blocks for each in _recent_turns(session, turn)):
        return Ruling("backed", "by the code that the message shows or writes")
    return Ruling("unsupported", "no call of the kind was answered before it")


def _checked(session: _Session, turn: TranscriptTurn, claim: Claim) -> Ruling:
    earlier = session.history.before(turn.place)
    recent = of_kinds(since_change(earlier), kinds_of(claim))
    passed = next((event for event in reversed(recent) if event.state(kinds_of(claim)) != "failed"), None)
    if passed is not None:
        return Ruling("backed", "a check ran after the last change", passed)
    own = session.transcript.outcomes_before(turn.place, turn.run)
    if claim.kind == "done" and own:
        return Ruling("backed", "by the calls on this request")
    edits = [placed.outcome for placed in own if placed.outcome.family == "edit" and placed.outcome.state != "failed"]
    if edits and not any(outcome.changes for outcome in edits):
        return Ruling("backed", "by edits of documents, which no check covers")
    return Ruling("unsupported", STALE if of_kinds(earlier, kinds_of(claim)) else NEVER)


def _recent_turns(session: _Session, turn: TranscriptTurn) -> Iterator[TranscriptTurn]:
    for earlier in session.transcript.agent_turns(turn.message.agent, 0, turn.place):
        if earlier.run >= turn.run - RUNS_BACK:
            yield earlier


def _named(placed: PlacedOutcome) -> str:
    outcome = placed.outcome
    return f"{outcome.tool or outcome.family} at turn {placed.turn.message.position}"


def _taken_back(session: _Session, turn: TranscriptTurn, claim: Claim) -> Quote | None:
    """The failing check after a claim, with which the agent goes on; None where no check failed on the claim's work."""
    for event in session.history.after(turn.place):
        if event.outcome is None or event.outcome.turn.run > turn.run:
            return None
        if claim.kind not in ("tests", "fix", "works", "done") or not event.kinds & set(kinds_of(claim)):
            continue
        if event.state(kinds_of(claim)) == "failed" and event.kinds & {"tests", "build", "lint"}:
            outcome = event.outcome.outcome
            return quote(event.outcome.turn.message, outcome.start, outcome.end)
    return None


def _disputes(transcript: Transcript) -> Iterator[tuple[str, Quote]]:
    """Message ids whose claims the person's next words deny, with those words."""
    last: TranscriptTurn | None = None
    denies, harness = pattern((ledger_config().denies,)), pattern((ledger_config().harness,))
    for turn in transcript.turns:
        if turn.is_agent and turn.claims:
            last = turn
        elif turn.message.role in ASKS and not harness.match(turn.message.text):
            match = denies.search(turn.prose, 0, SAID)
            if last is not None and match:
                place = _trimmed(turn.prose, *sentence(turn.prose, match.start(), match.end()))
                yield last.message.id, quote(turn.message, *place)
            last = None


def _object(text: str, claim: Claim) -> str:
    """What a claim speaks of: the words after it in its clause, else those before."""
    first, last = sentence(text, claim.start, claim.end)
    if claim.checks or claim.passive or claim.kind in ("works", "done"):
        return text[first : claim.end].strip(_EDGES)[-OBJECT:]
    rest = text[claim.end : last]
    cut = _CUT.search(rest, 1)
    return (
        rest[: cut.start() if cut else OBJECT].strip(_EDGES)[:OBJECT] or text[first : claim.end].strip(_EDGES)[:OBJECT]
    )


def _trimmed(text: str, first: int, last: int) -> tuple[int, int]:
    words = text[first:last]
    return first + len(words) - len(words.lstrip()), last - (len(words) - len(words.rstrip()))
