"""The other inputs of a run, for what a file does not say alone: who an id is, which number of a date is the day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

from undersong.errors import InputError
from undersong.formats.sources import OpenInput, TextSource

A = TypeVar("A")
T = TypeVar("T")
COMPANION_MOST = 64 << 20  # bytes of a file that is read for what it says of others


class RunInputs:
    """The files of a run by the names that they have in reports; regular files only, which can be opened again."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = {name: path for name, path in files.items() if path.is_file()}
        self._by_folder: dict[str, list[str]] = {}
        for name in self._files:
            self._by_folder.setdefault(name.rpartition("/")[0], []).append(name)
        self._answers: dict[tuple[str, Callable[..., object]], object] = {}

    def texts(self, folder: str) -> Iterator[TextSource]:
        """The texts of all inputs in a folder, and in the archives in it; what cannot be opened is left out."""
        for name in self._by_folder.get(folder, ()):
            yield from self._texts_of(name)

    def content(self, name: str) -> bytes | None:
        """The bytes of a text input, or of a member of an archive; None where there is none, or it is very large."""
        parts = name.split("/")
        homes = ("/".join(parts[:number]) for number in range(len(parts), 0, -1))
        home = next((each for each in homes if each in self._files), None)
        with suppress(InputError):
            for source in self._texts_of(home) if home is not None else ():
                if source.name == name:
                    whole = source.head(COMPANION_MOST + 1)
                    return whole if len(whole) <= COMPANION_MOST else None
        return None

    def once(self, place: str, work: Callable[[A], T], content: Callable[[], A]) -> T:
        """What a function says of what is at a place, asked once in a run."""
        if (place, work) not in self._answers:
            self._answers[place, work] = work(content())
        return cast(T, self._answers[place, work])

    def _texts_of(self, name: str) -> Iterator[TextSource]:
        with suppress(InputError), OpenInput(self._files[name], name) as opened:
            yield from opened.sources(self._files[name].stem)


class Neighbours:
    """The inputs around one of a run: those in its folder."""

    def __init__(self, inputs: RunInputs, name: str) -> None:
        self._inputs, self._folder = inputs, name.rpartition("/")[0]

    def ask(self, work: Callable[[Iterator[TextSource]], T]) -> T:
        """What a function says of the texts in the folder, the input itself among them; asked once for a folder."""
        return self._inputs.once(self._folder, work, lambda: self._inputs.texts(self._folder))

    def ask_of(self, name: str, work: Callable[[bytes | None], T]) -> T:
        """What a function says of the input, or member of an archive, of this name, None where there is none."""
        return self._inputs.once(name, work, lambda: self._inputs.content(name))
