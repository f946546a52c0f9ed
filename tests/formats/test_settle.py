"""Order, ids, identities and targets of a conversation, whatever format it came from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from undersong.formats.normalize import normalize_conversation
from undersong.models import Conversation, Message, SourceRef

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def make_message(author: str, text: str = "…", role: Any = "user", **fields: Any) -> Message:
    if "minute" in fields:
        fields["time"] = NOON + timedelta(minutes=fields.pop("minute"))
    return Message(**({"id": "", "conversation": "c", "position": -1} | fields), author=author, role=role, text=text)


def part(*messages: Message, file: str = "a.jsonl") -> Conversation:
    return Conversation(id="c", source_format="jsonl", messages=messages, source_ref=SourceRef(file=file, line=1))


def settled(*parts: Conversation) -> tuple[Message, ...]:
    return normalize_conversation(parts)[0].messages


def targets(*messages: Message) -> list[str | None]:
    return [message.target for message in settled(part(*messages))]


def test_scoped_roles_carry_their_conversation_and_agents_do_not() -> None:
    messages = settled(
        part(
            make_message("ann"),
            make_message("kira", role="agent"),
            make_message("bot", role="assistant", agent="global-1"),
        )
    )
    assert [message.agent for message in messages] == ["c/ann", "kira", "global-1"]


def test_two_parties_speak_to_each_other_and_system_and_tools_to_nobody() -> None:
    assert targets(
        make_message("user"),
        make_message("assistant", role="assistant"),
        make_message("Bash", role="tool"),
        make_message("setup", role="system"),
    ) == ["c/assistant", "c/user", None, None]


def test_among_three_only_a_name_or_a_reply_makes_a_target() -> None:
    assert targets(
        make_message("ann", id="1", role="agent"),
        make_message("bob", id="2", role="agent", reply_to="1"),
        make_message("cy", role="agent", target="bob"),
        make_message("cy", role="agent", target="dora"),
        make_message("ann", role="agent"),
    ) == [None, "ann", "bob", "dora", None]


def test_a_name_is_resolved_to_the_identity_of_that_author() -> None:
    assert targets(make_message("ann", target="bob"), make_message("bob"), make_message("cy", target="c/ann")) == [
        "c/bob",
        None,
        "c/ann",
    ]


def test_nobody_is_their_own_target() -> None:
    assert targets(make_message("ann", id="1", target="ann"), make_message("ann", reply_to="1")) == [None, None]


def test_a_reply_to_a_tool_goes_to_the_other_party() -> None:
    messages = settled(
        part(
            make_message("user", id="1"),
            make_message("assistant", id="2", role="assistant", reply_to="1"),
            make_message("Bash", id="3", role="tool", reply_to="2"),
            make_message("assistant", id="4", role="assistant", reply_to="3"),
        )
    )
    assert messages[3].target == "c/user"


def test_untimed_messages_keep_the_order_of_the_source() -> None:
    messages = settled(part(make_message("a", "1"), make_message("b", "2"), make_message("a", "3")))
    assert [(message.position, message.id, message.text) for message in messages] == [
        (0, "c:0", "1"), (1, "c:1", "2"), (2, "c:2", "3")
    ]  # fmt: skip


def test_time_orders_and_an_untimed_message_stays_behind_its_predecessor() -> None:
    messages = settled(
        part(make_message("a", "late", minute=9), make_message("b", "reply"), make_message("a", "early", minute=1))
    )
    assert [message.text for message in messages] == ["early", "late", "reply"]
    assert messages[2].time is None


def test_given_positions_win_over_time() -> None:
    messages = settled(part(make_message("a", "2", position=2, minute=1), make_message("b", "1", position=1, minute=9)))
    assert [message.text for message in messages] == ["1", "2"]


def test_files_with_positions_of_their_own_and_no_times_follow_each_other() -> None:
    def half(file: str, *texts: str) -> Conversation:
        ref = SourceRef(file=file, line=1)
        return part(*(make_message("a", text, position=at, source_ref=ref) for at, text in enumerate(texts)), file=file)

    assert [message.text for message in settled(half("1", "a", "b"), half("2", "c", "d"))] == ["a", "b", "c", "d"]


def test_the_same_message_from_two_files_is_read_once() -> None:
    first = part(make_message("a", "x", id="1"), make_message("b", "y", id="2"), file="old.jsonl")
    second = part(
        make_message("a", "x", id="1"), make_message("b", "y", id="2"), make_message("a", "z", id="3"), file="new.jsonl"
    )
    conversation, notes = normalize_conversation([first, second])
    assert [message.text for message in conversation.messages] == ["x", "y", "z"]
    assert ["2 messages repeat" in note.what for note in notes] == [True]
    assert notes[0].kind == "note"


def test_another_text_under_the_same_id_is_kept_under_a_suffix() -> None:
    conversation, notes = normalize_conversation(
        [part(make_message("a", "x", id="1"), make_message("a", "y", id="1"), make_message("a", "z", id="1"))]
    )
    assert [(message.id, message.text) for message in conversation.messages] == [("1", "x"), ("1~2", "y"), ("1~3", "z")]
    assert "2 messages have the id of another one" in notes[0].what


def test_a_suffix_that_is_taken_is_not_given_twice() -> None:
    ids = [
        message.id
        for message in settled(
            part(make_message("a", "x", id="1"), make_message("a", "q", id="1~2"), make_message("a", "y", id="1"))
        )
    ]
    assert len(set(ids)) == 3


def test_a_copy_of_a_file_without_ids_is_left_out_and_a_continuation_is_not() -> None:
    first = part(make_message("a", "x"), make_message("b", "y"), file="1.jsonl")
    copy = part(make_message("a", "x"), make_message("b", "y"), make_message("a", "z"), file="2.jsonl")
    other = part(make_message("a", "w"), make_message("b", "y"), file="3.jsonl")
    assert [message.text for message in settled(first, copy)] == ["x", "y", "z"]
    assert [message.text for message in settled(first, other)] == ["x", "y", "w", "y"]


def test_an_offset_that_all_times_share_is_the_time_zone_and_times_become_utc() -> None:
    vienna = timezone(timedelta(hours=1))
    conversation, _ = normalize_conversation([part(make_message("a", time=datetime(2026, 1, 1, 2, tzinfo=vienna)))])
    assert conversation.timezone == "+01:00"
    assert str(conversation.messages[0].time) == "2026-01-01 01:00:00+00:00"
    assert normalize_conversation([part(make_message("a", minute=1))])[0].timezone is None


def test_10_000_messages_with_one_id_take_no_quadratic_time() -> None:
    messages = settled(part(*(make_message("a", str(number), id="1") for number in range(10_000))))
    assert len({message.id for message in messages}) == 10_000


MESSAGES = st.lists(
    st.builds(
        make_message,
        st.sampled_from(["ann", "bob", "cy"]),
        st.sampled_from(["x", "y"]),
        st.sampled_from(["user", "assistant", "agent", "tool", "system", "participant"]),
        id=st.sampled_from(["", "1", "2", "1~2"]),
        reply_to=st.sampled_from([None, "1", "2", "gone"]),
        target=st.sampled_from([None, "ann", "c/bob", "dora"]),
        position=st.integers(-1, 3),
        time=st.sampled_from([None, NOON, NOON + timedelta(hours=1)]),
    ),
    min_size=1,
    max_size=8,
)


@given(MESSAGES, MESSAGES)
def test_every_conversation_is_settled_the_same_way_twice(first: list[Message], second: list[Message]) -> None:
    once, _ = normalize_conversation([part(*first), part(*second, file="b.jsonl")])
    messages = once.messages
    assert [message.position for message in messages] == list(range(len(messages)))
    assert len({message.id for message in messages}) == len(messages)
    assert all(message.agent and message.agent != message.target for message in messages)
    assert normalize_conversation([once])[0] == once
