"""A package of somebody else, really installed, and the command line of a process that sees it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import undersong

PACKAGE = Path(__file__).parent / "package"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


def install(package: Path, target: Path) -> Path:
    """Have pip install a package into a folder, which is returned."""
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", target, package], check=True)
    return target


def runner(installed: Path, folder: Path) -> Command:
    """Run Python in a folder, with undersong and an installed package: ``run("-m", "undersong", ...)``."""

    def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join((str(installed), str(Path(undersong.__file__).parent.parent)))
        environment = os.environ | {"PYTHONPATH": paths}
        started = [sys.executable, *map(str, arguments)]
        return subprocess.run(started, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return command


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed ``package``."""
    return install(PACKAGE, tmp_path_factory.mktemp("installed"))


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Command:
    """Run Python in a folder of its own, with undersong and the package: ``run("-m", "undersong", ...)``."""
    return runner(installed, tmp_path)
