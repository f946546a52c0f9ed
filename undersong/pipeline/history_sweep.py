"""Incremental pattern search over the histories of all agents of a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

import msgspec

from undersong.core.batches import batches
from undersong.core.processes import Share, shared_out
from undersong.core.text import json_hash
from undersong.errors import UsageError
from undersong.models import Emerging, Finding, Message, Record, Row, RuleOutcome
from undersong.patterns.catalog import other_ways
from undersong.patterns.detect import Detection, MessageKey, PackedSearch, RowSearch, Span, quote, strongest_sentences
from undersong.patterns.findings import order
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.outcome import with_outcome
from undersong.patterns.reference.downstream import addressed_by, reads_others
from undersong.patterns.set_indicators import asked_of_findings, shapes_for
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.confidence import with_confidence
from undersong.patterns.significance.estimate import (
    Significance,
    estimate_significance,
    false_discovery,
)
from undersong.patterns.tools.partial_match import emerging
from undersong.patterns.vectorized.packed import StaleError, readable
from undersong.patterns.vectorized.row_source import FEW, SearchesByRule
from undersong.pipeline.finding_reader import FindingReader, carried_over
from undersong.stores.protocol import BEGINNING, AgentSweep, Cursor, JudgeEntry, PackedHistory, Store

ROWS = 400_000  # packed rows that are held and searched together; each takes about a kilobyte while they are
LOADED = 20_000  # rows as objects, which take some thirty times the memory
_CACHED = 256  # conversations whose messages are in memory for quotes
Watch = Callable[[int, int], None]  # agents and rows done so far


class Sweep(Record, frozen=True, kw_only=True):
    """What a sweep did: ``new_findings`` were not in the store before; ``retracted``: ids that no longer hold.

    ``agents`` and ``rows`` count what was read; ``findings`` all that stand in these agents' histories by these rules.
    ``emerging`` are warnings about the agents that were read, where they were asked for; they are no findings.
    """

    agents: int = 0
    rows: int = 0
    findings: int = 0
    new_findings: tuple[Finding, ...] = ()
    retracted: tuple[str, ...] = ()
    outcomes: tuple[RuleOutcome, ...] = ()
    emerging: tuple[Emerging, ...] = ()


def sweep(
    store: Store,
    rules: Sequence[PatternRule],
    judge_hash: str,
    *,
    least: int = 1,
    effort: ResamplingConfig | None = None,
    prevalence: float | None = None,
    again: bool = False,
    warn: bool = False,
    reader: FindingReader | None = None,
    watch: Watch | None = None,
    processes: int = 1,
) -> Sweep:
    """Run the rules over every history with ``least`` or more scored rows that changed since they last saw it.

    A pattern has its cursor by the hashes of its rules: a changed rule begins anew, as every rule does with ``again``.
    What was found is kept together with the cursor, some thousand rows at a time: a sweep that was stopped goes on
    there. Histories are read to their beginning, so that a pattern may take months. With ``effort`` each finding has
    its chance and stability, and q over all that this sweep read. With ``warn`` sequences that are only on their way
    are told too. ``reader`` reads the sequence of each new or grown finding, and what it said before stands. How
    sure findings are is worked out in so many ``processes``.
    """
    with shared_out(processes) as share:
        search = partial(_Batch, store, judge_hash, effort=effort, prevalence=prevalence, reader=reader, share=share)
        return _swept(store, rules, judge_hash, least, search, again=again, warn=warn, watch=watch)


def _swept(
    store: Store,
    rules: Sequence[PatternRule],
    judge_hash: str,
    least: int,
    searched: Callable[[Sequence[PackedHistory], Sequence[PatternRule]], _Batch],
    *,
    again: bool,
    warn: bool,
    watch: Watch | None,
) -> Sweep:
    """What ``sweep`` does, with what searches some histories by rules."""
    cursors, others = _cursors(judge_hash, least, rules), other_ways(rules)
    places = {name: BEGINNING if again else store.cursor(cursor) for name, cursor in cursors.items()}
    before, read = store.finding_ids(), _read_before(store, rules)
    tally = _SweepTotals(watch)
    for place in sorted(set(places.values())):
        due = [rule for rule in rules if places[rule.pattern] == place]
        patterns = tuple(dict.fromkeys(rule.pattern for rule in due))
        for batch in batches(store.packed(judge_hash, place, least), ROWS, _rows):
            search = searched(batch, due)
            weighed = search.significance()
            compared = search.compared()
            tally.findings += compared
            last = Cursor(batch[-1].changed, batch[-1].agent)
            left_alone = (*_found_otherwise(store, batch, others), *read)
            by_id = {each.finding_id: each for each in (*left_alone, *weighed.findings, *compared)}
            swept = _by_agent(batch, by_id.values())
            store.put_sweep(judge_hash, swept, patterns, {cursors[name]: last for name in patterns})
            tally.add(batch, search.outcomes, weighed)
            if warn:
                tally.emerging += unfinished(due, search.rows(batch), weighed.findings)
            del search  # before the arrays of the next one are made
    after = store.finding_ids()
    corrected = [finding for finding in tally.corrected(rules) if finding.finding_id in after]
    if corrected:
        store.append((), corrected)
    by_id = {finding.finding_id: finding for finding in (*tally.findings, *corrected)}
    return Sweep(
        agents=len(tally.agents),
        rows=tally.rows,
        findings=len(tally.findings),
        new_findings=tuple(by_id[name] for name in sorted((after - before) & by_id.keys())),
        retracted=tuple(sorted(before - after)),
        outcomes=tally.outcomes(rules),
        emerging=tuple(tally.emerging),
    )


def chosen_judge(store: Store, name: str | None) -> JudgeEntry:
    """The judge of this name or beginning of a hash, or the only one; raises UsageError where that is not one."""
    judges = store.judges()
    fitting = [each for each in judges if name is None or each.judge == name or each.judge_hash.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if not judges:
        raise UsageError("the store holds no scores", remedy="run `undersong audit` or `undersong store import` first")
    names = ", ".join(f"{each.judge or '(unnamed)'} {each.judge_hash[:12]}" for each in judges)
    what = f"{len(fitting)} judges of the store fit" if fitting else f"no judge of the store fits '{name}'"
    raise UsageError(what, remedy=f"choose with --judge one of: {names}")


class _SweepTotals:
    """What a sweep counts as it goes."""

    def __init__(self, watch: Watch | None) -> None:
        self.agents: set[str] = set()
        self.rows = self.family = 0
        self.findings: list[Finding] = []
        self.emerging: list[Emerging] = []
        self._outcomes: dict[str, list[RuleOutcome]] = {}
        self._watch = watch

    def add(self, histories: Sequence[PackedHistory], outcomes: Iterable[RuleOutcome], weighed: Significance) -> None:
        """Count a batch."""
        self.agents |= {history.agent for history in histories}
        self.rows += sum(history.rows for history in histories)
        self.findings += weighed.findings
        self.family += weighed.family
        for outcome in outcomes:
            self._outcomes.setdefault(outcome.pattern, []).append(outcome)
        if self._watch:
            self._watch(len(self.agents), self.rows)

    def corrected(self, rules: Iterable[PatternRule]) -> list[Finding]:
        """The findings with a chance, their q corrected for everything that was read."""
        apart = {rule.hash for rule in rules if "conversation" in rule.file.partition_by}
        tested = [finding for finding in self.findings if finding.chance is not None]
        sequences = {_sequence(finding, apart): finding.chance or 0.0 for finding in tested}
        values = dict(zip(sequences, false_discovery(list(sequences.values()), self.family), strict=True))
        return [msgspec.structs.replace(finding, q=values[_sequence(finding, apart)]) for finding in tested]

    def outcomes(self, rules: Iterable[PatternRule]) -> tuple[RuleOutcome, ...]:
        """One outcome a rule that had something to read: it is not applicable where it was so everywhere."""
        return tuple(_together(self._outcomes[rule.id]) for rule in rules if rule.id in self._outcomes)


def _together(parts: Sequence[RuleOutcome]) -> RuleOutcome:
    ran = [part for part in parts if part.status != "not_applicable"]
    if not ran:
        return parts[0]
    gave_up = next((part for part in ran if part.status == "gave_up"), ran[0])
    counts = {"partitions": sum(part.partitions for part in ran), "findings": sum(part.findings for part in ran)}
    return msgspec.structs.replace(gave_up, **counts)


def _cursors(judge_hash: str, least: int, rules: Iterable[PatternRule]) -> dict[str, str]:
    """Pattern → the name of its cursor: a pattern is swept by all its rules or by none.

    What other rules set for it is part of the name: when they change, it begins anew.
    """
    chosen = tuple(rules)
    hashes: dict[str, list[str]] = {}
    for rule in chosen:
        asked = asked_of_findings(rule)
        shapes = [each for each in (*chosen, *shapes_for(chosen)) if asked & each.file.sets.keys()]
        sets = [json_hash([each.hash, each.file.sets])[:16] for each in shapes]
        hashes.setdefault(rule.pattern, []).extend([rule.hash, *sets])
    return {name: f"sweep/{judge_hash}/{least}/{'+'.join(sorted(each))}" for name, each in hashes.items()}


def _rows(history: PackedHistory) -> int:
    return history.rows


class _Batch:
    """Some histories and the rules that are due on them.

    They are searched as they are packed; only what the cells do not hold makes their rows be loaded.
    """

    def __init__(
        self,
        store: Store,
        judge_hash: str,
        histories: Sequence[PackedHistory],
        rules: Sequence[PatternRule],
        *,
        effort: ResamplingConfig | None,
        prevalence: float | None,
        reader: FindingReader | None,
        share: Share,
    ) -> None:
        self._store, self._judge_hash, self._effort, self._share = store, judge_hash, effort, share
        self._histories, self._prevalence = histories, prevalence
        self._rules, self._reader = rules, reader
        self._messages = lru_cache(maxsize=_CACHED)(partial(_messages, store))
        self._significance: list[Significance] = []
        self.outcomes: list[RuleOutcome] = []
        self._search([each for each in histories if each.cells is not None and each.rows])
        self._read([each for each in histories if each.cells is None], rules)

    def significance(self) -> Significance:
        """The findings of the batch, with their confidence, by rules and by what a judge read in their sequences."""
        findings = tuple(finding for part in self._significance for finding in part.findings)
        if findings:
            agents = {finding.agent for finding in findings}
            rows = list(self.rows(each for each in self._histories if each.agent in agents))
            findings = carried_over(with_confidence(findings, rows, self._rules, self._prevalence), self._store)
            if self._reader is not None:
                findings = self._reader.weighed(findings, rows)
        return Significance(
            findings=tuple(sorted(findings, key=order)), family=sum(part.family for part in self._significance)
        )

    def compared(self) -> tuple[Finding, ...]:
        """What a judge reads in conversations of these agents side by side."""

        def rows_of(agents: Collection[str] | None) -> Iterator[Row]:
            return self.rows(each for each in self._histories if agents is None or each.agent in agents)

        return () if self._reader is None else self._reader.compared(rows_of, self._rules)

    def rows(self, histories: Iterable[PackedHistory]) -> Iterator[Row]:
        """Their rows, one agent after the other."""
        for history in histories:
            yield from self._store.history(history.agent, self._judge_hash)

    def _search(self, packed: Sequence[PackedHistory]) -> None:
        """Search packed histories, and their rows by the rules that ask for more."""
        if sum(each.rows for each in packed) <= FEW:
            self._read(packed, self._rules)
            return
        ready = [rule for rule in self._rules if readable(rule)]
        search = PackedSearch([each.agent for each in packed], [each.cells or b"" for each in packed], self._load)
        others = [rule for rule in self._rules if rule not in ready]
        lacking = [rule for rule in others if not search.may_have(rule)]
        try:
            detection = search.detect([*ready, *lacking])
        except StaleError:  # others write; what changed is left for the next sweep
            self._read(packed, self._rules)
            return
        if self._effort is None:
            self._take(detection, search.loaded())
        else:
            agents = {finding.agent for finding in detection.findings}
            rows = list(self.rows(each for each in packed if each.agent in agents))
            self._take(detection, rows, search.pairs(_ran(ready, detection)))
        self._read(packed, [rule for rule in others if rule not in lacking])

    def _load(self, agent: str, places: Sequence[int]) -> Sequence[Row]:
        return self._store.rows_at(agent, self._judge_hash, places)

    def _read(self, histories: Sequence[PackedHistory], rules: Sequence[PatternRule]) -> None:
        """Search rows, some thousand at a time."""
        if not rules:
            return
        for part in batches(histories, LOADED, _rows):
            rows = list(self.rows(part))
            search = RowSearch(rows)
            self._take(search.detect([rule for rule in rules if not reads_others(rule)]), rows, search=search)
            for rule in filter(reads_others, rules):
                self._read_with_others(rows, rule)

    def _read_with_others(self, rows: Sequence[Row], rule: PatternRule) -> None:
        """Search rows by a rule that also binds rows of the agents that were addressed."""
        own = {row.agent for row in rows}
        others = [row for agent in sorted(addressed_by(rule, rows) - own) for row in self._history(agent)]
        search = RowSearch([*rows, *others])
        detection = search.detect([rule])
        findings = tuple(finding for finding in detection.findings if finding.agent in own)
        self._take(msgspec.structs.replace(detection, findings=findings), [*rows, *others], search=search)

    def _history(self, agent: str) -> tuple[Row, ...]:
        return self._store.history(agent, self._judge_hash)

    def _take(
        self,
        detection: Detection,
        rows: Iterable[Row],
        family: int | None = None,
        *,
        search: SearchesByRule | None = None,
    ) -> None:
        self.outcomes += detection.outcomes
        bound = {place for finding in detection.findings for place in finding.message_ids}
        strongest = strongest_sentences(row for row in rows if row.id in bound)
        findings = tuple(_with_quotes(finding, self._messages, strongest) for finding in detection.findings)
        weighed = Significance(findings=findings, family=0)
        if effort := self._effort:
            searched = rows if search is None else search
            weighed = estimate_significance(
                findings, detection.outcomes, searched, self._rules, effort, family=family, share=self._share
            )
        self._significance.append(weighed)


def _ran(rules: Iterable[PatternRule], detection: Detection) -> list[PatternRule]:
    ran = {outcome.pattern for outcome in detection.outcomes if outcome.status != "not_applicable"}
    return [rule for rule in rules if rule.id in ran]


def unfinished(rules: Sequence[PatternRule], rows: Iterable[Row], findings: Iterable[Finding]) -> list[Emerging]:
    """What is about to come: open sequences of which no row is part of a finding by the same rule."""
    bound = {(f.pattern, f.agent, place) for f in findings for place in f.message_ids}
    sequences = emerging(rules, rows)
    return [
        each for each in sequences if not any((each.pattern, each.agent, place) in bound for place in each.message_ids)
    ]


def _found_otherwise(store: Store, histories: Sequence[PackedHistory], others: Collection[str]) -> Iterator[Finding]:
    """The stored findings of the same patterns by rules that are not swept: they stay as they are."""
    for history in histories if others else ():
        yield from (each for each in store.findings(history.agent) if each.rule_hash in others)


def _read_before(store: Store, rules: Sequence[PatternRule]) -> tuple[Finding, ...]:
    """The stored findings of these rules that rest on words that a judge read: scores cannot undo them."""
    hashes = {rule.hash for rule in rules}
    return tuple(each for each in store.findings() if each.is_read and each.rule_hash in hashes)


def _by_agent(histories: Sequence[PackedHistory], findings: Iterable[Finding]) -> list[AgentSweep]:
    by_agent: dict[str, list[Finding]] = {}
    for finding in findings:
        by_agent.setdefault(finding.agent, []).append(finding)
    return [AgentSweep(each.agent, each.changed, tuple(by_agent.get(each.agent, ())), each.cells) for each in histories]


def _sequence(finding: Finding, apart: Collection[str]) -> tuple[str, str, str | None, str]:
    """What all findings of one rule in one sequence share: they have one chance."""
    alone = finding.rule_hash in apart or finding.start is None
    return finding.rule_hash, finding.agent, finding.target, finding.conversations[0] if alone else ""


def _with_quotes(
    finding: Finding, messages_of: Callable[[str], tuple[Message, ...]], strongest: Mapping[MessageKey, Span]
) -> Finding:
    """The finding with quotes and outcome, as far as the store holds its messages; imported rows have none."""
    messages = [message for name in finding.conversations for message in messages_of(name)]
    if not messages:
        return finding
    by_id = {(message.conversation, message.id): message for message in messages}
    return with_outcome(quote(finding, by_id, strongest=strongest), messages)


def _messages(store: Store, name: str) -> tuple[Message, ...]:
    return store.conversation(name)[0].messages if store.length(name) else ()
