"""Which parts of a request to the reader stand close together in a text: kinds of words, and frames made of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import msgspec

from undersong.rulebook import RULES, read

LEXICON_FILE = RULES / "injection_words.yaml"
WORD = re.compile(r"\w+(?:['’-]\w+)*")
SENTENCE = re.compile(r"[.!?:;]+\s|\n|[。！？]")
BLANKS = re.compile(r"[ \t]{2,}|\t")
CLAUSE = frozenset(",()–—")  # after which an order may begin
SHORTEST, LONGEST_SHAPE = 3, 12  # letters of a stem


class InjectionFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Groups of kinds that all stand within so many words; a group is ``one|another``."""

    id: str
    within: int
    all: tuple[str, ...]


class InjectionWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``injection_words.yaml``: see the file."""

    why: str
    misses: str
    sentence: int
    opening: tuple[str, ...]
    first_words: int
    imperative: tuple[str, ...]
    after: str
    wording: tuple[str, ...]
    words: dict[str, str]
    frames: tuple[InjectionFrame, ...]
    decoded: tuple[InjectionFrame, ...]


class FrameMask(NamedTuple):
    """A frame with its groups as bits."""

    id: str
    within: int
    groups: tuple[int, ...]


Phrases = dict[str, list[tuple[tuple[str, ...], int]]]


class Lexicon(NamedTuple):
    """Words, stems and phrases with the bits of their kinds."""

    words: dict[str, int]
    stems: dict[str, int]
    phrases: Phrases
    opening: int
    imperative: int
    after: frozenset[str]
    frames: tuple[FrameMask, ...]
    decoded: tuple[FrameMask, ...]
    sentence: int
    first_words: int
    wording: int


@cache
def lexicon() -> Lexicon:
    """The shipped words, folded as texts are."""
    document = read(LEXICON_FILE, InjectionWords)
    bits = {name: 1 << place for place, name in enumerate(document.words)}
    words, stems, phrases = dict[str, int](), dict[str, int](), Phrases()
    for kind, listed in document.words.items():
        for entry in listed.split():
            first, *rest = WORD.findall(folded(entry.rstrip("*").replace("_", " ")))
            if rest:
                phrases.setdefault(first, []).append((tuple(rest), bits[kind]))
            else:
                table = stems if entry.endswith("*") else words
                table[first] = table.get(first, 0) | bits[kind]
    opening, imperative = (sum(bits[name] for name in names) for names in (document.opening, document.imperative))
    return Lexicon(
        words, stems, phrases, opening, imperative, frozenset(document.after.split()),
        _shapes(document.frames, bits), _shapes(document.decoded, bits), document.sentence, document.first_words,
        sum(bits[name] for name in document.wording),
    )  # fmt: skip


class FrameMatch(NamedTuple):
    """The first frame that a text holds, None for none, and whether it has words that a cue of wording can stand on."""

    frame: str | None
    wording: bool


def match_frames(text: str, *, decoded: bool = False) -> FrameMatch:
    """What a folded text holds; ``decoded``: the text was hidden."""
    vocabulary = lexicon()
    hits = list(_hits(text, vocabulary))
    every = 0
    for _, bits in hits:
        every |= bits
    shapes = (*vocabulary.frames, *vocabulary.decoded) if decoded else vocabulary.frames
    possible = (each for each in shapes if all(every & group for group in each.groups))
    frame = next((each.id for each in possible if _holds(each, hits)), None)
    return FrameMatch(frame, bool(every & vocabulary.wording))


def folded(text: str) -> str:
    """Lower case, compatibility forms resolved, accents and invisible characters removed, white space as one blank."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in text if unicodedata.category(char) not in {"Cf", "Mn"})
        text = unicodedata.normalize("NFC", text)
    return BLANKS.sub(" ", text.lower())


def _hits(text: str, vocabulary: Lexicon) -> Iterator[tuple[int, int]]:
    """Place and kinds of the words that are known; a place is further on after the end of a sentence."""
    first = 0
    for sentence in SENTENCE.split(text):
        words = WORD.findall(sentence)
        ends: list[int] = []
        for at in [at for at, word in enumerate(words) if _known(word)]:
            word = words[at]
            bits = _kinds(word)
            if word in vocabulary.phrases:
                bits |= _begun(words, at, vocabulary.phrases[word])
            if at >= vocabulary.first_words:
                bits &= ~vocabulary.opening
                if bits & vocabulary.imperative and words[at - 1] not in vocabulary.after:
                    ends = ends or [each.end() for each in WORD.finditer(sentence)]
                    bits &= -1 if sentence[ends[at - 1]] in CLAUSE else ~vocabulary.imperative
            if bits:
                yield first + at, bits
        first += len(words) + vocabulary.sentence


def _begun(words: Sequence[str], at: int, phrases: Sequence[tuple[tuple[str, ...], int]]) -> int:
    """The kinds of the phrases that begin at a word."""
    kinds = 0
    for rest, kind in phrases:
        if tuple(words[at + 1 : at + 1 + len(rest)]) == rest:
            kinds |= kind
    return kinds


@lru_cache(1 << 14)
def _known(word: str) -> bool:
    """Whether a word is of any kind or begins a phrase: most are not."""
    return bool(_kinds(word)) or word in lexicon().phrases


@lru_cache(1 << 14)
def _kinds(word: str) -> int:
    vocabulary = lexicon()
    bits = vocabulary.words.get(word, 0)
    for length in range(SHORTEST, min(LONGEST_SHAPE, len(word)) + 1):
        bits |= vocabulary.stems.get(word[:length], 0)
    return bits


def _holds(shape: FrameMask, hits: Sequence[tuple[int, int]]) -> bool:
    """Whether all groups stand within the frame's words, each in a word of its own."""
    for first, (start, _) in enumerate(hits):
        near = [bits for place, bits in hits[first : first + shape.within + 1] if place - start <= shape.within]
        if len(near) < len(shape.groups):
            continue
        if _fits(near, shape.groups):
            return True
    return False


def _fits(near: Sequence[int], groups: Sequence[int]) -> bool:
    """Whether every group can be given a word that no other group has."""
    if not groups:
        return True
    first, *rest = groups
    return any(bits & first and _fits((*near[:place], *near[place + 1 :]), rest) for place, bits in enumerate(near))


def _shapes(frames: Sequence[InjectionFrame], bits: dict[str, int]) -> tuple[FrameMask, ...]:
    return tuple(
        FrameMask(each.id, each.within, tuple(sum(bits[name] for name in group.split("|")) for group in each.all))
        for each in frames
    )
