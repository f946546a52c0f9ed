"""A search that knows the matches of earlier ones finds the same, and searches only where rows are new."""

from __future__ import annotations

import random

import pytest

from tests.patterns.rulebox import rule
from tests.patterns.vectorized.worlds import plain_result, random_rows, random_rule
from undersong.patterns.reference.matcher import STEPS, BacktrackingMatcher, MatchPath
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search as reference
from undersong.patterns.tools.rule_tests import table
from undersong.patterns.vectorized import path_cache
from undersong.patterns.vectorized.earlier import EarlierResults
from undersong.patterns.vectorized.path_cache import PathCache
from undersong.patterns.vectorized.row_source import TimelineSearch

LOW, HIGH = "manipulation < 0.35", "manipulation > 0.5"


@pytest.mark.parametrize("number", range(60))
def test_a_growing_table_has_the_matches_of_the_reference_after_every_row(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_cache, "_SIZES", (2, 4, 8, 16))
    dice = random.Random(f"path cache {number}")
    one, rows, cache = random_rule(dice), random_rows(dice, most=40), PathCache()
    for size in range(1, len(rows) + 1):
        lines = timelines(rows[:size])
        found = TimelineSearch(lines, few=0, earlier=EarlierResults(cache)).search(one)
        assert plain_result(found) == plain_result(reference(one, lines))


def test_of_a_table_that_grew_only_the_starts_that_reach_the_new_row_are_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[int] = []
    match = BacktrackingMatcher.match

    def counted(self: BacktrackingMatcher, start: int) -> MatchPath | None:
        searched.append(start)
        return match(self, start)

    one = rule("LOW (ANY{0,3}? HIGH){2}", {"after_match": "skip to next row"}, LOW=LOW, HIGH=HIGH)
    dice = random.Random("rows that differ")
    lines = [f"{day} kira {day} .{dice.randrange(1, 10)}" for day in range(61)]
    rows = table("\n".join(["id who day manipulation", *lines]))
    whole = plain_result(reference(one, timelines(rows)))
    monkeypatch.setattr(BacktrackingMatcher, "match", counted)
    cache, numbers = PathCache(), list[int]()
    for size in (60, 61, 61):
        searched.clear()
        found = TimelineSearch(timelines(rows[:size]), few=0, earlier=EarlierResults(cache)).search(one)
        numbers.append(len(searched))
    assert plain_result(found) == whole
    assert (numbers[0] > 10, 0 < numbers[1] <= 8, numbers[2]) == (True, True, 0)


@pytest.mark.parametrize("limits", [[3, 3, 4, 5, 6, 6], [6] * 6, [2, 4, 4, 6, 6, 6]])
def test_a_match_depends_on_no_row_after_the_furthest(limits: list[int]) -> None:
    program = rule("A (ANY{0,1}? A){1,2}", A="virtue > 0").program
    for masks in ([1, 0, 1, 0, 0, 1], [1, 1, 1, 1, 0, 0], [1, 0, 0, 1, 1, 1]):
        for start in range(6):
            matcher = BacktrackingMatcher(program, masks, limits)
            path, furthest = matcher.match(start), matcher.furthest
            if furthest >= limits[start]:
                continue
            for other in (0, 1):
                changed = [*masks[: furthest + 1], *(other for _ in masks[furthest + 1 :])]
                assert BacktrackingMatcher(program, changed, [6] * 6).match(start) == path


def test_states_that_led_to_a_match_are_not_walked_again() -> None:
    program = rule("A (ANY{0,2}? A){2,}", A="virtue > 0").program
    matcher = BacktrackingMatcher(program, [1] * 400, [400] * 400)
    assert all(path is not None and path.end == 400 for path in map(matcher.match, range(390)))
    assert STEPS - matcher.steps < 400 * 20
