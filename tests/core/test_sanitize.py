"""Control, direction and invisible characters are shown, never sent to a terminal or a page."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.core.sanitize import one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcode and 漢字", "plain text, ünïcode and 漢字"),
        ("a\x1b[31mred", "a⟦U+001B⟧[31mred"),
        ("user\u202etxt.exe", "user⟦U+202E⟧txt.exe"),
        ("zero\u200bwidth", "zero⟦U+200B⟧width"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("half \ud83d", "half ⟦U+D83D⟧"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(exclude_characters="\n\t")))
def test_nothing_invisible_is_left(text: str) -> None:
    assert not {unicodedata.category(character) for character in visible(text)} & {"Cc", "Cs", "Zl", "Zp"}


@given(st.text(), st.integers(2, 50))
def test_a_line_is_one_line_of_at_most_its_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert "\n" not in line
