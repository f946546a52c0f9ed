"""A judge with its ledger for a run, and the confirmation of its verdicts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from undersong.errors import JudgeError
from undersong.judges.context import Past, history
from undersong.judges.ledger import SQLiteLedger, SQLLedger
from undersong.judges.limits import RunLimits
from undersong.judges.measurement import PARAMETER, Calibration, ScoreMap, Shift, noise_of
from undersong.judges.protocol import EvaluationHistory, Judge, JudgeAbortedError, Segment, is_paid, open_judge
from undersong.models import TRAITS, Confirmed, InputFile, Message, Row, SessionVerdict
from undersong.patterns.significance.noise_resampling import assumed
from undersong.pipeline.evaluate import HistoryLookup, RoutedThread, raised_by
from undersong.pipeline.stages import AuditState
from undersong.stores.protocol import Store
from undersong.stores.sql.store import SQLStore
from undersong.stores.sqlite import SQLiteStore
from undersong.verdict import constraint_segments, segments, session_verdict


class JudgeSession(NamedTuple):
    """A judge, and the ledger that its answers go to; None where the store has no file for one."""

    judge: Judge
    ledger: SQLLedger | None

    @property
    def calibration(self) -> Calibration | None:
        """How the judge agrees with labels, None where nobody measured it."""
        return self.ledger.calibration(self.judge.hash) if self.ledger is not None else None

    @property
    def maps(self) -> dict[str, ScoreMap]:
        """The maps that scores of the judge go through, by trait; {} for its own scores."""
        calibration = self.calibration
        return {} if calibration is None else calibration.maps

    @property
    def noise(self) -> dict[str, float]:
        """How far two readings of the judge lie apart per trait; empty where nobody measured it."""
        return noise_of(self._shifts, assumed())

    @property
    def _shifts(self) -> list[Shift]:
        return self.ledger.shifts(self.judge.hash) if self.ledger is not None else []

    @property
    def measurements(self) -> dict[str, Any]:
        """What was measured of the judge, as a report's parameters hold it; nothing where nobody measured."""
        parameters: dict[str, Any] = {}
        if (calibration := self.calibration) is not None:
            if calibration.maps:
                parameters[PARAMETER] = _json_values(calibration.maps)
            calibrated = not calibration.learnt_from  # on what it was trained on it was not measured
            parameters |= {"calibrated": calibrated, "calibration": _json_values(calibration)}
        if self.noise:
            parameters |= {"judge_noise": self.noise, "judge_shifts": msgspec.to_builtins(self._shifts)}
        return parameters

    def histories(self, inputs: Iterable[InputFile]) -> HistoryLookup | None:
        """Agents' histories as of now, and as of the first time for a run over the same files by the same judge."""
        if self.ledger is None or self.judge.reads_everything:
            return None
        named = [self.judge.hash, *sorted(each.sha256 for each in inputs)]
        run = hashlib.sha256("\0".join(named).encode()).hexdigest()
        self.ledger.snapshot(run, self.judge.hash)
        return partial(_history, self.ledger, run)

    def live_histories(self) -> HistoryLookup | None:
        """Agents' histories for a run without an end: as of an agent's first question in each conversation."""
        if self.ledger is None or self.judge.reads_everything:
            return None
        return partial(_live_history, self.ledger, self.judge.hash)


@contextmanager
def open_session(spec: str, limits: RunLimits, store: Store, ledger: str | None = None) -> Iterator[JudgeSession]:
    """The judge of ``--judge``; raises UsageError, and JudgeError where a key, a library or a file is missing.

    Paid answers lie in the tables of the store; of a store that has none, in the file ``ledger``, or without one
    nowhere: then they are paid again after a crash.
    """
    opened = _ledger_of(store, ledger if is_paid(spec) else None)
    if opened is None:
        yield JudgeSession(open_judge(spec, limits), None)
        return
    with opened as answers:
        yield JudgeSession(open_judge(spec, msgspec.structs.replace(limits, ledger=answers)), answers)


def _ledger_of(store: Store, file: str | None) -> SQLLedger | None:
    if isinstance(store, SQLiteStore):
        return SQLiteLedger(store.path)
    if isinstance(store, SQLStore):
        return SQLLedger(store.another())
    return SQLiteLedger(Path(file), pasts=partial(pasts_of, store)) if file else None


