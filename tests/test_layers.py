"""Imports run one way: doors → pipeline → steps → shelves → rulebook → vocabulary."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import undersong

PACKAGE = Path(undersong.__file__).parent
LAYERS = (
    {"models", "errors", "visible", "jit"},
    {"rulebook"},
    {
        "formats",
        "judges",
        "triage",
        "vectors",
        "modelfile",
        "options",
        "routing",
        "bands",
        "ranks",
        "prices",
        "frames",
        "stores",
        "patterns",
        "tiers",
        "waiting",
        "flags",
        "rows",
        "rowkeys",
        "manifest",
        "taxonomy",
        "wording",
    },
    {"ingest", "scan", "evaluate", "detect", "weigh", "verdict", "report", "outcomes", "why"},
    {"passes", "histories"},
    {"judging"},
    {"assemble", "confirming", "redact", "scanrows"},
    {"monitor"},
    {"pipeline", "verify", "watch"},
    {"planning", "measure"},
    {"cli"},
    {"__main__"},
)
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
HEAVY = ("numpy", "jinja2", "lark", "yaml", "ahocorasick_rs", "sqlite3", "neo4j", "pyarrow")


def layer(name: str) -> int:
    return next(level for level, names in enumerate(LAYERS) if name in names)


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "undersong" else [node.module]
            )
            names |= {name.split(".")[1] for name in whole if name.startswith("undersong.")}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("undersong.")}
    return names - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_layers_below(path: Path) -> None:
    own = part(path)
    above = {name for name in imported(path) - {own} if layer(name) >= layer(own)}
    shelves = {name for name in above if layer(name) == layer(own) == 2}  # shelves may use each other's vocabulary
    assert above - shelves == set()


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, undersong, undersong.cli; print([name for name in {HEAVY} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_the_public_names_are_there_and_documented() -> None:
    nouns, functions = (
        "Case Conversation Finding Message Monitor Observation SyncMonitor UndersongError",
        "audit build_evaluation_prompt detect_patterns scan_keywords scan_thread to_frame",
    )
    assert sorted(undersong.__all__) == sorted(["__version__", *nouns.split(), *functions.split()])
    for name in set(undersong.__all__) - {"__version__"}:
        assert getattr(undersong, name).__doc__, name
