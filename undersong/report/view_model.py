"""The view of a case: ordered, linked, counted and in words, the same for HTML and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any

from undersong.core.text import counted, mechanism_name
from undersong.models import TIERS, AgentVerdict, Case, Conversation, Lead, SessionVerdict
from undersong.patterns.leads import places_of, shown_leads
from undersong.report.aggregates import ChartTurn, RowAggregates, WordsOnly
from undersong.report.citations import Citations, Cite, Excerpt
from undersong.report.claims_view import is_work
from undersong.report.coverage import Coverage, coverage_of
from undersong.report.display_names import display_names, named_leads, renamed
from undersong.report.distinct_titles import with_distinct_titles
from undersong.report.escape import own_name
from undersong.report.finding_view import FindingView, RuleWords, finding_view
from undersong.report.headline import ReportTexts, words_for
from undersong.report.input_lines import input_lines, listed
from undersong.report.narrative import basis_words, moment_label
from undersong.report.near_shapes import NearShape, near_shapes
from undersong.report.opening import every_point, more_words, points_of
from undersong.report.opening_choice import Point, places_with_findings
from undersong.report.opening_sentences import sentences
from undersong.report.opening_title import is_read, look_title
from undersong.report.order import (
    DEDUCTION_LEVEL,
    FLAG,
    MOMENTS,
    Facet,
    Facets,
    alignment_rank,
    order_findings,
    order_sessions,
    titles,
)
from undersong.report.session_view import DeductionView, MomentView, SessionView, session_view
from undersong.report.sureness import lead_words
from undersong.report.transcript_view import (
    MessageKey,
    Origin,
    TranscriptPart,
    TurnMark,
    page_name,
    pages_of,
    transcript_pages,
)
from undersong.report.work_view import WorkView, work_view

DETAIL = 200  # sessions, findings and agents that are shown in full; case.json and findings.jsonl hold all
LISTED = 2000  # lines of a table
GUNS = 20  # smoking guns that the report opens with
_STYLES = {"protective": "aligned", "conduct": "low", "candidate": "low"}


@dataclass(frozen=True)
class LeadView:
    """A lead with the first of its messages; the others are linked. ``sure``: how sure it is."""

    lead: Lead
    agent: str
    sure: str
    cite: Cite
    excerpt: Excerpt | None
    more: tuple[Cite, ...]


@dataclass(frozen=True)
class PointView:
    """A thing to look at, with the message that it quotes; ``stages`` is the anchor of a finding's stages."""

    point: Point
    cite: Cite
    stages: str

    @property
    def state(self) -> str:
        """The state in words."""
        return sentences().states[self.point.state]


