"""Several regular expressions searched as one, of which a text is searched only for those whose words it has."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from undersong.datafiles.stored import stored
from undersong.verdict.required_words import DIGIT, Needs, folded, required_words

_FLAG = "(?i)"  # at the start of an expression that heeds no case
_DIGIT = re.compile(r"\d")
_HOLDS_NEWLINE = ("CATEGORY_SPACE", "CATEGORY_NOT_DIGIT", "CATEGORY_NOT_WORD")


class Demands(NamedTuple):
    """What an expression needs: words, by groups; and whether all that it looks at stands in one line."""

    needs: Needs
    in_line: bool


class _SearchedLine(NamedTuple):
    """A line at ``start:end`` with the places of the expressions that may match in it."""

    start: int
    end: int
    places: list[int]


class AnyOf:
    """Expressions with ``|`` between them, ``^`` and ``$`` at each line; matches are those of the whole.

    Groups are numbered within each expression. ``name`` is that of the file that keeps what the expressions need.
    """

    def __init__(self, name: str, expressions: Sequence[str], *, ignore_case: bool = False) -> None:
        self._all = flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self._expressions = tuple(part for each in expressions for part in _alternatives(each))
        self._flags = [flags | (re.IGNORECASE if each.startswith(_FLAG) else 0) for each in self._expressions]
        self._shapes: list[re.Pattern[str] | None] = [None] * len(self._expressions)
        source = repr((self._expressions, self._flags)).encode()
        demands = stored(name, source, tuple[Demands, ...], lambda: tuple(map(demands_of, self._expressions)))
        self._others: list[Needs] = []  # of each expression: what it needs beside the words of the automaton
        self._anywhere: list[int] = []  # those that may match over several lines, or need no word
        by_word: dict[str, list[int]] = {}
        for place, (needs, in_line) in enumerate(demands):
            first = next((group for group in needs if DIGIT not in group), ())
            self._others.append(tuple(group for group in needs if group is not first) if in_line else needs)
            if in_line and first:
                for word in first:
                    by_word.setdefault(word, []).append(place)
            else:
                self._anywhere.append(place)
        self._by_word = list(by_word.values())
        self._automaton = AhoCorasick(list(by_word), implementation=Implementation.DFA)

    def match(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """The match that begins at a place."""
        return self._whole.match(text, start, end)

    def search(self, text: str) -> re.Match[str] | None:
        """The first match."""
        return next(self.finditer(text), None)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """The matches in order."""
        lower = folded(text)
        lines = self._lines(lower)
        ahead = {place: self._shape(place).search(text) for place in self._anywhere if self._may_match(place, lower)}
        position = number = 0
        while True:
            best: tuple[int, int, re.Match[str]] | None = None
            while number < len(lines) and best is None:
                line = lines[number]
                best = self._leftmost(text, line.places, max(line.start, position), line.end)
                number += best is None
            for place, match in ahead.items():
                if match is not None and match.start() < position:
                    match = ahead[place] = self._shape(place).search(text, position)
                if match is not None and (best is None or (match.start(), place) < best[:2]):
                    best = match.start(), place, match
            if best is None:
                return
            yield best[2]
            position = max(best[2].end(), best[2].start() + 1)

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_with_flag, self._expressions)), self._all)

    def _leftmost(
        self, text: str, places: Sequence[int], start: int, end: int
    ) -> tuple[int, int, re.Match[str]] | None:
        matches = ((place, self._shape(place).search(text, start, end)) for place in places if start < end)
        return min(((match.start(), place, match) for place, match in matches if match is not None),
                   key=lambda one: one[:2], default=None)  # fmt: skip

    def _shape(self, place: int) -> re.Pattern[str]:
        shape = self._shapes[place]
        if shape is None:  # of dozens, a text needs a few
            shape = re.compile(self._expressions[place].removeprefix(_FLAG), self._flags[place])
            self._shapes[place] = shape
        return shape

    def _may_match(self, place: int, lower: str) -> bool:
        """Whether a text, or a line, has what an expression needs beside the words of the automaton."""
        return all(any(_has(lower, word) for word in group) for group in self._others[place])

    def _lines(self, lower: str) -> list[_SearchedLine]:
        lines: list[_SearchedLine] = []
        start = end = -1
        places: set[int] = set()
        for word, first, _ in self._automaton.find_matches_as_indexes(lower, overlapping=True):
            if first >= end:
                lines += self._line(lower, start, end, places)
                start, end, places = lower.rfind("\n", 0, first) + 1, lower.find("\n", first), set()
                end = len(lower) if end < 0 else end
            places.update(self._by_word[word])
        return lines + self._line(lower, start, end, places)

    def _line(self, lower: str, start: int, end: int, places: Iterable[int]) -> list[_SearchedLine]:
        line = lower[start:end] if places else ""
        possible = sorted(place for place in places if self._may_match(place, line))
        return [_SearchedLine(start, end, possible)] if possible else []


@cache
def any_of(name: str, *expressions: str) -> AnyOf:
    """Expressions without regard to case; ``name`` says which they are."""
    return AnyOf(f"words-{name}", expressions, ignore_case=True)


def _has(lower: str, word: str) -> bool:
    return _DIGIT.search(lower) is not None if word == DIGIT else word in lower


def demands_of(expression: str) -> Demands:
    """What an expression needs."""
    plain = expression.removeprefix(_FLAG)
    return Demands(required_words(plain), stays_in_line(plain))


def stays_in_line(expression: str) -> bool:
    """Whether nothing that an expression looks at is a newline, so that the line of a match decides."""
    try:
        parser: Any = importlib.import_module("re._parser")
        return not _looks_beyond(parser.parse(expression))
    except (ImportError, AttributeError):  # another Python: every text is searched as a whole
        return False


def _looks_beyond(items: Iterable[Any]) -> bool:
    return any(_part_looks_beyond(str(name), value) for name, value in items)


def _part_looks_beyond(name: str, value: Any) -> bool:
    if name == "LITERAL":
        return bool(value == ord("\n"))
    if name == "NOT_LITERAL":
        return bool(value != ord("\n"))
    if name == "IN":
        return any(map(_is_newline, value)) != (str(value[0][0]) == "NEGATE")
    if name == "SUBPATTERN":
        return bool(value[1] & re.DOTALL) or _looks_beyond(value[3])
    if name == "BRANCH":
        return any(map(_looks_beyond, value[1]))
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _looks_beyond(value[2])
    if name in ("ASSERT", "ASSERT_NOT"):
        return _looks_beyond(value[1])
    if name == "AT":
        return str(value) == "AT_END_STRING"
    return name not in ("ANY", "GROUPREF")


def _is_newline(part: Any) -> bool:
    name, value = str(part[0]), part[1]
    if name == "RANGE":
        return bool(value[0] <= ord("\n") <= value[1])
    return str(value) in _HOLDS_NEWLINE if name == "CATEGORY" else name == "LITERAL" and value == ord("\n")


def _alternatives(expression: str) -> Iterator[str]:
    """The parts of an expression between the ``|`` that stand in no group."""
    flag = _FLAG if expression.startswith(_FLAG) else ""
    depth, first, text = 0, len(flag), expression
    for match in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", text, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if match[0] == "|" and not depth:
            yield flag + text[first : match.start()]
            first = match.end()
    yield flag + text[first:]


def _with_flag(expression: str) -> str:
    return f"(?i:{expression.removeprefix(_FLAG)})" if expression.startswith(_FLAG) else expression
