"""What no match can have, proved from the rule alone: rows beyond an anchor, or more of them than the pattern binds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from undersong.patterns.expressions import Both, Field, Node, walk
from undersong.patterns.having import RowKind, RowRequirement
from undersong.patterns.measures import MATCH
from undersong.patterns.needs import measured, requirements_of
from undersong.patterns.program import ACCEPT, AT_END, AT_START, JUMP, ROW, SPLIT, STOP_IF_EMPTY, Program
from undersong.patterns.ranges import impossible
from undersong.patterns.rules import PatternRule
from undersong.patterns.sequences import ANY, Bind, Or, Part, Passed, Repeat, below

_State = tuple[int, bool, bool]  # a place in the program, whether a row was taken, and whether `$` was passed


def beyond_anchors(rule: PatternRule) -> frozenset[str] | None:
    """Variables of the pattern that no match has: their rows would stand before ``^`` or after ``$``.

    None where that leaves no match at all.
    """
    places = _on_the_way(rule.program)
    if not places:
        return None
    used, live = (_variables(rule, some) for some in (range(len(rule.program.instructions)), places))
    return used - live


def never_holds(rule: PatternRule, condition: Node) -> bool:
    """Whether surely no match meets a condition of ``having``: it contradicts itself, or asks for too many rows."""
    whole = measured(rule, condition)
    named = any(isinstance(part, Field) for part in walk(whole))  # a measure too large to be written out
    return (impossible(whole) and not named) or any(
        _most(rule, each) < each.number for each in requirements_of(rule, condition)
    )


def _on_the_way(program: Program) -> set[int]:
    """The places of a program that some way from its start to its end passes, whatever the rows are."""
    before: dict[_State, list[_State]] = {}
    open_states: list[_State] = [(0, False, False)]
    seen = set(open_states)
    while open_states:
        state = open_states.pop()
        for following in _next(program, state):
            before.setdefault(following, []).append(state)
            if following not in seen:
                seen.add(following)
                open_states.append(following)
    live = {state for state in seen if program.instructions[state[0]][0] == ACCEPT}
    open_states = [*live]
    while open_states:
        leading = [state for state in before.get(open_states.pop(), ()) if state not in live]
        live.update(leading)
        open_states += leading
    return {place for place, _, _ in live}


def _next(program: Program, state: _State) -> Iterator[_State]:
    place, taken, ended = state
    operation, first, second = program.instructions[place]
    if operation == ROW:
        yield from () if ended else [(place + 1, True, False)]
    elif operation == AT_START:
        yield from () if taken else [(place + 1, False, ended)]
    elif operation == AT_END:
        yield place + 1, taken, True
    elif operation == SPLIT:
        yield from ((first, taken, ended), (second, taken, ended))
    elif operation == JUMP:
        yield first, taken, ended
    elif operation != ACCEPT:  # the marks of a repetition
        yield place + 1, taken, ended
        if operation == STOP_IF_EMPTY:
            yield second, taken, ended


def _variables(rule: PatternRule, places: Iterable[int]) -> frozenset[str]:
    """The variables whose condition is asked at some places of the program."""
    instructions = rule.program.instructions
    mask = 0
    for place in places:
        mask |= instructions[place][1] if instructions[place][0] == ROW else 0
    return frozenset(name for i, name in enumerate(rule.names) if mask >> i & 1)


def _most(rule: PatternRule, asked: RowRequirement) -> float:
    """At most so many rows of these kinds a match binds."""
    conditions = dict(zip(rule.names, rule.trees.define, strict=True))
    possible = {name for kind in asked.kinds for name in _possible(kind, conditions)}
    return inf if ANY in possible else _bound(rule.trees.part, frozenset(possible))


def _possible(kind: RowKind, conditions: dict[str, Node]) -> Iterator[str]:
    """The variables whose rows can be of a kind."""
    for name in conditions if kind.variable == MATCH else (kind.variable,):
        both = [each for each in (conditions.get(name), kind.condition) if each is not None]
        if not impossible(Both(tuple(both))):
            yield name


def _bound(part: Part, names: frozenset[str]) -> float:
    """At most so many rows a part binds to some variables."""
    if isinstance(part, Bind):
        return float(part.variable in names)
    if isinstance(part, Passed):
        return 0.0
    parts = [_bound(each, names) for each in below(part)]
    if isinstance(part, Repeat):
        return parts[0] and parts[0] * (inf if part.most is None else part.most)
    return max(parts) if isinstance(part, Or) else sum(parts)
