"""Write a report folder as a whole or not at all, and never over somebody else's files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from undersong import manifest
from undersong.errors import UsageError

DROPPINGS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})  # what desktops leave in any folder that is looked at


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

    Raises UsageError where ``folder`` is not ours, and where the disk refuses.
    """
    folder = folder.resolve()
    check_folder(folder)
    partial, old = (folder.with_name(f".{folder.name}.{kind}") for kind in ("partial", "old"))
    try:
        _tidy(folder, partial, old)
        partial.mkdir(parents=True)
        yield partial
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}", where=str(folder), remedy="free some space or choose another folder"
        ) from error
    finally:
        _tidy(folder, partial, old)


def _tidy(folder: Path, partial: Path, old: Path) -> None:
    """Undo what an interrupted writing left behind; the report that was there comes back."""
    if old.exists() and not folder.exists():
        old.rename(folder)
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)


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
