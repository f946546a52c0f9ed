"""The steps of an audit over a part of a corpus, and what the parts have to tell each other.

Each step takes whole conversations, or whole agents, and depends on the rest of the corpus only through a summary: an
object with ``add`` for what is in a part and ``merge`` for the summary of another part. Neither the parting nor the
order of merging changes anything, so that one process, many processes and many machines give the same bytes.

scan_part → ScannedPart → routing_of → score_part → ScoredPart → search_part → SearchedPart → weigh_part → WeighedPart
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from undersong.core.batches import batches
from undersong.errors import UsageError
from undersong.formats.normalize import normalize_conversation
from undersong.judges.protocol import Judge, is_paid, open_judge
from undersong.judges.stance import stance_signals, with_stance
from undersong.models import (
    Conversation,
    Evaluation,
    Finding,
    Problem,
    Row,
    RuleOutcome,
    Scan,
    SessionVerdict,
    ThreadScan,
)
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import Detection, RowSearch, SearchCounts, outcome_of
from undersong.patterns.findings import order
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.inputs import CorpusInputs
from undersong.patterns.reference.downstream import addressed_by, reads_others
from undersong.patterns.set_indicators import asked_of_findings, shapes_for
from undersong.patterns.significance.confidence import BY_PROFILE, usual_prevalence, with_confidence
from undersong.patterns.significance.estimate import HypothesisFamily, Significance, estimate_significance, pairs_of
from undersong.pipeline.evaluate import Ledger, RoutedThread, evaluate
from undersong.pipeline.options import Options, chosen, reading_cutoff
from undersong.routing.budget import NOTHING, BudgetCutoff, Census, DemandHistogram
from undersong.routing.lookback import LookBackIndex
from undersong.routing.route import Policy, load_policy, propose, read_demand, route, with_upgrades
from undersong.rows.corpus_scales import (
    NullBandCounter,
    PercentileRanks,
    absolute_rows,
    table_name,
    with_band,
    with_scale,
)
from undersong.rows.jsonl import rounded
from undersong.scan import load_book, scan_conversations
from undersong.verdict import session_verdict
from undersong.verdict.language import language_note, other_language

BATCH = 1024  # messages that are asked together
SCANNED = 1 << 17  # characters that are scanned together
ScannedConversation = tuple[Conversation, tuple[Scan, ...], ThreadScan]


class CorpusRouting(NamedTuple):
    """What the whole corpus decides of every message: where reading ends, the audit sample's rate, and by conversation
    and place the flagged message of another conversation for which one is read too."""

    cut: BudgetCutoff = NOTHING
    rate: float = 0.0
    also: Mapping[str, Mapping[int, str]] = MappingProxyType({})


class ScannedPart:
    """What routing needs to know of scanned conversations."""

    def __init__(self, options: Options) -> None:
        policy = options.policy or load_policy()
        self.demand, self.earlier = DemandHistogram(policy.sample_minimum), LookBackIndex(policy.look_back)
        self.conversations = 0
        self.languages: list[str] = []

    def add(
        self, conversation: Conversation, scans: Sequence[Scan], thread: ThreadScan, policy: Policy, seed: int
    ) -> None:
        """Count what a conversation asks to be read."""
        demanded = read_demand(conversation, scans, propose(conversation, scans, thread, policy).ranks, seed)
        self.demand.add(demanded.levels, demanded.counted)
        for directed in demanded.directed:
            self.earlier.add_directed(conversation.id, directed)
        self.conversations += 1
        if language := other_language(conversation):
            self.languages.append(language)

    def merge(self, other: ScannedPart) -> None:
        """Count what another part, of other conversations, asks for."""
        self.demand.merge(other.demand)
        self.earlier.merge(other.earlier)
        self.conversations += other.conversations
        self.languages += other.languages

    def notes(self) -> Iterator[Problem]:
        """That many conversations are in other languages than English."""
        if note := language_note(self.languages, self.conversations):
            yield note


def scan_part(
    conversations: Iterable[Conversation], options: Options, part: ScannedPart
) -> Iterator[ScannedConversation]:
    """Conversations as any source has them, scanned for free; what routing needs to know goes to ``part``."""
    policy = options.policy or load_policy()
    whole = (normalize_conversation([each])[0] for each in conversations)
    wanted = (each for each in whole if each.messages and chosen(each, options))
    for some in batches(wanted, SCANNED, lambda item: sum(len(message.text) for message in item.messages)):
        for conversation, (scans, thread) in zip(some, scan_conversations(some, load_book()), strict=True):
            part.add(conversation, scans, thread, policy, options.seed)
            yield conversation, scans, thread


def routing_of(part: ScannedPart, options: Options) -> CorpusRouting:
    """The routing of a whole corpus from its merged summary, which is used up."""
    policy = options.policy or load_policy()
    also = part.earlier.resolve(part.demand)
    cut = reading_cutoff(part.demand, options, policy, load_book().triage)
    return CorpusRouting(cut, part.demand.sample_rate(cut, policy.sample_rate), also)


def routed_thread(
    conversation: Conversation,
    scans: tuple[Scan, ...],
    thread: ThreadScan,
    policy: Policy,
    routing: CorpusRouting,
    seed: int,
) -> RoutedThread:
    """A scanned conversation with its routes."""
    also = routing.also.get(conversation.id, {})
    routes = route(conversation, scans, thread, policy, rate=routing.rate, seed=seed, cut=routing.cut, also=also)
    thread = with_upgrades(thread, conversation, routes)
    return RoutedThread(conversation=conversation, scans=scans, thread=thread, routes=routes)


def rows_of(thread: RoutedThread, evaluations: Sequence[Evaluation]) -> tuple[Row, ...]:
    """The rows of a thread with the evaluation of each message."""
    parts = zip(thread.conversation.messages, thread.scans, thread.routes, evaluations, strict=True)
    return with_stance(with_scale([rounded(Row.of(*part)) for part in parts]), thread.conversation)


def reads_all(judge: Judge, options: Options) -> bool:
    """Whether every message is read: asked for, or free and no budget was asked for."""
    unlimited = options.budget_share is None and options.recall is None
    return options.read_all or (judge.reads_everything and unlimited)


class ScoredThread(NamedTuple):
    """A thread with its rows and the verdict on it."""

    thread: RoutedThread
    rows: tuple[Row, ...]
    verdict: SessionVerdict


class NoLedger:
    """The ledger of a judge whose answers cost nothing: none is stored."""

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:  # noqa: ARG002
        """None."""
        return {}

    def put_answers(self, answers: Sequence[tuple[str, Evaluation]]) -> None:
        """Nowhere."""


@lru_cache(maxsize=4)
def judge_named(spec: str) -> Judge:
    """The judge of this name, opened once a process."""
    return open_judge(spec)


def score_part(
    scanned: Iterable[ScannedConversation],
    routing: CorpusRouting,
    options: Options,
    part: ScoredPart,
    ledger: Ledger | None = None,
) -> Iterator[ScoredThread]:
    """Scanned conversations routed and read by the judge; what their rows say of the corpus goes to ``part``.

    Raises JudgeError where the judge fails as a whole.
    """
    judge = open_judge(options.judge, options.terms) if is_paid(options.judge) else judge_named(options.judge)
    part.gives, policy = frozenset(judge.gives), options.policy or load_policy()
    threads = (routed_thread(*each, policy, routing, options.seed) for each in scanned)
    for some in batches(threads, BATCH, lambda thread: len(thread.routes)):
        answers = evaluate(some, judge, ledger or NoLedger(), read_all=reads_all(judge, options))
        if answers.failure is not None:
            raise answers.failure
        for thread, evaluations in zip(some, answers.evaluations, strict=True):
            rows = rows_of(thread, evaluations)
            for row in rows:
                part.add(row)
            verdict = session_verdict(thread.conversation, thread.scans, thread.thread, rows, (), options.profile)
            yield ScoredThread(thread, rows, verdict)


class ScoredPart:
    """What the rows of a part say of the corpus: ranks, null bands, the inputs that rules have, and counts.

    ``gives`` is what the judge fills, None where nobody says.
    """

    def __init__(self, gives: frozenset[str] | None = None) -> None:
        self.gives = gives
        self.ranks, self.bands, self.inputs, self.census = (
            PercentileRanks(), NullBandCounter(), CorpusInputs(), Census()
        )  # fmt: skip
        self.states: Counter[str] = Counter()
        self.tiers: Counter[str] = Counter()

    def add(self, row: Row) -> None:
        """Count a row, its ranks not yet worked out."""
        self.ranks.add(row)
        self.bands.add(row, frozenset() if self.gives is None else self.gives)
        self.inputs.add(absolute_rows((row,))[0])
        self.census.add(row, blank=not (row.text or "").strip())
        self.states[row.state] += 1
        self.tiers[row.tier or "standard"] += 1

    def merge(self, other: ScoredPart) -> None:
        """Count the rows of another part."""
        self.gives = other.gives if self.gives is None else self.gives
        self.ranks.merge(other.ranks)
        self.bands.merge(other.bands)
        self.inputs.merge(other.inputs)
        self.census.merge(other.census)
        self.states.update(other.states)
        self.tiers.update(other.tiers)

    @property
    def available(self) -> frozenset[str] | None:
        """What rules can ask of these rows: the judge's signals and those that every answer has."""
        return None if self.gives is None else self.gives | stance_signals()


