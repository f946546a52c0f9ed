"""The store returns what it was given, once, and says what is wrong with its file."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from undersong.errors import StoreError
from undersong.models import Conversation, Evaluation, Finding, Message, Route, Scan, ThreadScan
from undersong.stores.sqlite import SQLiteStore


def talk(*texts: str, conversation: str = "c1") -> Conversation:
    messages = tuple(
        Message(
            id=f"m{place}", conversation=conversation, position=place, author="kira", agent="kira", role="agent",
            text=text, time=datetime(2026, 1, 1, 0, place, tzinfo=UTC),
        )
        for place, text in enumerate(texts)
    )  # fmt: skip
    return Conversation(id=conversation, source_format="jsonl", messages=messages, title="a talk")


def scans(conversation: Conversation) -> tuple[tuple[Scan, ...], ThreadScan]:
    return tuple(Scan(message_id=m.id) for m in conversation.messages), ThreadScan(conversation=conversation.id)


def answer(message_id: str = "m0", judge_hash: str = "j1", score: float = 0.5) -> Evaluation:
    return Evaluation(
        message_id=message_id,
        state="scored",
        judge="offline",
        judge_hash=judge_hash,
        message_hash="h",
        traits={"virtue": score},
    )


def found(name: str, *conversations: str) -> Finding:
    return Finding(
        finding_id=name,
        pattern="darvo",
        title="DARVO",
        level="high",
        rule_hash="r",
        agent="kira",
        target=None,
        message_ids=("m0",),
        conversations=conversations,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(tmp_path / "undersong.db") as opened:
        yield opened


def test_a_conversation_comes_back_as_it_was_put(store: SQLiteStore) -> None:
    conversation = talk("hello", "I said \x00 and \u202e")
    store.put_conversation(conversation, *scans(conversation))
    assert store.conversation("c1") == (conversation, *scans(conversation))


def test_a_newer_version_replaces_the_older_one(store: SQLiteStore) -> None:
    for conversation in (talk("hello", "old end"), talk("hello")):
        store.put_conversation(conversation, *scans(conversation))
    assert store.counts() == {"conversations": 1, "messages": 1, "evaluations": 0, "findings": 0}


def test_putting_the_same_twice_adds_nothing(store: SQLiteStore) -> None:
    finding = found("f", "c1")
    for _ in range(2):
        store.put_answers([("c1", answer())])
        store.put_findings(["c1"], [finding])
    assert store.answers("c1", "j1") == {"m0": answer()}
    assert list(store.findings()) == [finding]
    assert store.counts()["evaluations"] == 1


def test_answers_of_another_judge_are_not_mixed_in(store: SQLiteStore) -> None:
    store.put_answers([("c1", answer(judge_hash="j1")), ("c1", answer(judge_hash="j2", score=0.9))])
    assert store.answers("c1", "j2") == {"m0": answer(judge_hash="j2", score=0.9)}


def test_routes_come_back_and_a_new_version_of_the_conversation_forgets_them(store: SQLiteStore) -> None:
    conversation = talk("hello")
    routes = (Route(message_id="m0", tier="deep", tier_before="focused", depth="thorough", width="prior_messages"),)
    store.put_conversation(conversation, *scans(conversation))
    assert store.routes("c1") == ()
    store.put_routes([("c1", routes)])
    assert store.routes("c1") == routes
    store.put_conversation(conversation, *scans(conversation))
    assert store.routes("c1") == ()


def test_every_judge_is_heard_of_one_message(store: SQLiteStore) -> None:
    store.put_answers([("c1", answer(judge_hash="j1")), ("c1", answer(judge_hash="j2")), ("c1", answer("m1"))])
    assert [each.judge_hash for each in store.evaluations("c1", "m0")] == ["j1", "j2"]


def test_messages_of_one_id_are_found_in_every_conversation(store: SQLiteStore) -> None:
    for name in ("b", "a"):
        conversation = talk("hello", conversation=name)
        store.put_conversation(conversation, *scans(conversation))
    assert store.find_message("m0") == ("a", "b")
    assert store.find_message("m9") == ()


def test_a_failed_write_leaves_nothing_behind(store: SQLiteStore) -> None:
    twice = talk("one", "two")
    broken = Conversation(id="c1", source_format="jsonl", messages=(twice.messages[0], twice.messages[0]))
    with pytest.raises(StoreError):
        store.put_conversation(broken, (), ThreadScan(conversation="c1"))
    assert store.counts()["messages"] == 0


def test_what_is_committed_survives_without_closing(tmp_path: Path) -> None:
    left_open = SQLiteStore(tmp_path / "undersong.db")
    left_open.put_answers([("c1", answer())])
    with SQLiteStore(tmp_path / "undersong.db") as again:
        assert again.answers("c1", "j1") == {"m0": answer()}
    left_open.close()


def test_only_the_owner_may_read_the_file(store: SQLiteStore) -> None:
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "undersong.db"
    path.write_bytes(b"not a database, but long enough to be read as one" * 100)
    with pytest.raises(StoreError, match=r"undersong\.db"):
        SQLiteStore(path)


def test_a_store_of_a_newer_version_is_refused(store: SQLiteStore) -> None:
    db = sqlite3.connect(store.path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="newer"):
        SQLiteStore(store.path)


def test_a_conversation_that_is_not_there_is_an_error(store: SQLiteStore) -> None:
    with pytest.raises(StoreError, match="nobody"):
        store.conversation("nobody")


HOLDER = """
import sys
from pathlib import Path
from undersong.models import Conversation, ThreadScan
from undersong.stores.sqlite import SQLiteStore
store = SQLiteStore(Path(sys.argv[1]))
store.put_conversation(Conversation(id="theirs", source_format="jsonl"), (), ThreadScan(conversation="theirs"))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_run_is_refused_until_the_first_is_gone_even_killed(store: SQLiteStore) -> None:
    mine = talk("hello")
    command = [sys.executable, "-c", HOLDER, str(store.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another audit is using it"):
            store.put_conversation(mine, *scans(mine))
        assert store.conversation("theirs")[0].id == "theirs"  # reading is free
        assert store.find_message("m0") == ()
        other.kill()
        other.wait()
    store.put_conversation(mine, *scans(mine))
    assert store.conversation("c1")[0] == mine


def test_a_closed_store_lets_the_next_one_write(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "undersong.db")
    mine = talk("hello")
    with SQLiteStore(tmp_path / "undersong.db") as first, SQLiteStore(link) as second:
        first.put_conversation(mine, *scans(mine))
        with pytest.raises(StoreError, match="another audit"):
            second.put_conversation(mine, *scans(mine))
        first.close()
        second.put_conversation(mine, *scans(mine))


@pytest.mark.parametrize("version", [0, 1, 99])
def test_a_database_of_another_program_keeps_every_byte(tmp_path: Path, version: int) -> None:
    path = tmp_path / "undersong.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.execute(f"PRAGMA user_version = {version}")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        SQLiteStore(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["undersong.db"]


DAMAGES = (b"", b"{", b'{"id": 7}', b'{"id": "\xff"}', b'{"x":' + b"[" * 100_000, 7)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: repr(damage)[:12])
def test_a_damaged_record_is_an_error_and_a_damaged_answer_is_not_there(
    store: SQLiteStore, damage: bytes | int
) -> None:
    mine = talk("hello", "you")
    for table in ("messages", "conversations"):
        store.put_conversation(mine, *scans(mine))
        _damage(store.path, f"UPDATE {table} SET body = ?", damage)
        with pytest.raises(StoreError, match=r"damaged.*audit the files again"):
            store.conversation("c1")
    store.put_answers([("c1", answer()), ("c1", answer("m1"))])
    _damage(store.path, "UPDATE evaluations SET body = ? WHERE message = 'm0'", damage)
    assert store.answers("c1", "j1") == {"m1": answer("m1")}
    with pytest.raises(StoreError, match="damaged"):
        store.evaluations("c1", "m0")
    store.put_answers([("c1", answer())])
    assert store.evaluations("c1", "m0") == (answer(),)
    _damage(store.path, "INSERT INTO findings VALUES ('f', 'darvo', 'kira', NULL, ?)", damage)
    with pytest.raises(StoreError, match="damaged"):
        store.findings()


def _damage(path: Path, statement: str, value: bytes | int) -> None:
    db = sqlite3.connect(path)
    db.execute(statement, (value,))
    db.commit()
    db.close()


def test_a_lost_message_is_a_damaged_conversation(store: SQLiteStore) -> None:
    mine = talk("hello", "you")
    store.put_conversation(mine, *scans(mine))
    _damage(store.path, "DELETE FROM messages WHERE position = ?", 1)
    with pytest.raises(StoreError, match="1 messages and 2 scans"):
        store.conversation("c1")


def test_messages_come_back_by_id_in_the_order_of_their_conversation(store: SQLiteStore) -> None:
    for mine in (talk("one", "two", "three"), talk("other", conversation="c2")):
        store.put_conversation(mine, *scans(mine))
    assert [message.text for message in store.messages("c1", ["m2", "m9", "m0", "m2"])] == ["one", "three"]
    assert [message.text for message in store.messages("c2", ("m0", "m1"))] == ["other"]
    assert store.messages("c3", ["m0"]) == ()


def test_findings_that_an_audit_no_longer_makes_are_retracted(store: SQLiteStore) -> None:
    old, both, elsewhere, new = found("a", "c1"), found("b", "c1", "c2"), found("c", "c2"), found("d", "c1")
    store.put_findings(["c1", "c2"], [old, both, elsewhere])
    _damage(store.path, "INSERT INTO findings VALUES ('f', 'darvo', 'kira', NULL, ?)", b"{")
    store.put_findings(["c1"], [old, new])
    assert list(store.findings()) == [old, elsewhere, new]
    store.put_findings([], [])
    store.put_findings(["c2"], [])
    assert list(store.findings()) == [old, new]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_went_away_is_told_at_the_end(tmp_path: Path, replaced: bool) -> None:
    opened = SQLiteStore(tmp_path / "undersong.db")
    opened.put_answers([("c1", answer())])
    opened.path.rename(tmp_path / "gone.db")  # it keeps its inode, so that a new file gets another
    if replaced:
        opened.path.touch()
    with pytest.raises(StoreError, match="removed or replaced"):
        opened.close()
    opened.close()


def test_an_error_of_the_run_is_not_hidden_by_a_store_that_went_away(tmp_path: Path) -> None:
    def run() -> None:
        with SQLiteStore(tmp_path / "undersong.db") as opened:
            opened.path.unlink()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
