"""The view of a session: its deductions, the events at each turn, and the moments worth reading first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from undersong.core.text import counted, mechanism_name, turn_at, turn_number
from undersong.models import Case, Deduction, Moment, SessionVerdict
from undersong.models.row import DEATH_SPIRAL, HIGH_DEFERENCE
from undersong.report.aggregates import Episode, RowAggregates, Trace
from undersong.report.charts import Chart, chart
from undersong.report.citations import Citations, Cite, Excerpt
from undersong.report.claims_view import ClaimView, balance_words, claim_views
from undersong.report.escape import label
from undersong.report.finding_view import FindingView
from undersong.report.narrative import confirmation_words, coverage_words, moment_label, place_noun, qualified_words
from undersong.report.order import MOMENTS as KINDS
from undersong.report.order import group_of

GUNS = 10  # smoking guns of a session that are shown; case.json names all
MOMENTS = 200  # distress codes and protective moments of a session that are shown
LINKED = 5  # repeats of an episode whose messages are linked and held; case.json names all


@dataclass(frozen=True)
class DeductionView:
    """Points taken, with the quotes."""

    deduction: Deduction
    cite: Cite
    excerpts: tuple[Excerpt, ...]
    repeats: tuple[int, ...] = ()
    linked: tuple[Cite, ...] = ()

    @property
    def group(self) -> str:
        """The family of harm that its mechanism belongs to."""
        return group_of(self.deduction.mechanism)

    @property
    def again(self) -> str:
        """``the same again 57 times, at turns 5, 7, 9, …``; empty where it happened once."""
        if not self.repeats:
            return ""
        return (
            f"The same again {counted(len(self.repeats), 'time')}, {turns_words(self.repeats)}, points taken each time."
        )


@dataclass(frozen=True)
class MomentView:
    """A turn worth reading, with its first quote."""

    moment: Moment
    cite: Cite
    excerpt: Excerpt | None
    session: str = ""

    @property
    def label(self) -> str:
        """The title, a distress code in its brackets."""
        return moment_label(self.moment)

    @property
    def group(self) -> str:
        """The family of harm that it belongs to."""
        return group_of(self.moment.code)


@dataclass(frozen=True)
class Event:
    """A turn of a session where something stands, or a run of turns where the same stands: the table of the chart."""

    position: int
    cite: Cite | None
    what: tuple[str, ...]
    score: int | None
    last: int | None = None  # of a run of turns, None where it is one turn
    turns: int = 1
    href: str = ""  # of the turn in the transcript, "" where there is none

    @property
    def place(self) -> str:
        """``4`` or ``4–60 (30 turns)``."""
        first = turn_number(self.position)
        return str(first) if self.last is None else f"{first}–{turn_number(self.last)} ({counted(self.turns, 'turn')})"


@dataclass(frozen=True)
class SessionView:
    """One session in detail."""

    verdict: SessionVerdict
    anchor: str
    trace: Trace
    coverage: str
    findings: tuple[FindingView, ...]
    deductions: tuple[DeductionView, ...]
    chart: Chart
    events: tuple[Event, ...]
    evidence: tuple[str, ...]
    moments: tuple[MomentView, ...] = ()
    more_guns: int = 0
    claims: tuple[ClaimView, ...] = ()
    start: str = ""  # the address of the first turn in the transcript, "" where there is none

    @property
    def balance(self) -> str:
        """The balance of the ledger in words, "" where nothing is claimed."""
        return balance_words((self.verdict,))

    def of_kind(self, kind: str) -> list[MomentView]:
        """The moments of one kind that are shown."""
        return [each for each in self.moments if each.moment.kind == kind]

    @property
    def summary(self) -> tuple[str, ...]:
        """The session in plain words: its deductions, and what is worth reading."""
        return tuple(_summary(self.verdict))


def session_view(
    verdict: SessionVerdict,
    anchor: str,
    case: Case,
    finding_views: dict[str, FindingView],
    aggregates: RowAggregates,
    citations: Citations,
) -> SessionView:
    name = verdict.conversation
    trace = aggregates.traces.get(name, Trace())
    findings = tuple(each for each in finding_views.values() if name in each.finding.conversations)
    deductions = _deductions(verdict, citations)
    moments = tuple(_moments(verdict, anchor, citations))
    guns = sum(each.kind == "smoking_gun" for each in verdict.moments)
    marks = [
        (message.position, each.stage_title(stage)) for each in findings for stage, message in each.stages_in(name)
    ]
    calibrated = case.parameters.get("calibrated") is True
    return SessionView(
        verdict=verdict,
        anchor=anchor,
        trace=trace,
        coverage=_coverage(verdict, calibrated),
        findings=findings,
        deductions=deductions,
        chart=chart(
            verdict,
            trace.turns,
            marks,
            [(each.position, moment_label(each), each.kind == "protective") for each in verdict.moments],
        ),
        events=_folded(_events(verdict, trace, deductions, findings, marks, citations)),
        evidence=evidence(trace),
        moments=moments,
        more_guns=max(0, guns - GUNS),
        claims=claim_views(verdict, citations) if verdict.profile == "coding" else (),
        start=citations.href(name, trace.turns[0].id) if trace.turns else "",
    )


def _coverage(verdict: SessionVerdict, calibrated: bool) -> str:
    """How much was read and by whom, qualified where that is less than half."""
    coverage = coverage_words(verdict, calibrated=calibrated)
    low = any(each.startswith("low coverage") for each in qualified_words(verdict, calibrated=calibrated))
    return f"{coverage}; low coverage, so this is not the whole {place_noun((verdict,))}" if low else coverage


def _moments(verdict: SessionVerdict, anchor: str, citations: Citations) -> Iterator[MomentView]:
    """Each moment with its first quote; of smoking guns the first GUNS in their rank, of each other kind MOMENTS."""
    counts: Counter[str] = Counter()
    for moment in verdict.moments:
        counts[moment.kind] += 1
        if counts[moment.kind] > (GUNS if moment.kind == "smoking_gun" else MOMENTS):
            continue
        cite = citations.cite(moment.message_id, (verdict.conversation,))
        yield MomentView(moment, cite, citations.excerpt(cite, moment.quotes), anchor)


def _summary(verdict: SessionVerdict) -> Iterator[str]:
    for name, deductions in _by_mechanism(verdict.deductions).items():
        episodes = len({each.episode or each.message_id for each in deductions})
        turns = turns_words([each.position for each in deductions])
        points = sum(each.points for each in deductions)
        yield (
            f"Consistent with {mechanism_name(name)}: {counted(len(deductions), 'time')} in "
            f"{counted(episodes, 'distinct episode')}, at {turns}; {counted(points, 'point')} taken in all."
        )
    for item in verdict.bypasses[:LINES]:
        lines = label(" | ".join(item.lines), 200)
        yield f"{item.kind.replace('_', ' ').capitalize()} at {turn_at(item.position)}: {item.explanation} {lines}"
    for row in verdict.repeated[:LINES]:
        turns = f"turns {turn_number(row.first)} to {turn_number(row.last)}"
        yield f"{label(row.command, 120)} failed {counted(row.times, 'time')}, {turns}, without a success between."
    if verdict.confirmations:
        yield confirmation_words(verdict)
    kinds = Counter[str](each.kind for each in verdict.moments)
    for kind, noun in KINDS.items():
        if kinds[kind] and kind != "distress":  # folded away, with what the codes are not
            turns = turns_words(sorted({each.position for each in verdict.moments if each.kind == kind}))
            yield f"{counted(kinds[kind], noun)}, at {turns}."


def _by_mechanism(deductions: Iterable[Deduction]) -> dict[str, list[Deduction]]:
    by_mechanism: dict[str, list[Deduction]] = {}
    for deduction in deductions:
        by_mechanism.setdefault(deduction.mechanism, []).append(deduction)
    return by_mechanism


def _deductions(verdict: SessionVerdict, citations: Citations) -> tuple[DeductionView, ...]:
    """Each episode once, with the turns at which it came again."""
    episodes: dict[tuple[str, ...], list[Deduction]] = {}
    for deduction in verdict.deductions:
        alone = "" if deduction.episode else deduction.message_id
        episodes.setdefault((deduction.mechanism, deduction.kind, deduction.episode, alone), []).append(deduction)
    return tuple(_episode(first, repeats, verdict.conversation, citations) for first, *repeats in episodes.values())


def _episode(first: Deduction, repeats: list[Deduction], conversation: str, citations: Citations) -> DeductionView:
    """The first deduction shown in full, the next ones linked, all of them named by their turns."""
    linked = [_deduction(each, conversation, citations).cite for each in repeats[:LINKED]]
    view = _deduction(first, conversation, citations)
    return replace(view, repeats=tuple(each.position for each in repeats), linked=tuple(linked))


def _folded(events: Sequence[Event]) -> tuple[Event, ...]:
    """Neighbours that say the same, link nowhere and leave the score where it is become one."""
    folded: list[Event] = []
    for event in events:
        before = folded[-1] if folded else None
        if before and not event.cite and not before.cite and (event.what, event.score) == (before.what, before.score):
            folded[-1] = replace(before, last=event.position, turns=before.turns + 1)
        else:
            folded.append(event)
    return tuple(folded)


def _deduction(deduction: Deduction, conversation: str, citations: Citations) -> DeductionView:
    cite = citations.cite(deduction.message_id, (conversation,))
    quoted = [
        citations.excerpt(citations.cite(quote.message_id, (conversation,)), (quote,)) for quote in deduction.quotes
    ]
    return DeductionView(deduction, cite, tuple(excerpt for excerpt in quoted if excerpt))


def _events(
    verdict: SessionVerdict,
    trace: Trace,
    deductions: Sequence[DeductionView],
    findings: Sequence[FindingView],
    marks: Sequence[tuple[int, str]],
    citations: Citations,
) -> tuple[Event, ...]:
    what: dict[int, list[str]] = {}
    cites: dict[int, Cite] = {}
    for position, text in marks:
        what.setdefault(position, []).append(text)
    for finding in findings:
        cites |= {message.position: stage.cite for stage, message in finding.stages_in(verdict.conversation)}
    for taken in verdict.deductions:
        what.setdefault(taken.position, []).append(f"−{taken.points} {mechanism_name(taken.mechanism)}")
    for shown in deductions:
        cites[shown.deduction.position] = shown.cite
        cites |= dict(zip(shown.repeats, shown.linked, strict=False))
    for moment in verdict.moments:
        what.setdefault(moment.position, []).append(moment_label(moment))
    ids = {turn.position: turn.id for turn in trace.turns}
    for turn in trace.turns:
        if turn.flags:
            what.setdefault(turn.position, []).extend(turn.flags)
    scores = dict(verdict.turns)
    return tuple(
        Event(
            position,
            cites.get(position),
            tuple(dict.fromkeys(texts)),
            scores.get(position),
            href=citations.href(verdict.conversation, ids.get(position, "")),
        )
        for position, texts in sorted(what.items())
    )


TURNS = 12  # turns that are named; of a longer run the number, the first and the last
LINES = 12  # episodes of a kind that are shown; evaluations.jsonl holds all


def turns_words(turns: Sequence[int]) -> str:
    """``turn 4``, ``turns 4, 6, 9``, or ``120 turns from 4 to 260``."""
    if len(turns) == 1:
        return f"{turn_at(turns[0])}"
    if len(turns) <= TURNS:
        return f"turns {', '.join(str(turn_number(each)) for each in turns)}"
    return f"{counted(len(turns), 'turn')} from {turn_number(turns[0])} to {turn_number(turns[-1])}"


def evidence(trace: Trace) -> tuple[str, ...]:
    """The repeated words of each Death Spiral, the counts of each High Deference, and the thread signals by name."""
    return (*_loops(trace), *_deference(trace), *_signals(trace))


def _loops(trace: Trace) -> Iterator[str]:
    loops = sorted(trace.loops.values(), key=lambda loop: (-len(loop.turns), -loop.times, loop.turns[0], loop.what))
    for loop in loops[:LINES]:
        yield (
            f"{DEATH_SPIRAL}: {_who(loop)} repeats “{label(loop.what, 100)}”, counted up to "
            f"{counted(loop.times, 'time')}, {turns_words(loop.turns)}"
        )
    if len(loops) > LINES:
        yield f"{DEATH_SPIRAL}: and {len(loops) - LINES:,} more; evaluations.jsonl holds all"


def _deference(trace: Trace) -> Iterator[str]:
    for agent, last in sorted(trace.deference.items())[:LINES]:
        yield (
            f"{HIGH_DEFERENCE}: {label(agent, 60)}, {counted(last.apologies, 'apology', 'apologies')} to "
            f"{counted(last.corrections, 'correction')}"
        )


def _signals(trace: Trace) -> Iterator[str]:
    signals = sorted(trace.signals.values(), key=lambda signal: (signal.what, signal.turns[0], signal.agent))
    for signal in signals[:LINES]:
        yield f"Thread signal {signal.what}: {_who(signal)}, {turns_words(signal.turns)}"
    if len(signals) > LINES:
        yield f"Thread signals: and {len(signals) - LINES:,} more; evaluations.jsonl holds all"


def _who(episode: Episode) -> str:
    return label(episode.agent, 60)