class CorpusScales:
    """The ranks and null bands of a whole corpus, for its rows one by one."""

    def __init__(self, part: ScoredPart) -> None:
        self.bands = part.bands.bands()
        self._ranks, self._name = part.ranks, table_name(self.bands)

    def of(self, row: Row) -> Row:
        """The row with its ranks and the name of its bands."""
        return with_band(self._ranks.of(row), self._name)


class AgentRows(NamedTuple):
    """The rows of some whole agents; ``others`` are all rows of agents whom these addressed, for rules that follow
    them, and ``profiles`` those of the conversations that are known."""

    rows: Sequence[Row]
    others: Sequence[Row] = ()
    profiles: Mapping[str, str] = MappingProxyType({})


class SearchedPart:
    """What the search of a part came to: the counts of each rule by its hash, and how many pairs it could match."""

    def __init__(self) -> None:
        self.counts: dict[str, SearchCounts] = {}
        self.family = 0

    def add(self, detection: Detection, family: int) -> None:
        """Count the search of some agents."""
        self._count(detection.counts)
        self.family += family

    def merge(self, other: SearchedPart) -> None:
        """Count the search of other agents."""
        self._count(other.counts)
        self.family += other.family

    def _count(self, counts: Mapping[str, SearchCounts]) -> None:
        for name, own in counts.items():
            self.counts[name] = self.counts.get(name, SearchCounts()) + own

    def outcomes(self, options: Options, corpus: ScoredPart) -> tuple[RuleOutcome, ...]:
        """One outcome a rule over all parts."""
        rules = options.rules or load_rules()
        nothing = RowSearch(()).detect(rules, gives=corpus.available, inputs=corpus.inputs).outcomes
        return tuple(
            outcome if outcome.status == "not_applicable" else outcome_of(rule, self.counts.get(rule.hash, NO_COUNTS))
            for rule, outcome in zip(rules, nothing, strict=True)
        )


