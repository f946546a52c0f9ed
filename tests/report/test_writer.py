"""The report folder: the same bytes for the same case, all of it or nothing, and never over foreign files."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from undersong.core.manifest import canonical, digest_of
from undersong.core.owned_folder import scratch_folder
from undersong.errors import StoreError, UsageError
from undersong.models import Case, Finding, Row, decode
from undersong.report.writer import check_folder, new_folder, write

Make = Callable[..., tuple[Case, list[Row]]]
FILES = {
    "case.json",
    "claims.jsonl",
    "details.md",
    "leads.jsonl",
    "conversations.jsonl",
    "evaluations.jsonl",
    "findings.jsonl",
    "forensic_audit_report.md",
    "index.html",
    "manifest.json",
    "points.jsonl",
    "report.html",
    "risk_graph.svg",
}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_holds_what_it_promises_and_run_times_only_where_given(make_case: Make, tmp_path: Path) -> None:
    write(*make_case(), tmp_path / "plain")
    assert set(contents(tmp_path / "plain")) == FILES
    write(*make_case(), tmp_path / "timed", run={"seconds": 1.5})
    assert json.loads((tmp_path / "timed" / "run.json").read_text()) == {"seconds": 1.5}


def test_the_same_case_gives_the_same_bytes_wherever_and_whenever(make_case: Make, tmp_path: Path) -> None:
    first = write(*make_case(), tmp_path / "one")
    second = write(*make_case(), tmp_path / "elsewhere" / "two", run={"seconds": 9})
    one, two = contents(tmp_path / "one"), contents(tmp_path / "elsewhere" / "two")
    two.pop("run.json")
    assert first == second
    assert one == two


def test_another_case_has_another_digest(make_case: Make, tmp_path: Path) -> None:
    assert write(*make_case(), tmp_path / "one") != write(*make_case("x"), tmp_path / "two")


def test_the_manifest_is_canonical_and_its_digest_is_over_itself(make_case: Make, tmp_path: Path) -> None:
    digest = write(*make_case(), tmp_path / "out")
    data = (tmp_path / "out" / "manifest.json").read_bytes()
    value = json.loads(data)
    assert canonical(value) == data
    assert digest_of(value) == value["digest"] == digest
    assert set(value["files"]) == FILES - {"manifest.json"}
    assert value["judges"] == [{"judge": "offline", "judge_hash": "c" * 64, "messages": 7}]
    assert len(value["messages"]) == 8


def test_rows_are_written_without_texts_and_with_three_decimals(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    rows = [decode(json.dumps(json.loads(_json(row))), Row) for row in rows]
    write(case, rows, tmp_path / "out")
    lines = [decode(line, Row) for line in (tmp_path / "out" / "evaluations.jsonl").read_bytes().splitlines()]
    assert [row.id for row in lines] == [row.id for row in rows]
    assert {row.text for row in lines} == {None}
    refused = [row for row in lines if row.state == "refused"]
    assert [(row.traits, row.reason) for row in refused] == [(None, "the judge declined")]
    scores = {score for row in lines for score in (row.traits or {}).values()}
    assert scores == {0.123, 0.8}


def _json(row: Row) -> str:
    from undersong.models import encode

    return encode(row).decode().replace(":0.1,", ":0.12345,").replace(":0.1}", ":0.12345}")


def test_rows_are_read_once(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(case, iter(rows), tmp_path / "out")
    assert len((tmp_path / "out" / "evaluations.jsonl").read_bytes().splitlines()) == 8


def test_findings_come_back_as_they_were(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(case, rows, tmp_path / "out")
    lines = (tmp_path / "out" / "findings.jsonl").read_bytes().splitlines()
    assert tuple(decode(line, Finding) for line in lines) == case.findings
    assert json.loads(lines[0])["stages"][0] == ["PRAISE", "forum-0"]


def test_a_report_replaces_an_older_one_and_leaves_nothing_beside_it(make_case: Make, tmp_path: Path) -> None:
    write(*make_case("old"), tmp_path / "out", run={})
    write(*make_case(), tmp_path / "out")
    assert set(contents(tmp_path / "out")) == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_the_older_report_untouched(make_case: Make, tmp_path: Path) -> None:
    write(*make_case(), tmp_path / "out")
    before = contents(tmp_path / "out")
    case, rows = make_case("new")

    def breaking() -> Iterator[Row]:
        yield rows[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(case, breaking(), tmp_path / "out")
    assert contents(tmp_path / "out") == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_report_lost_between_two_renames_comes_back(make_case: Make, tmp_path: Path) -> None:
    write(*make_case(), tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.old")
    (tmp_path / ".out.partial").mkdir()
    with pytest.raises(ZeroDivisionError):
        write(*_failing(make_case), tmp_path / "out")
    assert set(contents(tmp_path / "out")) == FILES


def _failing(make_case: Make) -> tuple[Case, Iterator[Row]]:
    return make_case()[0], (Row(id=str(1 // number)) for number in (1, 0))


@pytest.mark.parametrize("name", ["notes.txt", "manifest.json", "report.html"])
def test_a_folder_that_is_not_ours_is_refused_and_kept(make_case: Make, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(UsageError, match=name):
        write(*make_case(), tmp_path)
    assert contents(tmp_path) == {name: b"{}"}


def test_a_file_added_to_a_report_is_not_swept_away(make_case: Make, tmp_path: Path) -> None:
    write(*make_case(), tmp_path / "out")
    (tmp_path / "out" / "my notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"my notes\.txt"):
        check_folder(tmp_path / "out")


def test_a_file_in_the_place_of_the_folder_is_refused(make_case: Make, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="is a file"):
        write(*make_case(), tmp_path / "out")


def test_an_empty_folder_and_one_with_desktop_droppings_are_used(make_case: Make, tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").write_text("")
    write(*make_case(), tmp_path)
    assert set(contents(tmp_path)) == FILES


def test_a_case_with_nothing_in_it_is_a_report_that_says_so(tmp_path: Path) -> None:
    write(Case(version="0.1.0", parameters={}), [], tmp_path / "out")
    text = "".join((tmp_path / "out" / name).read_text() for name in ("forensic_audit_report.md", "details.md"))
    assert "No pattern could be looked for" in text
    assert "No conversation has a session score" in text


def test_only_the_owner_can_read_a_report(make_case: Make, tmp_path: Path) -> None:
    write(*make_case(), tmp_path / "out", run={})
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {0o600}


def test_a_disk_that_takes_no_more_is_not_the_users_mistake(make_case: Make, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            write(*make_case(), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(StoreError, match="No space left"), new_folder(tmp_path / "out"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []


def test_two_runs_into_the_same_folder_do_not_share_what_is_half_written(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()

    def slow() -> Iterator[Row]:
        yield rows[0]
        write(case, rows, tmp_path / "out")
        yield from rows[1:]

    write(case, slow(), tmp_path / "out")
    write(case, rows, tmp_path / "alone")
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "alone"}


KILLED = """
import os, sys
from pathlib import Path
from undersong.core.owned_folder import scratch_folder
from undersong.report.writer import new_folder
with scratch_folder(), new_folder(Path(sys.argv[1])) as folder:
    (folder / "report.html").write_text("half")
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_run_left_is_swept_away_by_the_next_and_nothing_else(
    make_case: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], check=False)
    assert len([path for path in tmp_path.iterdir() if path.name.startswith(".out.")]) == 1
    assert len(list(scratch.iterdir())) == 1
    others = {".out.copy.old", ".outer.abcd_123.partial"}
    for name in others:
        (tmp_path / name).mkdir()
    write(*make_case(), tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "scratch", *others}
    with scratch_folder() as own, scratch_folder() as another:
        assert {*scratch.iterdir()} == {own, another}
    assert list(scratch.iterdir()) == []
