"""Sequences of an audit: nominated, put to the judge as windows, and made findings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from undersong.errors import JudgeError
from undersong.judges.protocol import Judge, JudgeAbortedError, PatternShape, SequenceWindow
from undersong.models import Case, Finding, Nomination, Row, SequenceReading
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.nomination import nominate
from undersong.patterns.readings import reading_findings
from undersong.patterns.significance.confidence import OWN, confidence, doubted, usual_prevalence, with_confidence
from undersong.pipeline.sequence_windows import shapes_of, windows_of
from undersong.pipeline.stages import AuditState
from undersong.stores.protocol import Store

TOGETHER = 1024  # windows that are gathered before the judge is asked: the questions of one batch


def read_sequences(
    rows: Sequence[Row],
    findings: Sequence[Finding],
    rules: Sequence[PatternRule],
    store: Store,
    judge: Judge,
    run: AuditState,
    seed: int,
) -> tuple[SequenceReading, ...]:
    """Nominate and read, the most urgent first; nothing where the judge reads no sequences.

    A judge that fails as a whole ends the asking: it stands in ``run.failure``, and the rest is unread with that
    reason.
    """
    shapes = shapes_of(rules)
    if not judge.reads_sequences or not shapes:
        return ()
    readings: list[SequenceReading] = []
    windows = (window for each in nominate(rows, findings, seed=seed) for window in _windows(each, store))
    while part := list(islice(windows, TOGETHER)):
        readings += _answers(judge, part, shapes, run)
    return tuple(readings)


def with_readings(
    findings: Sequence[Finding],
    readings: Sequence[SequenceReading],
    rows: Sequence[Row],
    rules: Sequence[PatternRule],
    seed: int,
    prevalence: float | None,
) -> tuple[Finding, ...]:
    """The findings of rules and those of readings in one order; the same from the same arguments.

    Each carries its confidence at this prevalence. A finding of rules that a reading names too has that of the reading
    and its id; one whose whole sequence was read without that shape is doubted.
    """
    findings = with_confidence(findings, rows, rules, prevalence)
    if not readings:
        return findings
    named = reading_findings(readings, nominate(rows, findings, seed=seed), rules, rows)
    usual = {} if prevalence else usual_prevalence(rows)
    by_reading = [
        msgspec.structs.replace(
            each,
            confidence=confidence(round(each.measures["certainty"]), share),
            measures=each.measures | {"prevalence": share},
        )
        for each in named
        if (share := prevalence or usual.get(each.agent, OWN))
    ]
    read = {(each.agent, each.pattern): each for each in by_reading}
    matched = {(each.agent, each.pattern) for each in findings}
    seen = {(each.agent, name) for each in readings if each.state == "scored" for name in each.message_conversations}
    return (
        *(_linked(each, read, seen) for each in findings),
        *(each for each in by_reading if (each.agent, each.pattern) not in matched),
    )


def _linked(finding: Finding, read: Mapping[tuple[str, str], Finding], seen: Collection[tuple[str, str]]) -> Finding:
    named = read.get((finding.agent, finding.pattern))
    if named is None and all((finding.agent, name) in seen for name in finding.conversations):
        return msgspec.structs.replace(finding, confidence=doubted(finding.confidence))
    if named is None:
        return finding
    return msgspec.structs.replace(finding, reading=named.reading, confidence=named.confidence)


def _windows(nomination: Nomination, store: Store) -> Iterator[SequenceWindow]:
    assert nomination.conversation is not None
    conversation, _, _ = store.conversation(nomination.conversation)
    yield from windows_of(nomination, conversation.messages)


def _answers(
    judge: Judge, windows: Sequence[SequenceWindow], shapes: Sequence[PatternShape], run: AuditState
) -> Iterator[SequenceReading]:
    """One reading per window; the state says why there is none."""
    answers: Sequence[SequenceReading | None] = [None] * len(windows)
    if run.failure is None:
        try:
            answers = judge.read_sequences(windows, shapes)
        except JudgeAbortedError as error:
            run.failure, answers = error, error.answers
        except JudgeError as error:
            run.failure = error
    why = f"the judge failed: {run.failure}"
    for answer, window in zip(answers, windows, strict=True):
        yield answer or judge.sequence_not_read(window, why)


def reading_facts(case: Case) -> tuple[int, float | None]:
    """The seed and the prevalence of a case; None: what is usual for each agent."""
    return case.parameters.get("seed", 0), case.parameters.get("prevalence")
