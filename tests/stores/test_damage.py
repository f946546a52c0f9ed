"""Whatever changes a store but undersong itself is named by a check: content, triggers, views, tables, lost bytes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.errors import StoreError
from undersong.judges.ledger import SQLiteLedger
from undersong.judges.limits import LedgerEntry
from undersong.stores.erasure import forget
from undersong.stores.integrity import problems
from undersong.stores.protocol import BEGINNING, AgentSweep, Cursor
from undersong.stores.sqlite import SQLiteStore

from .deeds import NOON, answer, make_finding, row, scans, talk

PAID = LedgerEntry(
    key="k", attempt=0, judge="llm", model="m", prompt_hash="p", message_hash="h", context_hash="c", depth="deep",
    body=b"{}", input=1, cached=0, written=0, output=1, cost=0.5, sent=10, fixed=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some of everything, which was also rewritten, appended to and partly forgotten."""
    path = tmp_path_factory.mktemp("whole") / "undersong.db"
    first, other = talk("you are wonderful", "send the money", "now"), talk("hello", "bye", conversation="c2")
    with SQLiteStore(path) as store:
        for conversation in (first, other, talk("nobody will know", conversation="c3"), first):
            store.put_conversation(conversation, *scans(conversation))
        store.put_answers([("c1", answer()), ("c1", answer("m1")), ("c2", answer())])
        store.put_answers([("c1", answer("m1", score=0.75))])
        store.append([row("m0"), row("m1", 1), row("m2", 2, state="unread"), row("n0", agent="bo", conversation="c2")])
        store.append([row("m2", 2)])
        store.put_findings(["c1"], [make_finding("f1", "c1"), make_finding("f2", "c1", "c2")])
        (history, *_) = list(store.packed("j1"))
        store.put_sweep("j1", [AgentSweep(history.agent, history.changed, (), history.cells)], (), {"r": Cursor(1, "")})
        forget(store, "c3", NOON)
        assert store.cursor("r") != BEGINNING
    with SQLiteLedger(path) as ledger:
        ledger.keep([PAID])
        ledger.snapshot("run", "j1")
    return path


