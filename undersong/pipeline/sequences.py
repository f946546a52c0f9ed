"""Sequences of an audit: nominated, and put to the judge as windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Protocol

from undersong.errors import JudgeError
from undersong.judges.protocol import Judge, JudgeAbortedError, PatternShape, SequenceWindow
from undersong.models import Finding, Message, Nomination, Row, SequenceReading
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.nomination import nominate
from undersong.pipeline.evaluate import raised_by
from undersong.pipeline.options import Progress, counter, silent
from undersong.pipeline.sequence_pairs import compared_shapes, paired_windows
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
    progress: Progress = silent,
) -> tuple[SequenceReading, ...]:
    """Nominate and read, the most urgent first, then pairs of conversations; nothing where the judge reads none.

    A judge that fails as a whole ends the asking: it stands in ``run.failure``, and the rest is unread with that
    reason.
    """
    shapes = shapes_of(rules)
    if not judge.reads_sequences or not shapes:
        return ()
    readings, talks = list[SequenceReading](), partial(_messages, store)
    nominations = list(nominate(rows, findings, seed=seed))
    tick = counter(progress, "sequences", len(nominations))
    windows = (window for each in nominations for window in _windows(each, store) if tick() is None)
    while part := list(islice(windows, TOGETHER)):
        readings += answers(judge, part, shapes, run)
    asked = compared_shapes(shapes)
    pairs = paired_windows(rows, talks) if asked else ()
    readings += answers(judge, pairs, asked, run) if pairs else ()
    return tuple(readings)


def _messages(store: Store, name: str) -> Sequence[Message]:
    return store.conversation(name)[0].messages


def _windows(nomination: Nomination, store: Store) -> Iterator[SequenceWindow]:
    assert nomination.conversation is not None
    conversation, _, _ = store.conversation(nomination.conversation)
    yield from windows_of(nomination, conversation.messages)


class Asking(Protocol):
    """A run that asks: ``failure`` is what ended the asking."""

    failure: JudgeError | None


def answers(
    judge: Judge, windows: Sequence[SequenceWindow], shapes: Sequence[PatternShape], run: Asking
) -> Iterator[SequenceReading]:
    """One reading per window; the state says why there is none."""
    results: Sequence[SequenceReading | None] = [None] * len(windows)
    if run.failure is None:
        try:
            with raised_by(judge, "let read_sequences return a reading with the state failed instead"):
                results = judge.read_sequences(windows, shapes)
        except JudgeAbortedError as error:
            run.failure, results = error, error.answers
        except JudgeError as error:
            run.failure = error
    why = f"the judge failed: {run.failure}"
    for answer, window in zip(results, windows, strict=True):
        yield answer or judge.sequence_not_read(window, why)
