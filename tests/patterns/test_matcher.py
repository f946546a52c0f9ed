"""The matcher: preference order, quantifiers, anchors and skips, against tables and the standard library's ``re``."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.patterns.language.expressions import ExpressionError
from undersong.patterns.language.row_pattern import Skip, compile_program, parse
from undersong.patterns.reference.matcher import BacktrackingMatcher, GaveUp, find_all

NAMES = ("A", "B", "C")
PAST = Skip("past")


def matcher(pattern: str, rows: str, *, remember: bool = True, steps: int = 1_000_000) -> BacktrackingMatcher:
    """Rows as letters: ``a`` fits A, ``x`` fits A and B, ``.`` fits nothing."""
    masks = [{"a": 1, "b": 2, "c": 4, "x": 3, "y": 6, ".": 0}[row] for row in rows]
    limits = [len(rows)] * len(rows)
    return BacktrackingMatcher(compile_program(parse(pattern), NAMES), masks, limits, remember=remember, steps=steps)


def paths(pattern: str, rows: str, skip: Skip = PAST) -> list[tuple[int, str]]:
    matches = find_all(matcher(pattern, rows), skip, lambda _path: True)
    return [(path.start, "".join("_" if i < 0 else NAMES[i] for i in path.bindings)) for path in matches]


@pytest.mark.parametrize(
    ("pattern", "rows", "expected"),
    [
        ("A B", "aab", [(1, "AB")]),
        ("A{3} B", "aaab", [(0, "AAAB")]),
        ("A{3} B", "aab", []),
        ("A+", "aaa", [(0, "AAA")]),
        ("A+?", "aaa", [(0, "A"), (1, "A"), (2, "A")]),
        ("A{2,3}", "aaaa", [(0, "AAA")]),
        ("A{2,3}?", "aaaa", [(0, "AA"), (2, "AA")]),
        ("A{2,}", "aaaaa", [(0, "AAAAA")]),
        ("A B? C", "ac", [(0, "AC")]),
        ("A ANY{0,3}? B", "a..b", [(0, "A__B")]),
        ("A ANY{0,3}? B", "a....b", []),
        ("A ANY* B", "abab", [(0, "A__B")]),
        ("A ANY*? B", "abab", [(0, "AB"), (2, "AB")]),
        ("(A | B)+ C", "abac", [(0, "ABAC")]),
        ("(A | A B)", "ab", [(0, "A")]),
        ("(A B | A)", "ab", [(0, "AB")]),
        ("(A | A B) C", "abc", [(0, "ABC")]),
        ("A B", "xx", [(0, "AB")]),
        ("A* B", "xxx", [(0, "AAB")]),
        ("A*? B", "xxx", [(0, "B"), (1, "B"), (2, "B")]),
        ("^ A", "aa", [(0, "A")]),
        ("A $", "aa", [(1, "A")]),
        ("^ A+ $", "aab", []),
    ],
)
def test_the_preferred_match_binds_these_rows(pattern: str, rows: str, expected: list[tuple[int, str]]) -> None:
    assert paths(pattern, rows) == expected


@pytest.mark.parametrize(
    ("skip", "starts"),
    [
        (Skip("past"), [0, 3]),
        (Skip("next"), [0, 1, 3, 4]),
        (Skip("first", 1), [0, 2, 3, 5]),
        (Skip("last", 0), [0, 1, 3, 4]),
    ],
)
def test_the_search_goes_on_where_after_match_says(skip: Skip, starts: list[int]) -> None:
    pattern = "(A A B | A B | B C?)" if skip.to == "first" else "(A A B | A B)"
    assert [start for start, _ in paths(pattern, "aabaab", skip)] == starts


def test_a_refused_match_does_not_hide_the_next_start() -> None:
    matches = find_all(matcher("A+ B", "aaab"), Skip("past"), lambda path: path.end - path.start < 4)
    assert [path.start for path in matches] == [1]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("A{3,2}", "allows nothing"),
        ("A{0}", "allows nothing"),
        ("A{9999}", "at most"),
        ("A **", "cannot read"),
        ("(A", "at its end"),
    ],
)
def test_a_wrong_row_pattern_is_refused_in_words(pattern: str, words: str) -> None:
    with pytest.raises(ExpressionError) as error:
        parse(pattern)
    assert words in str(error.value)


def test_nested_counts_that_would_fill_the_memory_are_refused() -> None:
    with pytest.raises(ExpressionError, match="too large"):
        compile_program(parse("((A{900}){900}){900}"), NAMES)


def test_ten_thousand_rows_need_no_recursion_and_no_square_of_time() -> None:
    rows = "a" * 10_000
    assert paths("A+ B", rows) == []
    assert len(paths("(A | B)* A", rows)[0][1]) == 10_000
    assert paths("A (ANY{0,5}? A){2,} ANY{0,5}? B", rows) == []


def test_the_step_limit_gives_up_out_loud() -> None:
    tangled = matcher("(A | A ANY?)* B", "a" * 60, remember=False, steps=100_000)
    with pytest.raises(GaveUp):
        tangled.match(0)
    assert matcher("(A | A ANY?)* B", "a" * 60).match(0) is None


def regex(pattern: str) -> str:
    """The same pattern for ``re``, one character per mask: mask m is chr(97 + m)."""
    classes = {name: "".join(chr(97 + m) for m in range(8) if m & 1 << i) for i, name in enumerate(NAMES)}
    text = re.sub(r"ANY", ".", pattern.replace(" ", ""))
    return (
        re.sub(r"[ABC]", lambda match: f"[{classes[match[0]]}]", text)
        .replace("(", "(?:")
        .replace("^", r"\A")
        .replace("$", r"\Z")
    )


LEAVES = st.sampled_from(["A", "B", "C", "ANY"])
QUANTIFIERS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{1,}", "{2,}?"])
PATTERNS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(" ".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: "(" + " | ".join(parts) + ")"),
        st.tuples(inner, QUANTIFIERS).map(lambda part: f"({part[0]}){part[1]}"),
    ),
    max_leaves=6,
)
ANCHORED = st.tuples(st.sampled_from(["", "^ "]), PATTERNS, st.sampled_from(["", " $"])).map("".join)


@settings(max_examples=400, deadline=None)
@given(pattern=ANCHORED, masks=st.lists(st.integers(0, 7), min_size=1, max_size=9))
def test_extents_agree_with_the_standard_library(pattern: str, masks: list[int]) -> None:
    program = compile_program(parse(pattern), NAMES)
    limits = [len(masks)] * len(masks)
    text, expression = "".join(chr(97 + mask) for mask in masks), re.compile(regex(pattern))
    remembering = BacktrackingMatcher(program, masks, limits)
    for start in range(len(masks)):
        expected = expression.match(text, start)
        path = remembering.match(start)
        assert (path and path.end) == (expected and expected.end())
        assert BacktrackingMatcher(program, masks, limits, remember=False).match(start) == path
        if path:
            assert all(i < 0 or masks[path.start + n] & 1 << i for n, i in enumerate(path.bindings))


@pytest.mark.parametrize(
    ("pattern", "rows", "expected"),
    [
        ("A {- B -}{0,2} C", "abbc", [(0, "A__C")]),
        ("A {- B -}{0,2} C", "ab.c", []),
        ("A {- B* -} C", "abbbc", [(0, "A___C")]),
        ("(A {- (B | C){0,2}? -}){2,} C", "aabcac", [(0, "AA_C")]),
        ("A ({- B? -})* C", "abbc", [(0, "A__C")]),
    ],
)
def test_passed_rows_must_fit_and_are_bound_to_no_variable(
    pattern: str, rows: str, expected: list[tuple[int, str]]
) -> None:
    assert paths(pattern, rows) == expected
