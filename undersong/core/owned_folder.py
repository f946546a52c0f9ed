"""Temporary folders of a running process: a lock that ends with the process tells whose owner was killed.

Each is 0700, and locked by ``flock`` on the folder itself.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRATCH = "undersong-run-"
UNLOCKED = 24 * 3600.0  # seconds after which a folder is abandoned where the file system has no locks


@contextmanager
def owned_folder(parent: Path, prefix: str, suffix: str = "") -> Iterator[Path]:
    """A new folder, locked for the block and then removed, unless it was moved away."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=parent))
        with _opened(folder) as lock:
            if lock is not None:
                _locked(lock)
            if not folder.exists():
                continue  # another run took it for abandoned before it was locked
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for what a run does not keep; those that killed runs of the same user left are removed first."""
    parent = Path(tempfile.gettempdir())
    for folder in parent.glob(f"{SCRATCH}*"):
        if re.fullmatch(rf"{SCRATCH}[a-z0-9_]{{8}}", folder.name) and _is_own(folder):
            remove_abandoned(folder)
    with owned_folder(parent, SCRATCH) as folder:
        yield folder


def remove_abandoned(folder: Path) -> bool:
    """Remove a folder that ``owned_folder`` made and whose process has ended; whether it is gone."""
    with _opened(folder) as lock:
        if lock is not None and (_locked(lock) or time.time() - os.fstat(lock).st_mtime > UNLOCKED):
            shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def is_owned(folder: Path) -> bool:
    """Whether a running process has the folder; False where there is none, True where nobody can say."""
    if not folder.exists():
        return False
    with _opened(folder) as lock:
        return lock is None or not _locked(lock)


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """The folder opened for a lock; None where it is gone, or the system opens no folders."""
    try:
        opened = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        yield None
        return
    try:
        yield opened
    finally:
        os.close(opened)


def _locked(folder: int) -> bool:
    try:
        import fcntl

        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, ModuleNotFoundError):  # somebody has it, or the system or its disk has no such locks
        return False
    return True


def _is_own(folder: Path) -> bool:
    try:
        return not hasattr(os, "geteuid") or folder.lstat().st_uid == os.geteuid()
    except OSError:
        return False