Damage = str | Callable[[bytes], bytes]
DAMAGES: tuple[tuple[Damage, str], ...] = (
    # content: edited
    ("UPDATE messages SET body = CAST(replace(body, 'wonderful', 'dreadful') AS BLOB)", "messages of conversation c1"),
    ("UPDATE messages SET body = CAST(body AS TEXT) WHERE id = 'm1'", "messages of conversation c1"),
    ("UPDATE messages SET agent = 'bo' WHERE conversation = 'c2' AND id = 'm0'", "messages of conversation c2"),
    ("UPDATE messages SET target = 'bo' WHERE conversation = 'c2' AND id = 'm0'", "messages of conversation c2"),
    ("UPDATE messages SET time = time + 1 WHERE conversation = 'c1'", "messages of conversation c1"),
    ("UPDATE messages SET position = 7 WHERE conversation = 'c1' AND id = 'm0'", "messages of conversation c1"),
    ("UPDATE conversations SET body = CAST(replace(body, 'talk', 'walk') AS BLOB)", "conversation c1: changed"),
    ("UPDATE conversations SET routes = NULL, version = version + 1 WHERE id = 'c1'", "conversation c1"),
    ("UPDATE evaluations SET body = CAST(replace(body, '0.75', '0.05') AS BLOB)", "answers about conversation c1"),
    ("UPDATE evaluations SET state = 'refused' WHERE conversation = 'c2'", "answers about conversation c2"),
    ("UPDATE evaluations SET judge_hash = 'j2' WHERE conversation = 'c2'", "answers about conversation c2"),
    ("UPDATE findings SET body = CAST(replace(body, 'DARVO', 'Joke') AS BLOB) WHERE id = 'f1'", "findings about kira"),
    ("UPDATE findings SET pattern = 'love_bombing' WHERE id = 'f1'", "findings about kira"),
    ("UPDATE findings SET agent = 'bo'", "findings about bo"),
    ("UPDATE history SET body = CAST(replace(body, '0.25', '0.95') AS BLOB) WHERE agent = 'kira'", "history of kira"),
    ("UPDATE history SET agent = 'bo' WHERE id = 'm1'", "history of kira: 3 records stored, 2 there"),
    ("UPDATE history SET time = 0 WHERE agent = 'bo'", "history of bo: changed"),
    ("UPDATE history SET cells = NULL WHERE agent = 'bo'", "history of bo"),
    ("UPDATE agents SET changed = 1", "which histories changed when"),
    ("UPDATE cursors SET change = 99 WHERE name = 'r'", "how far sweeps have come"),
    ("UPDATE judges SET name = 'gpt'", "the judges"),
    ("UPDATE paid SET cost = 0", "answers that llm was paid for"),
    ("UPDATE paid SET body = X'7B7D20'", "answers that llm was paid for"),
    ("UPDATE swept SET cells = X'00'", "the packed history of bo"),
    ("UPDATE totals SET likely = 7 WHERE agent = 'kira'", "the lists do not agree with what is stored: totals of kira"),
    ("DELETE FROM speakers WHERE agent = 'kira'", "the lists do not agree with what is stored: speakers of kira"),
    ("UPDATE talks SET title = 'walk'", "the lists do not agree with what is stored: talks of c1"),
    ("DELETE FROM cited_words", "the lists do not agree with what is stored: cited_words of "),
    ("UPDATE histories SET body = X'7B7D' WHERE agent = 'kira'", "what a run knew of agents"),
    # content: removed
    ("DELETE FROM messages WHERE conversation = 'c1' AND id = 'm2'", "conversation c1: 3 records stored, 2 there"),
    ("DELETE FROM messages WHERE conversation = 'c2'", "messages of conversation c2: 2 records stored, 0 there"),
    ("DELETE FROM conversations WHERE id = 'c2'", "conversation c2: 1 record stored, 0 there"),
    ("DELETE FROM evaluations WHERE message = 'm1'", "answers about conversation c1: 2 records stored, 1 there"),
    ("DELETE FROM findings WHERE id = 'f2'", "findings about kira: 2 records stored, 1 there"),
    ("DELETE FROM history WHERE agent = 'bo'", "history of bo: 1 record stored, 0 there"),
    ("DELETE FROM graves", "what was forgotten: 1 record stored, 0 there"),
    ("DELETE FROM paid", "answers that llm was paid for: 1 record stored, 0 there"),
    ("DELETE FROM seals WHERE name = 'c2'; DELETE FROM messages WHERE conversation = 'c2'", "the seals of the store"),
    ("DELETE FROM seals", "conversation c1: 1 record that no run of undersong stored"),
    # content: added, swapped
    ("INSERT INTO messages SELECT conversation, 'm9', 9, agent, NULL, NULL, body, NULL FROM messages WHERE id = 'm2'",
     "messages of conversation c1: 3 records stored, 4 there"),
    ("INSERT INTO findings SELECT 'f9', pattern, 'bo', target, body FROM findings WHERE id = 'f1'",
     "findings about bo: 1 record that no run of undersong stored"),
    ("INSERT INTO graves VALUES ('agent', 'd', X'7B7D')", "what was forgotten: 1 record stored, 2 there"),
    ("UPDATE messages SET body = (SELECT b.body FROM messages b WHERE b.conversation = 'c1' AND b.id ="
     " CASE messages.id WHEN 'm0' THEN 'm1' ELSE 'm0' END) WHERE conversation = 'c1' AND id IN ('m0', 'm1')",
     "messages of conversation c1: changed"),
    ("UPDATE messages SET id = CASE id WHEN 'm0' THEN 'x' ELSE 'm0' END WHERE conversation = 'c2'", "conversation c2"),
    ("UPDATE seals SET digest = zeroblob(32) WHERE name = 'c1'", "conversation c1: changed"),
    ("UPDATE seals SET rows = 'many' WHERE name = 'c1'", "conversation c1"),
    # objects that are not ours
    ("CREATE TRIGGER t AFTER INSERT ON messages BEGIN DELETE FROM findings; END", "a foreign trigger 't'"),
    ("CREATE VIEW v AS SELECT * FROM messages", "a foreign view 'v'"),
    ("CREATE TABLE theirs (x)", "a foreign table 'theirs'"),
    ("CREATE INDEX i ON messages (time)", "a foreign index 'i'"),
    ("DROP INDEX messages_agent", "no index 'messages_agent'"),
    ("DROP TABLE paid", "no table 'paid'"),
    ("DROP TABLE seals", "no table 'seals'"),
    ("ALTER TABLE messages ADD COLUMN extra TEXT", "another table 'messages'"),
    ("ALTER TABLE findings RENAME TO f; CREATE VIEW findings AS SELECT * FROM f", "a foreign view 'findings'"),
    ("PRAGMA user_version = 3", "a foreign table 'seals'"),
    # bytes
    (lambda data: data[: len(data) // 2], "malformed"),
    (lambda data: data[:-4096], "malformed"),
    (lambda data: data[:8192] + bytes(4096) + data[12288:], ""),
    (lambda data: b"\0" * 100 + data[100:], "not a database"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "name"), DAMAGES, ids=lambda value: value[:60] if isinstance(value, str) else "bytes"
)
def test_damage_is_named(whole: Path, tmp_path: Path, damage: Damage, name: str) -> None:
    path = tmp_path / "undersong.db"
    shutil.copy(whole, path)
    if isinstance(damage, str):
        db = sqlite3.connect(path)
        db.executescript(damage)
        db.close()
    else:
        path.write_bytes(damage(path.read_bytes()))
    try:
        with SQLiteStore(path, read_only=True) as store:
            words = list(problems(store))
    except StoreError as error:
        words = [str(error)]
    assert any(name in each for each in words), words
    assert words


def test_a_store_that_only_undersong_wrote_holds_together(whole: Path) -> None:
    with SQLiteStore(whole, read_only=True) as store:
        assert list(problems(store)) == []


def test_a_digest_kept_elsewhere_names_what_was_sealed_again(undersong: Undersong, whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "undersong.db"
    shutil.copy(whole, path)
    checked = undersong("store", "check", "--store", str(path))
    assert checked.code == 0
    digest = checked.out.split("digest ")[1].strip()
    assert undersong("store", "check", "--store", str(path), "--digest", digest).code == 0
    with SQLiteStore(path) as store:  # a program that knows how to seal
        store.put_answers([("c1", answer("m1", score=0.05))])
    assert undersong("store", "check", "--store", str(path)).code == 0
    again = undersong("store", "check", "--store", str(path), "--digest", digest)
    assert again.code == 4
    assert "not that of the digest" in again.out


def test_a_foreign_trigger_is_not_run(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "undersong.db"
    shutil.copy(whole, path)
    db = sqlite3.connect(path)
    db.execute("CREATE TRIGGER t AFTER INSERT ON evaluations BEGIN DELETE FROM findings; END")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"a foreign trigger 't'.*not run"):
        SQLiteStore(path)
    assert path.read_bytes() == before
