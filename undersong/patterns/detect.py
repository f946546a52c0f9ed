"""Pattern detection: rows and rules → findings, and an outcome of every rule; pure, no clock, no chance."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from undersong.core.text import text_hash
from undersong.errors import UndersongWarning
from undersong.models import Finding, Hit, Message, Quote, Record, Row, RuleOutcome, encode
from undersong.patterns.catalog import chosen_rules
from undersong.patterns.findings import Balance, finding_of, order
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import DOWNSTREAM
from undersong.patterns.language.inputs import NEVER_MISSING, CorpusInputs, lacking
from undersong.patterns.reference.downstream import reads_others, sequences_for
from undersong.patterns.reference.matcher import STEPS
from undersong.patterns.reference.partitions import Timeline, timelines
from undersong.patterns.reference.search import ROWS, SearchResult
from undersong.patterns.set_indicators import (
    asked_of_findings,
    not_set,
    set_by,
    shapes_for,
    with_indicators,
    with_origin,
)
from undersong.patterns.significance.confidence import with_confidence
from undersong.patterns.significance.necessary_conditions import family_size
from undersong.patterns.vectorized.exact_sum import NotVectorizable
from undersong.patterns.vectorized.packed import DECIDABLE_INPUTS, Load, PackedTimelines, packed_source, packed_table
from undersong.patterns.vectorized.row_source import SearchesByRule, TimelineSearch
from undersong.rows.corpus_scales import absolute_rows
from undersong.rows.jsonl import rows_from_mappings

EXCERPT = 280  # characters of a quote
_NAMED = 3  # rules of a kind that a warning names
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|\n+")

MessageKey = tuple[str, str]  # a message by conversation and id: ids may repeat between conversations
Span = tuple[int, int]  # start and end within a text, in Unicode code points


class SearchCounts(Record, frozen=True, kw_only=True):
    """What a rule's search came to, in how many sequences it gave up, and the first three agents of these by name.

    Those of parts of a corpus add up.
    """

    partitions: int = 0
    findings: int = 0
    gave_up: int = 0
    agents: tuple[str, ...] = ()

    def __add__(self, other: SearchCounts) -> SearchCounts:
        return SearchCounts(
            partitions=self.partitions + other.partitions,
            findings=self.findings + other.findings,
            gave_up=self.gave_up + other.gave_up,
            agents=tuple(sorted({*self.agents, *other.agents})[:_NAMED]),
        )


class Detection(Record, frozen=True, kw_only=True):
    """What the rules found in the rows, one outcome per rule, and by the hashes of those that ran their counts."""

    findings: tuple[Finding, ...]
    outcomes: tuple[RuleOutcome, ...]
    counts: dict[str, SearchCounts] = {}


def detect(
    rows: Iterable[Row], rules: Sequence[PatternRule], *, gives: Collection[str] | None = None, steps: int = STEPS
) -> Detection:
    """Run every rule over every partition of the rows; their order does not matter.

    ``gives`` names what the judge fills (``traits``, ``indicators``, signals); a rule that needs more is
    ``not_applicable``, as is one that asks for what no row has. ``steps`` bounds the search per partition: a rule that
    reaches it ``gave_up`` there, and says so. Indicators that only a sequence shows are set by what shapes find, before
    the rules run that ask for them (``set_indicators``).
    """
    return RowSearch(rows, steps=steps).detect(rules, gives=gives)


class RowSearch:
    """Rows to run rules over; it serves ``estimate_significance`` as it is, after ``detect``.

    ``others`` are rows of agents beside those of ``rows``, for rules that follow whom an agent addressed
    (``reads_others``): nothing is found about them.
    """

    def __init__(self, rows: Iterable[Row], others: Iterable[Row] = (), *, steps: int = STEPS) -> None:
        self._rows = absolute_rows(rows)
        self._first = self._second = TimelineSearch(timelines(self._rows), steps=steps)
        self._others = timelines(absolute_rows(others))
        self._joined: dict[str, TimelineSearch] = {}

    def of(self, _rule: PatternRule) -> TimelineSearch:
        """The rows that a rule sees: with what findings set, or with rows of other agents, for one that asks for it."""
        search = self._second if asked_of_findings(_rule) else self._first
        if not reads_others(_rule):
            return search
        if _rule.hash not in self._joined:
            own = {timeline.agent for timeline in search.timelines}
            joined = sequences_for(_rule, (*search.timelines, *self._others))
            about = tuple(timeline for timeline in joined if timeline.agent in own)
            self._joined[_rule.hash] = TimelineSearch(about, steps=search.steps)
        return self._joined[_rule.hash]

    def detect(
        self,
        rules: Sequence[PatternRule],
        *,
        gives: Collection[str] | None = None,
        inputs: CorpusInputs | None = None,
        tick: Callable[[], object] | None = None,
    ) -> Detection:
        """What ``detect`` finds: first of shapes, then of the rules that ask for what those set.

        ``inputs`` are those of the whole corpus where these rows are a part of it. ``tick`` is called when a rule is
        done.
        """
        inputs = inputs or self._inputs()
        balance, corpus = _balances(self._first.timelines), self._corpus(inputs, gives)
        before, after = shapes_for(rules), [rule for rule in rules if asked_of_findings(rule)]
        first = [*before, *(rule for rule in rules if not asked_of_findings(rule))]
        found_first = _detection(corpus, first, balance, tick)
        indicators = set_by(found_first.findings, first)
        self._second = self._first
        if after and indicators:
            marked = with_indicators(self._rows, indicators)
            self._second = TimelineSearch(timelines(marked), steps=self._first.steps)
        ran = {outcome.pattern for outcome in found_first.outcomes if outcome.status != "not_applicable"}
        available = {name for rule in first if rule.id in ran for name in rule.file.sets}
        available |= inputs.named
        found_then = _detection(corpus._replace(set_here=available), after, balance, tick)
        by_hash = {rule.hash: rule for rule in after}
        then = (with_origin(finding, by_hash[finding.rule_hash], indicators) for finding in found_then.findings)
        unreported = {rule.hash for rule in before}
        findings = [each for each in found_first.findings if each.rule_hash not in unreported]
        outcomes = {each.rule_hash: each for each in (*found_first.outcomes, *found_then.outcomes)}
        return Detection(
            findings=tuple(sorted((*findings, *then), key=order)),
            outcomes=tuple(outcomes[rule.hash] for rule in rules),
            counts=found_first.counts | found_then.counts,
        )

    def _inputs(self) -> CorpusInputs:
        """What these rows have, where they are the whole corpus."""
        inputs = CorpusInputs(named=indicators_named(self._rows))
        for timeline in self._first.timelines:
            for entry in timeline.entries:
                inputs.add(entry.row)
        return inputs

    def _corpus(self, inputs: CorpusInputs, gives: Collection[str] | None) -> _RowCorpus:
        has = frozenset({*inputs.present, *NEVER_MISSING, DOWNSTREAM})  # rows of all agents are here
        return _RowCorpus(self, has, gives, any_read=inputs.any_read, ranks=inputs.ranks)


def rows_with_set_indicators(rows: Iterable[Row], rule: PatternRule) -> list[Row]:
    """The rows as a rule sees them: with the indicators that it asks for of findings."""
    whole, shapes = list(rows), shapes_for([rule])
    return with_indicators(whole, set_by(detect(whole, shapes).findings, shapes)) if shapes else whole


def indicators_named(rows: Iterable[Row]) -> frozenset[str]:
    """The indicators that somebody named in a row."""
    return frozenset(each.id for row in rows for each in row.indicators or ())


class PackedSearch:
    """The rows of some agents as stores hold them packed (``rows.binary``).

    ``load`` gives rows of an agent by their places in its history, from 0 on: only those that a match names are loaded.
    Each rule must be ``readable``.
    """

    def __init__(self, agents: Sequence[str], cells: Sequence[bytes], load: Load, *, steps: int = STEPS) -> None:
        self._source, self._places = packed_source(agents, cells), {agent: k for k, agent in enumerate(agents)}
        table = packed_table(self._source)
        self._timelines = PackedTimelines(self._source, table, load)
        self._searches = TimelineSearch(self._timelines, steps=steps, table=table)

    def detect(self, rules: Sequence[PatternRule]) -> Detection:
        """What ``detect`` finds in these rows; raises StaleError where loaded rows are no longer those packed."""
        source = self._source
        has, any_read = source.available(_needs(rules)), bool(source.read.any())
        return _detection(_RowCorpus(self._searches, has, None, any_read, source.ranks), rules, self._balance)

    def _balance(self, timeline: Timeline) -> dict[str, float]:
        try:
            return self._source.balances[self._places[timeline.agent]]
        except NotVectorizable:
            return _balance(self._timelines[self._places[timeline.agent]])

    def loaded(self) -> Iterator[Row]:
        """The rows that were loaded, among them all that a finding names."""
        return self._timelines.loaded()

    def may_have(self, rule: PatternRule) -> bool:
        """Whether these rows may hold all that a rule asks for; cells tell it of scores and indicators alone."""
        return not rule.needs <= DECIDABLE_INPUTS or rule.needs <= self._source.available(rule.needs)

    def pairs(self, rules: Iterable[PatternRule]) -> int:
        """In how many (sequence, rule) pairs there could be a match at all."""
        return family_size(rules, self._searches.timelines, self._searches.run)


class _RowCorpus(NamedTuple):
    """Rows to be searched, and what they have: see ``lacking``."""

    searches: SearchesByRule
    has: frozenset[str]
    gives: Collection[str] | None
    any_read: bool
    ranks: bool
    set_here: Collection[str] = ()  # the indicators of sequences that somebody gives


def _detection(
    corpus: _RowCorpus,
    rules: Sequence[PatternRule],
    balance: Callable[[Timeline], dict[str, float]],
    tick: Callable[[], object] | None = None,
) -> Detection:
    findings: list[Finding] = []
    outcomes: list[RuleOutcome] = []
    counts: dict[str, SearchCounts] = {}
    for rule in rules:
        if tick is not None:
            tick()
        reason = lacking(rule, corpus.has, corpus.gives, any_read=corpus.any_read, ranks=corpus.ranks)
        reason = reason or not_set(rule, corpus.set_here)
        if reason:
            outcomes.append(
                RuleOutcome(
                    pattern=rule.id,
                    rule_hash=rule.hash,
                    status="not_applicable",
                    reason=reason,
                    variant_of=rule.file.variant_of,
                )
            )
            continue
        search = corpus.searches.of(rule)
        result = search.search(rule)
        new_findings = _deduplicated(
            finding_of(rule, match, balance(match.partition.timeline)) for match in result.matches
        )
        findings += new_findings
        counts[rule.hash] = _counts(result, len(new_findings))
        outcomes.append(outcome_of(rule, counts[rule.hash], search.steps))
    return Detection(findings=tuple(sorted(findings, key=order)), outcomes=tuple(outcomes), counts=counts)


def _deduplicated(findings: Iterable[Finding]) -> list[Finding]:
    """Each id once: of matches that differ only in rows passed over before their first named one, the last remains."""
    last: dict[str, Finding] = {}
    for finding in findings:
        last.pop(finding.finding_id, None)
        last[finding.finding_id] = finding
    return list(last.values())


def _needs(rules: Iterable[PatternRule]) -> frozenset[str]:
    return frozenset().union(*(rule.needs for rule in rules))


def _balances(whole: Iterable[Timeline]) -> Callable[[Timeline], dict[str, float]]:
    """The balance over all rows of an agent, whichever of them the ``where`` of a rule leaves."""
    all_rows = {(timeline.agent, timeline.conversation): timeline for timeline in whole}
    balance = cache(lambda agent, conversation: _balance(all_rows[agent, conversation]))
    return lambda timeline: balance(timeline.agent, timeline.conversation)


def _balance(timeline: Timeline) -> dict[str, float]:
    return Balance(entry.row for entry in timeline.entries if entry.read).means()


def detect_patterns(
    evaluations: Iterable[Mapping[str, Any] | Row], rules: Sequence[PatternRule | str] | None = None
) -> list[dict[str, Any]]:
    """The findings of plain rows, or of the rows of ``audit``, as plain dictionaries, each with its ``confidence``.

    ``rules`` are names of shipped rules, or what ``load_rules`` gave; None is the shipped rules that are on. A row
    needs ``id``, ``agent`` and ``traits`` (null: unread), and better ``conversation``, ``time``, ``position``,
    ``target`` and ``tier`` (docs/rows.md). Raises RecordError for a row that cannot be read, and UsageError for an
    unknown rule. Warns (UndersongWarning) of a repeated id, of a name that is not read, and where an empty list would
    say too much: of a rule that was named and could not run, of one that gave up, and where no rule ran at all.
    """
    rows, problems = rows_from_mappings(evaluations, name="row")
    for problem in problems:
        warnings.warn(f"{problem.where}: {problem.what}; {problem.remedy}", UndersongWarning, stacklevel=2)
    detection = detect(rows, chosen_rules(rules))
    for warning in _inconclusive(detection.outcomes if rows else (), every=rules is not None):
        warnings.warn(warning, UndersongWarning, stacklevel=2)
    findings = with_confidence(detection.findings, rows, chosen_rules(rules))
    return [msgspec.json.decode(encode(finding)) for finding in findings]


def _inconclusive(outcomes: Sequence[RuleOutcome], *, every: bool) -> Iterator[str]:
    """Whose silence means nothing, by reason: rules that gave up, and if none ran, or with ``every``, the others."""
    every = every or all(each.status == "not_applicable" for each in outcomes)
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.status == "gave_up" or (every and outcome.status != "ran"):
            names.setdefault(f"{outcome.status.replace('_', ' ')}: {outcome.reason}", []).append(outcome.pattern)
    for reason, patterns in names.items():
        more = f" and {len(patterns) - _NAMED} more" if len(patterns) > _NAMED else ""
        yield f"{', '.join(patterns[:_NAMED])}{more}: {reason}"


def quote(
    finding: Finding,
    messages: Mapping[MessageKey, Message],
    hits: Mapping[MessageKey, Sequence[Hit]] | None = None,
    *,
    strongest: Mapping[MessageKey, Span] | None = None,
) -> Finding:
    """The finding with a verbatim quote of each of its messages that is given, by conversation and message id.

    A quote is the sentence that ``strongest`` names (``strongest_sentences``), else that of the message's first hit
    where ``hits`` has one, else its beginning; a span that the text does not have is passed over.
    """
    places = zip(finding.message_conversations, finding.message_ids, strict=True)
    return msgspec.structs.replace(finding, quotes=verbatim(places, messages, hits, strongest=strongest))


def verbatim(
    places: Iterable[MessageKey],
    messages: Mapping[MessageKey, Message],
    hits: Mapping[MessageKey, Sequence[Hit]] | None = None,
    *,
    strongest: Mapping[MessageKey, Span] | None = None,
) -> tuple[Quote, ...]:
    """A quote of each of these messages that is given and has text, chosen as in ``quote``."""
    quotes = []
    for place in places:
        message = messages.get(place)
        if message is not None and message.text.strip():
            quotes.append(_quote(message, (hits or {}).get(place, ()), (strongest or {}).get(place)))
    return tuple(quotes)


def strongest_sentences(rows: Iterable[Row]) -> dict[MessageKey, Span]:
    """Of each row with spans, the sentence of its strongest signal; of equal ones the first by name."""
    return {(row.conversation, row.id): row.spans[_strongest(row)] for row in rows if row.spans}


def _strongest(row: Row) -> str:
    return min(row.spans, key=lambda name: (-row.signals.get(name, 0.0), name))


def _counts(result: SearchResult, findings: int) -> SearchCounts:
    agents = tuple(sorted(set(result.gave_up))[:_NAMED])
    return SearchCounts(partitions=result.partitions, findings=findings, gave_up=len(result.gave_up), agents=agents)


def outcome_of(rule: PatternRule, counts: SearchCounts, steps: int = STEPS) -> RuleOutcome:
    """What became of a rule that ran, by the counts of its search over all parts of the rows."""
    reason = ""
    if counts.gave_up:
        share = f"{counts.gave_up} of {counts.partitions} partitions (agents: {', '.join(counts.agents)})"
        reason = f"gave up in {share} at {steps} steps or {ROWS} rows; what follows there is not known"
    return RuleOutcome(
        pattern=rule.id,
        rule_hash=rule.hash,
        status="gave_up" if counts.gave_up else "ran",
        partitions=counts.partitions,
        findings=counts.findings,
        reason=reason,
        variant_of=rule.file.variant_of,
    )


def _quote(message: Message, hits: Sequence[Hit], span: Span | None) -> Quote:
    text = message.text
    if span is not None and 0 <= span[0] < span[1] <= len(text) and text[slice(*span)].strip():
        start, end = _beginning(text, *span)
    else:
        start, end = _sentence(text, min(hits, key=lambda hit: hit.start)) if hits else _beginning(text, 0, len(text))
    return Quote(message_id=message.id, text=text[start:end], start=start, end=end, sha256=text_hash(text))


def _sentence(text: str, hit: Hit) -> tuple[int, int]:
    """The sentence around a hit, at most ``EXCERPT`` characters with the hit in it."""
    low = max(0, hit.end - EXCERPT)
    ends = [found.end() for found in _SENTENCE_END.finditer(text, low, hit.start)]
    following = _SENTENCE_END.search(text, hit.end)
    start = ends[-1] if ends else low
    return _beginning(text, start, following.end() if following else len(text), keep=hit.end)


def _beginning(text: str, start: int, end: int, keep: int = 0) -> tuple[int, int]:
    """The span without outer white space, cut after the last word within ``EXCERPT`` characters and after ``keep``."""
    while start < end and text[start].isspace():
        start += 1
    if end - start > EXCERPT:
        cut = start + EXCERPT
        first = max(start + 1, keep)
        space = max(text.rfind(" ", first, cut + 1), text.rfind("\n", first, cut + 1))
        end = space if space >= first else cut
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
