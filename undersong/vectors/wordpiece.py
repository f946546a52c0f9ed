"""Text → WordPiece ids, as uncased BERT models cut it; equal to the ``tokenizers`` package, without it.

Control characters go, white space separates, punctuation and CJK characters stand alone, accents and case are dropped;
a word is cut greedily into the longest known pieces, and is unknown as a whole where that fails.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain

UNKNOWN = "[UNK]"
LONGEST_WORD = 100  # characters; a longer word is unknown (BERT's own limit)
REMEMBERED = 1 << 17  # words whose pieces are kept, so that memory stays bounded
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_SPLITTERS = re.compile("[\x0b\x0c\x1c-\x1f\x85]")

Pieces = tuple[int, ...]


class _Characters(dict[int, str]):
    """Code point → what stands for it in a normalised text; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = text = _normalised(chr(code))
        return text


class WordPiece(dict[str, Pieces]):
    """A vocabulary; also the memory of what stood between white space before, and of its pieces."""

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__()
        self._known = {token: place for place, token in enumerate(tokens)}
        self._unknown = self._known[UNKNOWN]

    def ids(self, text: str) -> list[int]:
        """The ids of a text's pieces, in order."""
        if len(self) > REMEMBERED:
            self.clear()
        if _SPLITTERS.search(text):  # str.split takes these for white space, BERT drops them
            text = _SPLITTERS.sub("", text)
        return list(chain.from_iterable(map(self.__getitem__, text.split())))

    def __missing__(self, chunk: str) -> Pieces:
        self[chunk] = pieces = tuple(chain.from_iterable(map(self._cut, words(chunk))))
        return pieces

    def _cut(self, word: str) -> Pieces:
        if len(word) > LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._known.get(mark + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)


def words(text: str) -> list[str]:
    """The words and marks of a text, normalised: what WordPiece cuts."""
    return text.translate(_CHARACTERS).split()


def _normalised(char: str) -> str:
    if _dropped(char):
        return ""
    if char.isspace():
        return " "
    if any(first <= ord(char) <= last for first, last in _CJK):
        return f" {unicodedata.normalize('NFD', char)} "
    plain = "".join(part for part in unicodedata.normalize("NFD", char) if unicodedata.category(part) != "Mn")
    lower = "".join(part.lower() for part in plain)
    return "".join(f" {part} " if _is_mark(part) else part for part in lower)


def _dropped(char: str) -> bool:
    if char in "\t\n\r":
        return False
    return char in "\x00\ufffd" or unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs"}


def _is_mark(char: str) -> bool:
    return char in _ASCII_MARKS or unicodedata.category(char).startswith("P")


_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CHARACTERS = _Characters()
