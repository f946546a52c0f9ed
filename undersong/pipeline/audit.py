"""The steps chained: files → ingest → scan → route → evaluate → detect → weigh → verdict → report. Read this first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import msgspec

from undersong import __version__
from undersong.core.processes import Share, in_turn, shared_out
from undersong.core.text import json_hash
from undersong.errors import InputError, NothingReadError, UsageError
from undersong.formats.objects import Inputs
from undersong.judges.llm.at_hand import judge_option
from undersong.judges.measurement import PARAMETER, panel_agreement
from undersong.judges.protocol import Judge
from undersong.judges.stance import stance_hashes, stance_signals
from undersong.models import (
    Case,
    Problem,
    Row,
    SequenceReading,
    SessionVerdict,
)
from undersong.patterns.catalog import load_rules
from undersong.patterns.catalog import rule_hashes as pattern_hashes
from undersong.patterns.detect import Detection, RowSearch
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.nomination import UNREAD_SEQUENCES, unread_sequences
from undersong.patterns.request_leads import all_leads
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.confidence import BY_PROFILE, Prevalence, with_confidence
from undersong.patterns.significance.estimate import Significance, estimate_significance
from undersong.patterns.significance.refit import ConfidenceMap
from undersong.pipeline.case_builder import (
    cited,
    count,
    highest,
    judge_calls,
    parameters,
    quoted,
    quoted_leads,
    spending,
)
from undersong.pipeline.evaluate import RoutedThread, answered_by, judge_problems
from undersong.pipeline.judge_session import JudgeSession, open_session
from undersong.pipeline.judged_findings import (
    CONFIDENCE_MAP,
    confidence_by_reviews,
    prevalence_by_profile,
    prevalence_parameters,
    with_disagreement,
    with_readings,
)
from undersong.pipeline.options import Options, Progress, counter, silent
from undersong.pipeline.price_estimate import PriceEstimate
from undersong.pipeline.reading_processes import read_conversations, ready_to_read
from undersong.pipeline.sequences import read_sequences
from undersong.pipeline.stages import AuditState, ingest_and_scan, read_threads
from undersong.rows.corpus_scales import RowSpool, null_bands_of, ranks_of, table, table_name, with_band
from undersong.rows.jsonl import read_rows
from undersong.scan import load_book
from undersong.stores.protocol import Store, open_store
from undersong.stores.reviewing import reviews_in
from undersong.stores.sqlite import temporary_store
from undersong.verdict import agent_verdicts, rule_hashes

Write = Callable[[bytes], object]
MAX_LISTED = 3  # problems that an error names


def audit(
    inputs: Inputs,
    store: Store | str | Path | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    *,
    session: JudgeSession | None = None,
) -> tuple[Case, list[Row]]:
    """Everything from conversations to a Case, the content of a report, and its rows without texts.

    ``inputs``: a path or several (files and folders of any format); Conversations; plain dicts with ``messages``, or a
    list of messages as dicts with ``role`` and ``content``, or ``author`` and ``text``. A rerun with the same ``store``
    (a file, an address, or an open one) finds its answers there; without one nothing is kept.
    ``session`` is a judge of ``options.judge`` that is open already (``open_session``), for many small audits.

    Raises StoreError where the store fails, and NothingReadError where no message of any input could be read. Otherwise
    unreadable files and a failed judge do not raise: they are in ``case.problems``, and what could be read is read.
    """
    if store is None or isinstance(store, str | Path):
        with temporary_store(searched=False) if store is None else open_store(store) as opened_store:
            return audit(inputs, opened_store, options, progress, session=session)
    options, progress = options or Options(), progress or silent
    opened = open_session(options.judge, options.terms, store, options.ledger)
    with opened if session is None else nullcontext(session) as judging:
        ready = partial(ready_to_read, judging.judge.reads_everything, options.judge)
        with shared_out(options.processes, ready) as share:
            return _audited(inputs, store, options, progress, judging, share)


def _audited(
    inputs: Inputs, store: Store, options: Options, progress: Progress, judging: JudgeSession, share: Share
) -> tuple[Case, list[Row]]:
    judge, book = judging.judge, load_book()
    _refuse_unread_sequences(judge, options)
    rules = load_rules() if options.rules is None else options.rules
    corpus = ingest_and_scan(inputs, store, book, options, progress)
    if not corpus.messages:
        raise _nothing_read(corpus.problems)
    run = AuditState(histories=judging.histories(corpus.inputs), maps=judging.maps, profile=options.profile)
    estimate = PriceEstimate(options.judge)
    for read in read_conversations(corpus, store, judge, options, progress, run, share):
        _take(run, estimate, *read)
    ranks, signals = ranks_of(run.rows), null_bands_of(run.rows, judge.gives)
    bands = table_name(signals)
    run.rows = [with_band(ranks.of(row), bands) for row in run.rows]
    search = RowSearch(run.rows)
    tick = counter(progress, "detect", len(rules))
    detection = search.detect(rules, gives=judge.gives | stance_signals(), tick=tick)
    weighed = _significance(detection, search, rules, options.effort, judging.noise, progress, share)
    sequences: tuple[SequenceReading, ...] = ()
    if options.read != "messages":
        sequences = read_sequences(run.rows, weighed.findings, rules, store, judge, run, options.seed, progress)
    for reading in sequences:
        run.tally.add(reading.state, reading.reason)
    fitted = confidence_by_reviews(store) if options.confidence == "reviews" else None
    confidence_map = None if isinstance(fitted, str) else fitted
    prevalence: Prevalence = options.prevalence or prevalence_by_profile(
        run.rows, run.sessions, BY_PROFILE, named=options.profile is not None
    )
    named = with_readings(weighed.findings, sequences, run.rows, rules, options.seed, prevalence, confidence_map)
    named = with_disagreement(named, run.rows, rules)
    findings = quoted(named, run.rows, store, judge, rules)
    reviews = tuple(reviews_in(store, corpus.conversations))
    leads = quoted_leads(all_leads(run.rows, findings, signals, run.sessions), run.rows, store, reviews)
    spent = spending(run.rows, run.sessions, sequences)
    audited = () if run.failure else corpus.conversations  # a failed judge retracts nothing
    store.put_findings(audited, findings)
    store.put_leads(audited, leads)
    store.put_claims(corpus.conversations, [claim for session in run.sessions for claim in session.claims])
    case = Case(
        version=__version__,
        parameters=parameters(options, judge, corpus, weighed)
        | judging.measurements
        | answered_by(run.rows)
        | run.tally.waiting()
        | prevalence_parameters(options.prevalence, prevalence, findings, run.rows)
        | ({CONFIDENCE_MAP: msgspec.to_builtins(confidence_map)} if confidence_map else {})
        | ({UNREAD_SEQUENCES: unread_sequences(run.rows, sequences)} if sequences else {})
        | estimate.parameters(store, options.seed, rules)
        | panel_agreement(run.rows),
        inputs=tuple(corpus.inputs),
        problems=(
            *corpus.problems,
            *_not_fitted(fitted),
            *judge_problems(run.failure, run.tally, options.terms.max_failed),
        ),
        conversations=len(corpus.conversations),
        messages=corpus.messages,
        tiers=count(row.tier or "standard" for row in run.rows),
        states=count(row.state for row in run.rows),
        upgrades=dict(sorted(run.upgrades.items())),
        missed=run.census.missed(),
        highest=highest(run.rows),
        signals=signals,
        bands=bands,
        ranked=sum(row.scale == "rank" for row in run.rows),
        judge_calls=judge_calls(run.rows, run.sessions),
        cost=(spent.total.cost or 0.0) if spent else 0.0,
        spent=spent,
        sessions=tuple(run.sessions),
        agents=agent_verdicts(run.rows, run.sessions, findings),
        findings=findings,
        sequences=sequences,
        leads=leads,
        reviews=reviews,
        outcomes=detection.outcomes,
        cited=cited(findings, leads, reviews, run, store),
        hashes=book.hashes
        | judge.hashes
        | rule_hashes()
        | stance_hashes()
        | pattern_hashes(rules)
        | ({PARAMETER: json_hash(run.maps)} if run.maps else {})
        | (judge.sequence_hashes if sequences else {}),
    )
    return case, run.rows


def _refuse_unread_sequences(judge: Judge, options: Options) -> None:
    if options.read != "messages" and not judge.reads_sequences:
        remedy = f"name an LLM judge, such as {judge_option()} (see `undersong judges`), or leave --read away"
        raise UsageError(f"the judge '{judge.name}' reads no whole sequences", where="--read", remedy=remedy)


def _take(
    run: AuditState, estimate: PriceEstimate, thread: RoutedThread, rows: Iterable[Row], verdict: SessionVerdict
) -> None:
    """Add what was read of a conversation to what there is of all of them."""
    estimate.add(thread, work=verdict.profile == "coding")
    run.sessions.append(verdict)
    for place in verdict.confirmations:
        run.tally.add(place.state, place.reason)
    for agent, raised in thread.thread.upgrades.items():
        run.upgrades[agent] = run.upgrades.get(agent, 0) + raised
    for row in rows:
        run.census.add(row, blank=not (row.text or "").strip())
        run.rows.append(_without_text(row))


def _not_fitted(reason: ConfidenceMap | str | None) -> Iterator[Problem]:
    """That confidence is the shipped one though it was to be fitted to reviews, and why."""
    if isinstance(reason, str):
        remedy = "`undersong review next` shows what to decide on next"
        yield Problem(what=f"confidence is that of the shipped figures: {reason}", where="--confidence reviews",
                      remedy=remedy, kind="note")  # fmt: skip


def _nothing_read(problems: Sequence[Problem]) -> NothingReadError:
    """The error that names the first few problems and carries all."""
    listed = [f"{each.where}: {each.what}" for each in problems[:MAX_LISTED]]
    error = NothingReadError(
        "no message could be read", remedy="; ".join(listed) or "give a file or folder with messages"
    )
    error.problems = tuple(problems)
    return error


def evaluate_rows(
    paths: str | Path | Sequence[str | Path],
    options: Options,
    write: Write,
    *,
    store: Store | None = None,
    progress: Progress | None = None,
    text: bool = True,
    write_bands: Write | None = None,
) -> list[Problem]:
    """Write one JSON row per message with its scores or the state that says why not; returns what was not read.

    ``write_bands`` takes the table of null bands that the rows name, where there is one.
    """
    if store is None:
        with temporary_store() as store:
            return evaluate_rows(
                paths, options, write, store=store, progress=progress, text=text, write_bands=write_bands
            )
    with open_session(options.judge, options.terms, store, options.ledger) as judging:
        spool = RowSpool(judging.judge.gives)
        corpus = ingest_and_scan(paths, store, load_book(), options, progress or silent)
        run = AuditState(histories=judging.histories(corpus.inputs), maps=judging.maps)
        for _, rows in read_threads(corpus, store, judging.judge, options, progress or silent, run):
            for row in rows:
                spool.add(row if text else msgspec.structs.replace(row, text=None))
    bands = spool.write(write)
    if write_bands is not None and bands:
        write_bands(table(bands))
    return [*corpus.problems, *judge_problems(run.failure, run.tally, options.terms.max_failed)]


def rows_in(path: str | Path) -> tuple[list[Problem], list[Row]]:
    """The rows of a file (``-``: standard input), and what could not be read of it.

    Raises InputError where the file cannot be opened or holds no row at all.
    """
    rows: list[Row] = []
    problems: list[Problem] = []
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else Path(path).open("rb") as lines:
            for item in read_rows(lines, name=str(path)):
                (problems if isinstance(item, Problem) else rows).append(item)  # type: ignore[arg-type]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not rows:
        reasons = [f"{each.what}; {each.remedy}" for each in problems if each.kind != "note"]
        remedy = reasons[0] if reasons else "it is empty; `undersong evaluate` writes such rows"
        raise InputError("holds no row", where=str(path), remedy=remedy)
    return problems, rows


def detect_rows(
    path: str | Path,
    rules: Sequence[PatternRule],
    effort: ResamplingConfig | None = None,
    prevalence: float | None = None,
    processes: int = 1,
) -> tuple[list[Problem], Detection, Significance]:
    """Run the rules over a file of rows (``-``: standard input): the rows not read, what was found, how sure it is.

    Raises InputError where the file cannot be opened or holds no row at all.
    """
    with shared_out(processes) as share:
        problems, rows = rows_in(path)
        search = RowSearch(rows)
        detection = search.detect(rules)
        weighed = _significance(detection, search, rules, effort, share=share)
    findings = with_confidence(weighed.findings, rows, rules, prevalence)
    return problems, detection, msgspec.structs.replace(weighed, findings=findings)


def _significance(
    detection: Detection,
    search: RowSearch,
    rules: Sequence[PatternRule],
    effort: ResamplingConfig | None,
    noise: Mapping[str, float] | None = None,
    progress: Progress = silent,
    share: Share = in_turn,
) -> Significance:
    if effort is None:
        return Significance(findings=detection.findings, family=0)
    ran = sum(outcome.status != "not_applicable" for outcome in detection.outcomes)
    tick = counter(progress, "weigh", ran)
    return estimate_significance(
        detection.findings, detection.outcomes, search, rules, effort, noise, tick=tick, share=share
    )


def _without_text(row: Row) -> Row:
    return msgspec.structs.replace(row, text=None, hits=())
