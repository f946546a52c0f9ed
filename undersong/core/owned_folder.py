"""Temporary folders of a running process: a lock that ends with the process tells whose owner was killed.

Each is 0700, and locked by ``flock`` on the folder itself.
"""

from __future__ import annotations

import fcntl
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
    folder, lock = _made(parent, prefix, suffix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


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
    lock = None
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if not _locked(lock) and time.time() - os.fstat(lock).st_mtime < UNLOCKED:
            return False
        shutil.rmtree(folder, ignore_errors=True)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    finally:
        if lock is not None:
            os.close(lock)
    return not folder.exists()


def is_owned(folder: Path) -> bool:
    """Whether a running process has the folder; True where nobody can say."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    try:
        return not _locked(lock)
    finally:
        os.close(lock)


def _made(parent: Path, prefix: str, suffix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=parent))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        _locked(lock)
        if folder.exists():  # else another run took it for abandoned before it was locked
            return folder, lock
        os.close(lock)


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has it, or the file system has no locks
        return False
    return True


def _is_own(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid == os.geteuid()
    except OSError:
        return False
