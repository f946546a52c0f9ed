"""`undersong store`: a store told, checked, handed over, and made to forget."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import Undersong


def text_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def test_info_names_judges_and_counts_and_check_finds_nothing(undersong: Undersong) -> None:
    undersong("audit", "samples", "--draws", "9")
    result = undersong("store", "info")
    assert result.code == 0
    assert re.search(r"^messages +25$", result.out, re.MULTILINE)
    assert "25 rows of" in result.out
    checked = undersong("store", "check")
    assert re.fullmatch(r"undersong-report\.db holds together\ndigest [0-9a-f]{64}\n", checked.out)
    assert (checked.code, checked.err) == (0, "")


def test_an_export_imported_elsewhere_is_the_same_export(undersong: Undersong) -> None:
    undersong("audit", "samples", "--draws", "9")
    assert undersong("store", "export", "a.jsonl").code == 0
    assert "2 conversations, 25 rows" in undersong("store", "import", "a.jsonl", "--store", "b.db").out
    undersong("store", "merge", "undersong-report.db", "--store", "c.db")
    for name in ("b", "c"):
        undersong("store", "export", f"{name}.jsonl", "--store", f"{name}.db")
        assert Path(f"{name}.jsonl").read_bytes() == Path("a.jsonl").read_bytes()


def test_rows_of_another_program_can_be_imported_and_a_bad_one_is_told(undersong: Undersong) -> None:
    good = {"id": "1", "agent": "ann", "thread": "t", "ts": "2026-01-01T00:00:00Z", "traits": {"virtue": 0.5}}
    Path("rows.jsonl").write_text(json.dumps(good) + "\n{\n", encoding="utf-8")
    ran = undersong("store", "import", "rows.jsonl")
    assert (ran.code, "1 conversation, 1 row" in ran.out, "rows.jsonl:2" in ran.err) == (3, True, True)


def test_a_forgotten_conversation_does_not_come_back_with_its_file(undersong: Undersong) -> None:
    undersong("audit", "samples", "--draws", "9")
    assert b"invoice" in text_of(Path("undersong-report.db"))
    assert "forgotten: " in undersong("store", "forget", "invoice-session").out
    assert b"Invoice" not in text_of(Path("undersong-report.db"))
    ran = undersong("audit", "samples", "--draws", "9")
    assert "was told to forget it" in ran.err
    assert "messages" in undersong("store", "info").out
    assert b"Invoice" not in text_of(Path("undersong-report.db"))


def test_a_forgotten_agent_is_told_as_not_read_and_the_report_verifies_with_its_inputs(undersong: Undersong) -> None:
    undersong("audit", "samples", "--draws", "9")
    assert undersong("store", "forget", "kira_x").code == 0
    ran = undersong("audit", "samples", "--draws", "9")
    assert (ran.code, "not read: this store was told to forget who wrote them" in ran.err) == (0, True)
    checked = undersong("verify", "undersong-report", "samples")
    assert (checked.code, "everything agrees" in checked.out) == (0, True), checked.out
    assert "from the inputs done again" in checked.out


def test_a_damaged_store_is_exit_code_4_with_the_place(undersong: Undersong) -> None:
    undersong("audit", "samples", "--draws", "9")
    db = sqlite3.connect("undersong-report.db")
    db.execute("DELETE FROM messages WHERE position = 1")
    db.execute("UPDATE history SET body = X'7B' WHERE position = 2")
    db.commit()
    db.close()
    ran = undersong("store", "check")
    assert ran.code == 4
    assert "messages and" in ran.out
    assert "histories of offline: a stored record is damaged" in ran.out


@pytest.mark.parametrize(
    "asked",
    [
        ("store", "info"),
        ("store", "check"),
        ("store", "migrate"),
        ("store", "export", "-"),
        ("store", "sync", "bolt://127.0.0.1:1"),
        ("store", "forget", "kira"),
        ("sweep",),
        ("agents",),
        ("agent", "kira"),
    ],
    ids=" ".join,
)
def test_a_store_that_is_not_there_is_not_made(undersong: Undersong, asked: tuple[str, ...]) -> None:
    ran = undersong(*asked, "--store", "none.db")
    assert ran.code == 2
    assert "no store at none.db" in ran.err
    assert "run `undersong audit` first" in ran.err
    assert not Path("none.db").exists()


def test_an_unknown_kind_of_store_is_wrong_use(undersong: Undersong) -> None:
    ran = undersong("store", "info", "--store", "redis://x")
    assert (ran.code, "unknown kind of store 'redis'" in ran.err) == (2, True)
