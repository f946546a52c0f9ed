"""The pytest plugin: a fixture that audits conversations in tests, a summary, and a SARIF file.

pytest loads this module in every project that has undersong installed, so it imports nothing of it before a test asks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from undersong.bridges.auditor import Auditor

AUDITOR: pytest.StashKey[Auditor] = pytest.StashKey()
LEVELS = ("informational", "low", "medium", "high", "critical")  # undersong.models.LEVELS; a test compares them
WORKER = "PYTEST_XDIST_WORKER"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run; each has an ini key of its name, with underscores."""
    group = parser.getgroup("undersong", "undersong: what conversations show as a whole")
    for name, default, words in (
        ("judge", "offline", "who scores the messages, as after `undersong audit --judge`"),
        ("budget", "", "what a paid judge may spend in the whole run, in USD"),
        ("fail-on", "medium", f"the level from which assert_clean fails: {', '.join(LEVELS)}"),
        ("sarif", "", "write what was found to this file"),
    ):
        group.addoption(f"--undersong-{name}", metavar=name.upper(), help=f"{words} (default: {default or 'none'})")
        parser.addini(f"undersong_{name.replace('-', '_')}", words, default=default)
    group.addoption("--undersong-sequences", action="store_true", help="have an LLM judge read whole sequences")


@pytest.fixture(scope="session")
def undersong_auditor(pytestconfig: pytest.Config) -> Iterator[Auditor]:
    """Audits conversations: ``assert_clean(inputs)`` and ``audit(inputs)``; the judge is opened once a session.

    ``inputs`` are those of ``undersong.audit``: paths, lists of messages as dicts, Conversations.
    """
    from undersong.bridges.auditor import auditor

    budget, level = _setting(pytestconfig, "budget"), _setting(pytestconfig, "fail-on")
    if level not in LEVELS:
        raise pytest.UsageError(f"--undersong-fail-on: '{level}' is none of {', '.join(LEVELS)}")
    made = auditor(
        _setting(pytestconfig, "judge"),
        budget=_dollars(budget),
        level=level,  # type: ignore[arg-type]  # one of them
        sequences=pytestconfig.getoption("--undersong-sequences"),
    )
    pytestconfig.stash[AUDITOR] = made
    with made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was audited and what could not be looked for."""
    made = config.stash.get(AUDITOR, None)
    if made is not None and made.cases:
        terminalreporter.section("undersong")
        for line in made.summary():
            terminalreporter.line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the SARIF file, also where tests failed; each worker of pytest-xdist writes its own."""
    made, name = session.config.stash.get(AUDITOR, None), _setting(session.config, "sarif")
    if made is None or not name:
        return
    path = session.config.invocation_params.dir / name
    if worker := os.environ.get(WORKER):
        path = path.with_name(f"{path.stem}.{worker}{path.suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(made.sarif(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _setting(config: pytest.Config, name: str) -> str:
    """An option of the command line, else the ini file's."""
    option = config.getoption(f"--undersong-{name}")
    return str(config.getini(f"undersong_{name.replace('-', '_')}") if option is None else option)


def _dollars(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise pytest.UsageError(f"--undersong-budget: '{text}' is no amount in USD") from None