@dataclass(frozen=True)
class ReportView:
    """Everything that the templates print."""

    case: Case
    tally: RowAggregates
    sessions: tuple[SessionView, ...]
    listed: tuple[tuple[SessionVerdict, str, int], ...]
    findings: tuple[FindingView, ...]
    agents: tuple[AgentVerdict, ...]
    tiers: tuple[tuple[str, int, int], ...]
    citations: Citations
    words: ReportTexts
    look: tuple[LeadView, ...] = ()
    words_only: tuple[tuple[WordsOnly, Cite], ...] = ()
    months: tuple[Month, ...] = ()
    transcripts: tuple[tuple[TranscriptPart, ...], ...] = ()
    facets: Facets = field(default_factory=Facets)
    work: WorkView | None = None
    points: tuple[PointView, ...] = ()

    @property
    def look_title(self) -> str:
        """What the first screen names, by state."""
        return look_title(self.case, [shown.point for shown in self.points], places_with_findings(self._every_point))

    @property
    def more(self) -> str:
        """What there is to look at beside the first screen, in words."""
        return more_words(self.case, [shown.point for shown in self.points], self._every_point)

    @cached_property
    def _every_point(self) -> tuple[Point, ...]:
        return every_point(self.case)

    @property
    def of_people(self) -> bool:
        """Whether the page says how somebody writes: not of work on code, unless a judge that reads was asked."""
        return not is_work(self.case) or is_read(self.case)

    @property
    def more_at(self) -> str:
        """Where the page goes on with them: the first list of claims, else the findings, else the sessions."""
        claims = next((f"{session.anchor}-claims" for session in self.sessions if session.claims), "")
        return claims or ("findings" if self.findings else "sessions")

    @property
    def near(self) -> tuple[NearShape, ...]:
        """The look-alikes that a judge of whole sequences let go, and readings that failed."""
        return near_shapes(self.case)

    @property
    def files(self) -> tuple[str, ...]:
        """What became of each of several files, in words."""
        return listed(input_lines(self.case, self._every_point))

    @property
    def coverage(self) -> Coverage:
        """What was looked at, and what was not."""
        return coverage_of(self.case)

    @property
    def guns(self) -> list[MomentView]:
        """The smoking guns of all sessions, the worst session's first, at most GUNS."""
        return [gun for one in self.sessions for gun in one.of_kind("smoking_gun") if gun.moment in one.verdict.guns][
            :GUNS
        ]

    @property
    def all_guns(self) -> int:
        """How many there are in all sessions."""
        return sum(len(session.guns) for session in self.case.sessions)

    @property
    def grouped(self) -> list[tuple[str, list[FindingView], list[tuple[SessionView, DeductionView]]]]:
        """Findings and points taken by family of harm; families without any are left out."""
        groups = []
        for title in titles():
            findings = [each for each in self.findings if each.group == title and not each.finding.is_lead]
            taken = [(s, each) for s in self.sessions for each in s.deductions if each.group == title]
            if findings or taken:
                groups.append((title, findings, taken))
        return groups

    @property
    def deducted(self) -> list[tuple[SessionView, DeductionView]]:
        """The deductions of the sessions that are shown in full."""
        return [(session, each) for session in self.sessions for each in session.deductions]

    @property
    def turns_to_read(self) -> list[tuple[SessionView, MomentView]]:
        """The moments of the sessions that are shown in full; distress codes and protective turns aside."""
        apart = ("distress", "protective")
        return [(session, each) for session in self.sessions for each in session.moments
                if each.moment.kind not in apart]  # fmt: skip

    @property
    def sure(self) -> list[FindingView]:
        """The findings that are likely."""
        return [each for each in self.findings if not each.finding.is_lead]

    @property
    def leads(self) -> list[FindingView]:
        """The findings that are no more than something to look at."""
        return [each for each in self.findings if each.finding.is_lead]

    @property
    def pages(self) -> list[tuple[str, tuple[TranscriptPart, ...]]]:
        """The transcript pages beside the report, by file name."""
        return [(page_name(number), parts) for number, parts in enumerate(self.transcripts) if parts and number]

    @property
    def starts(self) -> Mapping[str, str]:
        """Conversation → the address of its first turn in a transcript, of those that have one."""
        return {session.verdict.conversation: session.start for session in self.sessions if session.start}

    def number_facets(self) -> None:
        """Give every agent and kind its number before any page is printed."""
        named: tuple[FindingView | LeadView, ...] = (*self.findings, *self.look)
        for one in named:
            self.facet(one)
        for session in self.sessions:
            shown: tuple[DeductionView | MomentView, ...] = (*session.deductions, *session.moments)
            for element in shown:
                self.facet(element, session.verdict.conversation)

    def facet(self, shown: FindingView | LeadView | DeductionView | MomentView, conversation: str = "") -> Facet:
        """What a filter knows of a finding, of a lead, of points taken or of a moment."""
        if isinstance(shown, LeadView):
            return self.facets.of([shown.lead.agent], ("lead",), None, shown.lead.conversation or "")
        if isinstance(shown, FindingView):
            where = next(iter(shown.finding.conversations), "")
            agents = [each for each in (shown.finding.agent, shown.finding.target) if each]
            return self.facets.of(agents, (shown.finding.title,), shown.finding.level, where)
        who = [shown.cite.message.agent or shown.cite.message.author] if shown.cite.message else []
        if isinstance(shown, MomentView):
            return self.facets.of([shown.moment.agent], (MOMENTS[shown.moment.kind],), None, conversation)
        return self.facets.of(who, (mechanism_name(shown.deduction.mechanism),), DEDUCTION_LEVEL, conversation)

    @property
    def alarming(self) -> bool:
        """Whether there is a finding, a deduction, or a session marked Psychogenic Risk."""
        return bool(self.case.findings) or any(each.deductions or each.psychogenic_risk for each in self.case.sessions)

    @property
    def upgrades(self) -> list[tuple[str, int]]:
        """Agents whose messages a thread signal raised, the most first."""
        return sorted(self.case.upgrades.items(), key=lambda item: (-item[1], item[0]))

    @property
    def basis(self) -> tuple[str, ...]:
        """What chance and q are based on, in clauses; () without any."""
        names = ("draws", "family", "tested")
        return basis_words(**{name: self.case.parameters.get(f"chance_{name}", 0) for name in names})

    @property
    def redacted(self) -> str:
        """What is masked in this report, "" where nothing was to be."""
        facts = self.case.parameters.get("redacted")
        if not isinstance(facts, dict):
            return ""
        always = ("email", "phone", "key", "name")
        others = (kind for kind in ("card", "iban", "ssn", "ip") if facts.get(kind))
        kinds = ", ".join(f"{facts.get(kind, 0)} distinct {kind}" for kind in (*always, *others))
        return f"This report is redacted: {kinds}, masked in {counted(int(facts.get('messages', 0)), 'message')}. " + (
            self.words.redacted
        )

    @property
    def upgraded(self) -> str:
        """The upgrades in a sentence."""
        raised = sum(self.case.upgrades.values())
        if not raised:
            return "No thread signal raised a message."
        signals = f"Thread signals raised {counted(raised, 'message')} of {counted(len(self.case.upgrades), 'agent')}"
        return f"{signals}; the other changes of tier have causes of their own (flags, reading backwards)."


