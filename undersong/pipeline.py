"""The steps chained: files → ingest → scan → route → evaluate → detect → weigh → verdict → report. Read this first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import datetime
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from undersong import __version__
from undersong.budget import NOTHING, RANKS, TRIAGE, Cut, Demand, for_recall, within_share
from undersong.detect import Detection, detect, quote
from undersong.earlier import SameTarget
from undersong.errors import InputError, JudgeError, UsageError
from undersong.evaluate import Answers, Thread, evaluate, unread
from undersong.formats.spool import Spool
from undersong.ingest import read
from undersong.judges import Judge, open_judge
from undersong.missed import Census
from undersong.models import (
    SIGNALS,
    Case,
    Conversation,
    Finding,
    InputFile,
    Message,
    Problem,
    Row,
    Scan,
    SessionVerdict,
    encode,
)
from undersong.patterns import PatternRule, load_rules
from undersong.patterns.replicas import noise_hashes
from undersong.route import Policy, draft, load_policy, route, sample_rate, with_upgrades
from undersong.rows import read_rows
from undersong.rowstream import Work, stream
from undersong.scan import SignalBook, load_book, scan_conversation
from undersong.stores import Store
from undersong.stores.sqlite import temporary_store
from undersong.verdict import agent_verdicts, rule_hashes, session_verdict
from undersong.weigh import Effort, Weighed, weigh
from undersong.wording import counted

Progress = Callable[[str, int, int], None]  # step, messages done, messages in all (0 = not known yet)
Write = Callable[[bytes], object]
NO_EFFORT = Effort(draws=0, replicas=0)  # how the parameters of a run without chance are written
BATCH = 1024  # messages that are asked and committed together
T = TypeVar("T")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may choose; everything that changes a result stands in the manifest.

    ``budget_share`` (0-1, of all messages) and ``recall`` (0-1, as in the triage model's card) say how much is read;
    neither = the policy's budget, which a judge that reads for free does not heed.
    ``signals`` (some of SIGNALS) and ``processes`` are of ``scan_rows`` alone; ``engine`` changes no result.
    ``effort`` None: chance, q and stability are not computed. It has its own seed, for ``weigh``.
    """

    source_format: str | None = None
    judge: str = "offline"
    read_all: bool = False
    budget_share: float | None = None
    recall: float | None = None
    seed: int = 0
    only: tuple[str, ...] = ()
    since: datetime | None = None
    policy: Policy | None = None
    rules: tuple[PatternRule, ...] | None = None
    signals: tuple[str, ...] = SIGNALS
    engine: str = "ahocorasick"
    processes: int = 1
    effort: Effort | None = Effort()


class Corpus(msgspec.Struct, kw_only=True):
    """What ingest and scan left in the store: the order of the conversations, what was read and what was not.

    ``demand`` counts what asks to be read, ``cut`` is where the budget ends, ``rate`` the audit sample's; ``also`` maps
    conversation numbers to what a flag in another conversation routes there.
    """

    conversations: list[str] = []
    inputs: list[InputFile] = []
    problems: list[Problem] = []
    messages: int = 0
    demand: Demand = msgspec.field(default_factory=Demand)
    also: dict[int, dict[int, str]] = {}
    cut: Cut = NOTHING
    rate: float = 0.0


class Run(msgspec.Struct, kw_only=True):
    """What one pass over the evaluated threads gathers, without the texts."""

    rows: list[Row] = []
    sessions: list[SessionVerdict] = []
    upgrades: dict[str, int] = {}
    census: Census = msgspec.field(default_factory=Census)
    failure: JudgeError | None = None


