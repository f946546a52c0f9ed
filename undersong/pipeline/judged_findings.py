"""What judges add to the findings of rules: readings of whole sequences, and notes where two judges disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from undersong.core.text import counted
from undersong.judges.measurement import disagree
from undersong.models import Case, Finding, Row, SequenceReading, SessionVerdict
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.inputs import inputs_by_stage, stage_inputs
from undersong.patterns.nomination import nominate
from undersong.patterns.readings import reading_findings
from undersong.patterns.significance.confidence import (
    ASSUMED_PREVALENCE,
    BY_PROFILE,
    Prevalence,
    as_of_own_rule,
    as_of_unmeasured_reader,
    doubted,
    own_rules,
    prevalence_of,
    reading_confidence,
    usual_prevalence,
    with_confidence,
)
from undersong.patterns.significance.refit import (
    ConfidenceMap,
    DecidedFinding,
    fit_confidence,
    refitted,
    shipped_confidence,
)
from undersong.stores.protocol import Store
from undersong.stores.review_queue import Pool, candidates

CONFIDENCE_MAP = "confidence_map"  # among the parameters of a case
USUAL_PREVALENCE = "usual_prevalence"  # likewise: the default of each profile, where none was given
FINDINGS: tuple[Pool, ...] = ("likely", "unlikely")


def with_readings(
    findings: Sequence[Finding],
    readings: Sequence[SequenceReading],
    rows: Sequence[Row],
    rules: Sequence[PatternRule],
    seed: int,
    prevalence: Prevalence,
    fitted: ConfidenceMap | None = None,
) -> tuple[Finding, ...]:
    """The findings of rules and those of readings in one order; the same from the same arguments.

    Each carries its confidence at this prevalence, through the map ``fitted`` to reviews where there is one. A finding
    of rules that a reading names too has that of the reading and its id; one whose whole sequence was read without that
    shape is doubted, if the reader was asked for the shape. How often a reading of two conversations side by side is
    right was not measured: a finding of it has no confidence and is a lead.
    """
    findings = with_confidence(findings, rows, rules, prevalence)
    if not readings:
        return refitted(findings, fitted)
    own = own_rules(rules)
    pairs = [each for each in readings if each.compares]
    compared = compared_findings(pairs, rules, rows) if pairs else ()
    readings = [each for each in readings if not each.compares]
    named = [
        as_of_own_rule(each, own)
        for each in reading_findings(readings, nominate(rows, findings, seed=seed), rules, rows)
    ]
    share_of = prevalence_of(prevalence, rows)
    by_reading = [
        as_of_unmeasured_reader(
            msgspec.structs.replace(
                each,
                confidence=reading_confidence(each, share),
                measures=each.measures | {"prevalence": share},
            )
        )
        for each in named
        if (share := share_of(each.agent))
    ]
    read = {(each.agent, each.pattern): each for each in by_reading}
    matched = {(each.agent, each.pattern) for each in findings}
    states: dict[tuple[str, str], set[str]] = {}
    for reading in readings:
        for name in reading.message_conversations:
            states.setdefault((reading.agent, name), set()).add(reading.state)
    whole = {place for place, own in states.items() if own == {"scored"}}
    asked = {rule.id for rule in rules if rule.file.reading is not None}
    joined = (
        *(
            _linked(each, read, whole - failed_places(readings, each.pattern) if each.pattern in asked else frozenset())
            for each in findings
        ),
        *(each for each in by_reading if (each.agent, each.pattern) not in matched),
        *compared,
    )
    return refitted(joined, fitted)


def compared_findings(
    readings: Iterable[SequenceReading], rules: Sequence[PatternRule], rows: Iterable[Row]
) -> tuple[Finding, ...]:
    """What readings of two conversations side by side say: how sure that is was not measured."""
    own = own_rules(rules)
    return tuple(as_of_own_rule(each, own) for each in reading_findings(readings, (), rules, rows))


def failed_places(readings: Iterable[SequenceReading], pattern: str) -> frozenset[tuple[str, str]]:
    """(agent, conversation) where a judge named this pattern in vain: that is neither a yes nor a no."""
    failed = (each for each in readings if each.failed_for(pattern))
    return frozenset((each.agent, name) for each in failed for name in each.message_conversations)


def _linked(finding: Finding, read: Mapping[tuple[str, str], Finding], whole: Collection[tuple[str, str]]) -> Finding:
    """``whole`` are the sequences of which every window was read with this shape in mind."""
    named = read.get((finding.agent, finding.pattern))
    if (
        named is None
        and finding.conversations
        and all((finding.agent, name) in whole for name in finding.conversations)
    ):
        return msgspec.structs.replace(finding, confidence=doubted(finding.confidence))
    if named is None:
        return finding
    return msgspec.structs.replace(finding, reading=named.reading, confidence=named.confidence)


def prevalence_by_profile(
    rows: Iterable[Row], sessions: Iterable[SessionVerdict], shares: Mapping[str, float], *, named: bool
) -> dict[str, float]:
    """Agent → prevalence where none was given: that of the profile of its conversations."""
    return usual_prevalence(rows, {each.conversation: each.profile for each in sessions}, shares, named=named)


def prevalence_parameters(
    given_share: float | None, prevalence: Prevalence, findings: Iterable[Finding], rows: Sequence[Row]
) -> dict[str, Any]:
    """What a case records of the prevalence: the one given, else the default of each profile, and each share that the
    confidence of a finding assumes, with the number of its speakers."""
    share_of = prevalence_of(prevalence, rows)
    shares = Counter(share_of(agent) for agent in {each.agent for each in findings if each.confidence is not None})
    assumed = {f"{share:g}": count for share, count in sorted(shares.items())}
    facts: dict[str, Any] = {"prevalence": given_share, ASSUMED_PREVALENCE: assumed}
    return facts if given_share else facts | {USUAL_PREVALENCE: dict(BY_PROFILE)}


def reading_facts(case: Case, rows: Sequence[Row]) -> tuple[int, Prevalence, ConfidenceMap | None]:
    """The seed, the prevalence (of each agent, where none was given) and the map of confidence of a case."""
    fitted, shares = case.parameters.get(CONFIDENCE_MAP), case.parameters.get(USUAL_PREVALENCE)
    prevalence: Prevalence = case.parameters.get("prevalence")
    if prevalence is None and shares is not None:
        prevalence = prevalence_by_profile(rows, case.sessions, shares, named="profile" in case.parameters)
    return (
        case.parameters.get("seed", 0),
        prevalence,
        None if fitted is None else msgspec.convert(fitted, ConfidenceMap),
    )


def with_disagreement(
    findings: Sequence[Finding], rows: Sequence[Row], rules: Sequence[PatternRule]
) -> tuple[Finding, ...]:
    """The findings of rules, each with a note where the judges lie .5 or more apart on what a stage asks for."""
    if not any(row.reading is not None and row.reading.panel for row in rows):
        return tuple(findings)
    by_place = {(row.conversation, row.id): row for row in rows}
    names = {rule.hash: inputs_by_stage(rule) for rule in rules}
    return tuple(each if each.is_read else _noted(each, by_place, names.get(each.rule_hash, {})) for each in findings)


def _noted(finding: Finding, rows: dict[tuple[str, str], Row], inputs: dict[str, frozenset[str]]) -> Finding:
    stages = finding.stages or tuple(("", message_id) for message_id in finding.message_ids)
    placed = zip(stages, finding.message_conversations, finding.message_ids, strict=False)
    read = [(rows[name, message_id], stage) for (stage, _), name, message_id in placed if (name, message_id) in rows]
    apart = sum(disagree(row, stage_inputs(inputs, stage)) for row, stage in read)
    if not apart:
        return finding
    note = f"the two judges disagree on {apart} of {counted(len(finding.message_ids), 'message')}"
    return msgspec.structs.replace(finding, notes=(*finding.notes, note))


def decided_findings(store: Store) -> Iterator[DecidedFinding]:
    """The findings of a store that were decided on as they are now, and that a draw came upon or all were."""
    for pool in FINDINGS:
        every = candidates(store, pool)
        whole = all(each.answered for each in every)
        for candidate in every:
            if candidate.standing is None or candidate.standing.stale or not (candidate.drawn or whole):
                continue
            verdict, confidence = candidate.standing.review.verdict, _confidence(candidate.item)
            if verdict != "unsure" and confidence is not None:
                yield DecidedFinding(confidence, candidate.item.agent, verdict == "confirmed")


def confidence_by_reviews(store: Store) -> ConfidenceMap | str:
    """The map from shipped confidence to that by the reviews of a store, or why there is none."""
    return fit_confidence(list(decided_findings(store)))


def _confidence(item: object) -> float | None:
    return shipped_confidence(item) if isinstance(item, Finding) else None