def view(
    case: Case,
    aggregates: RowAggregates,
    detailed: Sequence[SessionVerdict],
    rules: Mapping[str, RuleWords],
    conversations: Sequence[Conversation] = (),
) -> ReportView:
    """Arrange a case; ``detailed`` are the sessions whose turns ``aggregates`` kept, ``rules`` are by their hash.

    ``conversations`` are those of the detailed sessions that a transcript can be printed of.
    """
    case = with_distinct_titles(case)
    titled = {each.conversation: each for each in case.sessions}
    detailed = [titled.get(each.conversation, each) for each in detailed]
    names = display_names(chain(*(talk.messages for talk in conversations), case.cited))
    conversations = renamed(tuple(conversations), names)
    places = pages_of(conversations)
    messages = [message for conversation in conversations for message in conversation.messages]
    placed = {place: page_name(number) for place, number in places.items()}
    citations = Citations((*messages, *renamed(case.cited, names)), placed)
    finding_views = {
        each.finding_id: replace(
            finding_view(each, citations, aggregates, rules.get(each.rule_hash, RuleWords())),
            finding=renamed(each, names),
        )
        for each in order_findings(case.findings)[:DETAIL]
    }
    detailed = renamed(tuple(detailed), names)
    findings = order_findings(case.findings)
    sessions = tuple(
        session_view(each, f"s-{index}", case, finding_views, aggregates, citations)
        for index, each in enumerate(detailed, 1)
    )
    anchors = {each.verdict.conversation: each.anchor for each in sessions}
    counts = Counter(name for finding in findings for name in finding.conversations)
    words_only = tuple((each, citations.cite(each.id, (each.conversation,))) for each in aggregates.words_only)
    facets = Facets()
    marks = _marks(sessions)
    origins = _origins(conversations, sessions)
    arranged = ReportView(
        case=case,
        tally=aggregates,
        sessions=sessions,
        listed=tuple(
            (each, anchors.get(each.conversation, ""), counts[each.conversation])
            for each in order_sessions(case)[:LISTED]
        ),
        findings=tuple(finding_views.values()),
        agents=renamed(tuple(sorted(case.agents, key=alignment_rank)[:DETAIL]), names),
        tiers=tuple((tier, aggregates.before[tier], aggregates.after[tier]) for tier in _tiers(aggregates)),
        citations=citations,
        words=words_for(case),
        work=work_view(case),
        points=tuple(_point_view(point, finding_views, citations) for point in points_of(case)),
        look=tuple(_lead_view(lead, citations, case.leads, names) for lead in shown_leads(case.leads)),
        words_only=words_only,
        months=months(case, aggregates.spans),
        transcripts=transcript_pages(origins, places, marks, citations, facets) if origins else (),
        facets=facets,
    )
    arranged.number_facets()
    return arranged


def _point_view(point: Point, findings: Mapping[str, FindingView], citations: Citations) -> PointView:
    """A thing to look at, with a link to its message and, of a finding that is shown in full, to its stages."""
    finding = next(
        (each for name, each in findings.items() if point.kind == "finding" and name.startswith(point.id)), None
    )
    return PointView(
        point,
        citations.cite(point.message_id, (point.conversation,)),
        finding.anchor if finding else "",
    )


def _lead_view(lead: Lead, citations: Citations, leads: Sequence[Lead], names: Mapping[str, str]) -> LeadView:
    cites = [citations.cite(message_id, (home,)) for home, message_id in places_of(lead)]
    first, *more = cites
    excerpt = citations.excerpt(first, lead.quotes)
    for cite in more:  # all quotes of a lead are marked in the transcript
        citations.excerpt(cite, lead.quotes)
    for quote in (quote for kind in lead.kinds for quote in kind.quotes):
        citations.excerpt(citations.cite(quote.message_id, (lead.conversation or "",)), (quote,))
    (shown,) = named_leads((lead,), names)
    name = own_name(shown.agent, lead.conversation or "") if lead.kind == "agent" else lead.conversation or ""
    return LeadView(shown, name, lead_words(lead, leads), first, excerpt, tuple(more))


def _tiers(aggregates: RowAggregates) -> list[str]:
    """The four tiers, and the rest only where it occurs."""
    return [*TIERS, *sorted((aggregates.before | aggregates.after).keys() - set(TIERS))]


