"""What every store promises of what is forgotten and handed over: it is gone, and stays gone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from undersong.errors import InputError, UsageError
from undersong.models import Conversation, Route, ThreadScan, ThreadSignal, encode
from undersong.stores.erasure import forget, pseudonym
from undersong.stores.integrity import problems
from undersong.stores.protocol import Store
from undersong.stores.sqlite import SQLiteStore
from undersong.stores.transfer import export_records, import_records, read_records

from .deeds import NOON, answer, make_finding, row, scans, talk

SECRET = "Wren lives at the mill"


def two_talk(store: Store) -> None:
    """Kira tells bo a secret in c1, bo answers; both are scored, and there is a finding about kira towards bo."""
    original = talk(SECRET, "I know").messages
    messages = (original[0], msgspec.structs.replace(original[1], author="bo", agent="bo", target="kira"))
    conversation = Conversation(id="c1", source_format="jsonl", messages=messages, title=SECRET)
    store.put_conversation(conversation, *scans(conversation))
    store.put_answers([("c1", answer("m0")), ("c1", answer("m1"))])
    store.append([row("m0"), row("m1", 1, agent="bo", target="kira")], [make_finding("f", "c1")])


def test_a_forgotten_agent_leaves_a_pseudonym_and_the_words_of_others(store: Store) -> None:
    two_talk(store)
    grave = forget(store, "kira", NOON)
    assert (grave.kind, grave.messages, store.tombstones()) == ("agent", 1, (grave,))
    conversation = store.conversation("c1")[0]
    name = pseudonym("kira")
    assert [(m.agent, m.target, m.text) for m in conversation.messages] == [(name, None, ""), ("bo", name, "I know")]
    assert conversation.title is None
    assert [each.message_id for each in store.evaluations("c1")] == ["m1"]
    assert store.history("kira", "j1") == ()
    assert [each.target for each in store.history("bo", "j1")] == [name]
    assert list(store.findings()) == []


def flagged_talk(store: Store) -> None:
    """Kira's third flagged message in c1, whose route and thread signal name her."""
    conversation = talk(SECRET, "act now")
    signal = ThreadSignal(kind="repeat_flags", agents=("kira",), message_ids=("m1",))
    store.put_conversation(conversation, scans(conversation)[0], ThreadScan(conversation="c1", signals=(signal,)))
    reasons = ("1 flag: urgency", "repeat flags: kira was flagged in 3 earlier messages")
    route = Route(
        message_id="m1", tier="deep", tier_before="focused", depth="thorough", width="prior_messages", reasons=reasons
    )
    store.put_routes([("c1", (route,))])


def named_agents(store: Store) -> tuple[str, tuple[str, ...]]:
    (route,), (signal,) = store.routes("c1"), store.conversation("c1")[2].signals
    return route.reasons[1], signal.agents


def test_a_forgotten_agent_is_not_named_by_the_reasons_of_routes(store: Store) -> None:
    flagged_talk(store)
    forget(store, "kira", NOON)
    assert named_agents(store) == (
        f"repeat flags: {pseudonym('kira')} was flagged in 3 earlier messages",
        (pseudonym("kira"),),
    )


def test_a_forgotten_name_does_not_come_back_with_the_signals_of_another_store(store: Store, tmp_path: Path) -> None:
    store.append([row("m9", conversation="c9")])
    forget(store, "kira", NOON)
    with SQLiteStore(tmp_path / "other.db") as other:
        flagged_talk(other)
        import_records(store, export_records(other), NOON)
    assert named_agents(store) == (
        f"repeat flags: {pseudonym('kira')} was flagged in 3 earlier messages",
        (pseudonym("kira"),),
    )