def audit(
    paths: str | Path | Sequence[str | Path],
    store: Store | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> tuple[Case, list[Row]]:
    """Everything from files to a Case, the content of a report, and its rows without texts.

    ``paths`` is one path or several. A rerun with the same ``store`` finds its answers there; without one nothing
    is kept.

    Raises StoreError where the store fails. Unreadable files and a failed judge do not raise: they are in
    ``case.problems``, and what could be read is read.
    """
    if store is None:
        with temporary_store() as store:
            return audit(paths, store, options, progress)
    options, progress = options or Options(), progress or silent
    judge, book = open_judge(options.judge), load_book()
    rules = load_rules() if options.rules is None else options.rules
    corpus = ingest_and_scan(paths, store, book, options, progress)
    run = Run()
    for thread, rows in read_threads(corpus, store, judge, options, progress, run):
        verdict = session_verdict(thread.conversation, thread.scans, thread.thread, rows)
        run.sessions.append(verdict)
        for agent, raised in thread.thread.upgrades.items():
            run.upgrades[agent] = run.upgrades.get(agent, 0) + raised
        for row in rows:
            run.census.add(row, blank=not (row.text or "").strip())
            run.rows.append(_without_text(row))
    detection = detect(run.rows, rules, gives=judge.gives)
    weighed = _weighed(detection, run.rows, rules, options.effort)
    findings = _quoted(weighed.findings, store)
    store.put_findings(() if run.failure else corpus.conversations, findings)  # a failed judge retracts nothing
    case = Case(
        version=__version__,
        parameters=_parameters(options, judge, corpus, weighed),
        inputs=tuple(corpus.inputs),
        problems=(*corpus.problems, *_judge_problem(run)),
        conversations=len(corpus.conversations),
        messages=corpus.messages,
        tiers=count(row.tier or "standard" for row in run.rows),
        states=count(row.state for row in run.rows),
        upgrades=dict(sorted(run.upgrades.items())),
        missed=run.census.missed(),
        highest=_highest(run.rows),
        judge_calls=sum(row.state != "unread" for row in run.rows),  # answers used, asked in this run or kept
        sessions=tuple(run.sessions),
        agents=agent_verdicts(run.rows),
        findings=findings,
        outcomes=detection.outcomes,
        cited=_cited(findings, run.sessions, store),
        hashes=book.hashes
        | judge.hashes
        | rule_hashes()
        | noise_hashes()
        | {f"patterns/{rule.id}": rule.hash for rule in rules},
    )
    return case, run.rows


def scan_rows(
    paths: str | Path | Sequence[str | Path],
    options: Options,
    write: Write,
    *,
    write_thread: Write | None = None,
    progress: Progress | None = None,
    text: bool = True,
) -> list[Problem]:
    """Write one JSON row per scanned and routed message, and one per conversation; returns what was not read."""
    problems: list[Problem] = []
    done = left_out = 0

    def work(spool: Spool) -> Work:
        keep = partial(chosen, options=options)
        policy, book = options.policy or load_policy(), load_book(options.engine)
        cut = partial(cut_of, options=options, policy=policy, book=book)
        return Work(spool, book, policy, frozenset(options.signals), options.seed, text, keep, cut)

    for item in stream(paths, options.source_format, options.processes, work):
        if isinstance(item, Problem):
            problems.append(item)
            continue
        problems += item.problems
        write(item.rows)
        if write_thread:
            write_thread(item.threads)
        done, left_out = done + item.messages, left_out + item.left_out
        (progress or silent)("scan", done, 0)
    if left_out and not done:
        raise _matched_none(options, left_out)
    return problems


def evaluate_rows(
    paths: str | Path | Sequence[str | Path],
    options: Options,
    write: Write,
    *,
    store: Store | None = None,
    progress: Progress | None = None,
    text: bool = True,
) -> list[Problem]:
    """Write one JSON row per message with its scores or the state that says why not; returns what was not read."""
    if store is None:
        with temporary_store() as store:
            return evaluate_rows(paths, options, write, store=store, progress=progress, text=text)
    corpus, run = ingest_and_scan(paths, store, load_book(), options, progress or silent), Run()
    judge = open_judge(options.judge)
    for _, rows in read_threads(corpus, store, judge, options, progress or silent, run):
        for row in rows:
            _write_row(row, write, text)
    return [*corpus.problems, *_judge_problem(run)]


def detect_rows(
    path: str | Path, rules: Sequence[PatternRule], effort: Effort | None = None
) -> tuple[list[Problem], Detection, Weighed]:
    """Run the rules over a file of rows (``-``: standard input): the rows not read, what was found, how sure it is.

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
        remedy = problems[0].what if problems else "it is empty; `undersong evaluate` writes such rows"
        raise InputError("holds no row", where=str(path), remedy=remedy)
    detection = detect(rows, rules)
    weighed = _weighed(detection, rows, rules, effort)
    return problems, detection, weighed


def ingest_and_scan(
    paths: str | Path | Sequence[str | Path], store: Store, book: SignalBook, options: Options, progress: Progress
) -> Corpus:
    """Read the files one conversation at a time, scan each, keep both in the store, and count what asks to be read.

    Raises UsageError where ``only`` and ``since`` leave out every conversation.
    """
    policy = options.policy or load_policy()
    corpus, earlier, passed_over = Corpus(), SameTarget(policy.look_back), 0
    for item in read(paths, source_format=options.source_format):
        if isinstance(item, Problem):
            corpus.problems.append(item)
        elif isinstance(item, InputFile):
            corpus.inputs.append(item)
        elif chosen(item, options):
            scans, thread = scan_conversation(item, book)
            store.put_conversation(item, scans, thread)
            ranks = draft(item, scans, thread, policy).ranks
            _count(len(corpus.conversations), item, scans, ranks, corpus.demand, earlier)
            corpus.conversations.append(item.id)
            corpus.messages += len(item.messages)
            progress("scan", corpus.messages, 0)
        else:
            passed_over += 1
    if passed_over and not corpus.conversations:
        raise _matched_none(options, passed_over)
    for conversation, place, score, flagged in earlier.found():
        corpus.also.setdefault(conversation, {})[place] = flagged
        corpus.demand.promote(score)
    corpus.cut = cut_of(corpus.demand, options, policy, book)
    corpus.rate = sample_rate(policy, corpus.demand.unread(corpus.cut))
    return corpus


def cut_of(demand: Demand, options: Options, policy: Policy, book: SignalBook) -> Cut:
    """Where reading ends: at the recall asked for, at the budget asked for, or at the policy's budget."""
    if options.recall is not None and book.triage is not None:
        reached = book.triage.threshold_for(options.recall)
        return for_recall(reached.threshold, reached.recall, options.recall)
    return within_share(demand, policy.budget_share if options.budget_share is None else options.budget_share)


def routed_threads(corpus: Corpus, store: Store, options: Options) -> Iterator[Thread]:
    """Each conversation of the corpus with its scans and routes, in the order of the input."""
    policy = options.policy or load_policy()
    for number, name in enumerate(corpus.conversations):
        conversation, scans, thread = store.conversation(name)
        also = corpus.also.get(number, {})
        routes = route(
            conversation, scans, thread, policy, rate=corpus.rate, seed=options.seed, cut=corpus.cut, also=also
        )
        thread = with_upgrades(thread, conversation, routes)
        yield Thread(conversation=conversation, scans=scans, thread=thread, routes=routes)


def read_threads(
    corpus: Corpus, store: Store, judge: Judge, options: Options, progress: Progress, run: Run
) -> Iterator[tuple[Thread, tuple[Row, ...]]]:
    """Evaluate the routed messages batch by batch; yields each thread with its rows.

    When the judge fails as a whole, the rest is unread with that reason and ``run.failure`` says so.
    """
    done = 0
    for threads in batched(routed_threads(corpus, store, options), BATCH):
        store.put_routes((thread.conversation.id, thread.routes) for thread in threads)
        answers = _ask(threads, judge, store, options, run)
        for thread, evaluations in zip(threads, answers.evaluations, strict=True):
            done += len(evaluations)
            parts = zip(thread.conversation.messages, thread.scans, thread.routes, evaluations, strict=True)
            yield thread, tuple(Row.of(*part) for part in parts)
        progress("evaluate", done, corpus.messages)


def reads_all(judge: Judge, options: Options) -> bool:
    """Whether every message is read: asked for, or free and no budget was asked for."""
    unlimited = options.budget_share is None and options.recall is None
    return options.read_all or (judge.reads_everything and unlimited)


def silent(step: str, done: int, total: int) -> None:
    """The progress of a run that nobody watches."""


def chosen(conversation: Conversation, options: Options) -> bool:
    """Whether ``--only`` and ``--since`` keep a conversation; an untimed one is never left out by time."""
    names = (conversation.id, conversation.title or "")
    if options.only and not any(fnmatch(name, pattern) for name in names for pattern in options.only):
        return False
    times = [message.time for message in conversation.messages if message.time]
    return options.since is None or not times or max(times) >= options.since


def _matched_none(options: Options, conversations: int) -> UsageError:
    filters = [f"only {pattern}" for pattern in options.only]
    filters += [f"since {options.since.isoformat()}"] if options.since else []
    what = f"the filter ({', '.join(filters)}) matched none of {counted(conversations, 'conversation')}"
    return UsageError(what, remedy="ids and titles are matched as a whole, * stands for any characters")


def batched(threads: Iterable[Thread], size: int) -> Iterator[list[Thread]]:
    """Threads in groups of at least ``size`` messages, the last one smaller."""
    group: list[Thread] = []
    for thread in threads:
        group.append(thread)
        if sum(len(each.routes) for each in group) >= size:
            yield group
            group = []
    if group:
        yield group


def count(values: Iterable[T]) -> dict[T, int]:
    """How often each value occurs, in sorted order."""
    counts: dict[T, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: str(item[0])))


