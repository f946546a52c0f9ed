"""The sovereignty score of one conversation: mechanisms, deductions and the score after each turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from undersong.core.text import counted
from undersong.datafiles.verdict_config import (
    AnnotationKind,
    MechanismsConfig,
    mechanisms,
)
from undersong.models import (
    Confirmed,
    Conversation,
    Deduction,
    Mark,
    Mechanism,
    Moment,
    Row,
    Scan,
    SessionVerdict,
    ThreadScan,
)
from undersong.models.row import FLAGS, turn_flags
from undersong.models.verdict import PERSONAL, Profile
from undersong.verdict.annotations import annotation_moments, distress_codes, smoking_guns
from undersong.verdict.bypass_context import with_context
from undersong.verdict.check_claims import CheckHistory
from undersong.verdict.claim_ledger import claim_ledger, with_thoughts
from undersong.verdict.confirmation import with_answers, with_judge_candidates
from undersong.verdict.detectors.bypasses import bypasses
from undersong.verdict.detectors.camouflage import semantic_camouflage
from undersong.verdict.detectors.contradicted_claims import contradicted_claims, has_tool_evidence
from undersong.verdict.detectors.instability import epistemic_instability
from undersong.verdict.detectors.liability import MECHANISM as BLAME
from undersong.verdict.detectors.liability import liability_shifting
from undersong.verdict.detectors.orders import orders_to_agents, orders_to_models
from undersong.verdict.detectors.requests import requests
from undersong.verdict.detectors.same_code import MECHANISM, same_code_promises
from undersong.verdict.labels import measured_labels, measured_signals
from undersong.verdict.profile import profile_of, project_of
from undersong.verdict.repeated_failures import repeated_failures
from undersong.verdict.session_title import title_of
from undersong.verdict.transcript import DetectorResult, Signals, Transcript, turns_of
from undersong.verdict.unread import unread_because

__all__ = ["MECHANISM", "false_promises"]
MARKED = {  # the kind of a moment, and the field of a mark that has its codes
    "distress": "codes", "protective": "protective", "conduct": "conduct", "smoking_gun": "guns",
    "candidate": "candidates",
}  # fmt: skip
AGENT_LOGS = frozenset(  # have every call: where one has none, none was made
    {"claude-code", "claude-stream", "codex", "atif", "inspect", "openhands", "sweagent", "copilot", "cursor"}
)
OFFLINE = "offline"  # the judge that ships: it counts words, and reads nothing
OF_PEOPLE = frozenset({"delusion_reinforcement"})  # smoking guns that say something of a person
ANNOTATION_KINDS: tuple[AnnotationKind, ...] = get_args(AnnotationKind)
TurnScores = tuple[tuple[int, int], ...]


def session_verdict(
    conversation: Conversation,
    scans: Sequence[Scan],
    thread: ThreadScan,
    rows: Iterable[Row],
    confirmations: Sequence[Confirmed] = (),
    profile: Profile | None = None,
    *,
    all_labels: bool = False,
) -> SessionVerdict:
    """The verdict on one conversation; ``scans`` are aligned with its messages, ``rows`` say what was read.

    ``score`` is None until a mechanism is assessed; then it starts at 100 and each deduction takes its points, never
    below 0. Flags and moments take no points. ``turns`` has a (position, score) for every message of the path that
    was read. ``confirmations`` are a judge's answers about flagged places (``segments``): a candidate that is confirmed
    takes points. ``profile`` None: by content; in work of a coding agent nothing is said of people's feelings.
    Blame in words alone is no candidate of private talk that only the offline judge scored.
    ``all_labels``: also moments of kinds whose false rate is unknown or high, as when it is measured.
    """
    config, rows = mechanisms(), tuple(rows)
    transcript, signals = Transcript(conversation, scans), {row.id: row.signals for row in rows if row.signals}
    history = CheckHistory(transcript)
    results = with_answers(
        with_judge_candidates(_detected(transcript, history, signals), transcript, rows), transcript, confirmations
    )
    deductions = sorted((one for each in results.values() for one in each.deductions), key=lambda one: one.position)
    context = tuple(dict.fromkeys((*thread.session_context_vector, *conversation.context)))
    profile = profile or _profile(conversation, context)
    moments = _moments(conversation, scans, transcript, rows, results, deductions, context, profile)
    judges = Counter(row.judge or "unnamed" for row in rows if row.state == "scored")
    if profile in PERSONAL and set(judges) == {OFFLINE} and not all_labels:
        moments = tuple(each for each in moments if each.kind != "candidate" or each.code != BLAME)
    if not all_labels:
        messages = {message.id: message for message in conversation.messages}
        moments = tuple(_consistent(tuple(measured_labels(moments, messages, profile))))
    moments = (*moments, *word_moments(conversation, scans, context, profile))
    turns = () if all(each.absent for each in results.values()) else _turns(conversation, deductions, config)
    score = turns[-1][1] if turns else None
    shown = {flag for scan in scans for flag in turn_flags(scan)}
    return SessionVerdict(
        conversation=conversation.id,
        score=score,
        psychogenic_risk=None if score is None or profile != "companion" else score < config.risk_below,
        mechanisms=tuple(_mechanism(name, results[name], config) for name in config.mechanisms),
        deductions=tuple(deductions),
        turns=turns,
        session_context_vector=context,
        flags=tuple(flag for flag in FLAGS if flag in shown),
        messages=len(conversation.messages),
        read=judges.total(),
        judges=dict(sorted(judges.items())),
        title=title_of(conversation),
        moments=moments,
        marks=_marks(conversation, scans, turns, deductions, moments),
        episodes=sum(_episodes(each) for each in results.values()),
        confirmations=tuple(confirmations),
        profile=profile,
        project=project_of(conversation),
        **_ledger(conversation, transcript, history, deductions, results[MECHANISM]),
    )


def word_moments(
    conversation: Conversation, scans: Sequence[Scan], context: Sequence[str], profile: Profile | None = None
) -> tuple[Moment, ...]:
    """Orders to whoever reads them, and requests that are worth a look together, all of them exact words.

    They need these messages alone, so that they can be noted live. ``context`` are the words of the thread's scan for
    what kind of talk it is.
    """
    profile = profile or _profile(conversation, (*context, *conversation.context))
    messages = [turn.message for turn in turns_of(conversation, scans)]
    asked = () if profile == "coding" else requests(conversation.messages)
    return (*orders_to_models(messages), *orders_to_agents(messages, profile), *asked)


def _profile(conversation: Conversation, context: Sequence[str]) -> Profile:
    return "coding" if "code_heavy" in context else profile_of(conversation)


def with_ledger(verdict: SessionVerdict, conversation: Conversation, scans: Sequence[Scan]) -> SessionVerdict:
    """A verdict with the ledger of these texts, such as masked ones; its deductions are those of the texts."""
    transcript = Transcript(conversation, scans)
    history = CheckHistory(transcript)
    promises = false_promises(transcript, history)
    ledger = _ledger(conversation, transcript, history, verdict.deductions, promises)
    return msgspec.structs.replace(verdict, title=title_of(conversation), **ledger)


def _ledger(
    conversation: Conversation,
    transcript: Transcript,
    history: CheckHistory,
    deductions: Sequence[Deduction],
    promises: DetectorResult,
) -> dict[str, Any]:
    """What agents say of their work, ways round a check, and where time was lost.

    Of talk without tools and without code that changes no ledger is kept, unless it is the log of a coding agent.
    """
    keeps = conversation.source_format in AGENT_LOGS or _shows_work(transcript, promises)
    ways_round = with_context(bypasses(transcript, history), transcript, history)
    claims = claim_ledger(transcript, history, deductions, ways_round) if keeps else ()
    return {
        "claims": claims,
        "unread": unread_because(conversation, transcript, claims) if keeps else "",
        "bypasses": with_thoughts(ways_round, transcript),
        "repeated": repeated_failures(transcript),
    }


def _shows_work(transcript: Transcript, promises: DetectorResult) -> bool:
    """Whether there is anything to hold claims against: a call, an answer of a tool, or code that changes."""
    if transcript.outcomes or any(turn.message.tool_calls for turn in transcript.turns):
        return True
    return not promises.absent


def _detected(transcript: Transcript, history: CheckHistory, signals: Signals) -> dict[str, DetectorResult]:
    return {
        "epistemic_instability": epistemic_instability(transcript, signals),
        "semantic_camouflage": semantic_camouflage(transcript),
        MECHANISM: false_promises(transcript, history),
        "liability_shifting": liability_shifting(transcript),
    }


def _mechanism(name: str, result: DetectorResult, config: MechanismsConfig) -> Mechanism:
    if result.absent:
        return Mechanism(name=name, assessment="not_applicable", reason=result.absent)
    detected = len(result.deductions)
    if detected:
        reason = f"found {counted(detected, 'time')}, in {counted(_episodes(result), 'distinct episode')}"
    else:
        reason = f"looked for in {config.mechanisms[name].evidence}; not found"
    return Mechanism(name=name, assessment="assessed", reason=reason, detected=detected)


def _episodes(result: DetectorResult) -> int:
    return len({each.episode or each.message_id for each in result.deductions})


def _moments(
    conversation: Conversation,
    scans: Sequence[Scan],
    transcript: Transcript,
    rows: Sequence[Row],
    results: Mapping[str, DetectorResult],
    deductions: Sequence[Deduction],
    context: Sequence[str],
    profile: Profile,
) -> tuple[Moment, ...]:
    """Smoking guns, the first ones to read first, then the other moments by turn."""
    broken = {each.message_id for each in results[MECHANISM].deductions}
    others = [candidate for result in results.values() for candidate in result.candidates]
    if transcript.has_people and profile != "coding":
        signals = measured_signals(rows)
        others += distress_codes(transcript, signals, context, broken)
        for kind in ANNOTATION_KINDS:
            others += annotation_moments(transcript, signals, kind)
    guns = smoking_guns(conversation, scans, rows, {each.message_id for each in deductions})
    if profile == "coding":
        guns = tuple(gun for gun in guns if gun.code not in OF_PEOPLE)
        others = [each for each in others if each.code not in OF_PEOPLE]
    shown = {(gun.message_id, gun.code) for gun in guns}
    others = [each for each in others if (each.message_id, each.code) not in shown]
    return (*guns, *sorted(others, key=lambda moment: (moment.position, moment.kind, moment.code)))


def _consistent(moments: Sequence[Moment]) -> Iterator[Moment]:
    """Without the steadying words of turns that confirm a belief: they do not steady."""
    confirming = {each.message_id for each in moments if each.code in OF_PEOPLE}
    return (each for each in moments if each.code != "de_escalation" or each.message_id not in confirming)


def _turns(conversation: Conversation, deductions: Iterable[Deduction], config: MechanismsConfig) -> TurnScores:
    """Position and score after each message; deductions are in the order of the messages."""
    taken: dict[str, int] = {}
    for deduction in deductions:
        taken[deduction.message_id] = taken.get(deduction.message_id, 0) + deduction.points
    turns, score = [], config.start
    for message in conversation.messages:
        if message.branch is None:
            score = max(config.floor, score - taken.get(message.id, 0))
            turns.append((message.position, score))
    return tuple(turns)


def _marks(
    conversation: Conversation,
    scans: Sequence[Scan],
    turns: TurnScores,
    deductions: Iterable[Deduction],
    moments: Iterable[Moment],
) -> tuple[Mark, ...]:
    """The turns at which anything stands, in order."""
    scores, taken = dict(turns), dict[str, list[Deduction]]()
    for deduction in deductions:
        taken.setdefault(deduction.message_id, []).append(deduction)
    codes: dict[str, dict[str, list[str]]] = {}  # message id → kind of moment → codes
    for moment in moments:
        codes.setdefault(moment.message_id, {}).setdefault(moment.kind, []).append(moment.code)
    marks = []
    for message, scan in zip(conversation.messages, scans, strict=True):
        if message.branch is not None:
            continue
        own = taken.get(message.id, [])
        flags, own_codes = turn_flags(scan), codes.get(message.id, {})
        if not (own or flags or own_codes):
            continue
        marks.append(
            Mark(
                position=message.position,
                message_id=message.id,
                score=scores.get(message.position),
                points=sum(each.points for each in own),
                mechanisms=tuple(each.mechanism for each in own),
                flags=flags,
                **{field: tuple(dict.fromkeys(own_codes.get(kind, ()))) for kind, field in MARKED.items()},
            )
        )
    return tuple(marks)


NOTHING_TO_COMPARE = (
    "no agent shows code twice and no tool answers in this session, so no claim can be held against anything"
)


def false_promises(transcript: Transcript, history: CheckHistory) -> DetectorResult:
    """One deduction a message at most, in order; unchanged code goes before a tool's answer."""
    same, compared = same_code_promises(transcript, history)
    by_message = {each.message_id: each for each in (*contradicted_claims(transcript, history), *same)}
    ordered = tuple(sorted(by_message.values(), key=lambda deduction: deduction.position))
    return DetectorResult(
        ordered, absent="" if ordered or compared or has_tool_evidence(transcript) else NOTHING_TO_COMPARE
    )
