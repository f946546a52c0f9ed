"""Foreign text in Markdown: fences, code spans, sentences and sparklines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.report.escape import cell, code, fenced, own_name, plain, sparkline


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], ""), ([100, 0], "█▁"), ([100, 60, 59], "█▅▅"), ([100] * 120, "█" * 60), ([100] * 119 + [0], "█" * 59 + "▁")],
)
def test_a_sparkline_keeps_the_lowest_of_each_stretch(values: list[int], expected: str) -> None:
    assert sparkline(values) == expected


@given(st.text())
def test_no_text_closes_its_fence(text: str) -> None:
    opening, *body, closing = fenced(text).split("\n")
    fence = opening.removesuffix("text")
    assert closing == fence
    assert not any(fence in line for line in body)


@given(st.text())
def test_no_name_leaves_its_code_span(text: str) -> None:
    span = code(text)
    ticks = re.match("`+", span)
    assert ticks
    assert ticks[0] not in span[len(ticks[0]) : -len(ticks[0])].replace(" ", "x").split(ticks[0] + "`")[0]
    assert "\n" not in span
    assert cell(text) == span.replace("|", "\\|")


def test_a_bar_stands_as_it_is_and_does_not_end_a_cell() -> None:
    command = "git commit -m 'tides | winds' --no-verify"
    assert code(command) == f"`{command}`"
    assert cell(command) == "`git commit -m 'tides \\| winds' --no-verify`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.5 of 100 (assessed 1 of 4)", "12.5 of 100 (assessed 1 of 4)"),
        ("1. first", "1\\. first"),
        ("- x", "\\- x"),
        ("a_b *c*", "a\\_b \\*c\\*"),
        ("see https://x.example", "see https:\\//x.example"),
        ("www.x.example", "www\\.x.example"),
        ("me@x.example", "me`@`x.example"),
    ],
)
def test_a_sentence_in_markdown_is_only_a_sentence(text: str, expected: str) -> None:
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("agent", "conversation", "name"),
    [
        ("c/orion%2F7b", "c", "orion/7b"),
        ("logs%2Fc/100%25", "logs/c", "100%"),
        ("c/kira", "c", "kira"),
        ("orion/7b", "c", "orion/7b"),
        ("a%2Fb", "c", "a%2Fb"),
    ],
)
def test_a_name_inside_its_conversation_is_as_it_was_written_there(agent: str, conversation: str, name: str) -> None:
    assert own_name(agent, conversation) == name
