"""points.jsonl: deductions as flat lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from undersong.models import Case, Row
from undersong.report.writer import write

Make = Callable[..., tuple[Case, list[Row]]]


def test_each_deduction_is_a_line_with_its_quotes(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(case, rows, tmp_path / "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / "points.jsonl").read_text().splitlines()]
    taken = [(each.message_id, each.points) for session in case.sessions for each in session.deductions]
    assert [(line["message_id"], line["points"]) for line in lines] == taken
    (line,) = lines
    assert (line["conversation"], line["mechanism"], line["kind"]) == ("work", "false_promise", "same_hash")
    texts = {message.id: message.text for message in case.cited if message.conversation == "work"}
    for name, quote in zip(line["quoted_ids"], line["quotes"], strict=True):
        assert quote in texts[name]
    assert texts[line["quoted_ids"][0]][line["start"] : line["end"]] == line["quotes"][0]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "points.jsonl" in manifest["files"]


def test_the_markdown_report_is_short_and_the_record_beside_it_whole(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(case, rows, tmp_path / "out")
    short, whole = ((tmp_path / "out" / name).read_text() for name in ("forensic_audit_report.md", "details.md"))
    assert len(short.split()) < 700
    assert "## Cited messages" in whole
    assert "## Cited messages" not in short
    assert "## Glossary" in whole
    for quote in case.findings[0].quotes:
        assert quote.text in short
