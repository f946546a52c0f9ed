"""What detection sees of an input: the keys and a few values of its start, broken or not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from undersong.formats.json_stream import LINES
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
        self.text = _without_broken_start(source.head(size).decode("utf-8", "replace"), source.name)
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


def _without_broken_start(text: str, name: str) -> str:
    """The text from its second line on, where that is a JSON object and the first is none: its reader names line 1.

    A first line that does not even begin an object is passed over only in a file whose name says that it is JSON Lines.
    """
    first, _, rest = text.lstrip("\ufeff \t\r\n").partition("\n")
    begins = first.startswith("{") or name.lower().removesuffix(".gz").endswith(LINES)
    if not begins or first.startswith("[") or not rest.startswith("{") or _is_object(first):
        return text
    return rest if _is_object(rest.partition("\n")[0]) else text


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
