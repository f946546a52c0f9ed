"""Two trees of records beside each other, or one beside the hashes of a golden file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

AROUND = 70  # characters shown on each side of the first differing place


def files(folder: Path) -> dict[str, Path]:
    """Name inside the folder → path."""
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def differences(old: Path, new: Path) -> tuple[int, list[str]]:
    """How many records were compared, and of each that differs where and how."""
    ours, theirs = files(old), files(new)
    names = sorted({*ours, *theirs})
    return len(names), [text for name in names for text in _difference(name, ours.get(name), theirs.get(name))]


def _difference(name: str, old: Path | None, new: Path | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"{heading(name, old or new)}\n    only in the {'new' if old is None else 'old'} version"
        return
    before, after = old.read_bytes(), new.read_bytes()
    if before != after:
        yield f"{heading(name, old)}\n{first_difference(before, after)}"


def heading(name: str, path: Path | None) -> str:
    """Section, command and file of a record."""
    section, step, *file = name.split("/")
    command = path.parents[len(file) - 1] / "command" if path else None
    text = command.read_text(encoding="utf-8", errors="replace") if command and command.exists() else step
    return f"{section}: {text}: {'/'.join(file)}"


def first_difference(old: bytes, new: bytes) -> str:
    """The first place where two contents differ, with what stands around it."""
    place = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    line, column = old.count(b"\n", 0, place) + 1, place - old.rfind(b"\n", 0, place)
    begin = max(old.rfind(b"\n", 0, place) + 1, place - AROUND)
    shown = (
        f"    {side} {raw[begin : place + AROUND].decode('utf-8', 'backslashreplace')!r}"
        for side, raw in (("old", old), ("new", new))
    )
    return "\n".join([f"    line {line}, column {column} (byte {place} of {len(old)} and {len(new)})", *shown])


def digests(folder: Path) -> dict[str, str]:
    """Name → SHA-256 of each record."""
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files(folder).items()}


def against(golden: Path, folder: Path) -> tuple[int, list[str]]:
    """As ``differences``, of one side beside the hashes of a golden file; sections that did not run are left out."""
    ours, new = json.loads(golden.read_text(encoding="utf-8"))["records"], digests(folder)
    ran = {name.partition("/")[0] for name in new} - {"inputs"}  # only those of the sections that run are made
    names = sorted({name for name in ours if name.partition("/")[0] in ran} | {*new})
    texts = [
        f"{heading(name, folder / name)}\n    {'not in this run' if name not in new else 'not as in the golden file'}"
        for name in names
        if ours.get(name) != new.get(name)
    ]
    return len(names), texts


def write_golden(golden: Path, folder: Path, quick: bool) -> None:
    """Write the hashes of every record."""
    value = {"quick": quick, "records": digests(folder)}
    golden.write_text(json.dumps(value, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
