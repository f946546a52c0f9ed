"""Characters beyond ASCII found in the UTF-8 of many texts at once, and folded where each folds by itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from undersong.scan.normalise import fold_alone, joins_others, stays_alone

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint32]

ASCII, LEAD = 0x80, 0xC0  # below: a byte that is a character; from here on: one with which a longer character begins
LONGEST = 4  # bytes of a character in UTF-8
SURROGATE = "surrogatepass"  # half a character, from a broken export
# what a character does: folds to itself; to others, in as many words; so that words are counted in the source only;
# with what is beside it, or to more bytes than it has, so that its text is folded alone
UNKNOWN, STAYS, CHANGES, SPLITS, TOGETHER = range(5)
_LENGTH_2, _LENGTH_3, _LENGTH_4 = LEAD, 0xE0, 0xF0  # first bytes of characters of that length
_CODES = 0x110000


class NonAsciiCharacters(NamedTuple):
    """Characters beyond ASCII: where each begins, how many bytes it has, its code point, and what it does."""

    places: Ints
    lengths: Bytes
    codes: Codes
    kinds: Bytes

    def of(self, kind: int) -> Ints:
        """Where those that do this begin."""
        matching: Ints = self.places[self.kinds == kind]
        return matching


def non_ascii_characters(data: Bytes) -> tuple[NonAsciiCharacters, Ints]:
    """The characters beyond ASCII in UTF-8, and the places of the bytes that continue one."""
    positions = np.flatnonzero(data >= ASCII)
    leads = data[positions] >= LEAD
    places = positions[leads]
    first = data[places]
    lengths = (first >= _LENGTH_2).view(np.uint8) + (first >= _LENGTH_3) + (first >= _LENGTH_4) + np.uint8(1)
    codes = _codes(data, places, first, lengths)
    return NonAsciiCharacters(places, lengths, codes, _TABLE.kinds_of(codes)), positions[~leads]


def _codes(data: Bytes, places: Ints, first: Bytes, lengths: Bytes) -> Codes:
    codes = first.astype(np.uint32) & (np.uint32(0x7F) >> lengths)
    for place in range(1, LONGEST):
        longer = lengths > place
        if place == 1:  # every one of them
            codes = codes << 6 | (data[places + 1] & 0x3F)
        else:
            codes[longer] = codes[longer] << 6 | (data[places[longer] + place] & 0x3F)
    return codes


def folded(data: Bytes, letters: NonAsciiCharacters) -> tuple[Bytes, Ints]:
    """The bytes with every character that CHANGES or SPLITS folded, and the places of those that are left out."""
    changing = (letters.kinds == CHANGES) | (letters.kinds == SPLITS)
    if not changing.any():
        return data, letters.places[:0]
    places, codes = letters.places[changing], letters.codes[changing]
    become, sizes, lengths = _TABLE.become[codes], _TABLE.sizes[codes], letters.lengths[changing]
    result = data.copy()
    left_out: list[Ints] = []
    for place in range(LONGEST):
        own = sizes > place
        result[places[own] + place] = become[own] >> (8 * place) & 0xFF
        left_out.append(places[~own & (lengths > place)] + place)
    cut = np.sort(np.concatenate(left_out))
    stays = np.ones(len(data), dtype=np.bool_)
    stays[cut] = False
    return result[stays], cut


class _FoldingTable:
    """What each character does and becomes, learnt as it is met: up to four bytes, the first one lowest."""

    def __init__(self) -> None:
        self.kinds: Bytes = np.zeros(_CODES, dtype=np.uint8)
        self.become: Codes = np.zeros(_CODES, dtype=np.uint32)
        self.sizes: Bytes = np.zeros(_CODES, dtype=np.uint8)

    def kinds_of(self, codes: Codes) -> Bytes:
        """What the characters of these code points do."""
        kinds = self.kinds[codes]
        if not kinds.all():
            for code in np.unique(codes[kinds == UNKNOWN]).tolist():
                self._learn(code)
            kinds = self.kinds[codes]
        return kinds

    def _learn(self, code: int) -> None:
        character = chr(code)
        kind = _kind_of(character)
        if kind in (CHANGES, SPLITS):
            encoded = fold_alone(character).encode()
            self.become[code], self.sizes[code] = int.from_bytes(encoded, "little"), len(encoded)
        self.kinds[code] = kind


def _kind_of(character: str) -> int:
    if stays_alone(character):
        return STAYS
    folding = fold_alone(character)
    if joins_others(character) or len(folding.encode()) > len(character.encode("utf-8", SURROGATE)):
        return TOGETHER
    return CHANGES if folding and not character.isspace() and not any(map(str.isspace, folding)) else SPLITS


_TABLE = _FoldingTable()
