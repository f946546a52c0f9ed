"""Loops within a message, and over the turns of one agent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.scan.dialogue import change, scan, scans, talk
from undersong.models.row import DEATH_SPIRAL, turn_flags

TRY = "Restart the broken harbour crane and wait."


def within(text: str) -> list[tuple[str, int]]:
    return [(loop.ngram, loop.count) for loop in scans(f"assistant: {text}")[0].loops]


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("grey ships sail north. Grey ships sail north! And grey ships sail north", [("grey ships sail north", 3)]),
        ("grey ships sail north. Grey ships sail north! And grey ships sail south", []),
        ("grey ships sail far north, " * 3, [("grey ships sail far north", 3)]),
        ("do you want to go? do you want to stay? do you want to eat?", []),
        ("Let me know if you need anything else. " * 3, []),
        ("> grey ships sail north\n" * 3, []),
        ("```\ngrey ships sail north\n```\n" * 3, []),
        (
            "1. grey ships sail north\n2. grey ships sail north\n3. grey ships sail north",
            [("grey ships sail north", 3)],
        ),
        ("", []),
    ],
)
def test_a_four_gram_that_stands_three_times_is_a_loop(text: str, loops: list[tuple[str, int]]) -> None:
    assert within(text) == loops


def test_at_most_five_loops_are_reported_the_longest_first() -> None:
    text = " ".join(f"alpha{c} beta{c} gamma{c} delta{c} stop{c}{n}" for c in "abcdefgh" for n in "xyz")
    text += " one long chain of many different words" + " and one long chain of many different words" * 2
    loops = within(text)
    assert len(loops) == 5
    assert "chain of many different words" in loops[0][0]


def over_turns(*lines: str) -> list[list[tuple[int, tuple[str, ...]]]]:
    return [[(loop.count, loop.message_ids) for loop in one.loops if loop.scope == "turns"] for one in scans(*lines)]


def test_the_third_turn_with_the_same_words_is_a_loop_and_names_the_turns() -> None:
    lines = [f"assistant: {TRY}", "user: no", f"assistant: Well. {TRY}", "user: no", f"assistant: Again! {TRY}"]
    assert over_turns(*lines) == [[], [], [], [], [(3, ("m0", "m2", "m4"))]]


def test_words_repeated_by_several_agents_are_no_loop_of_any() -> None:
    assert over_turns(*(f"{name}: {TRY}" for name in ("ann", "bo", "cy"))) == [[], [], []]


def test_four_common_words_of_the_topic_are_no_loop_over_turns() -> None:
    lines = [f"assistant: {start} the broken harbour crane" for start in ("Look at", "I see", "Paint")]
    assert over_turns(*lines) == [[], [], []]


def test_tool_output_does_not_loop() -> None:
    assert over_turns(*[f"tool: {TRY}"] * 4) == [[], [], [], []]


def test_a_loop_over_many_turns_names_the_latest_ones() -> None:
    loops = over_turns(*[f"assistant: {TRY}"] * 15)
    assert loops[14] == [(15, tuple(f"m{turn}" for turn in range(5, 15)))]


def test_a_turn_knows_its_past_only() -> None:
    conversation = talk(*[f"assistant: {TRY} {n}" for n in ("fast", "slow", "soon", "late", "now")])
    lines = [f"{message.author}: {message.text}" for message in conversation.messages]
    for upto in range(1, 6):
        assert scans(*lines[:upto]) == scans(*lines)[:upto]


def spiral(lines: list[str], *gaps: timedelta) -> list[int]:
    """The turns that are flagged, of lines that come at these gaps, which come again."""
    conversation, now = talk(*lines), datetime(2026, 5, 4, 8, tzinfo=UTC)
    for place in range(len(lines)):
        conversation = change(conversation, place, time=now)
        now += gaps[place % len(gaps)]
    return [place for place, one in enumerate(scan(conversation)[0]) if DEATH_SPIRAL in turn_flags(one)]


MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DAILY = "Your pillbox for today is filled and stands on the blue shelf beside the kettle, as always."


def test_what_is_said_once_a_day_is_a_habit_and_in_one_sitting_a_spiral() -> None:
    lines = [f"{name}: {DAILY}" for _ in range(6) for name in ("user", "assistant")]
    talked = [line if line.startswith("assistant") else "user: Thanks." for line in lines]
    assert spiral(talked, MINUTE, DAY) == []
    assert spiral(talked, MINUTE) == [3, 5, 7, 9, 11]
    assert spiral(talked, HOUR) == [3, 5, 7, 9, 11]  # one who tries it out for an hour comes back to the same answer


def test_each_sitting_counts_for_itself() -> None:
    lines = [f"assistant: {TRY} {word}" for word in ["once", "and", "again,", "then", "we", "go", "on", "with", "it"]]
    assert spiral(lines, MINUTE, MINUTE, DAY) == [2, 5, 8]
    assert spiral(lines, MINUTE, MINUTE, MINUTE, DAY) == [2, 3, 6, 7]


def test_without_times_turns_are_of_one_sitting() -> None:
    flagged = [DEATH_SPIRAL in turn_flags(one) for one in scans(*[f"assistant: {DAILY}"] * 3)]
    assert flagged == [False, True, True]


@pytest.mark.parametrize(
    "greeting",
    [
        "Good morning! How are you doing today?",
        "Good evening, how was your day today?",
        "It's nice to hear from you again. How can I help you today?",
        "Have a good night and sleep well!",
    ],
)
def test_a_salutation_is_no_loop_and_what_is_said_beside_it_is(greeting: str) -> None:
    topics = ("Barley grows slowly.", "Ferries leave at nine.", "Paint needs two coats.", "Bees dislike smoke.")
    assert spiral([f"assistant: {greeting} {topic}" for topic in topics], MINUTE) == []
    assert spiral([f"assistant: {greeting} {TRY} {topic}" for topic in topics], MINUTE) == [2, 3]
