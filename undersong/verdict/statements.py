"""Claims as keys with a polarity: the content words of a sentence, and whether it affirms or denies them. Lexical."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from undersong.models import Quote
from undersong.verdict.course import TranscriptTurn, quote
from undersong.verdict.prose import sentences
from undersong.verdict.words import stance_config

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


_CLAUSE_END = re.compile(r"[,;:]\s|[–—(]|\s(?=(?:and|but|while|although|though|because|which|who|as)\b)", re.IGNORECASE)


class Proposition(NamedTuple):
    """A clause at ``start:end`` of a turn that affirms or denies ``key``."""

    turn: TranscriptTurn
    start: int
    end: int
    key: frozenset[str]
    affirms: bool


def propositions(turn: TranscriptTurn) -> Iterator[Proposition]:
    """The short declarative clauses of a turn with a verb of assertion; questions and commands assert nothing."""
    config = stance_config()
    for first, last in _clauses(turn.prose):
        clause = turn.prose[first:last]
        words = _WORD.findall(clause.lower())
        if not 2 < len(words) <= config.longest or config.assertion.isdisjoint(words):
            continue
        key, affirms = _claim(tuple(words))
        if len(key) >= config.words:
            start = first + len(clause) - len(clause.lstrip())
            yield Proposition(turn, start, first + len(clause.rstrip()), key, affirms)


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    """The clauses of the sentences that are no questions: a denial holds for its own clause."""
    for first, last in sentences(text):
        if text[first:last].rstrip().endswith("?"):
            continue
        at = first
        for match in _CLAUSE_END.finditer(text, first, last):
            yield at, match.start()
            at = match.end()
        yield at, last


@cache
def _claim(words: tuple[str, ...]) -> tuple[frozenset[str], bool]:
    """Content words with opposites brought to one form, and the polarity that negations and opposites leave."""
    config = stance_config()
    affirms, key = True, set()
    for word in words:
        if word in config.negations or word.endswith("n't"):
            affirms = not affirms
            continue
        if word in config.opposites:
            affirms, word = not affirms, config.opposites[word]
        if word not in function_words() and word not in config.assertion:
            key.add(_stem(word))
    return frozenset(key), affirms


def proposition_quote(proposition: Proposition) -> Quote:
    """A statement verbatim."""
    return quote(proposition.turn.message, proposition.start, proposition.end)


@cache
def function_words() -> frozenset[str]:
    """Words that name nothing."""
    return frozenset(stance_config().function_words.split())


def opposed(one: Proposition, other: Proposition) -> bool:
    """Whether two sentences say the opposite of the same claim."""
    shared = len(one.key & other.key)
    alike = shared >= stance_config().overlap * len(one.key | other.key)
    return alike and shared >= stance_config().words and one.affirms is not other.affirms


def _stem(word: str) -> str:
    for ending in ("'s", "ies", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) > 2 and not word.endswith("ss"):
            return word.removesuffix(ending) + ("y" if ending == "ies" else "")
    return word
