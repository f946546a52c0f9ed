"""The automaton: it says as soon as possible what the preferred match is, and agrees with the reference matcher."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patterns.incremental import worlds
from undersong.patterns.incremental.automaton import LazyAutomaton
from undersong.patterns.language.row_pattern import can_be_empty, compile_program, parse
from undersong.patterns.reference.matcher import BacktrackingMatcher, GaveUp

NAMES = ("A", "B", "C")
LETTERS = {"a": 1, "b": 2, "c": 4, "x": 3, "y": 6, ".": 0}


def machine(pattern: str) -> LazyAutomaton:
    return LazyAutomaton(compile_program(parse(pattern), NAMES))


def decided_after(pattern: str, rows: str) -> int | None:
    """How many rows it takes until the match from the first row is decided; None where it is not."""
    automaton = machine(pattern)
    state = automaton.begin(0)
    for count, row in enumerate(rows, 1):
        state = automaton.step(state, LETTERS[row])
        if not state.places:
            return count
    return None


@pytest.mark.parametrize(
    ("pattern", "rows", "expected"),
    [
        ("A B", "ab..", 2),  # nothing is preferred to it
        ("A B", "a.", 2),
        ("A+", "aaa.", 4),  # one more would be preferred
        ("A+", "aaa", None),
        ("A+?", "aaa", 1),
        ("A ANY{0,2}? B", "a..b", 4),
        ("A ANY{0,2}? B", "a...", 4),
        ("A B (ANY{0,2}? B)?", "ab...", 5),  # the tail can still come
        ("(A | A B)", "ab", 1),
        ("(A B | A)", "ab", 2),
        ("(A B | A)", "a.", 2),
        ("A $", "a", None),  # it depends on whether a row follows
        ("A $", "ab", 2),
    ],
)
def test_a_match_is_decided_once_nothing_preferred_is_open(pattern: str, rows: str, expected: int | None) -> None:
    assert decided_after(pattern, rows) == expected


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**9), rows=st.lists(st.sampled_from(sorted(LETTERS.values())), min_size=1, max_size=12))
def test_extent_and_path_are_those_of_the_reference_matcher(seed: int, rows: list[int]) -> None:
    part = parse(worlds.pattern(Random(seed)))
    if can_be_empty(part, named_only=True):
        return
    program = compile_program(part, NAMES)
    automaton, reference = (
        LazyAutomaton(program),
        BacktrackingMatcher(program, rows, [len(rows)] * len(rows), steps=20_000),
    )
    for start in range(len(rows)):
        state = automaton.begin(start)
        for mask in rows[start:]:
            state = automaton.step(state, mask)
        try:
            expected = reference.match(start)
        except GaveUp:  # it may need more steps than rows times places where repetitions can be empty
            return
        assert automaton.ended(state) == (expected is not None)
        bindings = automaton.path(automaton.begin(start), rows[start:], ended=True)
        assert bindings == (None if expected is None else expected.bindings)


@pytest.mark.parametrize(
    "pattern",
    ["(A+ B?)+ C", "(A* A*)* C", "((A | A ANY)* (A | B)*)+ C", "(A{1,8}? (A | B)*){1,8} C", "(A? B?)+ A{3} C"],
)
def test_tangled_repetitions_on_hostile_rows_take_steps_in_proportion_to_the_rows(pattern: str) -> None:
    automaton = machine(pattern)
    places = len(automaton.instructions)
    for rows in (500, 1000):
        before, groups = automaton.work, {automaton.begin(0)}
        most = 0
        for _ in range(rows):
            groups = {automaton.step(state, LETTERS["x"]) for state in (*groups, automaton.begin(1)) if state.places}
            most = max(most, len(groups))
        assert most <= places
        assert automaton.work - before <= rows * places
        assert automaton.path(automaton.begin(0), [3] * rows + [4], ended=False) is not None


def test_what_is_remembered_is_bounded_and_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(1)
    rows = [chance.choice((1, 2, 3, 5, 7)) for _ in range(2_000)]
    reached = []
    for limit in (5_000, 10**9):
        monkeypatch.setattr("undersong.patterns.incremental.automaton.MOST", limit)
        automaton, places = machine("(A | B | C)* A ANY{12} B"), []
        state = automaton.begin(1)
        for row in rows:
            state = automaton.step(state, row)
            places.append(state.places)
            assert sum(len(each.places) for each in automaton.states.values()) <= limit
        reached.append(places)
    assert reached[0] == reached[1]
    assert len(set(reached[0])) > 500