def pasts_of(store: Store, judge_hash: str, only: str | None) -> Iterator[tuple[str, Past]]:
    """The past of every agent of a store, or of one, by a judge: timed scores and findings."""
    findings: dict[str, list[tuple[int, str]]] = {}
    for finding in store.findings(only):
        if finding.end is not None:
            findings.setdefault(finding.agent, []).append((_microseconds(finding.end), finding.pattern))
    agents = {each.agent for each in store.agents(judge_hash)} if only is None else {only}
    for agent in sorted(agents | set(findings)):
        readings = [
            (_microseconds(row.time), tuple(map(row.traits.get, TRAITS)))
            for row in store.history(agent, judge_hash)
            if row.state == "scored" and row.time is not None and row.traits is not None
        ]
        yield agent, Past(tuple(readings), tuple(sorted(findings.get(agent, ()))))


def _microseconds(time: datetime) -> int:
    return round(time.timestamp() * 1_000_000)


def _history(ledger: SQLLedger, run: str, message: Message) -> EvaluationHistory:
    return history(ledger.past(run, message.agent), message.time)


def _live_history(ledger: SQLLedger, judge_hash: str, message: Message) -> EvaluationHistory:
    run = f"live/{judge_hash}/{message.conversation}"
    ledger.snapshot_agent(run, judge_hash, message.agent)
    return _history(ledger, run, message)


def _json_values(value: object) -> Any:
    """As it is read back from a report: pages print lists, and no tuples."""
    return msgspec.json.decode(msgspec.json.encode(value))


TOGETHER = 64  # places that are gathered before the judge is asked, so that it is asked about many at a time
ReadThread = tuple[RoutedThread, tuple[Row, ...]]


def confirmed_sessions(
    threads: Iterable[ReadThread], judge: Judge, run: AuditState
) -> Iterator[tuple[RoutedThread, tuple[Row, ...], SessionVerdict]]:
    """Each thread with its rows and its verdict, in order.

    A judge that can tell mechanisms is asked about every deduction and candidate, within its terms; what it was not
    asked, and why, is in the verdict. A judge that fails as a whole ends the asking and stands in ``run.failure``.
    """
    if "mechanisms" not in judge.gives:
        yield from ((thread, rows, _verdict(thread, rows, run)) for thread, rows in threads)
        return
    for group in _grouped(threads, run):
        answers = iter(confirmations_of(judge, [segment for *_, places in group for segment in places], run))
        for (thread, rows), verdict, places in group:
            confirmations = tuple(islice(answers, len(places)))
            yield thread, rows, _verdict(thread, rows, run, confirmations) if confirmations else verdict


def _verdict(
    thread: RoutedThread, rows: Sequence[Row], run: AuditState, confirmations: Sequence[Confirmed] = ()
) -> SessionVerdict:
    return session_verdict(thread.conversation, thread.scans, thread.thread, rows, confirmations, run.profile)


def _grouped(
    threads: Iterable[ReadThread], run: AuditState
) -> Iterator[list[tuple[ReadThread, SessionVerdict, tuple[Segment, ...]]]]:
    """Threads with their verdicts so far and their flagged places, TOGETHER of either at most."""
    group: list[tuple[ReadThread, SessionVerdict, tuple[Segment, ...]]] = []
    for thread, rows in threads:
        verdict = _verdict(thread, rows, run)
        places = segments(thread.conversation, verdict) + constraint_segments(thread.conversation, thread.scans)
        group.append(((thread, rows), verdict, places))
        if len(group) >= TOGETHER or sum(len(places) for *_, places in group) >= TOGETHER:
            yield group
            group = []
    if group:
        yield group


def confirmations_of(judge: Judge, every: Sequence[Segment], run: AuditState) -> list[Confirmed]:
    """One answer for each place, none where the judge answers no second questions; the state says why there is none.

    A judge that fails as a whole stands in ``run.failure`` and is not asked again.
    """
    if not every or not judge.confirms:
        return []
    answers: Sequence[Confirmed | None] = [None] * len(every)
    if run.failure is None:
        try:
            with raised_by(judge, "mend its method confirm"):
                answers = judge.confirm(every)
        except JudgeAbortedError as error:
            run.failure, answers = error, error.answers
        except JudgeError as error:
            run.failure = error
    why = f"the judge failed: {run.failure}"
    return [answer or judge.not_asked(segment, why) for answer, segment in zip(answers, every, strict=True)]
