"""What every test may need: the shipped samples, and the command line as a function."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

NEO4J = os.environ.get("UNDERSONG_NEO4J")  # the address of an empty server: python tests/neo4j/serve.py -- pytest
settings.register_profile("undersong", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # no timed tests
settings.load_profile("undersong")
SAMPLES = Path(__file__).parent.parent / "samples"
LONG = tuple(f"test_{name}.py" for name in (
    "outage", "fuzz", "tiny_llm", "kill", "exact", "contract", "equal", "pages", "sweep", "rules_show",
))  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that at the end no worker waits for another."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


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
