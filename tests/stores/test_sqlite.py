"""The SQLite store: its file, its locks, its damages."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from undersong.errors import StoreError
from undersong.models import encode
from undersong.rows.binary import pack
from undersong.stores.erasure import forget
from undersong.stores.integrity import problems
from undersong.stores.listing import FindingQuery, SearchQuery
from undersong.stores.protocol import AgentSweep
from undersong.stores.sqlite import SQLiteStore, temporary_store
from undersong.stores.sqlite.connection import MIGRATIONS, run_migration
from undersong.stores.sqlite.seals import Sealer

from .deeds import NOON, answer, make_finding, row, scans, talk


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(tmp_path / "undersong.db") as opened:
        yield opened


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


HOLDER = """
import sys
from pathlib import Path
from undersong.models import Conversation, ThreadScan
from undersong.stores.sqlite import SQLiteStore, temporary_store
from undersong.stores.sqlite.seals import Sealer
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


def test_a_lock_that_is_held_leaves_nothing_for_a_kill_to_leave_behind(store: SQLiteStore) -> None:
    store.put_conversation(talk("hello"), *scans(talk("hello")))
    assert not list(store.path.parent.glob("*-journal"))


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


def test_findings_that_an_audit_no_longer_makes_are_retracted(store: SQLiteStore) -> None:
    old, both, elsewhere, new = (
        make_finding("a", "c1"),
        make_finding("b", "c1", "c2"),
        make_finding("c", "c2"),
        make_finding("d", "c1"),
    )
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


