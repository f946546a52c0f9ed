"""What is PostgreSQL's own: its address, several writers, a server that goes away, and what lies in its files."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from tests.conftest import POSTGRES, Undersong
from tests.postgres.databases import emptied, run, unprepared
from tests.postgres.serve import ESCAPED, FOR_TESTS, PASSWORD, address_of, free_port, initialise, kill, start
from tests.serve.conftest import running
from tests.serve.world import fill
from undersong.errors import StoreError, UsageError
from undersong.models import encode
from undersong.serve.library import Library
from undersong.serve.live import _Look
from undersong.serve.settings import ServeSettings
from undersong.stores.addresses import without_password
from undersong.stores.erasure import forget
from undersong.stores.listing import FindingQuery, encode_place
from undersong.stores.postgres import PostgresStore
from undersong.stores.postgres.server import SCHEMA, VERSION, ServerConnection, parameters_of, translated

from .deeds import NOON, answer, make_finding, row, scans, talk
from .test_reviews import make_review

STORE_FAILED, USAGE = 4, 2
ASIDE = re.compile(r'"at":"[^"]+"|datetime="[^"]+"')  # when a decision was made
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def address() -> str:
    return emptied()


@pytest.fixture
def store(address: str) -> Iterator[PostgresStore]:
    with PostgresStore(address) as opened:
        yield opened


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:secret@h:5432/db", "postgresql://u@h:5432/db"),
        ("postgresql://u:sec/re@t@h/db", "postgresql://u@h/db"),
        ("postgresql://u@h/db?sslmode=require&password=secret&x=1", "postgresql://u@h/db?sslmode=require&x=1"),
        ("postgresql://h/db", "postgresql://h/db"),
        ("bolt://neo4j:secret@h:7687", "bolt://neo4j@h:7687"),
        ("folder/a:b@c.db", "folder/a:b@c.db"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown


@pytest.mark.parametrize("secret", ["p/secret", "12#secret", "12?secret", "p:secret:"])
def test_a_password_that_is_not_escaped_is_refused_and_not_shown(secret: str, undersong: Undersong) -> None:
    ran = undersong("audit", "samples", "--store", f"postgresql://u:{secret}@127.0.0.1:1/db")
    assert ran.code in (USAGE, STORE_FAILED)
    assert "postgresql://u@127.0.0.1:1/db" in ran.err
    assert "secret" not in ran.out + ran.err


def test_the_parts_of_an_address_are_those_of_a_url() -> None:
    parts = parameters_of("postgres://an%40n:p%2Fw@[::1]:6000/my%20db?sslmode=require&connect_timeout=3")
    assert parts == {
        "host": "::1", "port": 6000, "user": "an@n", "password": "p/w", "dbname": "my db", "sslmode": "require",
        "connect_timeout": "3", "application_name": "undersong",
    }  # fmt: skip
    with pytest.raises(UsageError, match="no address"):
        parameters_of("postgresql://host:port/db")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("127.0.0.1:", "127.0.0.1:1", "refused|could not|invalid port"),
        (f":{ESCAPED}@", ":wrong-secret@", "password authentication failed"),
        ("/test_", "/nowhere_", "does not exist"),
    ],
)
def test_a_server_that_does_not_take_us_is_one_line_with_a_remedy(
    address: str, old: str, new: str, words: str, undersong: Undersong
) -> None:
    wrong = (
        address.replace(old, new) if old != "127.0.0.1:" else f"postgresql://u:wrong-secret@127.0.0.1:{free_port()}/db"
    )
    ran = undersong("audit", "samples", "--store", wrong)
    assert ran.code == STORE_FAILED
    assert "see that the server runs, and user, password" in ran.err
    assert any(part in ran.err for part in words.split("|")), ran.err
    assert without_password(wrong) in ran.err
    assert not any(secret in ran.out + ran.err for secret in ("secret", PASSWORD, ESCAPED))


def test_the_password_is_in_no_output_and_in_no_report(address: str, undersong: Undersong) -> None:
    told = [undersong("audit", "samples", "--store", address)]
    told += [undersong("store", command, "--store", address) for command in ("info", "check", "migrate", "seed")]
    told.append(undersong("sweep", "--store", address, "--json"))
    told.append(undersong("agents", "--store", address))
    told.append(undersong("serve", address.replace("/test_", "/nowhere_")))
    assert [ran.code for ran in told] == [0, 0, 0, 0, USAGE, 0, 0, STORE_FAILED], told
    secrets = (PASSWORD, ESCAPED, "s3cret")
    assert not any(secret in ran.out + ran.err for ran in told for secret in secrets)
    written = [path.read_bytes() for path in Path().rglob("*") if path.is_file() and "samples" not in path.parts]
    assert written
    assert not any(secret.encode() in body for body in written for secret in secrets)


def test_a_store_that_is_only_read_is_not_made(undersong: Undersong) -> None:
    with unprepared() as bare:
        ran = undersong("store", "info", "--store", bare)
        assert (ran.code, "there is no such store" in ran.err) == (STORE_FAILED, True)
        with PostgresStore(bare) as made, PostgresStore(bare, read_only=True) as reader:
            made.append([row("m")])
            assert reader.history("kira", "j1") == (row("m"),)
            with pytest.raises(StoreError, match="reading only"):
                reader.append([row("n")])


MAKE = """
import sys
from undersong.stores.postgres import PostgresStore
with PostgresStore(sys.argv[1]) as store:
    print(store.counts()["messages"])
