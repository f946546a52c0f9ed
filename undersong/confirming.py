"""The second question of an audit: flagged places of sessions are put to the judge, where it can be asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from undersong.errors import JudgeError
from undersong.evaluate import RoutedThread
from undersong.judges import Judge, JudgeAbortedError, Segment
from undersong.models import Confirmed, Row, SessionVerdict
from undersong.passes import AuditState
from undersong.verdict import segments, session_verdict

TOGETHER = 64  # places that are gathered before the judge is asked, so that it is asked about many at a time
ReadThread = tuple[RoutedThread, tuple[Row, ...]]


def confirmed_sessions(
    threads: Iterable[ReadThread], judge: Judge, run: AuditState
) -> Iterator[tuple[RoutedThread, tuple[Row, ...], SessionVerdict]]:
    """Each thread with its rows and its verdict, in order.

    A judge that can tell mechanisms is asked about every deduction and candidate, within its terms; what it was not
    asked, and why, is in the verdict. A judge that fails as a whole ends the asking and stands in ``run.failure``.
    """
    asks = "mechanisms" in judge.gives
    for group in _grouped(threads, asks=asks):
        every = [segment for *_, put in group for segment in put]
        answers = iter(_answers(judge, every, run))
        for (thread, rows), verdict, put in group:
            confirmations = tuple(islice(answers, len(put)))
            yield thread, rows, _verdict(thread, rows, confirmations) if confirmations else verdict


def _verdict(thread: RoutedThread, rows: Sequence[Row], confirmations: Sequence[Confirmed] = ()) -> SessionVerdict:
    return session_verdict(thread.conversation, thread.scans, thread.thread, rows, confirmations)


def _grouped(
    threads: Iterable[ReadThread], *, asks: bool
) -> Iterator[list[tuple[ReadThread, SessionVerdict, tuple[Segment, ...]]]]:
    """Threads with their verdicts so far and their flagged places; a judge that is not asked needs no groups."""
    group: list[tuple[ReadThread, SessionVerdict, tuple[Segment, ...]]] = []
    places = 0
    for thread, rows in threads:
        verdict = _verdict(thread, rows)
        put = segments(thread.conversation, verdict) if asks else ()
        group.append(((thread, rows), verdict, put))
        places += len(put)
        if not asks or places >= TOGETHER or len(group) >= TOGETHER:
            yield group
            group, places = [], 0
    if group:
        yield group


def _answers(judge: Judge, every: Sequence[Segment], run: AuditState) -> list[Confirmed]:
    """One answer for each place; the state says why there is none."""
    from undersong.judges.llm.confirm import confirm, not_asked
    from undersong.judges.llm.judge import LLMJudge

    if not every or not isinstance(judge, LLMJudge):
        return []
    answers: Sequence[Confirmed | None] = [None] * len(every)
    if run.failure is None:
        try:
            answers = confirm(judge, every)
        except JudgeAbortedError as error:
            run.failure, answers = error, error.answers
        except JudgeError as error:
            run.failure = error
    why = f"the judge failed: {run.failure}"
    return [said or not_asked(judge, segment, why) for said, segment in zip(answers, every, strict=True)]
