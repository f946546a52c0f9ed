"""The example of docs/phrases.md is a phrase file that passes the check and its own cases."""

from __future__ import annotations

import re
from pathlib import Path

from undersong.scan.lint import FIRES, PASSES, STEMS, check_signals
from undersong.scan.lint import test_signals as run_cases

DOCUMENT = (Path(__file__).parents[2] / "docs" / "phrases.md").read_text(encoding="utf-8")


def test_the_example_holds(tmp_path: Path) -> None:
    example = re.search(r"<!-- example: phrases -->\n```yaml\n(.*?)```", DOCUMENT, re.S)
    assert example
    path = tmp_path / "manipulation.yaml"
    path.write_text(example[1], encoding="utf-8")
    assert check_signals(path) == []
    assert [case for case in run_cases(path) if not case.ok] == []


def test_the_numbers_are_those_of_the_check() -> None:
    words = {2: "two", 3: "three", 4: "four"}
    assert f"fewer than {words[STEMS]} distinct stems" in DOCUMENT
    assert f"fewer than {words[FIRES]} `fires` or {words[PASSES]} `passes`" in DOCUMENT
