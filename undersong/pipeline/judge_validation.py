"""Measure a judge: how far it agrees with itself, with less context, with another framing, and with labels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.core.text import counted, text_hash
from undersong.errors import InputError, UsageError
from undersong.judges.llm.at_hand import judge_option
from undersong.judges.llm.budget import Budget
from undersong.judges.measurement import Calibration, RetestKind, Shift, shift
from undersong.judges.protocol import Judge, Question, is_paid
from undersong.ml.model_file import digest
from undersong.models import TRAITS, Conversation, Message, Problem, Route, Usage
from undersong.pipeline.evaluate import questions_of
from undersong.pipeline.judge_session import open_session
from undersong.pipeline.options import Options, Progress, silent
from undersong.pipeline.planning import price_words
from undersong.pipeline.stages import ingest_and_scan, routed_threads
from undersong.scan import load_book, scan_conversation
from undersong.stores.sqlite import SQLiteStore, temporary_store
from undersong.training.datasets import LabelledMessage, read_labels


def unheard(sentence: str) -> None:
    """Where nobody wants to be told the price first."""


class RetestReport(NamedTuple):
    """The differences between readings, the problems of the files, and the usage of the second readings.

    ``used`` has an entry per second reading: the conversation of its message, and the usage.
    """

    shifts: list[Shift]
    problems: list[Problem]
    used: list[tuple[str, Usage]]


def retest(
    kind: RetestKind,
    paths: Sequence[str | Path],
    store: SQLiteStore,
    options: Options,
    sample: int,
    progress: Progress = silent,
    announce: Callable[[str], None] = unheard,
) -> RetestReport:
    """Test-retest: read a seeded sample of the routed messages twice and measure how far the readings lie apart.

    ``repeat`` asks the same question again, ``context`` without thread and history, ``framing`` in the other framing.
    First readings that are in the store are not paid again. The result is kept for ``stability``. Both readings are
    paid from one budget, and ``announce`` is told first what they will cost. Raises UsageError for context or framing
    of a judge that is asked no question.
    """
    if kind != "repeat" and not is_paid(options.judge):
        what = f"the judge '{options.judge}' reads the message alone and is asked no question, so it has no {kind}"
        raise UsageError(what, where="--judge", remedy=f"name an LLM judge, such as {judge_option()}")
    shared = Budget.shared(options.terms)
    with temporary_store() as place, open_session(options.judge, shared, store, options.ledger) as first:
        corpus = ingest_and_scan(paths, place, load_book(), options, progress)
        histories = first.histories(corpus.inputs)
        threads = routed_threads(corpus, place, options)
        per_thread = (questions_of(thread, read_all=options.read_all, histories=histories) for thread in threads)
        suited = (question for questions in per_thread for question in questions if _suits(kind, question))
        chosen = _sample(suited, options.seed, sample)
        again = [_narrow(each) for each in chosen] if kind == "context" else chosen
        if is_paid(options.judge):
            announce(price_words(options, (chosen, again), first.ledger))
        one = first.judge.evaluate(chosen)
        name, judge_hash = first.judge.name, first.judge.hash
    limits = msgspec.structs.replace(
        shared,
        sample=1 if kind == "repeat" else 0,
        framing="question_first" if kind == "framing" else "data_first",
    )
    with open_session(options.judge, limits, store, options.ledger) as second:
        other = second.judge.evaluate(again)
        compared = shift(kind, name, judge_hash, list(zip(one, other, strict=True)))
        if second.ledger is not None:
            second.ledger.put_shifts(compared)
    readings = zip(chosen, other, strict=True)
    used = [(question.message.conversation, second.reading.usage) for question, second in readings if second.reading]
    return RetestReport(compared, corpus.problems, used)


def validate(
    labels: Path,
    store: SQLiteStore,
    options: Options,
    sample: int | None,
    *,
    learnt: bool = False,
    apply: bool = False,
    announce: Callable[[str], None] = unheard,
) -> Calibration:
    """Read labelled messages one by one and compare: one JSON object a line, as ``read_labels`` takes them.

    Raises InputError where nothing was scored, and where the judge was trained on any of the messages; with ``learnt``
    they are measured all the same, and counted in what is stored. With ``apply`` later scores of this judge go through
    the maps that are fitted here; without it, maps that were recorded before stay. Raises UsageError without the
    extra ``train``.
    """
    try:  # before anything is paid for
        from undersong.training.evaluation import calibrated
        from undersong.training.score_maps import fit_maps
    except ModuleNotFoundError as error:
        what = f"measuring against labels needs {error.name}, which is not installed"
        raise UsageError(what, remedy="pip install 'undersong[train]'") from error
    rows = read_labels(labels, partial=True)
    if sample is not None and sample < len(rows):
        places = np.random.default_rng(options.seed).choice(len(rows), size=sample, replace=False)
        rows = [rows[place] for place in sorted(places.tolist())]
    with open_session(options.judge, options.terms, store, options.ledger) as judging:
        if apply and judging.judge.reads_everything:
            remedy = "leave --apply away, or train a judge of your own with `undersong judge train`"
            raise UsageError("the offline judge has maps of its own", where="--apply", remedy=remedy)
        trained_on = _learnt_from(judging.judge, rows)
        if trained_on and not learnt:
            what = f"the judge was trained on {trained_on:,} of these {counted(len(rows), 'message')}"
            remedy = "keep some authors apart in training, or give --learnt to have them measured and marked"
            raise InputError(f"{what}, so figures on them say nothing about it", where=str(labels), remedy=remedy)
        questions = list(_alone([(row.author, row.text) for row in rows]))
        if is_paid(options.judge):
            announce(price_words(options, (questions,), judging.ledger))
        evaluations = judging.judge.evaluate(questions)
        scored = [(row, each.traits) for row, each in zip(rows, evaluations, strict=True) if each.traits is not None]
        if not scored:
            why = next((each.reason for each in evaluations if each.reason), "nothing was asked")
            raise InputError("no labelled message was scored", where=str(labels), remedy=str(why))
        own_labels = np.array([row.scores for row, _ in scored])
        scores = np.array([[traits.get(trait) for trait in TRAITS] for _, traits in scored], dtype=np.float64)
        authors = [row.author for row, _ in scored]
        figures, harmful = calibrated(own_labels, scores, authors, options.seed)
        fitted = fit_maps(own_labels, scores, authors)
        earlier = judging.calibration
        calibration = Calibration(
            judge=judging.judge.name,
            judge_hash=judging.judge.hash,
            labels=labels.name,
            labels_sha256=hashlib.sha256(labels.read_bytes()).hexdigest(),
            messages=len(scored),
            asked=len(rows),
            groups=len({row.author for row, _ in scored}),
            learnt_from=trained_on,
            figures=figures,
            harmful=harmful,
            fitted=fitted,
            maps=fitted if apply else earlier.maps if earlier is not None else {},
        )
        if judging.ledger is not None:
            judging.ledger.put_calibration(calibration)
        return calibration


def forget_maps(store: SQLiteStore, options: Options) -> int:
    """Have later scores of a judge be its own again; of how many traits they went through maps."""
    with open_session(options.judge, options.terms, store, options.ledger) as judging:
        calibration = judging.calibration
        if calibration is None or judging.ledger is None:
            return 0
        judging.ledger.put_calibration(msgspec.structs.replace(calibration, maps={}))
        return len(calibration.maps)


def _learnt_from(judge: Judge, rows: Sequence[LabelledMessage]) -> int | None:
    """How many labelled messages a judge was trained on; None where nobody knows."""
    digests = judge.learnt_from
    return None if digests is None else sum(digest(row.text) in digests for row in rows)


def _alone(texts: Iterable[tuple[str, str]]) -> Iterator[Question]:
    """Focused questions: each message by itself, with its scan."""
    book = load_book()
    for number, (author, text) in enumerate(texts):
        message = Message(
            id=f"m{number}", conversation=f"c{number}", position=0, author=author, agent=author, role="agent", text=text
        )
        conversation = Conversation(id=message.conversation, source_format="labels", messages=(message,))
        (scan,), _ = scan_conversation(conversation, book)
        route = Route(message_id=message.id, tier="focused", tier_before="focused", depth="standard", width="message")
        yield Question(message=message, scan=scan, route=route)


def _suits(kind: RetestKind, question: Question) -> bool:
    """Whether a second reading can differ: without context there is none to leave out."""
    return kind != "context" or bool(question.prior) or question.history is not None


def _sample(questions: Iterable[Question], seed: int, count: int) -> list[Question]:
    """The questions whose hashes are lowest: the same ones however the files are ordered."""

    def rank(question: Question) -> str:
        return text_hash(f"{seed}\0{question.message.conversation}\0{question.message.id}")

    return sorted(questions, key=rank)[:count]


def _narrow(question: Question) -> Question:
    """The question without thread and history, at the same depth."""
    route = msgspec.structs.replace(question.route, width="message")
    return msgspec.structs.replace(question, route=route, prior=(), prior_scans=(), cut=0, history=None)
