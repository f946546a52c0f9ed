"""What every store promises to live runs: an update is kept whole or not at all, and never over somebody else's."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from undersong.errors import StoreError
from undersong.models import Conversation, Message, Route, Scan, ThreadScan
from undersong.stores.protocol import ConversationUpdate, Store, StoreVersions, Update

from .deeds import answer, make_finding, row, scans, talk

WHERE = (["c1"], ["kira"], "j1")


def routes(conversation: Conversation, reason: str = "") -> tuple[Route, ...]:
    standard = Route(
        message_id="", tier="standard", tier_before="standard", depth="skip", width="none", reasons=(reason,)
    )
    return tuple(msgspec.structs.replace(standard, message_id=message.id) for message in conversation.messages)


def spoken(conversation: Conversation, *changed: str, reason: str = "", words: int = 0) -> ConversationUpdate:
    return ConversationUpdate(
        conversation=conversation,
        scans=tuple(Scan(message_id=message.id, words=words) for message in conversation.messages),
        thread=ThreadScan(conversation=conversation.id),
        routes=routes(conversation, reason),
        named=frozenset({"m0"}),
        changed=frozenset(changed),
    )


def put(store: Store, *changed: str, conversation: Conversation, **other: Any) -> StoreVersions:
    """Put the messages ``changed`` of a conversation as one update."""
    update = Update(judge_hash="j1", conversations=(spoken(conversation, *changed),), **other)
    marks = store.put_update(update, store.versions(*WHERE))
    assert marks is not None
    return marks


def test_a_conversation_grows_by_a_message_and_reads_as_if_it_had_been_put_at_once(store: Store) -> None:
    put(store, "m0", conversation=talk("one"))
    put(store, "m1", conversation=talk("one", "two"))
    both = talk("one", "two")
    assert store.conversation("c1") == (both, *scans(both))
    assert store.routes("c1") == routes(both)
    stored = store.stored_conversation("c1")
    assert stored is not None
    assert (stored.conversation, stored.scans, stored.routes, stored.named) == (
        both, scans(both)[0], routes(both), frozenset({"m0"}),
    )  # fmt: skip


def test_what_changed_of_earlier_messages_is_put_too(store: Store) -> None:
    both = talk("one", "two")
    put(store, "m0", "m1", conversation=both)
    again = spoken(both, "m0", "m1", reason="late", words=3)
    assert store.put_update(Update(judge_hash="j1", conversations=(again,)), store.versions(*WHERE))
    assert store.routes("c1") == routes(both, "late")
    assert [scan.words for scan in store.conversation("c1")[1]] == [3, 3]


def test_an_update_is_kept_with_all_that_belongs_to_it(store: Store) -> None:
    put(
        store,
        "m0",
        conversation=talk("one"),
        rows=(row("m0"),),
        answers=(("c1", answer()),),
        findings=(make_finding("f", "c1"),),
    )
    assert [each.id for each in store.history("kira", "j1")] == ["m0"]
    assert store.answers("c1", "j1") == {"m0": answer()}
    assert [finding.finding_id for finding in store.findings()] == ["f"]
    put(store, conversation=talk("one"), detached=(("c1", "m0"),), removed=("f",))
    assert store.history("kira", "j1") == ()
    assert list(store.findings()) == []


def test_a_message_that_nothing_calls_for_any_more_is_unread_again(store: Store) -> None:
    put(store, "m0", conversation=talk("one"), rows=(row("m0"),))
    put(store, conversation=talk("one"), rows=(row("m0", state="unread"),))
    assert [each.state for each in store.history("kira", "j1")] == ["unread"]


def test_an_update_over_what_somebody_else_wrote_is_not_kept(store: Store) -> None:
    old = store.versions(*WHERE)
    store.append([row("m7")])
    update = Update(judge_hash="j1", conversations=(spoken(talk("one"), "m0"),), rows=(row("m0"),))
    assert store.put_update(update, old) is None
    assert store.stored_conversation("c1") is None
    assert [each.id for each in store.history("kira", "j1")] == ["m7"]
    assert store.put_update(update, store.versions(*WHERE)) == store.versions(*WHERE)


def test_the_marks_of_a_conversation_change_with_every_write_and_never_come_again(store: Store) -> None:
    conversation = talk("one")
    seen = [store.versions(*WHERE), put(store, "m0", conversation=conversation)]
    store.put_conversation(conversation, *scans(conversation))
    seen.append(store.versions(*WHERE))
    seen.append(put(store, "m0", conversation=conversation))
    numbers = [marks.conversations["c1"] for marks in seen]
    assert numbers[0] == 0
    assert len(set(numbers)) == 4


def test_a_batch_run_and_a_live_run_take_turns(store: Store) -> None:
    conversation = talk("one", "two")
    store.put_conversation(conversation, *scans(conversation))
    store.put_routes([("c1", routes(conversation))])
    stored = store.stored_conversation("c1")
    assert stored is not None
    assert (stored.conversation, stored.routes, stored.named) == (conversation, routes(conversation), None)
    longer = talk("one", "two", "three")
    put(store, "m2", conversation=longer)
    assert store.conversation("c1") == (longer, *scans(longer))
    store.put_conversation(conversation, *scans(conversation))
    assert store.conversation("c1") == (conversation, *scans(conversation))
    assert store.routes("c1") == ()


def test_an_update_that_cannot_be_written_leaves_nothing_behind(store: Store) -> None:
    good = talk("one").messages[0]
    broken = Conversation(id="c1", source_format="live", messages=(good, Message(**msgspec.structs.asdict(good))))
    with pytest.raises(StoreError):
        store.put_update(
            Update(judge_hash="j1", conversations=(spoken(broken, "m0"),), rows=(row("m0"),)), store.versions(*WHERE)
        )
    assert store.history("kira", "j1") == ()
