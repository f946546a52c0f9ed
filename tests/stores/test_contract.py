"""What every store promises: it returns what it was given, once, in order, whole or not at all."""

from __future__ import annotations

import pytest

from undersong.errors import StoreError
from undersong.models import Conversation, Route, ThreadScan
from undersong.stores.protocol import Store

from .deeds import answer, make_finding, scans, talk


def test_a_conversation_comes_back_as_it_was_put(store: Store) -> None:
    conversation = talk("hello", "I said \x00 and \u202e")
    store.put_conversation(conversation, *scans(conversation))
    assert store.conversation("c1") == (conversation, *scans(conversation))


def test_a_newer_version_replaces_the_older_one(store: Store) -> None:
    for conversation in (talk("hello", "old end"), talk("hello")):
        store.put_conversation(conversation, *scans(conversation))
    assert store.counts() == {"conversations": 1, "messages": 1, "evaluations": 0, "findings": 0}


def test_putting_the_same_twice_adds_nothing(store: Store) -> None:
    finding = make_finding("f", "c1")
    for _ in range(2):
        store.put_answers([("c1", answer())])
        store.put_findings(["c1"], [finding])
    assert store.answers("c1", "j1") == {"m0": answer()}
    assert list(store.findings()) == [finding]
    assert store.counts()["evaluations"] == 1


def test_answers_of_another_judge_are_not_mixed_in(store: Store) -> None:
    store.put_answers([("c1", answer(judge_hash="j1")), ("c1", answer(judge_hash="j2", score=0.9))])
    assert store.answers("c1", "j2") == {"m0": answer(judge_hash="j2", score=0.9)}


def test_routes_come_back_and_a_new_version_of_the_conversation_forgets_them(store: Store) -> None:
    conversation = talk("hello")
    routes = (Route(message_id="m0", tier="deep", tier_before="focused", depth="thorough", width="prior_messages"),)
    store.put_conversation(conversation, *scans(conversation))
    assert store.routes("c1") == ()
    store.put_routes([("c1", routes)])
    assert store.routes("c1") == routes
    store.put_conversation(conversation, *scans(conversation))
    assert store.routes("c1") == ()


def test_every_judge_is_heard_of_one_message(store: Store) -> None:
    store.put_answers([("c1", answer(judge_hash="j1")), ("c1", answer(judge_hash="j2")), ("c1", answer("m1"))])
    assert [each.judge_hash for each in store.evaluations("c1", "m0")] == ["j1", "j2"]


def test_messages_of_one_id_are_found_in_every_conversation(store: Store) -> None:
    for name in ("b", "a"):
        conversation = talk("hello", conversation=name)
        store.put_conversation(conversation, *scans(conversation))
    assert store.find_message("m0") == ("a", "b")
    assert store.find_message("m9") == ()


def test_a_failed_write_leaves_nothing_behind(store: Store) -> None:
    twice = talk("one", "two")
    broken = Conversation(id="c1", source_format="jsonl", messages=(twice.messages[0], twice.messages[0]))
    with pytest.raises(StoreError):
        store.put_conversation(broken, (), ThreadScan(conversation="c1"))
    assert store.counts()["messages"] == 0


def test_a_conversation_that_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="nobody"):
        store.conversation("nobody")


def test_messages_come_back_by_id_in_the_order_of_their_conversation(store: Store) -> None:
    for mine in (talk("one", "two", "three"), talk("other", conversation="c2")):
        store.put_conversation(mine, *scans(mine))
    assert [message.text for message in store.messages("c1", ["m2", "m9", "m0", "m2"])] == ["one", "three"]
    assert [message.text for message in store.messages("c2", ("m0", "m1"))] == ["other"]
    assert store.messages("c3", ["m0"]) == ()
