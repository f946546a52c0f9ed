"""The command that makes a report again, as the report prints it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from tests.conftest import Undersong


def test_the_printed_command_makes_the_same_report_again(undersong: Undersong) -> None:
    said = [("Ida", "The key is under the mat."), ("Bo", "Thank you, I have it."), ("Ida", "Water the fern, please.")]
    rows = [{"who": who, "body": body, "post": str(number)} for number, (who, body) in enumerate(said)]
    Path("two words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert undersong("audit", "two words.jsonl", "--map", "text=body,author=who,id=post", "--no-store").code == 0
    first = json.loads(Path("undersong-report/manifest.json").read_text())["digest"]
    page = Path("undersong-report/forensic_audit_report.md").read_text(encoding="utf-8")
    command = re.search(r"make it again: `undersong (.*?)`", page)
    assert command
    assert undersong(*shlex.split(command[1]), "--no-store", "--out", "again").code == 0
    assert json.loads(Path("again/manifest.json").read_text())["digest"] == first
