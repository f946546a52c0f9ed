"""docs/scan.md: its commands run, and its table and its words are what they give."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from tests.conftest import Undersong
from undersong.models import SIGNALS
from undersong.routing.route import load_policy

DOCUMENT = (Path(__file__).parents[2] / "docs" / "scan.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"<!-- run -->\n```sh\nundersong (.*?)\n```", DOCUMENT)


def rows() -> dict[str, dict[str, object]]:
    lines = Path("rows.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def test_the_table_is_what_the_first_command_writes(undersong: Undersong) -> None:
    assert undersong(*shlex.split(COMMANDS[0])).code == 0
    table_rows = re.findall(r"^\| `(k\d+)` \| (.*?) \| (.*?) \| (.*?) \|$", DOCUMENT, re.MULTILINE)
    assert len(table_rows) == 4
    for name, tier, width, reasons in table_rows:
        row = rows()[name]
        assert (row["tier"], row["width"], "; ".join(row["reasons"])) == (tier, width, reasons)  # type: ignore[arg-type]
    assert Path("threads.jsonl").read_bytes().count(b"\n") == 1


def test_every_command_runs(undersong: Undersong) -> None:
    assert len(COMMANDS) == 3
    assert [undersong(*shlex.split(command)).code for command in COMMANDS] == [0, 0, 0]
    left_out = [row for row in rows().values() if row["tier"] != "standard"]
    assert left_out
    assert all("left out: budget of 0% of the messages" in row["reasons"] for row in left_out)  # type: ignore[operator]


def test_every_signal_is_told_and_the_numbers_are_those_of_the_policy() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \| [^|]*\|$", DOCUMENT, re.MULTILINE)) == SIGNALS
    policy = load_policy()
    assert f"never fewer than {policy.sample_minimum} where" in DOCUMENT
    assert f"{policy.sample_rate:.0%}".replace("%", " %") + " of them" in DOCUMENT
    assert f"{policy.budget_share:.2f}".lstrip("0") + " of the messages" in DOCUMENT
