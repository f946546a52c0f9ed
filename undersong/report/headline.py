"""The headline of a case in plain sentences, and the fixed texts of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from undersong.core.text import counted, mechanism_name
from undersong.datafiles import yaml_loader
from undersong.models import Case, SessionVerdict
from undersong.models.finding import distinct
from undersong.report.alignment_words import violation_words
from undersong.report.claims_view import against, ledger_words
from undersong.report.escape import first_upper, label
from undersong.report.narrative import (
    FULL,
    annotation_words,
    assessed_words,
    flagged_words,
    guns_words,
    low_scores_words,
    place_noun,
    qualified_words,
    score_name,
    unassessed_words,
)
from undersong.report.order import order_findings
from undersong.report.private_talk import is_graded, shown_mechanisms
from undersong.report.sequence_words import looked_for_words, sequence_words

LOW, UNCALIBRATED = "low coverage", "uncalibrated judge"  # how `qualified_words` begins what it says
REASONS = 3  # distinct reasons told for each mechanism


@dataclass(frozen=True)
class MechanismGap:
    """A mechanism over all sessions: how often it could be looked for, and why not."""

    name: str
    assessed: int
    not_assessed: int
    not_applicable: int
    reasons: tuple[str, ...]


def headline(case: Case) -> tuple[str, ...]:
    """Deductions, findings, how little they say by an uncalibrated judge, and the lowest score."""
    return (
        *violation_words(case),
        *ledger_words(case),
        *_deductions_words(case),
        findings_words(case),
        *low_scores_words(case),
        *filter(None, (_score_words(case),)),
        *_qualified(case),
        *(f"Whole sequences: {sentence}" for sentence in sequence_words(case)),
        *unassessed_words(case),
        *guns_words(case),
        *annotation_words(case),
        *flagged_words(case),
    )


def coverage(case: Case) -> str:
    """How much a judge read, whose word it is, and what is missing."""
    read = case.states.get("scored", 0)
    if not read:
        return f"0 of {counted(case.messages, 'message')} read by a judge. No pattern of scores could be looked for."
    judge = label(str(case.parameters.get("judge", "unnamed")))
    kind = "calibrated" if case.parameters.get("calibrated") is True else "uncalibrated"
    rest = [f"{case.states[state]:,} {state}" for state in ("unread", "refused", "failed") if case.states.get(state)]
    missing = f" The rest: {', '.join(rest)}." if rest else ""
    return f"{read:,} of {counted(case.messages, 'message')} read by judge {judge}, {kind}.{missing}"


def mechanism_gaps(sessions: Iterable[SessionVerdict]) -> tuple[MechanismGap, ...]:
    """Every mechanism by name, in the order of the first session."""
    counts: dict[str, Counter[str]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for session in sessions:
        for mechanism in shown_mechanisms(session):
            counts.setdefault(mechanism.name, Counter())[mechanism.assessment] += 1
            if mechanism.assessment != "assessed":
                reasons.setdefault(mechanism.name, {})[mechanism.reason] = None
    return tuple(
        MechanismGap(
            mechanism_name(name),
            count["assessed"],
            count["not_assessed"],
            count["not_applicable"],
            tuple(reasons.get(name, {}))[:REASONS],
        )
        for name, count in counts.items()
    )


def _deductions_words(case: Case) -> tuple[str, ...]:
    """``Consistent with false promise (same hash): 2 times in 1 session.``; nothing where no points were taken."""
    times = Counter(each.mechanism for session in case.sessions for each in session.deductions)
    if not times:
        return ()
    clauses = []
    for name, count in times.most_common():
        kinds = {each.kind for session in case.sessions for each in session.deductions if each.mechanism == name}
        places = sum(any(each.mechanism == name for each in session.deductions) for session in case.sessions)
        kind = ", ".join(sorted(kinds)).replace("_", " ")
        distinct = (
            f"{counted(_episodes(case, name), 'distinct episode')} of {counted(places, place_noun(case.sessions))}"
        )
        clauses.append(f"{mechanism_name(name)} ({kind}) {counted(count, 'time')}, in {distinct}")
    return (f"Turns consistent with a known harm took points: {'; '.join(clauses)}.",)


def _episodes(case: Case, mechanism: str) -> int:
    """The sum counts each time; this counts what comes again once."""
    return sum(
        len({each.episode or each.message_id for each in session.deductions if each.mechanism == mechanism})
        for session in case.sessions
    )


def _qualified(case: Case) -> tuple[str, ...]:
    """Why a reader should be slow to rely on the verdict; nothing where nothing qualifies it."""
    calibrated = case.parameters.get("calibrated") is True
    qualified = [(session, qualified_words(session, calibrated=calibrated)) for session in case.sessions]
    low = [(session, each) for session, words in qualified for each in words if each.startswith(LOW)]
    reasons = []
    if any(UNCALIBRATED in words for _, words in qualified):
        reasons.append("an uncalibrated judge gave the signals behind codes, candidates and patterns")
    if low:
        session, words = max(low, key=lambda pair: (pair[0].messages - pair[0].read, pair[0].conversation))
        noun = place_noun(case.sessions)
        places = f"the {noun}" if len(case.sessions) == 1 else f"{counted(len(low), noun)}, first of all"
        name = "" if len(case.sessions) == 1 else f" {label(session.title or session.conversation)}"
        reasons.append(f"{words.replace(LOW, f'{LOW} of {places}{name}')}")
    return (f"What qualifies this: {'; '.join(reasons)}.",) if reasons else ()


def findings_words(case: Case, *, beside: bool = False) -> str:
    """What the patterns found; ``beside``: single messages are named above, which are no sequences."""
    words = _findings_words(case)
    return f"Beside what is named above: {words[0].lower()}{words[1:]}" if beside and not case.findings else words


def _findings_words(case: Case) -> str:
    if not case.findings:
        if all(outcome.status != "ran" for outcome in case.outcomes):
            return "No pattern could be looked for; see below what was missing."
        return f"{first_upper(looked_for_words(case))}; no sequence of messages matches."
    shown = distinct(case.findings)
    sure = tuple(finding for finding in shown if not finding.is_lead)
    leads = len(shown) - len(sure)
    if not sure:
        return f"No sequence of messages is likely enough to show a known pattern; {_leads_words(leads)}."
    kinds = Counter(label(finding.title) for finding in order_findings(sure))
    named = [f"{title} ({count:,})" for title, count in kinds.items()]
    subject = f"{counted(len(sure), 'sequence')} of messages {'are' if len(sure) > 1 else 'is'}"
    others = f"; {_leads_words(leads)}" if leads else ""
    return f"{subject} consistent with a known pattern: {', '.join(named)}{others}."


def _leads_words(leads: int) -> str:
    return f"{counted(leads, 'lead')} {'stand' if leads > 1 else 'stands'} below, to look at and no accusation"


def _score_words(case: Case) -> str:
    scored = [session for session in case.sessions if session.score is not None]
    if not scored and not is_graded(case.sessions):
        return ""
    if not scored:
        noun, name = place_noun(case.sessions), score_name(case.sessions)
        return f"No {noun} has a {name}: no mechanism could be assessed in any of them."
    worst = min(scored, key=lambda session: (session.score, session.conversation))
    risky = sum(session.psychogenic_risk is True for session in scored)
    marked = f" {counted(risky, place_noun(case.sessions))} marked Psychogenic Risk." if risky else ""
    spoken_against = sum(against(session) > 0 for session in case.sessions)
    if worst.score == FULL and spoken_against:
        noun = place_noun(case.sessions)
        return f"No points were taken, which is no all-clear: messages speak against {counted(spoken_against, noun)}."
    value = f"{worst.score} of 100; {assessed_words(worst)}.{marked}"
    if len(case.sessions) == 1:
        return f"The {score_name(case.sessions)} of the {place_noun(case.sessions)} is {value}"
    scope = f"{counted(len(scored), place_noun(case.sessions))} with a score, out of {len(case.sessions):,} in all,"
    return f"The lowest {score_name(case.sessions)} of {scope} is {value}"


class Method(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step in plain words; ``profile``: only where a session has it."""

    title: str
    text: str
    profile: str = ""


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the glossary."""

    term: str
    text: str
    profile: str = ""


class ReportTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``words.yaml``."""

    caution: str
    reading_guide: str
    leads_title: str
    leads_guide: str
    look_title: str
    look_guide: str
    look_nobody: str
    decided_lead: str
    look_no_quote: str
    look_share: str
    guns: str
    ledger: str
    rank: str
    clinical: str
    noted: str
    noted_requests: str
    candidates: str
    transcript: str
    redacted: str
    reproduce: tuple[str, ...]
    methods: tuple[Method, ...]
    missing: tuple[Method, ...]
    limits: tuple[str, ...]
    glossary: tuple[Term, ...]


def words_for(case: Case) -> ReportTexts:
    """The texts that apply to a case: where all sessions are work of coding agents, none about people's feelings; where
    all are talk between people, none about what an AI says of itself."""
    profiles: set[str] = {session.profile for session in case.sessions} or {""}
    texts = words()

    def applies(entry: Method | Term) -> bool:
        return entry.profile in ("", *profiles)

    return msgspec.structs.replace(
        texts,
        methods=tuple(filter(applies, texts.methods)),
        missing=tuple(filter(applies, texts.missing)),
        glossary=tuple(filter(applies, texts.glossary)),
        noted=texts.noted_requests if profiles == {"messenger"} else texts.noted,
    )


@cache
def words() -> ReportTexts:
    """The shipped texts."""
    return yaml_loader.read(Path(__file__).parent / "words.yaml", ReportTexts)
