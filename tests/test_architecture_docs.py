"""docs/architecture.md names modules that exist, and what they define."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"\| `([\w/]+\.py)` \| `(\w+)` \|", PAGE)


def test_the_page_has_seven_paths() -> None:
    assert len(re.findall(r"^\| step \| module \| function \|$", PAGE, re.MULTILINE)) == 7
    assert len(STEPS) > 40


@pytest.mark.parametrize(("module", "name"), STEPS)
def test_a_step_is_where_the_page_says(module: str, name: str) -> None:
    tree = ast.parse((ROOT / "undersong" / module).read_text(encoding="utf-8"))
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, defined)}


def test_every_package_is_on_the_map() -> None:
    packages = {path.name for path in (ROOT / "undersong").iterdir() if path.is_dir() and path.name != "__pycache__"}
    listed = {
        name for row in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.M) for name in re.findall(r"`(\w+)`", row)
    }
    assert packages <= listed
