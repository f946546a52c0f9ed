"""What every first screen must have: the check itself, and the screens of what ships."""

from __future__ import annotations

import pytest

from bench.screen_check import OURS, ROOT, faults, screen_of

SCREEN = """1 finding to look at:

1. Di says in its own words that something it did or said was wrong (turn 2).
   “I lied to you about the 300 dollars.” – Di
   Finding. Certain that these words are there.
   undersong explain di:1

Looked at 4 messages in 1 conversation; 2 of 28 patterns.
Not looked for: 26 of 28 patterns need an LLM judge, which would cost about $0.05 here.
  undersong audit di.txt --read sequences --judge anthropic:m

judge      offline, uncalibrated: 4 of 4 messages read, $0.00
report     undersong-report/report.html (digest 0000000000000000…)
"""


@pytest.mark.parametrize("name", OURS)
def test_the_first_screens_of_what_ships_lack_nothing(name: str) -> None:
    assert faults(screen_of(ROOT / name)) == []


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("", "", None),
        ("4 messages in 1 conversation;", "it;", "does not say how much was read"),
        ("1 finding to look at:", "Results:", "does not begin with what was found"),
        ("Not looked for:", "Also:", "does not say what was not looked for"),
        ("“I lied to you about the 300 dollars.” – Di", "Di lied.", "point 1 has no quote"),
        ("   undersong explain di:1\n", "", "point 1 has no command"),
        ("Certain that these words are there.", "Certain " + "of these words " * 12, "wider than 120: "),
        ("Certain that", "A smoking gun: certain that", "a word of ours: smoking gun"),
        ("Certain that", "Strength 0.62. Certain that", "a number without its unit: "),
        ("read, $0.00", "read, 17", "a number without its unit: "),
    ],
)
def test_a_screen_that_lacks_something_is_faulted_for_that_alone(before: str, after: str, fault: str | None) -> None:
    bad = faults(SCREEN.replace(before, after) if before else SCREEN)
    assert len(bad) == (fault is not None), bad
    assert all(each.startswith(fault or "") for each in bad)
