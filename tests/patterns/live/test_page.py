"""The page about live detection shows what runs."""

from __future__ import annotations

import re
from pathlib import Path

from undersong.models import Finding
from undersong.patterns.catalog import all_rules, named
from undersong.patterns.tools.rule_tests import table

PAGE = (Path(__file__).parents[3] / "docs" / "live.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_runs() -> None:
    example = re.search(r"<!-- example: live -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert example
    hit = named(all_rules(), "love_bombing").file.cases.hits[0]
    row, *more_rows = table(hit.rows, hit.base)
    names: dict[str, object] = {"row": row, "more_rows": more_rows}
    exec(compile(f"{example[1]}\nfindings = live.findings()", "live.md", "exec"), names)
    findings = names["findings"]
    assert isinstance(findings, tuple)
    assert [finding.pattern for finding in findings if isinstance(finding, Finding)] == ["love_bombing"] * len(
        hit.finds
    )
