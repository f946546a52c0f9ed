"""The house: packages import each other one way, names are said once, and files stay short."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import undersong

PACKAGE = Path(undersong.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
PROGRAMS = [
    path for folder in ("bench", "train", "release") for path in (Path(__file__).parents[1] / folder).rglob("*.py")
]
HEAVY = ("numpy", "jinja2", "lark", "yaml", "ahocorasick_rs", "sqlite3", "neo4j", "pyarrow")
LONGEST = 500  # lines of a file
UNNAMED = {
    "each",
    "found",
    "told",
    "said",
    "kept",
    "known",
    "given",
    "held",
}  # they name nothing; in comprehensions only
PUBLIC_FIELDS = {  # formats: keys of JSON, YAML and model files
    "ConfirmationPlan.known", "Discrepancy.found", "Noise.known", "Observation.found", "TextKind.kept",
}  # fmt: skip
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def package(dotted: str) -> str:
    """``undersong.judges.llm.client`` → ``judges``; a module of the root stands for itself."""
    return dotted.split(".")[1] if "." in dotted else ""


def imported(path: Path) -> set[str]:
    """The packages that a file imports from, also within functions."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "undersong":
            names |= {alias.name for alias in node.names if alias.name[0] != "_" and alias.name.islower()}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(package(node.module) if node.module.startswith("undersong.") else "")
        elif isinstance(node, ast.Import):
            names |= {package(alias.name) for alias in node.names if alias.name.startswith("undersong.")}
    return names - {""}


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """No later test of the process has the trees of all files in its memory."""
    yield
    tree.cache_clear()


@cache
def graph() -> dict[str, set[str]]:
    """Package → the packages that it imports from; the root's modules are packages of their own."""
    edges: dict[str, set[str]] = {}
    for path in FILES:
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        edges.setdefault(own, set()).update(imported(path) - {own})
    return edges


def test_packages_import_each_other_one_way() -> None:
    assert list(TopologicalSorter(graph()).static_order())


def test_the_pattern_language_is_built_in_layers() -> None:
    layers = ("language", "reference", "vectorized", "significance", "tools")
    for above, layer in enumerate(layers, 1):
        for path in (PACKAGE / "patterns" / layer).rglob("*.py"):
            modules = {node.module or "" for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom)}
            upper = {f"undersong.patterns.{name}" for name in layers[above:]}
            assert not {module for module in modules if ".".join(module.split(".")[:3]) in upper}, path


def test_the_arrows_between_packages_are_few() -> None:
    assert sum(map(len, graph().values())) <= 142


def test_no_class_name_is_used_twice() -> None:
    names = Counter(node.name for path in FILES for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef))
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_no_module_name_is_used_more_than_twice() -> None:
    names = Counter(path.stem for path in FILES if path.stem != "__init__")
    assert {name: count for name, count in names.items() if count > 2} == {}


def test_no_file_is_too_long() -> None:
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_names_say_what_they_name() -> None:
    assert [name for path in FILES for name in unnamed(tree(path), str(path.relative_to(PACKAGE)))] == []
    assert [name for path in PROGRAMS for name in unnamed(tree(path), path.stem)] == []


def unnamed(node: ast.AST, scope: str) -> list[str]:
    """The bindings outside comprehensions whose name says nothing, each with its scope."""
    bad: list[str] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, COMPREHENSIONS):
            bad += [f"{scope}: {each.target.id}" for each in ast.walk(child) if isinstance(each, ast.NamedExpr)
                    and each.target.id in UNNAMED]  # fmt: skip
            continue
        inner = child.name if isinstance(child, ast.ClassDef) else scope
        name = bound(child)
        if name in UNNAMED and f"{scope}.{name}" not in PUBLIC_FIELDS:
            bad.append(f"{scope}: {name}")
        bad += unnamed(child, inner)
    return bad


def bound(node: ast.AST) -> str | None:
    """The name that a node binds, if it binds one."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Attribute):
        return node.attr if isinstance(node.ctx, ast.Store) else None
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ExceptHandler) else None


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, undersong, undersong.cli; print([name for name in {HEAVY} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_the_public_names_are_there_and_documented() -> None:
    nouns, functions = (
        "Case Conversation Finding Message Monitor Observation Options RunLimits SyncMonitor UndersongError",
        "audit build_evaluation_prompt detect_patterns scan_keywords scan_thread to_frame",
    )
    assert sorted(undersong.__all__) == sorted(["__version__", *nouns.split(), *functions.split()])
    assert set(undersong.__all__) <= set(dir(undersong))
    for name in set(undersong.__all__) - {"__version__"}:
        assert getattr(undersong, name).__doc__, name
