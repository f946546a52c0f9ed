"""docs/report.md names every file that a report can hold, and every format."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.conftest import talks
from undersong.models import Case, Row
from undersong.report import transcript_view
from undersong.report.render import FORMATS
from undersong.report.writer import write
from undersong.verify import verify

Make = Callable[..., tuple[Case, list[Row]]]
TEXT = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


def test_every_file_and_format_is_described(make_case: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_view, "PAGE_TURNS", 6)
    case, rows = make_case()
    write(case, rows, tmp_path / "out", run={}, conversations=talks(case).get, formats=list(FORMATS))
    named = set(re.findall(r"`([a-z_0-9-]+\.(?:html|md|svg|csv|jsonl?|otlp\.jsonl|sarif|parquet))`", TEXT))
    assert {path.name for path in (tmp_path / "out").iterdir()} <= named
    assert all(f"| `{name}` |" in TEXT for name in FORMATS)
    assert verify(tmp_path / "out", installed=case.hashes) == ()
