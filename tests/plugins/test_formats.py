"""A package that somebody else wrote adds an input format."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .conftest import PACKAGE, Command, install, runner

DIARY = "diary of the harbour\nkira > You owe me this after everything I did.\nann > No.\nand nothing\n"


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    path = tmp_path / "harbour.txt"
    path.write_text(DIARY, encoding="utf-8")
    return path


def test_it_is_listed_after_our_own(run: Command) -> None:
    *_, ours, how, last = run("-m", "undersong", "formats").stdout.splitlines()
    assert (ours.split()[0], how.split()[:2]) == ("text", ["get", "it:"])
    assert last.split(None, 1) == [
        "diary",
        "plug-in 'diary' of the package undersong-example 1.0; known by its own code",
    ]


@pytest.mark.parametrize("chosen", [(), ("--from", "diary")])
def test_it_is_read_by_its_content_and_by_its_name(
    run: Command, diary: Path, tmp_path: Path, chosen: tuple[str, ...]
) -> None:
    rows = tmp_path / "rows.jsonl"
    ran = run("-m", "undersong", "scan", diary, "--out", rows, *chosen)
    scanned = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    assert [(row["conversation"], row["agent"], row["total"] > 0) for row in scanned] == [
        ("the harbour", "kira", True),
        ("the harbour", "ann", False),
    ]
    assert "a line without ' > '" in ran.stderr


def test_it_is_audited_and_named_in_the_case(run: Command, diary: Path, tmp_path: Path) -> None:
    run("-m", "undersong", "audit", diary, "--out", tmp_path / "report", "--format", "json")
    case = next((tmp_path / "report").glob("*.json")).parent / "case.json"
    assert '"source_format":"diary"' in case.read_text(encoding="utf-8").replace(" ", "")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nowhere_at_all", "cannot be loaded: ModuleNotFoundError"),
        ("sniff = bool", "has no function 'read'"),
        ("def sniff(sample): return 1 / 0\ndef read(source): return []", "failed: ZeroDivisionError"),
        ("def sniff(sample): return True\ndef read(source): yield {}['x']", "failed: KeyError"),
        ("def sniff(sample): return True\ndef read(source): yield 5", "failed: TypeError('read() gave a int')"),
    ],
)
def test_one_that_is_broken_is_named_without_a_traceback(diary: Path, tmp_path: Path, code: str, message: str) -> None:
    package = shutil.copytree(PACKAGE, tmp_path / "package")
    (package / "undersong_example" / "diary.py").write_text(code, encoding="utf-8")
    run = runner(install(package, tmp_path / "site"), tmp_path)
    ran = run("-m", "undersong", "scan", diary, "--out", tmp_path / "rows.jsonl")
    assert ran.returncode == 2
    assert f"the format plug-in 'diary' of the package undersong-example 1.0 {message}" in ran.stderr
    assert "Traceback" not in ran.stderr
