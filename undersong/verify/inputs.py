"""The input files of a report, given again: matched by name or by content, and compared byte for byte."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from undersong.core.manifest import Manifest
from undersong.formats.ingest import input_files
from undersong.models import InputFile
from undersong.verify.manifest_check import Discrepancy, compare_file


class NamedFile(NamedTuple):
    """A file that was given, and its name as a report would write it."""

    path: Path
    name: str


def compare_inputs(paths: Sequence[Path], manifest: Manifest, reported: Collection[str] = ()) -> Iterator[Discrepancy]:
    """How the files and folders at ``paths`` differ from the inputs of the manifest; nothing without any path.

    A folder is searched as the audit searches it: what is never read there, such as pages, databases and reports, is
    passed over, and so are files of which the report tells a problem (their names in ``reported``).
    """
    if not paths:
        return
    missing = [path for path in paths if not path.exists()]
    yield from (Discrepancy(what="no such file", where=str(path)) for path in missing)
    files = [NamedFile(*each) for path in paths if path.exists() for each in input_files(path)]
    named, rest = _named(manifest.inputs, files)
    for entry, file in named:
        mismatches = compare_file(file.path, entry.name, entry.sha256)
        yield from (msgspec.structs.replace(each, what=f"input {each.what}") for each in mismatches)
    used = {file.path for _, file in named}
    gone = {path.name for path in missing}
    for entry in (each for each in rest if Path(each.name).name not in gone):
        for discrepancy in _renamed(entry, files, used):
            if not (discrepancy.found and manifest.parameters.get("redacted")):  # else its name may be masked
                yield discrepancy
    for file in files:
        if file.path not in used and file.name not in reported:
            yield Discrepancy(what="is not an input of this report", where=str(file.path))


def in_order(paths: Sequence[Path], manifest: Manifest) -> list[Path]:
    """The given files of the manifest's inputs in its order: conversations without an id are named by it."""
    files = [NamedFile(*each) for path in paths if path.exists() for each in input_files(path)]
    by_name = {entry.name: file.path for entry, file in _named(manifest.inputs, files)[0]}
    if len(by_name) < len(manifest.inputs):  # masked names: by content
        by_name |= {entry.name: file.path for entry in manifest.inputs for file in files if _agrees(file, entry)}
    return [by_name[entry.name] for entry in manifest.inputs if entry.name in by_name]


def _named(
    entries: Sequence[InputFile], files: Sequence[NamedFile]
) -> tuple[list[tuple[InputFile, NamedFile]], list[InputFile]]:
    """Each input with the file of its name, and the inputs without one.

    The whole name first; a report may be checked elsewhere than where it was made, so then the file with which most of
    the path's end agrees, among equals one with the same content.
    """
    pairs: list[tuple[InputFile, NamedFile]] = []
    by_name = {file.name: file for file in files}
    later, without = [], []
    for entry in entries:
        file = by_name.pop(entry.name, None)
        if file is None:
            later.append(entry)
        else:
            pairs.append((entry, file))
    free: dict[str, list[NamedFile]] = {}
    for file in by_name.values():
        free.setdefault(file.path.name, []).append(file)
    for entry in later:
        candidates = free.get(Path(entry.name).name)
        if not candidates:
            without.append(entry)
            continue
        nearest = max(candidates, key=partial(_nearness, entry=entry))
        candidates.remove(nearest)
        pairs.append((entry, nearest))
    return pairs, without


def _nearness(file: NamedFile, entry: InputFile) -> tuple[bool, int]:
    return _agrees(file, entry), _common_end(file.path, entry.name)


def _common_end(path: Path, name: str) -> int:
    """How many parts the two paths have in common, counted from the file's name."""
    count = 0
    for one, other in zip(reversed(path.parts), reversed(Path(name).parts), strict=False):
        if one != other:
            break
        count += 1
    return count


def _renamed(entry: InputFile, files: Sequence[NamedFile], used: set[Path]) -> Iterator[Discrepancy]:
    """An input that was not given by its name: the same bytes under another name, or nothing."""
    same = next((file for file in files if file.path not in used and _agrees(file, entry)), None)
    if same is None:
        yield Discrepancy(what="input was not given by this name", where=entry.name, expected=entry.sha256)
        return
    used.add(same.path)
    what = "input has the same content under another name"
    yield Discrepancy(what=what, where=entry.name, expected=Path(entry.name).name, found=same.path.name)


def _agrees(file: NamedFile, entry: InputFile) -> bool:
    return file.path.is_file() and not list(compare_file(file.path, entry.name, entry.sha256))
