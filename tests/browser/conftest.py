"""Debian's Chromium, driven by Playwright; whatever a page asks of the network or says on the console is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

try:
    from playwright.sync_api import Browser, Page, sync_playwright
except ModuleNotFoundError:  # the files beside this one import it too, and are skipped by name
    sync_playwright = None

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 180_000  # ms until what a page waits for counts as missing: on a busy machine a step takes many seconds
MISSING = "Chromium is missing, so NO BROWSER TEST RAN: apt-get install -y chromium"
if CHROMIUM is None and not os.environ.get("CI"):
    collect_ignore_glob = ["test_*.py"]  # said below; where CI is set they fail instead


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that these tests did not run."""
    if CHROMIUM is None:
        terminalreporter.write_line(MISSING, red=True, bold=True)


@dataclass
class Seen:
    """What a page did: requests beyond the folder, console lines, errors and dialogs."""

    requests: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


@dataclass
class Tab:
    """A page of a report in a browser tab."""

    page: Page
    folder: Path
    seen: Seen

    def open(self, name: str = "report.html") -> Page:
        """Open a file of the report."""
        self.page.goto((self.folder / name).as_uri())
        return self.page


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for these tests; while Playwright runs, no other test could start an event loop of its own."""
    if CHROMIUM is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(params=["light"])
def tab(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """A tab on ``tmp_path / "out"``; at the end of a test nothing was asked of the network and nothing said."""
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1100, "height": 900})
    context.set_default_timeout(PATIENCE)
    page, seen = context.new_page(), Seen()
    page.on("request", lambda asked: None if asked.url.startswith("file:") else seen.requests.append(asked.url))
    page.on("console", lambda line: seen.events.append(line.text))
    page.on("pageerror", lambda error: seen.events.append(str(error)))
    page.on("dialog", lambda dialog: (seen.events.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    yield Tab(page, (tmp_path / "out").resolve(), seen)
    context.close()
    assert seen.requests == []
    assert seen.events == []
