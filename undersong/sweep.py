"""All agents of a store with enough scores that changed since the last sweep: histories → detect → findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from undersong.detect import Detection, Place, Span, detect, quote, strongest_sentences
from undersong.errors import UsageError
from undersong.models import Emerging, Finding, Noun, Row, RuleOutcome
from undersong.outcomes import with_outcome
from undersong.patterns import PatternRule
from undersong.patterns.discovery import false_discovery
from undersong.patterns.emerging import emerging
from undersong.stores import BEGINNING, Cursor, History, JudgeEntry, Store, Swept
from undersong.weigh import Effort, Weighed, weigh

ROWS = 20_000  # rows that are held and searched together
Watch = Callable[[int, int], None]  # agents and rows done so far


class Sweep(Noun, frozen=True, kw_only=True):
    """What a sweep did: ``found`` are findings that the store did not hold, ``gone`` ids of those that no longer hold.

    ``agents`` and ``rows`` count what was read; ``findings`` all that stand in these agents' histories by these rules.
    ``emerging`` are warnings about the agents that were read, where they were asked for; they are no findings.
    """

    agents: int = 0
    rows: int = 0
    findings: int = 0
    found: tuple[Finding, ...] = ()
    gone: tuple[str, ...] = ()
    outcomes: tuple[RuleOutcome, ...] = ()
    emerging: tuple[Emerging, ...] = ()


def sweep(
    store: Store,
    rules: Sequence[PatternRule],
    judge_hash: str,
    *,
    least: int = 1,
    effort: Effort | None = None,
    again: bool = False,
    warn: bool = False,
    watch: Watch | None = None,
) -> Sweep:
    """Run the rules over every history with ``least`` or more scored rows that changed since they last saw it.

    A rule has its cursor by its hash: a changed rule begins anew, as every rule does with ``again``. What was found is
    kept together with the cursor, some thousand rows at a time: a sweep that was stopped goes on there. Histories are
    read to their beginning, so that a pattern may take months. With ``effort`` each finding has its chance and
    stability, and q over all that this sweep read. With ``warn`` sequences that are only on their way are told too.
    """
    cursors = {rule.id: _cursor(judge_hash, least, rule) for rule in rules}
    places = {rule.id: BEGINNING if again else store.cursor(cursors[rule.id]) for rule in rules}
    before = {finding.finding_id for finding in store.findings()}
    tally = _Tally(watch)
    for place in sorted(set(places.values())):
        due = [rule for rule in rules if places[rule.id] == place]
        names = [cursors[rule.id] for rule in due]
        for histories in _batched(store.histories(judge_hash, place, least)):
            detection, weighed = _detected(store, histories, due, effort)
            last = Cursor(histories[-1].changed, histories[-1].agent)
            swept = _by_agent(histories, weighed.findings)
            store.put_sweep(judge_hash, swept, [rule.id for rule in due], dict.fromkeys(names, last))
            tally.add(histories, detection, weighed)
            if warn:
                tally.emerging += _warnings(histories, due, weighed.findings)
    after = {finding.finding_id: finding for finding in store.findings()}
    corrected = [finding for finding in tally.corrected(rules) if finding.finding_id in after]
    store.append((), corrected)
    after |= {finding.finding_id: finding for finding in corrected}
    return Sweep(
        agents=len(tally.agents),
        rows=tally.rows,
        findings=len(tally.findings),
        found=tuple(finding for name, finding in after.items() if name not in before),
        gone=tuple(sorted(before - after.keys())),
        outcomes=tally.outcomes(rules),
        emerging=tuple(tally.emerging),
    )


def chosen_judge(store: Store, name: str | None) -> JudgeEntry:
    """The judge of this name or beginning of a hash, or the only one; raises UsageError where that is not one."""
    known = store.judges()
    fitting = [each for each in known if name is None or each.judge == name or each.judge_hash.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if not known:
        raise UsageError("the store holds no scores", remedy="run `undersong audit` or `undersong store import` first")
    names = ", ".join(f"{each.judge or '(unnamed)'} {each.judge_hash[:12]}" for each in known)
    what = f"{len(fitting)} judges of the store fit" if fitting else f"no judge of the store fits '{name}'"
    raise UsageError(what, remedy=f"choose with --judge one of: {names}")


class _Tally:
    """What a sweep counts as it goes."""

    def __init__(self, watch: Watch | None) -> None:
        self.agents: set[str] = set()
        self.rows = self.family = 0
        self.findings: list[Finding] = []
        self.emerging: list[Emerging] = []
        self._outcomes: dict[str, list[RuleOutcome]] = {}
        self._watch = watch

    def add(self, histories: Sequence[History], detection: Detection, weighed: Weighed) -> None:
        """Count a batch."""
        self.agents |= {history.agent for history in histories}
        self.rows += sum(len(history.rows) for history in histories)
        self.findings += weighed.findings
        self.family += weighed.family
        for outcome in detection.outcomes:
            self._outcomes.setdefault(outcome.pattern, []).append(outcome)
        if self._watch:
            self._watch(len(self.agents), self.rows)

    def corrected(self, rules: Iterable[PatternRule]) -> list[Finding]:
        """The findings with a chance, their q corrected for everything that was read."""
        apart = {rule.id for rule in rules if "conversation" in rule.file.partition_by}
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
    return RuleOutcome(
        pattern=gave_up.pattern,
        rule_hash=gave_up.rule_hash,
        status=gave_up.status,
        reason=gave_up.reason,
        partitions=sum(part.partitions for part in ran),
        findings=sum(part.findings for part in ran),
    )


def _cursor(judge_hash: str, least: int, rule: PatternRule) -> str:
    return f"sweep/{judge_hash}/{least}/{rule.hash}"


def _batched(histories: Iterable[History]) -> Iterator[list[History]]:
    batch: list[History] = []
    rows = 0
    for history in histories:
        batch.append(history)
        rows += len(history.rows)
        if rows >= ROWS:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _detected(
    store: Store, histories: Sequence[History], rules: Sequence[PatternRule], effort: Effort | None
) -> tuple[Detection, Weighed]:
    rows = [row for history in histories for row in history.rows]
    detection = detect(rows, rules)
    bound = {place for finding in detection.findings for place in finding.message_ids}
    strongest = strongest_sentences(row for row in rows if row.id in bound)
    findings = tuple(_told(store, finding, strongest) for finding in detection.findings)
    if effort is None:
        return detection, Weighed(findings=findings, family=0)
    return detection, weigh(findings, detection.outcomes, rows, rules, effort)


def _warnings(
    histories: Sequence[History], rules: Sequence[PatternRule], findings: Iterable[Finding]
) -> list[Emerging]:
    return unfinished(rules, (row for history in histories for row in history.rows), findings)


def unfinished(rules: Sequence[PatternRule], rows: Iterable[Row], findings: Iterable[Finding]) -> list[Emerging]:
    """What is about to come: open sequences of which no row is part of a finding by the same rule."""
    bound = {(f.pattern, f.agent, place) for f in findings for place in f.message_ids}
    found = emerging(rules, rows)
    return [each for each in found if not any((each.pattern, each.agent, place) in bound for place in each.message_ids)]


def _by_agent(histories: Sequence[History], findings: Iterable[Finding]) -> list[Swept]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.agent, []).append(finding)
    return [Swept(each.agent, each.changed, tuple(found.get(each.agent, ()))) for each in histories]


def _sequence(finding: Finding, apart: Collection[str]) -> tuple[str, str, str | None, str]:
    """What all findings of one rule in one sequence share: they have one chance."""
    alone = finding.pattern in apart or finding.start is None
    return finding.pattern, finding.agent, finding.target, finding.conversations[0] if alone else ""


def _told(store: Store, finding: Finding, strongest: Mapping[Place, Span]) -> Finding:
    """The finding with quotes and outcome, as far as the store holds its messages; imported rows have none."""
    kept = [name for name in finding.conversations if store.length(name)]
    if not kept:
        return finding
    messages = [message for name in kept for message in store.conversation(name)[0].messages]
    known = {(message.conversation, message.id): message for message in messages}
    return with_outcome(quote(finding, known, strongest=strongest), messages)