def _count(
    number: int,
    conversation: Conversation,
    scans: Sequence[Scan],
    ranks: Sequence[int],
    demand: Demand,
    earlier: SameTarget,
) -> None:
    for place, (message, scan, rank) in enumerate(zip(conversation.messages, scans, ranks, strict=True)):
        demand.add(rank, scan.triage)
        unread = scan.triage if rank == TRIAGE else None
        earlier.add(number, place, message, flagged=bool(scan.total), score=unread)


def _ask(threads: list[Thread], judge: Judge, store: Store, options: Options, run: Run) -> Answers:
    if run.failure is None:
        try:
            return evaluate(threads, judge, store, read_all=reads_all(judge, options))
        except JudgeError as error:
            run.failure = error
    reason = f"the judge failed: {run.failure}"
    missing = [
        tuple(msgspec.structs.replace(unread(m, judge), reason=reason) for m in thread.conversation.messages)
        for thread in threads
    ]
    return Answers(evaluations=tuple(missing))


def _weighed(detection: Detection, rows: Sequence[Row], rules: Sequence[PatternRule], effort: Effort | None) -> Weighed:
    if effort is None:
        return Weighed(findings=detection.findings, family=0)
    return weigh(detection.findings, detection.outcomes, rows, rules, effort)


def _highest(rows: Iterable[Row]) -> dict[str, float]:
    highest: dict[str, float] = {}
    for row in rows:
        for trait, score in (row.traits or {}).items():
            highest[trait] = max(score, highest.get(trait, 0.0))
    return highest