NO_COUNTS = SearchCounts()


class WeighedPart:
    """The tests of a part: what q follows from, once the tests of all parts are known."""

    def __init__(self) -> None:
        self.tests = HypothesisFamily()

    def add(self, weighed: Significance) -> None:
        """Count the tests of some agents."""
        self.tests.merge(HypothesisFamily(0, weighed.chances))

    def merge(self, other: WeighedPart) -> None:
        """Count the tests of other agents."""
        self.tests.merge(other.tests)

    def corrected(self, findings: Iterable[Finding], searched: SearchedPart) -> tuple[Finding, ...]:
        """The findings of the whole corpus with their q, in the order of a report; of an agent they come in its own."""
        family = HypothesisFamily(searched.family)
        family.merge(self.tests)
        return tuple(sorted(family.corrected(findings), key=order))


def search_part(
    agents: Iterable[AgentRows], corpus: ScoredPart, options: Options, part: SearchedPart
) -> Iterator[Finding]:
    """The findings about some agents; what the search came to goes to ``part``."""
    for some in agents:
        search = _AgentSearch(some, options.rules or load_rules(), corpus)
        part.add(search.detection, search.family())
        yield from search.detection.findings


def weigh_part(
    agents: Iterable[AgentRows],
    corpus: ScoredPart,
    searched: SearchedPart,
    options: Options,
    part: WeighedPart,
    noise: Mapping[str, float] | None = None,
) -> Iterator[Finding]:
    """The findings about some agents with chance, stability and confidence, q open; the tests go to ``part``.

    ``noise`` is the judge's own; without it the shipped table stands for it.
    """
    for some in agents:
        weighed = _AgentSearch(some, options.rules or load_rules(), corpus).weighed(options, noise, searched.family)
        part.add(weighed)
        yield from (msgspec.structs.replace(each, q=None) for each in weighed.findings)


