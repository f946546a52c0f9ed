"""Inputs of one name in different folders: which can be read together, and by which path they are told apart."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from undersong.formats.ingest import input_files


class Batch:
    """Inputs that are read together; ``files`` by their names in reports, which are unique among them.

    No two have the same name below the folder of the argument through which they come.
    """

    def __init__(self) -> None:
        self.paths: list[str | Path] = []
        self.files: dict[str, Path] = {}
        self.labels: dict[str, str] = {}
        self._short: dict[str, Path] = {}

    def has_room(self, short: dict[str, Path]) -> bool:
        """Whether none of these has the short name of another file in it."""
        return all(_same(file, self._short.get(name, file)) for name, file in short.items())

    def add(self, path: str | Path, files: dict[str, Path], short: dict[str, Path]) -> None:
        """Take an argument with its files."""
        self.paths.append(path)
        self.files |= files
        self._short |= short

    def file(self, name: str) -> Path | None:
        """The file, or the archive, that a name in a report is of; None where it is no file on disk."""
        path = self.files.get(self._input(name))
        return path if path is not None and path.is_file() else None

    def is_packed(self, name: str) -> bool:
        """Whether the name is that of a text in an archive."""
        return name not in self.files

    def label(self, name: str) -> str:
        """The name, told apart from the same name of another input."""
        own = self._input(name)
        return self.labels.get(own, own) + name[len(own) :]

    def _input(self, name: str) -> str:
        """The input to which a name belongs: itself, or the archive in which it lies, or a line of it."""
        if name in self.files:
            return name
        ends = [place for place, letter in enumerate(name) if letter in "/:"]
        return next((name[:end] for end in reversed(ends) if name[:end] in self.files), name)


def batches(paths: Sequence[str | Path]) -> list[Batch]:
    """The inputs in order, those of one name in batches of their own; labels are the shortest paths that differ."""
    apart: list[Batch] = []
    for path in paths:
        own = {name: file for file, name in input_files(Path(path))} if path != "" else {}
        above = os.path.dirname(os.path.abspath(path))
        short = {os.path.relpath(os.path.abspath(file), above): file for file in own.values()}
        batch = next((each for each in apart if each.has_room(short)), None)
        if batch is None:
            apart.append(batch := Batch())
        batch.add(path, own, short)
    _label(apart)
    return apart


def _label(apart: Sequence[Batch]) -> None:
    for batch in apart[1:] and apart:
        for name, file in batch.files.items():
            others = [other.files[name] for other in apart if other is not batch and name in other.files]
            if others := [other for other in others if not _same(file, other)]:
                batch.labels[name] = distinguishing(file, others, len(Path(name).parts))


def distinguishing(file: Path, others: Iterable[Path], least: int = 1) -> str:
    """The shortest end of a path that none of the others has, of ``least`` parts or more."""
    parts = Path(os.path.abspath(file)).parts
    rivals = [Path(os.path.abspath(other)).parts for other in others]
    for count in range(least, len(parts)):
        if all(parts[-count:] != rival[-count:] for rival in rivals):
            return "/".join(parts[-count:])
    return str(Path(*parts))


def _same(file: Path, other: Path) -> bool:
    return os.path.abspath(file) == os.path.abspath(other)
