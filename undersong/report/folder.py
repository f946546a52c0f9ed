"""Write a report folder as a whole or not at all, and never over somebody else's files."""

from __future__ import annotations

import errno
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from undersong import manifest
from undersong.errors import StoreError, UndersongError, UsageError

DROPPINGS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})  # what desktops leave in any folder that is looked at
ABANDONED = 24 * 3600.0  # seconds after which a half-written folder beside the report belongs to nobody
TAKES = 10  # attempts to take the place of a report that others are replacing too
OWNER_ONLY = 0o600  # a report quotes private messages; its folder is 0700
_MEDIUM = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}  # the disk's fault, not that of the folder's name
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}  # somebody else was quicker


def check_folder(folder: Path) -> None:
    """Raise UsageError where ``folder`` is not a report of ours, empty, or still to be made."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise UsageError("is a file, not a folder", where=str(folder), remedy="choose another folder")
    foreign = sorted({path.name for path in folder.iterdir()} - DROPPINGS - _ours(folder))
    if foreign:
        names = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        remedy = "choose another folder, or move those files away"
        raise UsageError(f"holds files that no report of undersong wrote ({names})", where=str(folder), remedy=remedy)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary sibling to write into; it takes the place of ``folder`` when the block ends without an error.

    Only the owner can read what is written. Two runs with the same ``folder`` have a sibling each; the one that ends
    last stays. Raises UsageError where ``folder`` is not ours or cannot be made, StoreError where the disk fails.
    """
    folder = folder.resolve()
    check_folder(folder)
    partial: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _recover(folder)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
        yield partial
        for path in partial.iterdir():
            path.chmod(OWNER_ONLY)
        _replace(folder, partial)
    except OSError as error:
        raise _refusal(folder, error) from error
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
        _recover(folder)


def _replace(folder: Path, partial: Path) -> None:
    """Put ``partial`` in the place of ``folder``; what stood there is kept until the new one stands."""
    old = partial.with_suffix(".old")
    for attempt in range(TAKES):
        try:
            if folder.exists():
                folder.rename(old)
            partial.rename(folder)
            break
        except OSError as error:
            if error.errno not in _TAKEN or attempt == TAKES - 1:
                raise
            shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _recover(folder: Path) -> None:
    """Undo what an interrupted writing left behind; the report that was there comes back."""
    backups = sorted(_beside(folder, ".old"), key=_age)
    if backups and not folder.exists():
        with suppress(OSError):  # another run was quicker
            backups.pop(0).rename(folder)
    for leftover in (*backups, *_beside(folder, ".partial")):
        if _age(leftover) > ABANDONED:
            shutil.rmtree(leftover, ignore_errors=True)


def _beside(folder: Path, suffix: str) -> list[Path]:
    """Our temporary siblings of ``folder``."""
    try:
        return [path for path in folder.parent.iterdir() if _is_sibling(path.name, folder.name, suffix)]
    except OSError:  # a folder that cannot be listed holds nothing to tidy; writing into it says why
        return []


def _is_sibling(name: str, folder: str, suffix: str) -> bool:
    """``.out.x1y2z3_a.partial`` is one of ``out``, ``.out.copy.partial`` is not."""
    return re.fullmatch(rf"\.{re.escape(folder)}(?:\.[a-z0-9_]{{8}})?{re.escape(suffix)}", name) is not None


def _age(path: Path) -> float:
    """Seconds since the folder was last changed; 0 where it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _refusal(folder: Path, error: OSError) -> UndersongError:
    what = f"cannot be written: {error.strerror}"
    if error.errno in _MEDIUM:
        return StoreError(what, where=str(folder), remedy="free some space or choose another disk with --out")
    return UsageError(what, where=str(folder), remedy="choose another folder")


def _ours(folder: Path) -> set[str]:
    """The names that the manifest in ``folder`` covers; empty where there is none that can be read."""
    try:
        value = json.loads((folder / manifest.NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict) or value.get("schema") != manifest.SCHEMA:
        return set()
    return {manifest.NAME, manifest.RUN, *files}
