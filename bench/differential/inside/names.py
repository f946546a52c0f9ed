"""Names inside a checkout that have no public one: each under every name that it had, tried in turn."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

NAMES: dict[str, tuple[str, ...]] = {
    "random rules and rows": ("tests.patterns.engine.worlds", "tests.detect.engine.worlds", "tests.patterns.worlds"),
    "monitor worlds": ("tests.monitor.worlds", "tests.live.worlds"),
    "corpus": ("bench.corpus",),
    "corpora": ("bench.corpora",),
}
SERVER = ("bench/judge_server.py", "tests/judge_server.py", "tests/judges/server.py")


def load(what: str) -> Any:
    """The module; ends the program where no name leads to it."""
    for name in NAMES[what]:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(str(error.name)):
                raise
    sys.exit(f"{what}: none of {', '.join(NAMES[what])} is there; add its name to bench/differential/inside/names.py")
