"""The command that makes a report again, as the report prints it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.serve.runs import Run


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


OWN_OPTIONS = (  # options of a run that the suggested command with another judge keeps, in its own order
    ("--profile", "agents", "--map", "text=body,author=who,id=post"),
    ("--map", "text=body,author=who,id=post", "--store", "own.db", "--prevalence", "0.1"),
    ("--map", "text=body,author=who,id=post", "--no-store", "--no-thinking", "--out", "elsewhere"),
    (
        "--map",
        "text=body,author=who,id=post",
        "--only",
        "two*",
        "--since",
        "2020-01-01T00:00:00+00:00",
        "--from",
        "jsonl",
    ),
    ("--map", "text=body,author=who,id=post", "--rule", "darvo", "--rule", "love_bombing", "--redact", "--seed", "3"),
)


@pytest.mark.parametrize("own", OWN_OPTIONS)
def test_a_suggested_command_keeps_the_options_of_the_run(undersong: Undersong, own: tuple[str, ...]) -> None:
    rows = [{"who": f"w{n % 2}", "body": f"Water the fern, please. {n}", "post": str(n)} for n in range(8)]
    Path("two words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = undersong("audit", "two words.jsonl", "--json", *own)
    assert run.code == 0, run.err
    facts = json.loads(run.out)
    assert Run("report", Path(facts["report"]), "report").title == facts["look_title"]  # as the pages have it
    words = shlex.split(facts["coverage"]["command"])
    assert words[:2] == ["undersong", "audit"]
    assert words[-2:] == ["--judge", "anthropic:claude-sonnet-5-5"]
    for place, word in enumerate(own):
        assert word in words
        if not word.startswith("--"):
            assert words[words.index(word) - 1] == own[place - 1]
