"""The page of figures: what it shows, and that a figure which got worse, or is gone, fails."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from bench.figures import TABLE, Outcome, outcome, page, sections, worse

ROOT = Path(__file__).parents[1]
ENTRIES = yaml.safe_load(TABLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["title"])
def test_an_entry_is_a_command_that_is_here(entry: dict[str, object]) -> None:
    words = str(entry["command"]).split()
    assert words[0] == "python"
    path = words[2].replace(".", "/") if words[1] == "-m" else words[1].removesuffix(".py")
    assert (ROOT / f"{path}.py").is_file() or (ROOT / path / "__main__.py").is_file()
    re.compile(str(entry["show"]))


def test_a_figure_that_is_worse_or_gone_is_named() -> None:
    entry = {"title": "Speed", "bounds": [{"name": "rows", "match": r"^rows (\d+)", "least": 10}]}
    assert list(worse(entry, "seconds 2\nrows 12\n")) == []
    assert list(worse(entry, "rows 9\n")) == ["Speed: rows is 9, at least 10 is wanted"]
    assert list(worse(entry, "nothing\n")) == ["Speed: rows was not printed"]


def test_a_program_that_fails_and_data_that_are_not_there_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNDERSONG_DATA", raising=False)
    broken = {"title": "Broken", "says": "It fails.", "command": "python -m no_such_module", "show": "."}
    lacking = {"title": "Lacking", "says": "It needs data.", "command": "python -c pass", "show": ".", "needs": "data"}
    states = [outcome(broken), outcome(lacking)]
    assert [one.state for one in states] == ["failed", "not run"]
    day = datetime(2026, 1, 2, tzinfo=UTC)
    text = page([broken, lacking], sections(states, day))
    assert "**not run**: the labelled data are not at hand" in text
    assert "no_such_module" in text
    again = page([broken, lacking], sections([Outcome(broken, "ok", ("rows 12",), 1.0, ())], day), text)
    assert "rows 12" in again
    assert "2026-01-02" in again
    assert "**failed**" not in again
    assert again.count("**not run**") == again.count("## Lacking") == again.count("# The numbers") == 1


def test_the_page_has_every_entry_and_the_readme_quotes_what_was_counted() -> None:
    figures = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    assert [entry["title"] for entry in ENTRIES if f"## {entry['title']}\n" not in figures] == []
    assert "**failed**" not in figures
    counts = yaml.safe_load((ROOT / "undersong/data/rules/confidence.yaml").read_text(encoding="utf-8"))["readings"]
    right, wrong = counts["right"][-1], counts["wrong"][-1]
    assert f"{right} times out of {right + wrong}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"^  4 of 4 .* {right}/{right + wrong}$", figures, re.MULTILINE)