"""


def test_several_processes_make_the_tables_at_once() -> None:
    with unprepared() as bare:
        command = [sys.executable, "-c", MAKE, bare]
        makers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        assert [maker.communicate()[0].strip() for maker in makers] == ["0"] * 4


def test_a_store_of_a_newer_version_is_refused(address: str) -> None:
    run(address, "UPDATE undersong.store_version SET number = 99")
    try:
        with pytest.raises(StoreError, match="newer than this program"):
            PostgresStore(address)
    finally:
        run(address, f"UPDATE undersong.store_version SET number = {VERSION}")


def test_a_store_of_the_first_version_is_brought_up_to_date_where_it_is_written_to() -> None:
    with unprepared() as bare:
        with psycopg.connect(bare) as old:
            old.execute("CREATE SCHEMA undersong")
            old.execute("SET search_path = undersong")
            old.execute(SCHEMA.read_bytes())
            values = ("f1", "darvo", "kira", None, encode(make_finding("f1", "c1")))
            old.execute("INSERT INTO findings VALUES (%s, %s, %s, %s, %s)", values)
        with pytest.raises(StoreError, match="version 1 is older") as refused:
            PostgresStore(bare, read_only=True)
        assert "store migrate --store postgresql://undersong@127.0.0.1" in str(refused.value.remedy)
        with PostgresStore(bare) as store:
            assert store.version() == VERSION
            assert [each.finding_id for each in store.list_findings(FindingQuery(conversation="c1")).items] == ["f1"]


PAGES = (  # lists have a test of their own
    "/", "/findings?q=garden&sure=likely&reviewed=none", "/conversations?q=garden", "/conversation?id=talk-00001",
    "/agent?name=talk-00001/ada", "/compare?by=agent", "/compare?by=model", "/review",
    "/api/v1/search?words=nobody+%22else+understands%22&limit=2",
)  # fmt: skip


def test_its_pages_are_those_of_a_file(address: str, tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    fill(file, 3, 8, 9)
    (name, *_) = [each.finding_id for each in fill(address, 3, 8, 9)]
    decision = {"kind": "finding", "id": name, "verdict": "rejected", "note": "a joke"}
    with running(ServeSettings(store=file)) as one, running(ServeSettings(store=address)) as other:
        assert [client.post("/api/v1/reviews", decision).status for client in (one, other)] == [201, 201]
        for path in (*PAGES, f"/findings/{name}"):
            wanted, shown = ASIDE.sub("", one.get(path).text), ASIDE.sub("", other.get(path).text)
            assert shown.replace(without_password(address), "s.db") == wanted, path
        place = encode_place([0.5, 7])  # of this length in this list, and none that a page gave
        assert other.get(f"/api/v1/findings?after={place}").status == 400
        assert other.get(f"/api/v1/findings?after={encode_place(['x', name])}").status == 400
    assert PASSWORD not in shown


def test_what_another_writes_is_seen_live(address: str) -> None:
    library = Library(ServeSettings(store=address))
    look, talked = _Look(library), talk("hello")
    with PostgresStore(address) as store:
        assert [look.news(), look.news()] == [{}, {}]
        store.put_conversation(talked, *scans(talked))
        store.append((), [make_finding("f", "c1")])
        news = look.news()
        assert ([line["text"] for line in news["messages"]], len(news["findings"])) == (["hello"], 1)
        store.append((), [msgspec.structs.replace(make_finding("f", "c1"), confidence=0.9)])
        assert [line["new"] for line in look.news()["findings"]] == [False]
    library.close()


def test_a_user_who_may_make_no_tables_is_told_what_to_grant_and_then_needs_no_more() -> None:
    name = f"auditor_{uuid.uuid4().hex[:8]}"
    run(str(POSTGRES), f"CREATE ROLE {name} LOGIN PASSWORD 'other'")
    with unprepared() as bare:
        own = bare.replace(f"undersong:{ESCAPED}", f"{name}:other")
        with pytest.raises(StoreError, match="permission denied") as refused:
            PostgresStore(own)
        assert "GRANT CREATE ON DATABASE" in str(refused.value.remedy)
        run(str(POSTGRES), f"GRANT CREATE ON DATABASE {bare.rpartition('/')[2]} TO {name}")
        with PostgresStore(own) as store:
            conversation = talk("hello")
            store.put_conversation(conversation, *scans(conversation))
            store.add_review(make_review("f"))
            forget(store, "kira", NOON)
        with pytest.raises(InsufficientPrivilege):  # a review is never changed
            run(own, "UPDATE undersong.reviews SET verdict = 'rejected'")
    run(str(POSTGRES), f"DROP ROLE {name}")


def test_names_of_any_characters_come_back_in_the_order_of_their_code_points(store: PostgresStore) -> None:
    names = ["\x00", "\x00a", "\x01", "\x01\x01", "\x01\x02", "\x02", " ", "B", "a", "z\x00", "Ä", "ä", "\ue000", "😀"]
    store.append(row("m", agent=name, conversation=f"c{name}") for name in reversed(names))
    assert [entry.agent for entry in store.agents("j1")] == names == sorted(names)
    assert list(store.threads()) == [f"c{name}" for name in names]
    assert all(store.history(name, "j1")[0].agent == name for name in names)


def test_sqlites_words_are_put_into_postgresqls() -> None:
    assert translated("SELECT '%' FROM a WHERE b = ? AND CAST(? AS TEXT) IS NULL") == (
        "SELECT '%%' FROM a WHERE b = %s AND CAST(%s AS TEXT) IS NULL"
    )
    assert translated("SELECT json_extract(CAST(m.body AS TEXT), '$.x')") == (
        "SELECT json_extract(convert_from(m.body, 'UTF8'), '$.x')"
    )
    assert translated("INSERT OR IGNORE INTO snapshots VALUES (?)") == (
        "INSERT INTO snapshots VALUES (%s) ON CONFLICT DO NOTHING"
    )
    assert translated("INSERT OR REPLACE INTO swept VALUES (?, ?, ?, ?)") == (
        "INSERT INTO swept VALUES (%s, %s, %s, %s) ON CONFLICT ON CONSTRAINT swept_pkey DO UPDATE SET"
        " judge = excluded.judge, agent = excluded.agent, changed = excluded.changed, cells = excluded.cells"
    )


SECRET = b"Wren lives at the mill"


def bytes_of(address: str) -> bytes:
    """All that is in the files of a database; the server is on this machine."""
    connection = ServerConnection(parameters_of(address))
    connection.execute("CHECKPOINT")
    query = "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
    folder, number = connection.execute(query).fetchone()
    connection.close()
    return b"".join(path.read_bytes() for path in Path(folder, "base", str(number)).iterdir() if path.is_file())


def test_what_was_forgotten_is_in_no_file_of_the_database(store: PostgresStore, address: str) -> None:
    conversation = talk(SECRET.decode(), "I know")
    store.put_conversation(conversation, *scans(conversation))
    store.put_answers([("c1", answer("m0"))])
    store.append([row("m0")], [make_finding("f", "c1")])
    assert SECRET in bytes_of(address)
    forget(store, "kira", NOON)
    assert SECRET not in bytes_of(address)
    assert not store.unwiped()


def test_an_erasure_that_was_cut_off_is_ended_by_the_next_who_writes(
    store: PostgresStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = talk(SECRET.decode())
    store.put_conversation(conversation, *scans(conversation))
    with monkeypatch.context() as patched:
        patched.setattr(PostgresStore, "_wipe", lambda _: None)  # as a kill after the transaction
        forget(store, "kira", NOON)
    assert store.unwiped()
    PostgresStore(address).close()
    assert not store.unwiped()
    assert SECRET not in bytes_of(address)


def test_killed_writers_lose_nothing_and_leave_nothing_in_part(address: str) -> None:
    command = [sys.executable, "-m", "bench.kill_store", "--kills", "5", "--seed", "5", "--copies", "--on", address]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "none lost, none in part" in ran.stdout


def test_two_audits_at_once_leave_what_one_does(address: str, undersong: Undersong) -> None:
    command = [sys.executable, "-m", "undersong", "audit", "samples", "--draws", "9", "--store", address]
    both = [
        subprocess.Popen([*command, "--out", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in ("a", "b")
    ]
    ended = [(audit.communicate(), audit.returncode) for audit in both]
    assert [code for _, code in ended] == [0, 0], ended
    assert undersong("audit", "samples", "--draws", "9", "--store", "one.db", "--out", "c").code == 0
    for name in ("findings.jsonl", "manifest.json"):
        assert len({Path(out, name).read_bytes() for out in "abc"}) == 1, name
    assert undersong("store", "export", "both.jsonl", "--store", address).code == 0
    assert undersong("store", "export", "one.jsonl", "--store", "one.db").code == 0
    assert Path("both.jsonl").read_bytes() == Path("one.jsonl").read_bytes()


def write_while(store: PostgresStore, happens: Callable[[], None]) -> None:
    """A transaction in which something happens before it writes."""
    with store._writing() as db:
        happens()
        db.execute("DELETE FROM findings")


def test_a_store_outlives_its_server() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder, port = Path(name), free_port()
        initialise(folder)
        server = start(port, folder, *FOR_TESTS)
        try:
            with PostgresStore(address_of(port)) as store:
                store.append([row("m")])
                kill(server)
                server = start(port, folder, *FOR_TESTS)
                assert store.history("kira", "j1") == (row("m"),)
                store.append([row("n", 1)])
                assert len(store.history("kira", "j1")) == 2
                with pytest.raises(StoreError, match=r"terminat|closed|lost") as lost:
                    write_while(store, lambda: kill(server))
                assert "the same command goes on" in str(lost.value.remedy)
                server = start(port, folder, *FOR_TESTS)
                store.append([row("o", 2)])
                assert len(store.history("kira", "j1")) == 3
        finally:
            kill(server)
