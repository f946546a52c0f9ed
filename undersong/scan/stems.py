"""Phrases → stems: what two wordings of one phrase have in common, so that variants are not counted as coverage."""

from __future__ import annotations

import re
from collections.abc import Iterable

from undersong.scan.normalise import fold

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e|ly)$")


def stem(phrase: str, function_words: frozenset[str]) -> frozenset[str]:
    """The content words of a phrase without endings; all its words where none is a content word.

    >>> words = frozenset({"you", "are", "you're", "all", "your"})
    >>> stem("You are imagining things", words) == stem("you're imagining all your things", words)
    True
    """
    words = _WORD.findall(fold(phrase).text)
    content = [word for word in words if word not in function_words and word.split("'")[0] not in function_words]
    return frozenset(_ENDING.sub("", word.split("'")[0]) for word in content or words)


def stems(phrases: Iterable[str], function_words: frozenset[str]) -> set[frozenset[str]]:
    """The distinct stems of some phrases."""
    return {stem(phrase, function_words) for phrase in phrases}
