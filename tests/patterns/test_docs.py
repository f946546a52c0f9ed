"""The worked example of docs/rules.md is run, and its list of keys is complete."""

from __future__ import annotations

import re
from pathlib import Path

from undersong.datafiles.yaml_loader import load
from undersong.models import Finding
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import compile_rule
from undersong.patterns.language.fields import FIELDS, PLACE_FIELDS, ROW_FUNCTIONS
from undersong.patterns.language.logic import FUNCTIONS
from undersong.patterns.language.rulefile import RuleFile
from undersong.patterns.language.types import AGGREGATES, WINDOWED
from undersong.patterns.tools import lint
from undersong.patterns.tools.explain import explain
from undersong.patterns.tools.rule_tests import table

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")


def example(name: str) -> str:
    match = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert match, name
    return match[1]


def line(finding: Finding) -> str:
    parts = [f"{finding.agent} to {finding.target}: {' '.join(finding.message_ids)}"]
    parts += [f"passed over {' '.join(finding.gap_ids)}", f"unread {' '.join(finding.unread_ids)}"]
    return ", ".join([*parts, f"strength {finding.strength:.2f}"])


def test_the_worked_example_finds_what_the_page_says(tmp_path: Path) -> None:
    file = tmp_path / "kind_then_pressing.yaml"
    file.write_text(example("rule"), encoding="utf-8")
    findings = detect(table(example("rows")), [compile_rule(load(file))]).findings
    assert "".join(line(finding) + "\n" for finding in findings) == example("findings")
    assert [remark.id for remark in lint.check_rules([file])] == [
        "no-why",
        "no-misses",
        "no-hit-case",
        "no-innocent-case",
    ]


def test_the_explanation_of_the_worked_example_is_what_the_page_shows(tmp_path: Path) -> None:
    file = tmp_path / "kind_then_pressing.yaml"
    file.write_text(example("rule"), encoding="utf-8")
    lines = explain(compile_rule(load(file)), table(example("rows")), agent="kira", target="bo")
    assert "".join(line + "\n" for line in lines) == example("explain")


def test_every_key_field_and_function_is_on_the_page() -> None:
    words = set(re.findall(r"\w+", PAGE))
    names = [*RuleFile.__struct_fields__, *FIELDS, *PLACE_FIELDS, *ROW_FUNCTIONS, *FUNCTIONS, *WINDOWED, *AGGREGATES]
    assert [name for name in names if name not in words] == []


def test_every_check_is_on_the_page() -> None:
    source = (Path(lint.__file__)).read_text(encoding="utf-8")
    ids = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source)) | {"unreadable", "invalid"}
    assert [name for name in sorted(ids) if f"`{name}`" not in PAGE] == []
