"""What became of each file."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from tests.conftest import Undersong

CLEAN = "Ana: Did you fix the door yesterday?\nBo: I did, it closes again.\nAna: Thank you, that helps.\n"
ADMITS = (
    "Cy: Where is the money?\nDi: I lied to you about the money, I am sorry.\nCy: I see.\nDi: I will give it back.\n"
)


def outcomes(ran: str) -> dict[str, str]:
    return {line["name"]: line["outcome"] for line in json.loads(ran)["files"]}


def test_each_of_several_files_gets_a_line_that_says_what_became_of_it(undersong: Undersong) -> None:
    Path("clean.txt").write_text(CLEAN, encoding="utf-8")
    Path("admits.txt").write_text(ADMITS, encoding="utf-8")
    Path("empty.json").write_text("", encoding="utf-8")
    names = ("clean.txt", "empty.json", "admits.txt")
    ran = undersong("audit", *names, "--no-store", "--json")
    assert ran.code == 3
    assert outcomes(ran.out) == {"admits.txt": "lead", "empty.json": "unread", "clean.txt": "clean"}
    lines = undersong("audit", *names, "--no-store").out.splitlines()
    at = lines.index("Files:")
    assert lines[at + 1 : at + 4] == [
        "  admits.txt: 1 lead in 4 messages",
        "  empty.json: not read: is empty",
        "  clean.txt: nothing stands out in 3 messages",
    ]


def test_what_is_found_in_an_archive_stands_at_the_archive(undersong: Undersong) -> None:
    Path("clean.txt").write_text(CLEAN, encoding="utf-8")
    with zipfile.ZipFile("chat.zip", "w") as archive:
        archive.writestr("talks/admits.txt", ADMITS)
    ran = undersong("audit", "clean.txt", "chat.zip", "--no-store", "--json")
    assert outcomes(ran.out) == {"chat.zip": "lead", "clean.txt": "clean"}


def test_one_file_that_was_read_needs_no_line_and_of_many_the_rest_is_counted(undersong: Undersong) -> None:
    Path("logs").mkdir()
    Path("logs/00.txt").write_text(CLEAN, encoding="utf-8")
    assert "Files:" not in undersong("audit", "logs", "--no-store").out
    for number in range(1, 15):
        Path(f"logs/{number:02}.txt").write_text(CLEAN.replace("door", f"door {number}"), encoding="utf-8")
    out = undersong("audit", "logs", "--no-store").out
    assert "  and 3 more files: 3 in which nothing stands out" in out


def test_a_report_lists_the_files_as_the_terminal_does(undersong: Undersong) -> None:
    Path("clean.txt").write_text(CLEAN, encoding="utf-8")
    Path("a<b>.txt").write_text(ADMITS, encoding="utf-8")
    undersong("audit", "clean.txt", "a<b>.txt", "--no-store", "--out", "out")
    page, markdown = (Path("out", name).read_text("utf-8") for name in ("report.html", "forensic_audit_report.md"))
    assert "2 files: what was found in each" in page
    assert "<li>a&lt;b&gt;.txt: 1 lead in 4 messages</li>" in page
    assert "clean.txt: nothing stands out in 3 messages" in markdown.replace("\\", "")