def test_what_was_forgotten_is_in_no_byte_of_the_files(tmp_path: Path) -> None:
    secret = "Wren lives at the quarrystone mill"
    mine = talk(secret, f"{secret}, I said")
    with SQLiteStore(tmp_path / "undersong.db") as opened:
        opened.put_conversation(mine, *scans(mine))
        assert opened.search(SearchQuery(words="quarrystone")).total == 2
        opened.put_answers([("c1", answer())])
        forget(opened, "kira", NOON)
        assert opened.search(SearchQuery(words="quarrystone")).total == 0
        files = [file.read_bytes().lower() for file in tmp_path.iterdir()]
        assert not any(secret.lower().encode() in file or b"quarrystone" in file for file in files)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_the_middle_of_a_write_waits_for_its_end(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    before = signal.signal(number, signal.default_int_handler)
    count = Sealer._count

    def interrupted(sealer: Sealer, *arguments: object) -> None:
        os.kill(os.getpid(), number)
        count(sealer, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Sealer, "_count", interrupted)
    with SQLiteStore(store.path) as another:
        with pytest.raises(KeyboardInterrupt):
            another.put_answers([("c1", answer())])
        assert another.answers("c1", "j1") == {"m0": answer()}
    signal.signal(number, before)
    assert list(store.integrity_errors()) == []


def test_an_erasure_that_was_killed_before_the_bytes_were_gone_is_ended_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "Wren lives at the mill"
    path = tmp_path / "undersong.db"
    with SQLiteStore(path) as store:
        store.put_conversation(talk(secret), *scans(talk(secret)))
    with monkeypatch.context() as patched:
        patched.setattr(SQLiteStore, "_wipe", lambda _: None)  # as a kill after the transaction
        with SQLiteStore(path) as store:
            forget(store, "c1", NOON)
    SQLiteStore(path).close()
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_a_reader_of_the_older_version_is_told_of_and_the_next_try_ends_it(store: SQLiteStore) -> None:
    store.put_conversation(talk("hello"), *scans(talk("hello")))
    reader = sqlite3.connect(store.path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM messages").fetchall()
    store._db.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(StoreError, match="still in the log file; end that process and run `undersong store migrate`"):
        forget(store, "c1", NOON)
    assert [grave.kind for grave in store.tombstones()] == ["conversation"]
    store.close()
    log = store.path.with_name(f"{store.path.name}-wal")
    assert b"hello" in log.read_bytes()
    reader.close()
    SQLiteStore(store.path).close()  # what `store migrate` does to a store of this version
    assert not log.exists()


def test_a_store_of_the_first_version_is_brought_up_to_date_with_its_content(tmp_path: Path) -> None:
    path = tmp_path / "undersong.db"
    old = sqlite3.connect(path)
    run_migration(old, "1_corpus.sql")
    old.execute("PRAGMA user_version = 1")
    old.execute("INSERT INTO evaluations VALUES ('c1', 'm0', 'j1', 'scored', ?)", (encode(answer()),))
    old.commit()
    old.close()
    with pytest.raises(StoreError, match="store migrate"):
        SQLiteStore(path, read_only=True)
    with SQLiteStore(path) as opened:
        assert opened.answers("c1", "j1") == {"m0": answer()}
        opened.append([row("m0")])
    with SQLiteStore(path, read_only=True) as again:
        assert again.history("kira", "j1") == (row("m0"),)
        with pytest.raises(StoreError, match="reading only"):
            again.append([row("m1")])


def test_a_new_file_is_what_an_empty_one_of_the_first_version_becomes(tmp_path: Path) -> None:
    dumps = []
    for name in ("new.db", "migrated.db"):
        if name == "migrated.db":
            with closing(sqlite3.connect(tmp_path / name)) as old:
                run_migration(old, "1_corpus.sql")
                old.execute("PRAGMA user_version = 1")
        SQLiteStore(tmp_path / name).close()
        with closing(sqlite3.connect(tmp_path / name)) as db:
            facts = [db.execute(f"PRAGMA {key}").fetchone() for key in ("user_version", "journal_mode", "page_size")]
            objects = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
            dumps.append([*facts, *objects, *db.iterdump()])
    assert sorted(map(repr, dumps[0])) == sorted(map(repr, dumps[1]))
    assert len(dumps[0]) > 100


def test_histories_of_an_older_version_are_packed_when_it_is_brought_up_to_date(tmp_path: Path) -> None:
    path, rows = tmp_path / "undersong.db", [row("m0"), row("m1", 1, traits={"virtue": 0.12345})]
    with SQLiteStore(path) as current:
        current.append(rows)
        wanted = list(current.packed("j1"))
    older = sqlite3.connect(path)
    older.executescript(
        "DROP INDEX history_agent; ALTER TABLE history DROP COLUMN cells;"
        " CREATE INDEX history_agent ON history (agent, judge, time, position, id, conversation, state);"
    )
    run_migration(older, "5_packed.sql")
    older.commit()
    older.close()
    with SQLiteStore(path) as again:
        assert list(again.packed("j1")) == wanted
        assert again.history("kira", "j1") == tuple(rows)


def swept(store: SQLiteStore) -> dict[str, bytes | None]:
    """Put what a sweep would, and give what is kept."""
    histories = list(store.packed("j1"))
    store.put_sweep("j1", [AgentSweep(each.agent, each.changed, (), each.cells) for each in histories], (), {})
    return dict(store._db.execute("SELECT agent, cells FROM swept ORDER BY agent"))


def rewrite(store: SQLiteStore) -> None:
    """The same message with another score."""
    store.append([row("m1", 1, traits={"virtue": 0.75})])


def lose(store: SQLiteStore) -> None:
    """A conversation without a message that had a row."""
    shorter = talk("one", conversation="c1")
    store.put_conversation(shorter, *scans(shorter))


@pytest.mark.parametrize("change", [lambda store: store.append([row("m7", -7)]), rewrite, lose])
def test_a_history_that_a_sweep_has_kept_is_read_until_it_changes(
    store: SQLiteStore, change: Callable[[SQLiteStore], None]
) -> None:
    whole = talk("one", "two")
    store.put_conversation(whole, *scans(whole))
    store.append([row("m0"), row("m1", 1), row("m2", agent="bo", conversation="c2"), row("n", None, agent="cy")])
    before = list(store.packed("j1"))
    assert set(swept(store)) == {"kira", "bo"}  # a history that does not fit is put together each time
    assert list(store.packed("j1")) == before
    change(store)
    now = {each.agent: each.cells for each in store.packed("j1")}
    assert now["kira"] == b"".join(pack(each) or b"" for each in store.history("kira", "j1"))
    assert swept(store) == {name: cells for name, cells in now.items() if cells}
    assert list(store.integrity_errors()) == []


def test_a_sweep_keeps_no_history_that_has_changed_since_it_was_read(store: SQLiteStore) -> None:
    store.append([row("m0")])
    (read,) = store.packed("j1")
    store.append([row("m1", 1)])
    store.put_sweep("j1", [AgentSweep("kira", read.changed, (), read.cells)], (), {})
    assert store._db.execute("SELECT count(*) FROM swept").fetchone() == (0,)


def test_what_is_forgotten_is_in_no_kept_history(store: SQLiteStore) -> None:
    mine = talk("hello")
    store.put_conversation(mine, *scans(mine))
    store.append([row("m0"), row("m9", 3, conversation="c2"), row("m5", agent="bo", conversation="c3")])
    assert set(swept(store)) == {"kira", "bo"}
    forget(store, "c1", NOON)
    assert set(dict(store._db.execute("SELECT agent, cells FROM swept"))) == {"bo"}
    forget(store, "bo", NOON)
    assert dict(store._db.execute("SELECT agent, cells FROM swept")) == {}


def test_a_kept_history_that_is_not_that_of_the_rows_is_told(store: SQLiteStore) -> None:
    store.append([row("m0"), row("m1", 1)])
    assert len(swept(store)) == 1
    _damage(store.path, "UPDATE swept SET cells = ?", b"x")
    assert list(store.integrity_errors()) == ["the packed history of kira is not that of its rows"]


def test_what_another_writes_during_a_check_is_no_damage(store: SQLiteStore) -> None:
    store.append([row("m0"), row("n0", agent="bo", conversation="c2")])
    assert set(swept(store)) == {"kira", "bo"}
    numbers = itertools.count(1)

    def write(_: str) -> None:
        number = next(numbers)
        place = f"c{2 + number}"
        store.append([row("m", number, conversation=place), row("n", number, agent="bo", conversation=place)])

    with SQLiteStore(store.path, read_only=True) as reader:
        reader._db.set_trace_callback(write)  # before each statement of the reader
        assert list(problems(reader)) == []
    assert next(numbers) > 10
    assert len(store.history("kira", "j1")) > 10


def test_a_store_that_is_only_read_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such store"):
        SQLiteStore(tmp_path / "undersong.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


WRITER = """
import sys
from pathlib import Path
from undersong.models import Row
from undersong.stores.sqlite import SQLiteStore, temporary_store
from undersong.stores.sqlite.seals import Sealer
path, who = Path(sys.argv[1]), sys.argv[2]
with SQLiteStore(path) as store:
    for n in range(200):
        store.append(Row(id=f"{n}-{k}", agent=who, conversation=who, judge_hash="j1") for k in range(2))
"""


def test_two_processes_write_while_a_third_reads_whole_transactions(store: SQLiteStore) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(store.path), who]) for who in ("ann", "bo")]
    with SQLiteStore(store.path, read_only=True) as reader:
        while any(writer.poll() is None for writer in writers):
            assert len(reader.history("ann", "j1")) % 2 == 0
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [len(store.history(who, "j1")) for who in ("ann", "bo")] == [400, 400]
    assert store.changes() == 400
    assert list(store.integrity_errors()) == []