def _origins(conversations: Sequence[Conversation], sessions: Sequence[SessionView]) -> list[Origin]:
    by_conversation = {each.verdict.conversation: each for each in sessions}
    return [
        Origin(each, by_conversation[each.id].anchor, _turns_of(by_conversation[each.id]))
        for each in conversations
        if each.id in by_conversation
    ]


def _turns_of(session: SessionView) -> dict[str, ChartTurn]:
    """The scores beside the turns of a transcript; none where agents work on code: no score is about that."""
    return {} if session.verdict.profile == "coding" else {turn.id: turn for turn in session.trace.turns}


def _marks(sessions: Sequence[SessionView]) -> dict[MessageKey, list[TurnMark]]:
    """What stands at each turn of the sessions, in the order in which they tell it."""
    marks: dict[MessageKey, list[TurnMark]] = {}
    for session in sessions:
        for message_id, mark in _session_marks(session):
            marks.setdefault((session.verdict.conversation, message_id), []).append(mark)
    return marks


def _session_marks(session: SessionView) -> Iterator[tuple[str, TurnMark]]:
    here = f"#{session.anchor}"
    for taken in session.verdict.deductions:
        name = mechanism_name(taken.mechanism)
        yield taken.message_id, TurnMark("high", f"−{taken.points} {name}", here, name, DEDUCTION_LEVEL)
    for shown_finding in session.findings:
        finding, href = shown_finding.finding, f"#{shown_finding.anchor}"
        for stage, _ in shown_finding.stages_in(session.verdict.conversation):
            text = shown_finding.stage_title(stage)
            yield stage.cite.id, TurnMark(finding.level, text, href, finding.title, finding.level)
    for moment in session.verdict.moments:
        style = _STYLES.get(moment.kind, "medium")
        yield moment.message_id, TurnMark(style, moment_label(moment), here, MOMENTS[moment.kind])
    for turn in session.trace.turns:
        for flag in turn.flags:
            yield turn.id, TurnMark("low", flag, here, FLAG)


LEAST = 2  # months with sessions before there is a trend to show


@dataclass(frozen=True)
class Month:
    """One month: sessions that began in it; ``lowest`` and ``mean`` score are None where none has a score."""

    name: str
    sessions: int
    messages: int
    lowest: int | None
    mean: float | None
    scored: int
    deductions: int
    findings: int
    moments: Mapping[str, int]


def months(case: Case, spans: Mapping[str, tuple[datetime, datetime]]) -> tuple[Month, ...]:
    """The months in which dated sessions began, in order; () below LEAST of them. Untimed sessions are in none."""
    by_month: dict[str, list[SessionVerdict]] = {}
    for session in case.sessions:
        if session.conversation in spans:
            by_month.setdefault(f"{spans[session.conversation][0]:%Y-%m}", []).append(session)
    finding_counts = Counter(name for finding in case.findings for name in finding.conversations[:1])
    history = tuple(_month(name, sessions, finding_counts) for name, sessions in sorted(by_month.items()))
    return history if len(history) >= LEAST else ()


def _month(name: str, sessions: list[SessionVerdict], finding_counts: Counter[str]) -> Month:
    scores = [session.score for session in sessions if session.score is not None]
    return Month(
        name=name,
        sessions=len(sessions),
        messages=sum(session.messages for session in sessions),
        lowest=min(scores, default=None),
        mean=round(sum(scores) / len(scores), 1) if scores else None,
        scored=len(scores),
        deductions=sum(len(session.deductions) for session in sessions),
        findings=sum(finding_counts[session.conversation] for session in sessions),
        moments=Counter(moment.kind for session in sessions for moment in session.moments),
    )


MEASURES = {
    "spearman": "rank correlation",
    "auc": "AUC",
    "kappa": "weighted kappa",
    "alpha": "Krippendorff's alpha",
}


def agreement_table(parameters: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The head and then a row a trait, each figure with its 95 % interval over authors; () without any comparison."""
    calibration = parameters.get("calibration")
    if calibration is None:
        return ()
    figures = {name: calibration["figures"][name] for name in MEASURES if name in calibration["figures"]}
    traits: Mapping[str, Any] = next(iter(figures.values()), {})
    rows = ((trait, *(_figure(each[trait]) for each in figures.values())) for trait in traits)
    return (("trait", *(MEASURES[name] for name in figures)), *rows)


def _figure(measured: Mapping[str, float | None]) -> str:
    if measured["value"] is None:
        return "not defined"
    if measured["low"] is None or measured["high"] is None:
        return f"{measured['value']:.2f}"
    return f"{measured['value']:.2f} [{measured['low']:.2f}, {measured['high']:.2f}]"
