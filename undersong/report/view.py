"""A Case as its readers meet it: ordered, linked, counted and worded, the same for HTML and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from undersong.models import TIERS, AgentVerdict, Case, Deduction, Finding, Message, SessionVerdict
from undersong.report.chart import Chart, chart
from undersong.report.cited import Citations, Cite, Excerpt, Piece
from undersong.report.evidence import evidence, turns_words
from undersong.report.headline import Gap, coverage, findings_words, gaps, headline
from undersong.report.order import alignment_rank, order_findings, order_sessions
from undersong.report.rule_words import RuleWords
from undersong.report.tally import Tally, Trace, WordsOnly
from undersong.report.words import Words, words
from undersong.wording import basis_words, certainty_words, counted, coverage_words, mechanism_name, missed_words

DETAIL = 200  # sessions, findings and agents that are told in full; case.json and findings.jsonl hold all
LISTED = 2000  # lines of a table
LINKED = 5  # repeats of an episode whose messages are linked and held; case.json names all


@dataclass(frozen=True)
class Stage:
    """One message of a finding and the part that it plays."""

    name: str
    cite: Cite
    excerpt: Excerpt | None
    scores: dict[str, float]


@dataclass(frozen=True)
class FindingView:
    """One finding told stage by stage."""

    finding: Finding
    anchor: str
    stages: tuple[Stage, ...]
    gaps: tuple[Cite, ...]
    certainty: str
    rule: RuleWords


@dataclass(frozen=True)
class DeductionView:
    """Points taken, with the quotes."""

    deduction: Deduction
    cite: Cite
    excerpts: tuple[Excerpt, ...]
    repeats: tuple[int, ...] = ()
    linked: tuple[Cite, ...] = ()

    @property
    def again(self) -> str:
        """``the same again 57 times, at turns 5, 7, 9, …``; empty where it happened once."""
        if not self.repeats:
            return ""
        return (
            f"The same again {counted(len(self.repeats), 'time')}, {turns_words(self.repeats)}, points taken each time."
        )


@dataclass(frozen=True)
class Event:
    """A turn of a session where something stands, or a run of turns where the same stands: the table of the chart."""

    position: int
    cite: Cite | None
    what: tuple[str, ...]
    score: int | None
    last: int | None = None  # of a run of turns, None where it is one turn
    turns: int = 1

    @property
    def place(self) -> str:
        """``4`` or ``4–60 (30 turns)``."""
        return (
            str(self.position) if self.last is None else f"{self.position}–{self.last} ({counted(self.turns, 'turn')})"
        )


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


@dataclass(frozen=True)
class View:
    """Everything that the templates print."""

    case: Case
    tally: Tally
    headline: tuple[str, ...]
    coverage: str
    basis: tuple[str, ...]
    gaps: tuple[Gap, ...]
    sessions: tuple[SessionView, ...]
    listed: tuple[tuple[SessionVerdict, str, int], ...]
    findings: tuple[FindingView, ...]
    all_findings: tuple[Finding, ...]
    agents: tuple[AgentVerdict, ...]
    tiers: tuple[tuple[str, int, int], ...]
    citations: Citations
    words: Words
    words_only: tuple[tuple[WordsOnly, Cite], ...] = ()

    @property
    def lowest(self) -> int | None:
        """The lowest sovereignty score, None where no session has one."""
        return min((each.score for each in self.case.sessions if each.score is not None), default=None)

    @property
    def at_risk(self) -> bool:
        """Whether a session is marked Psychogenic Risk."""
        return any(each.psychogenic_risk for each in self.case.sessions)

    @property
    def searched(self) -> str:
        """What the patterns found, in a sentence."""
        return findings_words(self.case)

    @property
    def deductions(self) -> int:
        """How often points were taken."""
        return sum(len(each.deductions) for each in self.case.sessions)

    @property
    def calibrated(self) -> bool:
        """Whether the judge was compared with human labels."""
        return self.case.parameters.get("calibrated") is True

    @property
    def upgrades(self) -> list[tuple[str, int]]:
        """Agents whose messages a thread signal raised, the most first."""
        return sorted(self.case.upgrades.items(), key=lambda item: (-item[1], item[0]))

    @property
    def missed(self) -> tuple[str, ...]:
        """How many harmful messages the router left out, in sentences."""
        return missed_words(self.case.missed)

    @property
    def upgraded(self) -> str:
        """The upgrades in a sentence."""
        raised = sum(self.case.upgrades.values())
        if not raised:
            return "No thread signal raised a message."
        signals = f"Thread signals raised {counted(raised, 'message')} of {counted(len(self.case.upgrades), 'agent')}"
        return f"{signals}; the other changes of tier have causes of their own (flags, reading backwards)."

    @property
    def appendix(self) -> list[tuple[Message, str, tuple[Piece, ...], bool]]:
        """The cited messages, once everything that cites them is arranged."""
        return self.citations.appendix()


def view(case: Case, tally: Tally, detailed: Sequence[SessionVerdict], rules: Mapping[str, RuleWords]) -> View:
    """Arrange a case; ``detailed`` are the sessions whose turns ``tally`` kept, ``rules`` are by their hash."""
    citations = Citations(case.cited)
    findings = order_findings(case.findings)
    told = {
        finding.finding_id: _finding(finding, citations, tally, rules.get(finding.rule_hash, RuleWords()))
        for finding in findings[:DETAIL]
    }
    sessions = tuple(
        _session(each, f"s-{index}", case, told, tally, citations) for index, each in enumerate(detailed, 1)
    )
    anchors = {each.verdict.conversation: each.anchor for each in sessions}
    counts = Counter(name for finding in findings for name in finding.conversations)
    return View(
        case=case,
        tally=tally,
        headline=headline(case),
        coverage=coverage(case),
        basis=basis_words(**{name: case.parameters.get(f"chance_{name}", 0) for name in ("draws", "family", "tested")}),
        gaps=gaps(case.sessions),
        sessions=sessions,
        listed=tuple(
            (each, anchors.get(each.conversation, ""), counts[each.conversation])
            for each in order_sessions(case)[:LISTED]
        ),
        findings=tuple(told.values()),
        all_findings=tuple(findings[:LISTED]),
        agents=tuple(sorted(case.agents, key=alignment_rank)[:DETAIL]),
        tiers=tuple((tier, tally.before[tier], tally.after[tier]) for tier in _tiers(tally)),
        citations=citations,
        words=words(),
        words_only=tuple((each, citations.cite(each.id, (each.conversation,))) for each in tally.words_only),
    )


def _tiers(tally: Tally) -> list[str]:
    """The four tiers, and the rest only where it occurs."""
    return [*TIERS, *sorted((tally.before | tally.after).keys() - set(TIERS))]


def _finding(finding: Finding, citations: Citations, tally: Tally, rule: RuleWords) -> FindingView:
    stages = []
    named = finding.stages or tuple(("", message_id) for message_id in finding.message_ids)
    homes = finding.message_conversations or (None,) * len(named)
    for (name, message_id), home in zip(named, homes, strict=True):
        cite = citations.cite(message_id, finding.conversations if home is None else (home,))
        places = (cite.message.conversation,) if cite.message else finding.conversations
        traits = next((tally.scores[at, message_id] for at in places if (at, message_id) in tally.scores), None)
        stages.append(Stage(name, cite, citations.excerpt(cite, finding.quotes), rule.scores(name, traits)))
    gaps = tuple(citations.cite(message_id, finding.conversations) for message_id in finding.gap_ids)
    certainty = "; ".join(certainty_words(finding))
    return FindingView(finding, f"f-{finding.finding_id[:16]}", tuple(stages), gaps, certainty, rule)


def _session(
    verdict: SessionVerdict,
    anchor: str,
    case: Case,
    told: dict[str, FindingView],
    tally: Tally,
    citations: Citations,
) -> SessionView:
    name = verdict.conversation
    trace = tally.traces.get(name, Trace())
    findings = tuple(each for each in told.values() if name in each.finding.conversations)
    deductions = _deductions(verdict, citations)
    marks = [
        (stage.cite.message.position, f"{each.finding.title}, {stage.name}".rstrip(", "))
        for each in findings
        for stage in each.stages
        if stage.cite.message and stage.cite.message.conversation == name
    ]
    calibrated = case.parameters.get("calibrated") is True
    return SessionView(
        verdict=verdict,
        anchor=anchor,
        trace=trace,
        coverage=coverage_words(verdict, calibrated=calibrated),
        findings=findings,
        deductions=deductions,
        chart=chart(verdict, trace.turns, marks),
        events=_folded(_events(verdict, trace, deductions, findings, marks)),
        evidence=evidence(trace),
    )


def _deductions(verdict: SessionVerdict, citations: Citations) -> tuple[DeductionView, ...]:
    """Each episode once, with the turns at which it came again."""
    episodes: dict[tuple[str, ...], list[Deduction]] = {}
    for each in verdict.deductions:
        key = (
            (each.mechanism, each.kind, each.episode)
            if each.episode
            else (each.mechanism, each.kind, "", each.message_id)
        )
        episodes.setdefault(key, []).append(each)
    return tuple(_episode(first, repeats, verdict.conversation, citations) for first, *repeats in episodes.values())


def _episode(first: Deduction, repeats: list[Deduction], conversation: str, citations: Citations) -> DeductionView:
    """The first deduction told in full, the next ones linked, all of them named by their turns."""
    linked = [_deduction(each, conversation, citations).cite for each in repeats[:LINKED]]
    told = _deduction(first, conversation, citations)
    return replace(told, repeats=tuple(each.position for each in repeats), linked=tuple(linked))


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
) -> tuple[Event, ...]:
    what: dict[int, list[str]] = {}
    cites: dict[int, Cite] = {}
    for position, text in marks:
        what.setdefault(position, []).append(text)
    for each in findings:
        cites |= {s.cite.message.position: s.cite for s in each.stages if s.cite.message and _of(s.cite, verdict)}
    for taken in verdict.deductions:
        what.setdefault(taken.position, []).append(f"−{taken.points} {mechanism_name(taken.mechanism)}")
    for shown in deductions:
        cites[shown.deduction.position] = shown.cite
        cites |= dict(zip(shown.repeats, shown.linked, strict=False))
    for turn in trace.turns:
        if turn.flags:
            what.setdefault(turn.position, []).extend(turn.flags)
    scores = dict(verdict.turns)
    return tuple(
        Event(position, cites.get(position), tuple(dict.fromkeys(texts)), scores.get(position))
        for position, texts in sorted(what.items())
    )


def _of(cite: Cite, verdict: SessionVerdict) -> bool:
    return cite.message is not None and cite.message.conversation == verdict.conversation
