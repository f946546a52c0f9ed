"""Reading backwards over threads: the same agent, the same target, bounded, and never what has no place in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from undersong.models import Message
from undersong.routing.lookback import LookBackIndex

START = datetime(2026, 3, 1, tzinfo=UTC)


def make_message(thread: str, hour: int, *, to: str | None = "bob", by: str = "kira", timed: bool = True) -> Message:
    time = START + timedelta(hours=hour) if timed else None
    names = {"id": f"{thread}{hour}", "conversation": thread, "author": by, "agent": by}
    return Message(**names, position=0, role="agent", target=to, text="x", time=time)


def read_too(*lines: tuple[Message, bool], look_back: int = 5) -> list[tuple[int, str]]:
    """(number of the line, id of the flag) of what is read too; every line is a conversation of its own."""
    earlier = LookBackIndex(look_back)
    for number, (message, flagged) in enumerate(lines):
        earlier.add(f"{number:03}", 0, message, flagged=flagged, score=None if flagged else 0.1)
    return [(int(each.conversation), each.flag) for each in earlier.look_back_messages()]


def test_what_was_said_to_the_same_target_before_a_flag_is_read_too() -> None:
    assert read_too((make_message("a", 1), False), (make_message("b", 2), False), (make_message("c", 3), True)) == [
        (0, "c3"),
        (1, "c3"),
    ]


def test_the_order_of_the_files_does_not_matter_but_time_does() -> None:
    assert read_too((make_message("c", 3), True), (make_message("a", 1), False)) == [(1, "c3")]
    assert read_too((make_message("a", 1), True), (make_message("c", 3), False)) == []


def test_other_targets_other_agents_and_public_messages_are_not_read_for_it() -> None:
    flag = (make_message("z", 9), True)
    assert read_too((make_message("a", 1, to="eve"), False), flag) == []
    assert read_too((make_message("a", 1, by="ann"), False), flag) == []
    assert read_too((make_message("a", 1, to=None), False), flag) == []


def test_the_look_back_is_bounded_and_takes_the_nearest() -> None:
    lines = [(make_message(f"t{n}", n), False) for n in range(8)]
    assert [number for number, _ in read_too(*lines, (make_message("z", 9), True), look_back=3)] == [5, 6, 7]
    assert read_too(*lines, (make_message("z", 9), True), look_back=0) == []


def test_untimed_conversations_and_agents_of_one_conversation_are_never_merged() -> None:
    assert read_too((make_message("a", 1, timed=False), False), (make_message("z", 9), True)) == []
    earlier = LookBackIndex(5)
    names = {"id": "m", "conversation": "a", "author": "user", "agent": "a/user", "target": "bob"}
    own = Message(**names, position=0, role="user", text="x", time=START)
    earlier.add("a", 0, own, flagged=True, score=None)
    assert list(earlier.look_back_messages()) == []


def test_nothing_gives_nothing() -> None:
    assert list(LookBackIndex(5).look_back_messages()) == []
