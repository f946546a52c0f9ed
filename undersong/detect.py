"""Rows and rules → findings, and what became of every rule; pure, no clock, no chance."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from undersong.models import DIMENSIONS, TRAITS, Finding, Hit, Message, Noun, Quote, Row, RuleOutcome, encode
from undersong.patterns import all_rules, load_rules, named
from undersong.patterns.fields import FIELDS, dimension
from undersong.patterns.matcher import STEPS
from undersong.patterns.partitions import Timeline, timelines
from undersong.patterns.rules import PatternRule
from undersong.patterns.search import ROWS, Match, Search, search
from undersong.patterns.sequences import ANY
from undersong.ranks import levelled
from undersong.rows import row_of

ID_LENGTH = 32  # hex digits of SHA-256 that a finding id keeps: 128 bits
EXCERPT = 280  # characters of a quote
_NEVER_MISSING = frozenset({"observed", "target", "directed", "agent", "conversation", "role", "state", "position"})
_FROM_SCAN = frozenset({"total", "density", "sampled"})  # every row has a value, scanned or not
_TRAITS = frozenset({*TRAITS, *DIMENSIONS})
_RANKS_ONLY = (
    "needs scores as levels; this text is of a kind that the judge was not measured on, so they are ranks: "
    "name a judge that gives levels with --judge"
)
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|\n+")

Place = tuple[str, str]  # a message by conversation and id: ids may repeat between conversations


class Detection(Noun, frozen=True, kw_only=True):
    """What the rules found in the rows, and one outcome per rule."""

    findings: tuple[Finding, ...]
    outcomes: tuple[RuleOutcome, ...]


def detect(
    rows: Iterable[Row], rules: Sequence[PatternRule], *, gives: Collection[str] | None = None, steps: int = STEPS
) -> Detection:
    """Run every rule over every partition of the rows; their order does not matter.

    ``gives`` names what the judge fills (``traits``, ``indicators``, signals); a rule that needs more is
    ``not_applicable``, as is one that asks for what no row has. ``steps`` bounds the search per partition: a rule that
    reaches it ``gave_up`` there, and says so.
    """
    rows = levelled(rows)
    known = timelines(rows)
    read = [entry.row for timeline in known for entry in timeline.entries if entry.read]
    has, ranks = _given(read), any(row.scale == "rank" for row in read)
    balances = _balances(known)
    findings: list[Finding] = []
    outcomes: list[RuleOutcome] = []
    for rule in rules:
        lacking = _lacking(rule, has, gives, bool(read), ranks)
        if lacking:
            outcomes.append(RuleOutcome(pattern=rule.id, rule_hash=rule.hash, status="not_applicable", reason=lacking))
            continue
        found = search(rule, known, steps=steps)
        findings += [_finding(rule, match, balances) for match in found.matches]
        outcomes.append(_outcome(rule, found, steps))
    return Detection(findings=tuple(sorted(findings, key=_order)), outcomes=tuple(outcomes))


def detect_patterns(
    evaluations: Iterable[Mapping[str, Any] | Row], rules: Sequence[PatternRule | str] | None = None
) -> list[dict[str, Any]]:
    """The findings of plain rows, or of the rows of ``audit``, as plain dictionaries.

    ``rules`` are names of shipped rules, or what ``load_rules`` gave; None is the shipped rules that are on. A row
    needs ``id``, ``agent`` and ``traits`` (null: unread), and better ``conversation``, ``time``, ``position``,
    ``target`` and ``tier`` (docs/rows.md). Raises RecordError for a row that cannot be read, and UsageError for an
    unknown rule.
    """
    rows = [row_of(value, position) for position, value in enumerate(evaluations)]
    detection = detect(rows, _rules(rules))
    return [msgspec.json.decode(encode(finding)) for finding in detection.findings]


def _rules(given: Sequence[PatternRule | str] | str | None) -> tuple[PatternRule, ...]:
    if given is None:
        return load_rules()
    several = (given,) if isinstance(given, str) else given
    return tuple(named(all_rules(), each) if isinstance(each, str) else each for each in several)


def quote(
    finding: Finding, messages: Mapping[Place, Message], hits: Mapping[Place, Sequence[Hit]] | None = None
) -> Finding:
    """The finding with a verbatim quote of each of its messages that is given, by conversation and message id.

    A quote is the sentence of the message's first hit where ``hits`` has one, else its beginning.
    """
    quotes = []
    for place in zip(finding.message_conversations, finding.message_ids, strict=True):
        message = messages.get(place)
        if message is not None and message.text.strip():
            quotes.append(_quote(message, (hits or {}).get(place, ())))
    return msgspec.structs.replace(finding, quotes=tuple(quotes))


def _finding(rule: PatternRule, match: Match, balances: Mapping[tuple[str, str | None], dict[str, float]]) -> Finding:
    named = match.named
    timeline = match.partition.timeline
    measures = {name: float(value) for name, value in match.measures.items() if isinstance(value, int | float)}
    strength = min(1.0, max(0.0, measures.get("strength", 0.0)))
    return Finding(
        finding_id=_finding_id(rule, match),
        pattern=rule.id,
        title=rule.file.title,
        level=rule.file.level,
        rule_hash=rule.hash,
        agent=timeline.agent,
        target=match.partition.target,
        message_ids=tuple(entry.row.id for _, entry in named),
        message_conversations=tuple(entry.row.conversation for _, entry in named),
        gap_ids=tuple(entry.row.id for name, entry in match.stages if name == ANY),
        unread_ids=match.unread_ids,
        stages=tuple((name, entry.row.id) for name, entry in named),
        start=_time(named[0][1].time),
        end=_time(named[-1][1].time),
        strength=strength,
        measures=measures | {"strength": strength},
        conversations=tuple(dict.fromkeys(entry.row.conversation for _, entry in named)),
        balance=balances[timeline.agent, timeline.conversation],
        judges=tuple(sorted({entry.row.judge for _, entry in named if entry.row.judge})),
        notes=_notes(rule, match),
    )


def _finding_id(rule: PatternRule, match: Match) -> str:
    """A hash of rule, partition, first and last message: the same finding has the same id in every run."""
    ends = [(entry.row.conversation, entry.row.id) for _, entry in (match.named[0], match.named[-1])]
    key = [rule.hash, match.partition.key(rule.file.partition_by), *ends]
    return hashlib.sha256(msgspec.json.encode(key, order="sorted")).hexdigest()[:ID_LENGTH]


def _notes(rule: PatternRule, match: Match) -> tuple[str, ...]:
    notes = []
    if rule.within is not None and not match.partition.timeline.timed:
        notes.append(f"the messages have no times: whether they lie within {rule.file.within} could not be checked")
    unknown = sum(entry.row.observed == "unknown" for _, entry in match.named)
    if "tier" in rule.needs and unknown:
        notes.append(
            f"whether the agent knew that it was watched is unknown for {unknown} of {len(match.named)} messages; "
            "the tier stands in for it, and a contrast of tiers may be nothing but routing"
        )
    if not isinstance(match.measures.get("strength"), int | float):
        notes.append("the strength could not be computed: a score that it needs is missing")
    return tuple(notes)


def _outcome(rule: PatternRule, found: Search, steps: int) -> RuleOutcome:
    reason = ""
    if found.gave_up:
        names = ", ".join(sorted(set(found.gave_up))[:3])
        share = f"{len(found.gave_up)} of {found.partitions} partitions (agents: {names})"
        reason = f"gave up in {share} at {steps} steps or {ROWS} rows; what follows there is not known"
    return RuleOutcome(
        pattern=rule.id,
        rule_hash=rule.hash,
        status="gave_up" if found.gave_up else "ran",
        partitions=found.partitions,
        findings=len(found.matches),
        reason=reason,
    )


def _given(read: Sequence[Row]) -> frozenset[str]:
    """The inputs that at least one read row has."""
    given = set(_NEVER_MISSING | _FROM_SCAN)
    given |= {name for name in FIELDS if name not in given and any(FIELDS[name].read(row) is not None for row in read)}
    if any(row.indicators is not None for row in read):
        given.add("indicators")
    if any(row.observed != "unknown" for row in read):
        given.add("tier")  # rules that compare tiers ask for `observed` first
    return frozenset(given | {f"signals:{name}" for row in read for name in row.signals})


def _lacking(rule: PatternRule, has: frozenset[str], gives: Collection[str] | None, any_read: bool, ranks: bool) -> str:
    """Why a rule cannot say anything about these rows; "" where it can."""
    if not any_read:
        return "no message was read"
    missing = set(rule.needs - has)
    if gives is not None:
        if "indicators" in rule.needs and "indicators" not in gives:
            missing.add("indicators")
        if "traits" not in gives:
            missing |= {need for need in rule.needs if need in FIELDS and (need in DIMENSIONS or _is_trait(need))}
    if not missing:
        return ""
    if ranks and missing <= _TRAITS:
        return _RANKS_ONLY
    missing -= _TRAITS if ranks else set()  # named by what no other text would have either
    return f"needs {', '.join(sorted(name.removeprefix('signals:') for name in missing))}, which no read message has"


def _is_trait(name: str) -> bool:
    return any(name in traits for traits in DIMENSIONS.values())


def _balances(known: Iterable[Timeline]) -> dict[tuple[str, str | None], dict[str, float]]:
    """Per timeline, the agent's mean per dimension over its scored rows."""
    balances = {}
    for timeline in known:
        balance = {}
        for name in DIMENSIONS:
            values = [value for e in timeline.entries if e.read and (value := dimension(e.row, name)) is not None]
            if values:
                balance[name] = sum(values) / len(values)
        balances[timeline.agent, timeline.conversation] = balance
    return balances


def _time(microseconds: int | None) -> datetime | None:
    if microseconds is None:
        return None
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)


def _order(finding: Finding) -> tuple[str, str, str, str]:
    """Within equal keys findings stay as they were found: by rule, conversation and place."""
    start = finding.start.isoformat() if finding.start else ""
    return finding.agent, finding.target or "", start, finding.pattern


def _quote(message: Message, hits: Sequence[Hit]) -> Quote:
    text = message.text
    start, end = _sentence(text, min(hits, key=lambda hit: hit.start)) if hits else _beginning(text, 0, len(text))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Quote(message_id=message.id, text=text[start:end], start=start, end=end, sha256=digest)


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
