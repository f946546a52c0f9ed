"""What detection sees of an input: the keys and a few values of its start, broken or not."""

from __future__ import annotations

import re
from collections.abc import Iterable

from undersong.formats.sources import SAMPLE, TextSource

DEPTH = 8  # key paths beyond say nothing about a format
VALUES = 20
WRAPPERS = ("posts", "data", "conversations", "results", "sessions", "threads")  # keys around the list of records
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)"(\s*+:)?|[\[\]{},]', re.DOTALL)
_BY_NAME = re.compile(
    r'\s*+\{\s*+(?:"[^"]*+"\s*+:\s*+(?:"[^"]*+"|[\w.+-]++)\s*+,\s*+)*+"(conversations|sessions|threads)"\s*+:\s*+\{'
)

Path = tuple[str, ...]


class FormatSample:
    """Key paths (arrays leave no step) and some string values of a JSON start, or the plain text."""

    def __init__(self, source: TextSource, size: int = SAMPLE) -> None:
        self.name = source.name
        self.text = source.head(size).decode("utf-8", "replace")
        self.is_json = self.text.lstrip()[:1] in ("{", "[")
        self.keys: set[Path] = set()
        self.values: dict[Path, set[str]] = {}
        self.list_first = self.text.lstrip()[:1] == "["
        if self.is_json:
            self._walk()

    def has(self, *paths: str) -> bool:
        """Whether every dotted path is there, in a record or in a record under one of the WRAPPERS."""
        return self.under((), paths) or any(self.under((name,), paths) for name in WRAPPERS)

    def under(self, prefix: Path, paths: Iterable[str]) -> bool:
        """Whether every dotted path is there below ``prefix``."""
        return all((*prefix, *path.split(".")) in self.keys for path in paths)

    def any_of(self, *paths: str) -> bool:
        """Whether one of the dotted paths is there."""
        return any(self.has(path) for path in paths)

    def by_name(self) -> str:
        """The key under which a document holds its conversations in an object by their names; "" where none does."""
        match = _BY_NAME.match(self.text)
        return match[1] if match else ""

    def values_at(self, path: str) -> set[str]:
        """The first distinct string values at a dotted path of a record."""
        return self.values.get(tuple(path.split(".")), set())

    def _walk(self) -> None:
        """Follow brackets and keys with a stack; a list keeps the path of its key."""
        stack: list[Path | None] = []
        path: Path = ()
        for token in _TOKEN.finditer(self.text):
            symbol = token.group()
            if symbol in ("{", "["):
                stack.append(path)
            elif symbol in ("}", "]"):
                path = (stack.pop() if stack else ()) or ()
            elif symbol == ",":
                path = (stack[-1] if stack else ()) or ()
            elif token[2]:
                path = (*((stack[-1] if stack else ()) or ())[:DEPTH], token[1])
                self.keys.add(path)
            else:
                strings = self.values.setdefault(path, set())
                if len(strings) < VALUES:
                    strings.add(token[1][:64])
