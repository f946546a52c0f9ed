"""Which words a text must hold for a regular expression to match in it, so that most texts need no search."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any

from ahocorasick_rs import AhoCorasick, Implementation

DIGIT = "\\d"  # stands for any decimal digit
MOST = 100  # spellings of a place; of more nothing is concluded
TELLING = 2  # groups of an expression that are looked for
LATEST = 4  # texts that are remembered with their letters folded
RARE = 5  # letters of a word that is as rare as a digit
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_NO_WIDTH = ("AT", "ASSERT", "ASSERT_NOT")
_SAME = {"ı": "i", "İ": "i", "ſ": "s", "K": "k"}  # what matches ASCII letters without regard to case
_A_DIGIT = re.compile(r"\d")
Needs = tuple[tuple[str, ...], ...]  # of each group at least one is in every text that matches
_Exact = frozenset[str] | None  # all that a part can match, folded; None: too many or unknown


class ExpressionFilter:
    """Which of many expressions without regard to case may match in a text; those that it leaves out match nowhere.

    It is made of the ``required_words`` of each.
    """

    def __init__(self, of_each: Iterable[Needs]) -> None:
        self._groups: list[list[frozenset[int]]] = []
        places: dict[str, int] = {}
        for needs in of_each:
            self._groups.append([frozenset(places.setdefault(word, len(places)) for word in group) for group in needs])
        self._digit = places.setdefault(DIGIT, len(places))
        words = {place: word for word, place in places.items() if word != DIGIT}
        self._places = tuple(words)
        self._by_first: dict[int, list[int]] = {}  # word → the expressions of whose first group it is
        for place, groups in enumerate(self._groups):
            for word in groups[0] if groups else ():
                self._by_first.setdefault(word, []).append(place)
        self._always = [place for place, groups in enumerate(self._groups) if not groups]
        self._automaton = AhoCorasick(list(words.values()), implementation=Implementation.ContiguousNFA)

    def possible(self, text: str) -> list[int]:
        """The places of the expressions that may match in a text, in their order."""
        matches = self._automaton.find_matches_as_indexes(folded(text), overlapping=True)
        present = {self._places[match[0]] for match in matches}
        if _A_DIGIT.search(text):
            present.add(self._digit)
        candidates = {place for word in present for place in self._by_first.get(word, ())}
        return sorted(self._always + [place for place in candidates if self._has_others(place, present)])

    def _has_others(self, place: int, present: set[int]) -> bool:
        return not any(present.isdisjoint(group) for group in self._groups[place][1:])


@lru_cache(maxsize=LATEST)  # a text is looked at for several kinds of words in a row
def folded(text: str) -> str:
    """A text with every letter as expressions without regard to case see it; each stays at its place."""
    if not text.isascii():
        for letter, plain in _SAME.items():
            if letter in text:  # a table for all would be asked for every letter
                text = text.replace(letter, plain)
    return text.lower()


def required_words(expression: str) -> Needs:
    """The most telling groups of words that an expression without regard to case needs; () where none is known."""
    try:
        parser: Any = importlib.import_module("re._parser")
        tree = parser.parse(expression, re.IGNORECASE)
    except (ImportError, AttributeError):  # another Python: every text is searched
        return ()
    groups = {_without_longer(group) for group in _groups(tree) if all(map(_says_something, group))}
    return tuple(sorted(groups, key=_telling)[:TELLING])


def _telling(group: Iterable[str]) -> tuple[int, tuple[str, ...]]:
    """Those with long words first; digits are as rare as long words."""
    return -min(RARE if word == DIGIT else len(word) for word in group), tuple(sorted(group))


def _without_longer(group: frozenset[str]) -> tuple[str, ...]:
    """The words without those that hold another of them: that one is then in the text, too."""
    return tuple(sorted(word for word in group if not any(other in word for other in group - {word})))


def _says_something(word: str) -> bool:
    return len(word) > 1 or (word != " " and not word.isalnum() and word != "")


def _groups(items: Iterable[Any]) -> Iterator[frozenset[str]]:
    """What a sequence needs: runs of parts that are known exactly, and what the others need."""
    run = frozenset({""})
    for item in items:
        exact = _exact(item)
        if exact is not None and len(run) * len(exact) <= MOST:
            run = frozenset(map("".join, product(run, exact)))
            continue
        yield run
        run = frozenset({""}) if exact is None else exact
        if exact is None:
            yield from _needs_of(item)
    yield run


def _exact(item: Any) -> _Exact:
    """All that one part can match, or None."""
    name, value = str(item[0]), item[1]
    if name in _NO_WIDTH:
        return frozenset({""})
    if name == "LITERAL":
        return _letter(value)
    if name == "IN":
        return _united(_letter(each[1]) if str(each[0]) == "LITERAL" else None for each in value)
    if name == "SUBPATTERN":
        return None if value[1] or value[2] else _exact_sequence(value[3])
    if name == "BRANCH":
        return _united(map(_exact_sequence, value[1]))
    if name in _REPEATS and tuple(value[:2]) == (0, 1):
        return _united((frozenset({""}), _exact_sequence(value[2])))
    return None


def _letter(code: int) -> _Exact:
    letter = chr(code).lower()
    return frozenset({letter}) if letter.isascii() or letter.upper() == letter else None


def _united(several: Iterable[_Exact]) -> _Exact:
    total: set[str] = set()
    for part in several:
        if part is None:
            return None
        total |= part
    return frozenset(total) if len(total) <= MOST else None


def _exact_sequence(items: Iterable[Any]) -> _Exact:
    run = frozenset({""})
    for item in items:
        exact = _exact(item)
        if exact is None or len(run) * len(exact) > MOST:
            return None
        run = frozenset(map("".join, product(run, exact)))
    return run


def _needs_of(item: Any) -> Iterator[frozenset[str]]:
    """What a part needs that is not known exactly."""
    name, value = str(item[0]), item[1]
    if name == "SUBPATTERN" and not value[1] and not value[2]:
        yield from _groups(value[3])
    elif name == "BRANCH":
        best = [_best(_groups(each)) for each in value[1]]
        yield frozenset().union(*best) if all(best) else frozenset({""})
    elif name in _REPEATS and value[0] >= 1:
        yield from _groups(value[2])
    elif name == "IN" and [str(each) for each in value] == ["(CATEGORY, CATEGORY_DIGIT)"]:
        yield frozenset({DIGIT})


def _best(groups: Iterable[frozenset[str]]) -> frozenset[str]:
    """The most telling group; empty where none says anything."""
    return min((group for group in groups if all(map(_says_something, group))), key=_telling, default=frozenset())