def _judge_problem(run: Run) -> tuple[Problem, ...]:
    if run.failure is None:
        return ()
    return (Problem(what=run.failure.what, where="judge", remedy=run.failure.remedy, kind="judge"),)


def _write_row(row: Row, write: Write, text: bool) -> None:
    write(encode(row if text else msgspec.structs.replace(row, text=None)) + b"\n")


def _without_text(row: Row) -> Row:
    return msgspec.structs.replace(row, text=None, hits=())


def _quoted(findings: Sequence[Finding], store: Store) -> tuple[Finding, ...]:
    """Each finding with verbatim quotes of its messages."""
    return tuple(quote(finding, _messages(finding.conversations, finding.message_ids, store)) for finding in findings)


def _messages(conversations: Iterable[str], wanted: Iterable[str], store: Store) -> dict[str, Message]:
    ids = set(wanted)
    found = (message for name in conversations for message in store.conversation(name)[0].messages)
    return {message.id: message for message in found if message.id in ids}


def _cited(findings: Iterable[Finding], sessions: Iterable[SessionVerdict], store: Store) -> tuple[Message, ...]:
    """The messages that the report quotes, in full, in the order of their conversation and position."""
    cited: dict[tuple[str, str], Message] = {}
    for finding in findings:
        wanted = (*finding.message_ids, *finding.gap_ids, *finding.unread_ids)
        for message in _messages(finding.conversations, wanted, store).values():
            cited[message.conversation, message.id] = message
    for session in sessions:
        ids = [quote.message_id for deduction in session.deductions for quote in deduction.quotes]
        if ids:
            for message in _messages([session.conversation], ids, store).values():
                cited[message.conversation, message.id] = message
    return tuple(sorted(cited.values(), key=lambda message: (message.conversation, message.position, message.id)))


def _parameters(options: Options, judge: Judge, corpus: Corpus, weighed: Weighed) -> dict[str, Any]:
    effort = {f"chance_{name}": value for name, value in msgspec.structs.asdict(options.effort or NO_EFFORT).items()}
    policy = options.policy or load_policy()
    return {
        "judge": judge.name,
        "judge_hash": judge.hash,
        "calibrated": judge.calibrated,
        "read_all": reads_all(judge, options),
        "recall": options.recall,
        "budget_share": options.budget_share,
        "read_up_to": f"{RANKS[corpus.cut.rank]}, triage {corpus.cut.score:.3f} ({corpus.cut.why})",
        "seed": options.seed,
        "only": list(options.only),
        "since": options.since.isoformat() if options.since else None,
        "source_format": options.source_format,
        "audit_sample_rate": corpus.rate,
        "chance_family": weighed.family,
        "chance_tested": weighed.tested,
        **effort,
    } | {f"router_{name}": value for name, value in msgspec.structs.asdict(policy).items()}
