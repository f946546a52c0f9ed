"""What every store promises: it returns what it was given, once, in order, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from undersong.errors import StoreError
from undersong.models import TRAITS, Conversation, Route, ThreadScan, TraitScores
from undersong.stores.integrity import problems
from undersong.stores.protocol import Store
from undersong.stores.sqlite import SQLiteStore
from undersong.stores.transfer import export_records, import_records

from .deeds import NOON, answer, make_finding, row, scans, talk


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


MISSING = [
    dict.fromkeys(TRAITS),
    {**dict.fromkeys(TRAITS, 0.5), "accuracy": None, "reasoning": None},
    {"virtue": None, "goodwill": 0.0},
]


@pytest.mark.parametrize("traits", MISSING)
def test_a_trait_that_does_not_apply_comes_back_as_missing_and_not_as_0(store: Store, traits: TraitScores) -> None:
    given = msgspec.structs.replace(answer(), traits=traits)
    store.put_answers([("c1", given)])
    assert store.answers("c1", "j1") == {"m0": given}
    for scale in ("level", "rank"):
        store.append([row("m0", traits=traits, scale=scale)])
        assert store.history("kira", "j1") == store.thread("c1", "j1") == (row("m0", traits=traits, scale=scale),)


def test_missing_scores_are_exported_imported_merged_and_hold(store: Store, tmp_path: Path) -> None:
    conversation = talk(*"abc")
    store.put_conversation(conversation, *scans(conversation))
    answers = [msgspec.structs.replace(answer(f"m{n}"), traits=each) for n, each in enumerate(MISSING)]
    store.put_answers([("c1", each) for each in answers])
    store.append(row(f"m{n}", n, traits=each) for n, each in enumerate(MISSING))
    with SQLiteStore(tmp_path / "other.db") as other, SQLiteStore(tmp_path / "third.db") as third:
        import_records(other, export_records(store), NOON)
        import_records(third, export_records(other), NOON)
        assert list(export_records(other)) == list(export_records(store)) == list(export_records(third))
        assert [*problems(other)] == [*problems(store)] == []
        assert third.history("kira", "j1") == store.history("kira", "j1")
        assert [(each.traits or {}).get("virtue", 1) for each in third.history("kira", "j1")] == [None, 0.5, None]


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


def test_an_import_that_was_cut_off_brings_routes_and_answers_when_it_comes_again(store: Store, tmp_path: Path) -> None:
    conversation = talk("a")
    with SQLiteStore(tmp_path / "other.db") as other:
        other.put_conversation(conversation, *scans(conversation))
        other.put_answers([("c1", answer())])
        store.put_conversation(conversation, *scans(conversation))  # as far as the one that was killed had come
        for _ in range(2):
            import_records(store, export_records(other), NOON)
            assert store.answers("c1", "j1") == {"m0": answer()}


def test_answers_of_another_store_never_replace_those_that_are_there(store: Store, tmp_path: Path) -> None:
    conversation = talk("a")
    own = msgspec.structs.replace(answer(), reason="ours")
    with SQLiteStore(tmp_path / "other.db") as other:
        for each, given in ((other, answer()), (store, own)):
            each.put_conversation(conversation, *scans(conversation))
            each.put_answers([("c1", given)])
        import_records(store, export_records(other), NOON)
    assert store.answers("c1", "j1") == {"m0": own}
