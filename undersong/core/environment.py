"""What a report of a defect needs to know: versions, the system, what is installed. No path, no name, no key."""

from __future__ import annotations

import hashlib
import importlib.metadata as metadata
import locale
import os
import platform
import re
import sqlite3
import sys
from pathlib import Path
from typing import NamedTuple

from undersong import __version__

DISTRIBUTION = "undersong"
DATA = Path(__file__).resolve().parents[1] / "data"
_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")


class Requirement(NamedTuple):
    """A package that is needed: ``extra`` "" = always; ``version`` None = not installed."""

    package: str
    extra: str
    version: str | None


def requirements() -> tuple[Requirement, ...]:
    """What this distribution asks for, in its own order; () where it was never installed, as in a bare checkout."""
    try:
        listed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return ()
    matches = (_REQUIREMENT.match(line) for line in listed)
    return tuple(Requirement(m[1], m[2] or "", installed_version(m[1])) for m in matches if m)


def installed_version(package: str) -> str | None:
    """The version of a package, None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def data_hash() -> str:
    """SHA-256 over the names and bytes of every rule, prompt and model that ships, in the order of their names."""
    whole = hashlib.sha256()
    for path in sorted(DATA.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(
                path.relative_to(DATA).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest()
            )
    return whole.hexdigest()


def facts() -> dict[str, object]:
    """Everything in one JSON object; the same on the same installation, whatever the folder."""
    return {
        "undersong": __version__,
        "data": data_hash(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "sqlite": sqlite3.sqlite_version,
        "encoding": {
            "files": sys.getfilesystemencoding(),
            "output": getattr(sys.stdout, "encoding", None),
            "locale": locale.getpreferredencoding(False),
        },
        "packages": {needed.package: needed.version for needed in requirements()},
    }