def test_a_forgotten_conversation_leaves_only_its_grave(store: Store) -> None:
    two_talk(store)
    grave = forget(store, "c1", NOON)
    assert (grave.kind, grave.messages) == ("conversation", 2)
    assert store.counts() == {"conversations": 0, "messages": 0, "evaluations": 0, "findings": 0}
    assert store.agents("j1") == ()
    assert forget(store, "c1", NOON + timedelta(1)) == grave  # a command that was stopped can be given again
    with pytest.raises(UsageError, match="no agent and no conversation"):
        forget(store, "c2", NOON)


def test_a_name_that_is_both_is_asked_for(store: Store) -> None:
    store.append([row("m", agent="c1")])
    with pytest.raises(UsageError, match="an agent and a conversation"):
        forget(store, "c1", NOON)
    assert forget(store, "c1", NOON, "agent").kind == "agent"
    assert store.history("c1", "j1") == ()


def test_an_export_holds_all_and_comes_back_once(store: Store, tmp_path: Path) -> None:
    two_talk(store)
    store.append([row("x", 3, conversation="rows only", judge_hash="j2", judge="other")])
    lines = [encode(record) for record in export_records(store)]
    with SQLiteStore(tmp_path / "other.db") as other:
        taken = import_records(other, read_records(lines, "lines"), NOON)
        assert (taken.threads, taken.rows, taken.findings, taken.older) == (2, 3, 1, 0)
        assert [encode(record) for record in export_records(other)] == lines
        assert import_records(other, read_records(lines, "lines"), NOON).older == 1
        assert [encode(record) for record in export_records(other)] == lines
    assert list(problems(store)) == []


def test_what_was_forgotten_comes_back_by_no_merge_and_is_forgotten_by_one(store: Store, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "other.db") as other:
        for target in (store, other):
            two_talk(target)
        lines = list(export_records(other))
        forget(store, "kira", NOON)
        import_records(store, lines, NOON)
        assert store.history("kira", "j1") == ()
        assert store.conversation("c1")[0].messages[0].text == ""
        import_records(other, export_records(store), NOON)
        assert SECRET not in str(list(export_records(other)))


@pytest.mark.parametrize("name", ["kira", "c1"])
def test_what_was_forgotten_elsewhere_does_not_come_to_who_never_had_it(
    store: Store, tmp_path: Path, name: str
) -> None:
    with SQLiteStore(tmp_path / "other.db") as other, SQLiteStore(tmp_path / "third.db") as third:
        for target in (other, third):
            two_talk(target)
        forget(other, name, NOON)
        exported = [encode(record) for record in export_records(other)]
        import_records(store, read_records(exported, "lines"), NOON)
        assert [encode(record) for record in export_records(store)] == exported
        import_records(store, export_records(third), NOON)
        assert SECRET not in str(list(export_records(store)))
        assert store.tombstones() == other.tombstones()


def test_who_was_only_spoken_to_is_forgotten_by_a_merge_too(store: Store, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "other.db") as other:
        for target in (store, other):
            target.append([row("1", 1, agent="bo", target="kira")])
        forget(other, "kira", NOON, "agent")
        import_records(store, export_records(other), NOON)
        assert "kira" not in str(list(export_records(store)))


def test_of_two_versions_of_a_conversation_the_longer_one_stands(store: Store, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "other.db") as other:
        for target, conversation in ((store, talk("one", "two")), (other, talk("one", "two", "three"))):
            target.put_conversation(conversation, *scans(conversation))
        assert import_records(other, export_records(store), NOON).older == 1
        assert import_records(store, export_records(other), NOON).older == 0
    assert store.length("c1") == 3
    assert store.length("c9") is None


def test_a_wrong_record_is_named_with_its_line(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "s.db") as fresh, pytest.raises(InputError, match=r"x\.jsonl:2: not a record"):
        import_records(
            fresh, read_records([b'{"record":"undersong-store","version":1}', b'{"record":"thr'], "x.jsonl"), NOON
        )
    with pytest.raises(InputError, match="newer"):
        list(read_records([b'{"record":"undersong-store","version":99}'], "x.jsonl"))
