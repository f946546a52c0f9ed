"""Sequences of an audit: nominated, put to the judge as windows, and made findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from undersong.errors import JudgeError
from undersong.judges.protocol import Judge, JudgeAbortedError, PatternShape, SequenceWindow
from undersong.models import Case, Finding, Nomination, Row, SequenceReading
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.nomination import nominate
from undersong.patterns.readings import reading_findings
from undersong.patterns.significance.confidence import OWN, PLATFORM, confidence
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
    prevalence: float,
) -> tuple[Finding, ...]:
    """The findings of rules and those of readings in one order; the same from the same arguments.

    Those of readings carry their confidence at this prevalence, and so does a finding of rules that a reading names
    too, with the id of that reading. What rules alone find has none: it was not measured.
    """
    if not readings:
        return tuple(findings)
    named = reading_findings(readings, nominate(rows, findings, seed=seed), rules, rows)
    by_reading = [
        msgspec.structs.replace(
            each,
            confidence=confidence(round(each.measures["certainty"]), prevalence),
            measures=each.measures | {"prevalence": prevalence},
        )
        for each in named
    ]
    read = {(each.agent, each.pattern): each for each in by_reading}
    matched = {(each.agent, each.pattern) for each in findings}
    return (
        *(_linked(each, read) for each in findings),
        *(each for each in by_reading if (each.agent, each.pattern) not in matched),
    )


def _linked(finding: Finding, read: Mapping[tuple[str, str], Finding]) -> Finding:
    named = read.get((finding.agent, finding.pattern))
    if named is None:
        return finding
    return msgspec.structs.replace(finding, reading=named.reading, confidence=named.confidence)


def usual_prevalence(rows: Sequence[Row]) -> float:
    """The share of speakers that is assumed to show a shape: that of a platform where most messages are of agents."""
    agents = sum(row.role == "agent" for row in rows)
    return PLATFORM if 2 * agents > len(rows) else OWN


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


def reading_facts(case: Case) -> tuple[int, float]:
    """The seed and the prevalence of a case whose sequences were read."""
    return case.parameters.get("seed", 0), case.parameters.get("prevalence", OWN)
