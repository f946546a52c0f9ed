"""What the engine promises beside being exact: linear walks, columns in, agents apart."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest

from tests.patterns.rulebox import rule
from tests.patterns.vectorized.worlds import plain_result, random_rows, random_rule
from undersong.models import Row
from undersong.patterns.language.row_pattern import compile_program, parse
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search as reference
from undersong.patterns.tools.rule_tests import table
from undersong.patterns.vectorized import dfa, jit, targets
from undersong.patterns.vectorized.dfa import BackwardAutomaton, program_arrays
from undersong.patterns.vectorized.environments import TableVectors
from undersong.patterns.vectorized.layout import MatchPaths, RowTable, SequenceFrame
from undersong.patterns.vectorized.nearest_ends import RowRegions, nearest_ends
from undersong.patterns.vectorized.row_source import search, table_of
from undersong.patterns.vectorized.rule_plan import plan
from undersong.patterns.vectorized.vector_logic import Masks, Vectors

NAMES = ("A", "B", "C")
DAY = datetime(2026, 1, 1, tzinfo=UTC)


TANGLED = ["(A | A ANY?)* B", "((A{0,3}? ANY){0,5} A){1,4} B", "(A ANY{0,9}? A){2,9} C"]


@pytest.mark.parametrize("pattern", TANGLED)
def test_tangled_patterns_take_rows_times_instructions_and_no_more(pattern: str) -> None:
    program = program_arrays(compile_program(parse(pattern), NAMES))
    for rows in (50, 100, 200):
        whole = np.array([0]), np.array([rows])
        ends, _ = nearest_ends(program, np.full(rows, 3, dtype=np.uint8), RowRegions(*whole, *whole))
        assert len(ends) == (rows + 1) * len(program.operation)


@pytest.mark.parametrize("pattern", TANGLED)
def test_tangled_patterns_have_as_many_states_however_long_rows_are_alike(pattern: str) -> None:
    automaton = BackwardAutomaton(program_arrays(compile_program(parse(pattern), NAMES)))
    numbers = [
        len(set(automaton.read(np.full(rows, 3, dtype=np.uint8), np.array([0, rows])).before.tolist()))
        for rows in (100, 200, 400)
    ]
    assert numbers[0] == numbers[1] == numbers[2]


def test_an_automaton_meets_few_states_on_rows_that_are_all_alike() -> None:
    automaton = BackwardAutomaton(program_arrays(compile_program(parse("A (ANY{0,5}? A){2,9} ANY{0,8}? B"), NAMES)))
    states = automaton.read(np.array([1] * 300 + [2], dtype=np.uint8), np.array([0, 301])).before
    assert len(set(states.tolist())) < 100
    assert automaton.begins(states).tolist()[-1] == 297


@pytest.mark.parametrize("pattern", [*TANGLED, "A? (B | C ANY)*", "(A | B{2,}?) C+"])
def test_states_made_with_lists_are_those_of_the_loop(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    masks = np.random.default_rng(3).integers(0, 8, 400).astype(np.uint8)
    made = []
    for how in (dfa._meet.source, dfa._meet.plain):
        monkeypatch.setattr(dfa._meet, "plain", how)
        monkeypatch.setattr(dfa._follow, "at", lambda _size: dfa._follow.plain)
        automaton = BackwardAutomaton(program_arrays(compile_program(parse(pattern), NAMES)))
        before = automaton.read(masks, np.array([0, 150, 400])).before
        made.append((before.tolist(), automaton.ahead[: before.max() + 1].tolist()))
    assert made[0] == made[1]
    assert max(made[0][0]) > 3


@pytest.mark.parametrize("pattern", [*TANGLED, "(A | B{2,}?) C+"])
@pytest.mark.parametrize("within", [1, 3, 100])
def test_segments_and_matches_side_by_side_are_those_one_after_the_other(
    pattern: str, within: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = np.random.default_rng(within)
    masks = dice.integers(0, 8, 600).astype(np.uint8)
    fences = np.unique(np.concatenate([[0, 600], dice.integers(0, 600, 90)]))
    for loop in (dfa._follow, dfa._trace):
        monkeypatch.setattr(loop, "at", lambda _size, plain=loop.plain: plain)
    results = []
    for wide, trace in ((0, dfa.traced), (10**9, in_turn)):
        monkeypatch.setattr(dfa, "_WIDE", wide)
        automaton = BackwardAutomaton(program_arrays(compile_program(parse(pattern), NAMES)))
        reading = automaton.read(masks, fences)
        starts = automaton.begins(reading.before)
        ends = fences[np.searchsorted(fences, starts, side="right")]
        paths = trace(automaton, reading, dfa.MatchStarts(starts, np.minimum(ends, starts + within), ends))
        whole = [paths.bindings[first:last].tolist() for first, last in zip(paths.first, paths.last, strict=True)]
        results.append((paths.starts.tolist(), whole, automaton.ahead[reading.before].tolist()))
    assert results[0] == results[1]
    assert len(results[0][0]) > 20


def in_turn(automaton: BackwardAutomaton, reading: dfa.StateTrace, starts: dfa.MatchStarts) -> MatchPaths:
    variable = np.where(automaton.program.operation == dfa.ROW, automaton.program.second, dfa._DONE).astype(np.int8)
    return dfa._traced_in_turn(automaton, reading, starts, variable)


@pytest.mark.parametrize("steps", [0, 20, 1 << 20])
def test_matches_whose_states_do_not_meet_are_found_in_another_way(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "ENOUGH", 0)
    monkeypatch.setattr(dfa._trace, "at", lambda _size: dfa._trace.plain)
    monkeypatch.setattr(dfa, "STEPS", steps)
    keys = {"within": "6 hours", "after_match": "skip to next row"}
    even = rule("(LOW LOW)+ ANY", keys, LOW="manipulation < 0.5")
    row_timelines = timelines(busy(120, 3))
    expected = plain_result(reference(even, row_timelines))
    assert plain_result(search(even, row_timelines)) == expected
    assert len(expected[0]) > 50


@pytest.mark.parametrize("pattern", ["HIGH (ANY{0,2}? HIGH){2,}", "HIGH (ANY{0,2}? HIGH){3,6} LOW"])
@pytest.mark.parametrize("within", ["18 hours", "3 days", "90 days"])
@pytest.mark.parametrize("aimed", [True, False])
def test_matches_that_go_on_alike_are_those_walked_one_by_one(
    pattern: str, within: str, aimed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "ENOUGH", 0)
    by = ["agent", "target"] if aimed else ["agent"]
    keys = {"within": within, "after_match": "skip to next row", "partition_by": by}
    chosen = rule(pattern, keys, HIGH="manipulation > 0.4", LOW="manipulation < 0.5")
    dice = random.Random(5)
    traits = [{"manipulation": round(dice.random(), 2)} for _ in range(300)]
    rows = [msgspec.structs.replace(row, traits=each) for row, each in zip(busy(300, 3), traits, strict=True)]
    row_timelines = timelines(rows)
    expected = plain_result(reference(chosen, row_timelines))
    assert plain_result(search(chosen, row_timelines)) == expected
    assert expected[0]


def test_another_agents_rows_change_nothing() -> None:
    for seed in range(40):
        dice = random.Random(seed)
        chosen, rows = random_rule(dice), random_rows(dice)
        own = [row for row in rows if row.agent == "kira"]
        # a row without a time takes that of its conversation, whoever wrote there
        if any(row.time is None for row in rows):
            continue
        together = [each for each in plain_result(search(chosen, timelines(rows)))[0] if each[0][0] == "kira"]
        assert together == plain_result(search(chosen, timelines(own)))[0]


def test_what_many_tables_share_is_worked_out_once() -> None:
    own = table_of(timelines(random_rows(random.Random(5))))
    source = Vectors(own.source)
    asked = tuple(condition.row for condition in plan(random_rule(random.Random(5))).conditions)
    again = RowTable(own.source, np.arange(own.source.size), own.bounds, own.times, own.timed, own.read)
    first = TableVectors(again, source).bits(asked)
    shared = source.once("bits", asked, lambda _: pytest.fail("it is worked out anew"))
    assert (TableVectors(again, source).bits(asked) == first).all()
    assert (shared == first).all()


def busy(count: int, others: int) -> list[Row]:
    """One agent with public rows, and one directed row to each of many."""
    rows = []
    for i in range(count):
        target = None if i % 2 else f"t{i % others:04}"
        traits = {"manipulation": 0.9 if i % 50 == 0 else 0.1, "compassion": 0.5}
        rows.append(
            Row(
                id=f"m{i:05}", agent="kira", position=i, time=DAY + timedelta(hours=i), target=target, state="scored",
                traits=traits,
            )
        )  # fmt: skip
    return rows


def test_many_targets_cost_the_surroundings_of_their_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = rule(
        "LOW ANY{0,2}? HIGH", {"partition_by": ["agent", "target"], "within": "2 days"}, LOW="manipulation < 0.5",
        HIGH="manipulation > 0.5",
    )  # fmt: skip
    sizes: list[int] = []
    merged = targets.merged
    monkeypatch.setattr(targets, "merged", lambda *parts, **how: _noted(sizes, merged(*parts, **how)))
    row_timelines = timelines(busy(1200, 300))
    result = search(chosen, row_timelines)
    assert plain_result(result) == plain_result(reference(chosen, row_timelines))
    assert result.partitions == 301 - 150
    assert sizes[0] < 12 * 1200  # all public rows in each target's sequence would be 180,000


def test_directed_rows_without_what_a_match_needs_around_them_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    high = "manipulation > 0.5"
    keys = {"partition_by": ["agent", "target"], "within": "2 days"}
    sizes: list[int] = []
    merged = targets.merged
    monkeypatch.setattr(targets, "merged", lambda *parts, **how: _noted(sizes, merged(*parts, **how)))
    row_timelines = timelines(busy(1200, 300))
    for pattern in ("HIGH ANY{0,2}?", "HIGH (ANY{0,2}? HIGH){1,}"):
        chosen = rule(pattern, keys, HIGH=high)
        assert plain_result(search(chosen, row_timelines)) == plain_result(reference(chosen, row_timelines))
    assert sizes[0] > 100  # one such message is there for a match
    assert sizes[1] == 0  # two within two days are not


def _noted(sizes: list[int], laid: tuple[SequenceFrame, Masks]) -> tuple[SequenceFrame, Masks]:
    sizes.append(len(laid[0].rows))
    return laid


@pytest.mark.parametrize(
    ("pattern", "tail", "gave_up"), [("B", "", ()), ("B B", "kira .1\nkira .9\nkira .1\n", ("kira",))]
)
def test_only_what_rows_do_not_rule_out_takes_steps(pattern: str, tail: str, gave_up: tuple[str, ...]) -> None:
    row_timelines = timelines(table("who manipulation\n" + "kira .1\n" + "kira .9\n" * 50 + tail))
    tangled = rule(f"(A | A ANY?)* {pattern}", A="manipulation > 0.5", B="manipulation < 0.5 or manipulation > 0.99")
    assert search(tangled, row_timelines, steps=50).gave_up == gave_up
    assert plain_result(search(tangled, row_timelines)) == plain_result(reference(tangled, row_timelines))
