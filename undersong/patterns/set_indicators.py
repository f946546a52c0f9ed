"""Indicators that only a sequence shows: findings set them on their messages, for the rules that ask for them.

Detection has two phases. Shapes run first; what they find sets the indicators of their ``sets`` on the messages of the
named stages; then the rules run that ask for such indicators: combinations and sabotage pathways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

import msgspec

from undersong.core.text import counted
from undersong.datafiles.taxonomy import taxonomy
from undersong.models import Finding, Indicator, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Node, Text, Truth, replaced, walk
from undersong.patterns.significance.necessary_conditions import inserted, written_out
from undersong.patterns.tools.impossibility import impossible, never_holds

Place = tuple[str, str]  # a message by conversation and id
SetIndicators = Mapping[Place, Mapping[str, frozenset[str]]]  # message → indicator → the patterns whose findings set it

Sets = Mapping[str, Mapping[str, Collection[str]]]  # rule by hash → indicator → the stages on which its findings set it


@cache
def sequence_indicators() -> frozenset[str]:
    """The indicators that no single message shows."""
    return frozenset(entry.id for entry in taxonomy().indicators.values() if entry.sequence_only)


def asked_of_findings(rule: PatternRule) -> frozenset[str]:
    """The indicators a rule asks for that findings set; none for a shape, which sets some itself and runs first."""
    return frozenset() if rule.file.sets else indicators_in(rule) & sequence_indicators()


@lru_cache(maxsize=512)
def indicators_in(rule: PatternRule) -> frozenset[str]:
    """Every indicator that a rule mentions."""
    return frozenset(name for tree in _trees(rule) for part in walk(tree) if (name := _indicator(part)))


def shapes_for(rules: Iterable[PatternRule]) -> tuple[PatternRule, ...]:
    """The shipped shapes that set what ``rules`` ask for and none of them sets: they run unreported."""
    chosen = tuple(rules)
    lacking = frozenset[str]().union(*map(asked_of_findings, chosen)) - {
        name for each in chosen for name in each.file.sets
    }
    return tuple(rule for rule in load_rules() if lacking & rule.file.sets.keys()) if lacking else ()


def sets_of(rules: Iterable[PatternRule]) -> Sets:
    """What the findings of some rules set."""
    return {rule.hash: rule.file.sets for rule in rules if rule.file.sets}


def set_by(findings: Iterable[Finding], rules: Iterable[PatternRule]) -> SetIndicators:
    """What the findings of these rules set on which messages."""
    sets = sets_of(rules)
    places: dict[Place, dict[str, frozenset[str]]] = {}
    for finding in findings:
        origin = frozenset((finding.pattern,))
        for place, indicator in set_on(finding, sets):
            patterns = places.setdefault(place, {})
            before = patterns.get(indicator, origin)
            patterns[indicator] = before if finding.pattern in before else before | origin
    return places


def set_on(finding: Finding, sets: Sets, first: int = 0) -> Iterator[tuple[Place, str]]:
    """Each message of a finding, from its ``first`` on, with each indicator that is set there."""
    messages = [*zip(finding.stages, finding.message_conversations, strict=True)][first:]
    for indicator, stages in sets.get(finding.rule_hash, {}).items():
        yield from (((conversation, name), indicator) for (stage, name), conversation in messages if stage in stages)


def with_indicators(rows: Iterable[Row], indicators: SetIndicators) -> list[Row]:
    """The rows with what is set on them beside what a judge named."""
    return [_with_indicators(row, indicators.get((row.conversation, row.id))) for row in rows]


def _with_indicators(row: Row, names: Mapping[str, frozenset[str]] | None) -> Row:
    present = {each.id for each in row.indicators or ()}
    added = tuple(Indicator(id=name) for name in sorted(names or ()) if name not in present)
    return msgspec.structs.replace(row, indicators=(*(row.indicators or ()), *added)) if added else row


def not_set(rule: PatternRule, available: Collection[str]) -> str:
    """Why a rule cannot match while nobody gives indicators that it asks for of findings; "" where it can."""
    missing = asked_of_findings(rule) - frozenset(available)
    if not missing or not _must_have(rule, missing):
        return ""
    names = ", ".join(sorted(missing))
    return (
        f"needs {names}, which only a finding sets, and no rule that sets {'it' if len(missing) == 1 else 'them'} ran"
    )


@lru_cache(maxsize=512)
def _must_have(rule: PatternRule, missing: frozenset[str]) -> bool:
    """Whether surely nothing matches where none of these indicators is there."""
    trees = rule.trees._replace(
        columns={name: _without(tree, missing) for name, tree in rule.trees.columns.items()},
        define=tuple(_without(tree, missing) for tree in rule.trees.define),
        measures={name: _without(tree, missing) for name, tree in rule.trees.measures.items()},
        having=tuple(_without(tree, missing) for tree in rule.trees.having),
    )
    lesser = msgspec.structs.replace(rule, trees=trees)
    columns = written_out(trees.columns)
    stages = any(impossible(inserted(trees.define[index], columns)) for index in rule.required)
    return stages or any(never_holds(lesser, tree) for tree in trees.having)


def _without(tree: Node, missing: frozenset[str]) -> Node:
    for part in [*walk(tree)]:
        if _indicator(part) in missing:
            tree = replaced(tree, part, Truth(False))
    return tree


def with_origin(finding: Finding, rule: PatternRule, indicators: SetIndicators) -> Finding:
    """The finding with a note of each indicator that other findings set on its messages."""
    asked, patterns, counts = asked_of_findings(rule), dict[str, frozenset[str]](), dict[str, int]()
    if not asked or not indicators:
        return finding
    for place in zip(finding.message_conversations, finding.message_ids, strict=True):
        for name, origins in indicators.get(place, {}).items():
            if name in asked:
                patterns[name] = patterns.get(name, frozenset()) | origins
                counts[name] = counts.get(name, 0) + 1
    notes = tuple(
        f"{name} in {counted(counts[name], 'message')} is set by a finding of {' and '.join(sorted(patterns[name]))}"
        for name in sorted(patterns)
    )
    return msgspec.structs.replace(finding, notes=(*finding.notes, *notes)) if notes else finding


def _trees(rule: PatternRule) -> Sequence[Node]:
    trees = rule.trees
    several = (*trees.columns.values(), *trees.define, *trees.measures.values(), *trees.having)
    return [tree for tree in (*several, trees.where, trees.until) if tree is not None]


def _indicator(part: Node) -> str | None:
    if not isinstance(part, Call) or part.name != "indicator":
        return None
    name = part.arguments[0]
    return name.value if isinstance(name, Text) else None
