"""The session context vector: what holds, and what nobody can know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tests.scan.dialogue import change, scan, talk
from undersong.models import Break, Conversation, Telemetry

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def session(*minutes: float, words: int = 10, start: datetime = NOON, zone: str | None = "UTC") -> Conversation:
    """A session of user and assistant in turns, at these minutes; ``words`` of four letters in each user turn."""
    lines = ["user: " + "abc " * words if place % 2 == 0 else "assistant: yes" for place in range(len(minutes))]
    conversation = talk(*lines, timezone=zone)
    for place, minute in enumerate(minutes):
        conversation = change(conversation, place, time=start + timedelta(minutes=minute))
    return conversation


def telemetry(conversation: Conversation) -> Telemetry:
    return scan(conversation)[1].telemetry


def vector(conversation: Conversation) -> tuple[str, ...]:
    return scan(conversation)[1].session_context_vector


@pytest.mark.parametrize(("words", "fast"), [(505, True), (495, False)])
def test_more_than_a_hundred_user_tokens_a_minute_is_high_velocity(words: int, fast: bool) -> None:
    conversation = session(0, 5, 5, 10, words=words)  # twice as many tokens in ten minutes
    measured = telemetry(conversation)
    assert measured.tokens_per_minute == pytest.approx(words * 2 / 10, rel=0.01)
    assert measured.tokens_estimated
    assert ("high_velocity" in vector(conversation)) is fast


def test_tokens_of_the_source_are_taken_where_it_counts_them() -> None:
    conversation = session(0, 5, 5, 10)
    for place in (0, 2):
        conversation = change(conversation, place, tokens=2000)
    measured = telemetry(conversation)
    assert (measured.tokens_per_minute, measured.tokens_estimated) == (400.0, False)


def test_a_pause_is_no_time_of_the_pace() -> None:
    assert telemetry(session(0, 5, 605, 610)).tokens_per_minute == telemetry(session(0, 5, 5, 10)).tokens_per_minute


@pytest.mark.parametrize("minutes", [(), (0,), (0, 1)])
def test_a_pace_over_next_to_no_time_is_unknown(minutes: tuple[float, ...]) -> None:
    conversation = session(*minutes)
    assert telemetry(conversation).tokens_per_minute is None
    assert "unknown:high_velocity" in vector(conversation)


@pytest.mark.parametrize(
    ("step", "turns", "marathon", "breaks"),
    [(14, 19, True, 0), (14, 18, False, 0), (15, 19, False, 18), (14.9, 30, True, 0)],
)
def test_more_than_four_hours_without_a_quarter_of_an_hours_pause_is_a_marathon(
    step: float, turns: int, marathon: bool, breaks: int
) -> None:
    conversation = session(*(step * turn for turn in range(turns)))
    assert ("marathon" in vector(conversation)) is marathon
    assert telemetry(conversation).breaks == breaks


def test_a_recorded_break_ends_a_stretch() -> None:
    conversation = session(*(14 * turn for turn in range(19)))
    rest = Break(start=NOON + timedelta(minutes=141), end=NOON + timedelta(minutes=152))
    rested = Conversation(
        **{name: getattr(conversation, name) for name in conversation.__struct_fields__} | {"breaks": (rest,)}
    )
    assert "marathon" not in vector(rested)
    assert telemetry(rested).breaks == 1
    assert telemetry(rested).longest_stretch_hours == pytest.approx(140 / 60, abs=0.001)


@pytest.mark.parametrize(
    ("hour", "zone", "late"),
    [
        (0, "UTC", True),
        (4, "UTC", True),
        (5, "UTC", False),
        (23, "UTC", False),
        (23, "+02:00", True),
        (23, "UTC+2", True),
        (3, "-04:00", False),
        (23, "Europe/Helsinki", True),
        (3, None, None),
        (3, "Mars/Olympus", None),
        (3, "../etc/passwd", None),
        (3, "+99:00", None),
    ],
)
def test_late_night_is_local(hour: int, zone: str | None, late: bool | None) -> None:
    conversation = session(0, 1, start=NOON.replace(hour=hour), zone=zone)
    assert telemetry(conversation).late_night is late
    assert ("late_night" in vector(conversation)) is (late is True)
    assert ("unknown:late_night" in vector(conversation)) is (late is None)


def test_a_time_with_an_offset_of_its_own_is_local_time() -> None:
    offset = timezone(timedelta(hours=9))
    assert telemetry(session(0, start=datetime(2026, 3, 2, 1, tzinfo=offset), zone=None)).late_night is True
    assert telemetry(session(0, start=datetime(2026, 3, 2, 9, tzinfo=offset), zone=None)).late_night is False


def test_without_times_the_hours_are_unknown_and_never_absent() -> None:
    conversation = talk("user: hello", "assistant: hello")
    assert vector(conversation) == ("unknown:high_velocity", "unknown:marathon", "unknown:late_night")
    assert telemetry(conversation) == Telemetry()


@pytest.mark.parametrize(("coded", "heavy"), [(2, False), (3, True)])
def test_three_messages_in_ten_with_code_are_code_heavy(coded: int, heavy: bool) -> None:
    lines = ["user: hm"] * (10 - coded) + ["assistant: ```\nx = 1\n```"] * coded + ["tool: 0"] * 20
    assert ("code_heavy" in vector(talk(*lines))) is heavy


def test_what_the_source_says_itself_is_kept() -> None:
    context = vector(talk("user: hello", context=("late_night", "on_call")))
    assert context == ("unknown:high_velocity", "unknown:marathon", "late_night", "on_call")