def test_a_full_disk_is_called_so_and_the_next_write_goes_on(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "undersong.db") as store:
        store._db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(StoreError, match="full"):
            store.append([row(f"m{place}") for place in range(2_000)])
        store._db.execute("PRAGMA max_page_count = 1000000")
        store.append([row("m0")])
        assert list(store.threads())


def test_a_search_keeps_up_with_its_messages_through_new_versions_damage_and_migration(tmp_path: Path) -> None:
    path = tmp_path / "undersong.db"

    def found(store: SQLiteStore, words: str) -> list[str]:
        return [hit.message_id for hit in store.search(SearchQuery(words=words)).items]

    with SQLiteStore(path) as store:
        for texts in (("apples", "pears", "plums"), ("apples", "quinces")):
            mine = talk(*texts)
            store.put_conversation(mine, *scans(mine))
        assert (found(store, "apples"), found(store, "pears"), found(store, "quinces")) == (["m0"], [], ["m1"])
        _damage(path, "UPDATE messages SET body = ? WHERE id = 'm1'", b"{")
        store.put_conversation(mine, *scans(mine))
        assert found(store, "quinces") == ["m1"]
        _damage(path, "DELETE FROM texts WHERE message = ?", "m1")  # type: ignore[arg-type]
        assert "message m1 of conversation c1 cannot be searched" in list(store.integrity_errors())
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old)) as db:
        for number, name in enumerate(MIGRATIONS[:6], 1):
            run_migration(db, name)
            db.execute(f"PRAGMA user_version = {number}")
        message = encode(mine.messages[1])
        db.execute("INSERT INTO messages VALUES ('c1', 'm1', 1, 'kira', NULL, NULL, ?, NULL)", (message,))
        db.execute("INSERT INTO findings VALUES ('f', 'darvo', 'kira', NULL, ?)", (encode(make_finding("f", "c1")),))
        db.commit()
    with SQLiteStore(old) as store:
        assert found(store, "quinces") == ["m1"]
        assert store.list_findings(FindingQuery(conversation="c1")).items == (make_finding("f", "c1"),)
        assert [(each.agent, each.messages, each.findings) for each in store.list_agents().items] == [("kira", 1, 1)]
        assert [*store.integrity_errors()] == []


def test_a_store_that_nobody_searches_has_all_but_the_index_and_others_can_open_it() -> None:
    with temporary_store(searched=False) as store:
        for texts in (("apples", "pears", "plums"), ("apples", "quinces")):
            mine = talk(*texts)
            store.put_conversation(mine, *scans(mine))
        store.put_answers([("c1", answer())])
        assert store.search(SearchQuery(words="apples")).total == 0
        with SQLiteStore(store.path) as other, SQLiteStore(store.path, read_only=True) as reader:
            assert other.conversation("c1") == reader.conversation("c1") == (mine, *scans(mine))
            other.put_answers([("c1", answer(score=0.25))])
            assert reader.answers("c1", "j1") == store.answers("c1", "j1") == {"m0": answer(score=0.25)}


def test_another_program_that_ends_takes_no_log_away_from_who_still_writes(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    end = (
        "import sys, pathlib, undersong.stores.sqlite as sqlite; sqlite.SQLiteStore(pathlib.Path(sys.argv[1])).close()"
    )
    with SQLiteStore(path) as first, SQLiteStore(path):  # a server has several connections
        for texts in (("apples", "pears"), ("quinces", "plums")):
            subprocess.run([sys.executable, "-c", end, path], check=True)
            mine = talk(*texts)
            first.put_conversation(mine, *scans(mine))
        with SQLiteStore(path, read_only=True) as other:
            assert other.conversation("c1") == (mine, *scans(mine))
        assert path.with_name("s.db-wal").stat().st_size > 0