class _AgentSearch:
    """The rules over some whole agents of a corpus."""

    def __init__(self, agents: AgentRows, rules: Sequence[PatternRule], corpus: ScoredPart) -> None:
        """Raises UsageError for rules that what is beside these agents decides in more than one way."""
        _refuse_entangled(rules)
        self._agents, self._rules = agents, rules
        own = {row.agent for row in agents.rows}
        self._search = RowSearch(agents.rows, (row for row in agents.others if row.agent not in own))
        self.detection = self._search.detect(rules, gives=corpus.available, inputs=corpus.inputs)

    def family(self) -> int:
        """In how many pairs of sequence and rule there could be a match."""
        ran = {each.pattern for each in self.detection.outcomes if each.status != "not_applicable"}
        return sum(pairs_of(rule, self._search) for rule in self._rules if rule.id in ran)

    def weighed(self, options: Options, noise: Mapping[str, float] | None, family: int) -> Significance:
        """The findings with chance, stability and confidence; their q follows from the tests of the whole corpus.

        ``family`` is that of the corpus.
        """
        detection, effort = self.detection, options.effort
        weighed = Significance(findings=detection.findings, family=family)
        if effort is not None:
            weighed = estimate_significance(
                detection.findings, detection.outcomes, self._search, self._rules, effort, noise, family=family
            )
        return msgspec.structs.replace(weighed, findings=self._with_confidence(weighed.findings, options))

    def _with_confidence(self, findings: Sequence[Finding], options: Options) -> tuple[Finding, ...]:
        agents = {finding.agent for finding in findings}
        rows = [row for row in self._agents.rows if row.agent in agents]
        profiles, is_named = self._agents.profiles, options.profile is not None
        usual = usual_prevalence(rows, profiles, BY_PROFILE, named=is_named) if options.prevalence is None else None
        return with_confidence(findings, rows, self._rules, options.prevalence if usual is None else usual)


def following_rules(options: Options, corpus: ScoredPart) -> tuple[PatternRule, ...]:
    """The rules that apply to a corpus and read rows of the agents that one addressed."""
    followers = tuple(rule for rule in options.rules or load_rules() if reads_others(rule))
    outcomes = RowSearch(()).detect(followers, gives=corpus.available, inputs=corpus.inputs).outcomes
    return tuple(rule for rule, outcome in zip(followers, outcomes, strict=True) if outcome.status != "not_applicable")


def addressed_pairs(rows: Iterable[Row], rules: Sequence[PatternRule]) -> set[tuple[str, str]]:
    """Who addressed which other agent in a row that one of these rules follows."""
    by_agent: dict[str, list[Row]] = {}
    for row in absolute_rows(rows):
        if row.target is not None and row.target != row.agent:
            by_agent.setdefault(row.agent, []).append(row)
    return {(agent, other) for agent, own in by_agent.items() for rule in rules for other in addressed_by(rule, own)}


def judge_is_paid(spec: str) -> bool:
    """Whether the judge of this name may cost money."""
    return is_paid(spec)


def _refuse_entangled(rules: Sequence[PatternRule]) -> None:
    """A rule that reads rows of other agents may neither set indicators nor ask for those that findings set there."""
    for rule in (*rules, *shapes_for(rules)):
        if reads_others(rule) and (rule.file.sets or asked_of_findings(rule)):
            what = f"rule '{rule.id}' follows other agents and sets indicators, or asks for some that findings set"
            raise UsageError(what, remedy="leave it out, or run it over all rows in one process")
