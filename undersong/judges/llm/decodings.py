"""What a text hides in another way of writing: base64, hex, binary, entities, escapes, digits for letters, turned."""

from __future__ import annotations

import base64
import codecs
import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_BASE32 = re.compile(r"\b[A-Z2-7]{24,}={0,6}")
_RUN = re.compile(r"[0-9a-fA-Fx\\ :,]{32,}")  # where alone hex and binary can stand
_HEX = re.compile(r"(?:(?:\\x|0x)?[0-9a-fA-F]{2}[ :,]?){16,}")
_BINARY = re.compile(r"(?:[01]{8}[ ,]?){8,}")
_ENTITY = re.compile(r"&#?\w{2,8};")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_COMMENT = re.compile(r"<!--(.{1,2000}?)-->", re.DOTALL)
_MIXED = re.compile(r"\b(?=\w*[a-z])(?=\w*[0134578])[a-z0134578]{2,}\b", re.IGNORECASE)
_DIGITS = "0134578"
_LETTERS = str.maketrans(_DIGITS, "oieastb")
FEW = 5  # marks of a way of writing from which on a text is taken to be written in it
MANY = 0.25  # of the words of a text, with digits in them
# what a text turned round that says anything has one of
_ANCHORS = ("instruction", "score", "ignore", "system", "traits", "judge", "rubric", "harmless", "evaluat")


def decodings(text: str, shortest: int) -> Iterator[str]:
    """Every other reading of the text; base64 is looked at from ``shortest`` characters on."""
    long = _BASE64.findall(text)
    for word in long:
        code = word.rstrip("=").replace("-", "+").replace("_", "/")
        if len(code) >= shortest and len(code) % 4 != 1:
            yield from _readable(base64.b64decode(code + "=" * (-len(code) % 4)))
    for code in _BASE32.findall(text) if long else ():
        yield from _tried(_from_base32, code)
    for run in _RUN.findall(text):
        for pattern, decode in _CODES:
            for code in pattern.findall(run):
                yield from _tried(decode, code)
    for pattern, read in _MARKED:
        if len(pattern.findall(text)) >= FEW:
            yield read(text)
    yield from _COMMENT.findall(text)
    low = text.lower()
    yield from (each for each in (codecs.decode(low, "rot13"), low[::-1]) if any(word in each for word in _ANCHORS))


def letters_for_digits(text: str) -> str | None:
    """The text with letters for digits, where digits stand in many of its words; None where they do not."""
    if sum(map(text.count, _DIGITS)) < FEW:
        return None
    mixed = _MIXED.findall(text)
    if len(mixed) < FEW or len(mixed) < MANY * len(text.split()):
        return None
    return _MIXED.sub(lambda match: match[0].translate(_LETTERS), text)


def _tried(decode: Callable[[str], bytes], code: str) -> Iterator[str]:
    try:
        yield from _readable(decode(code))
    except ValueError:  # not written in that way after all
        return


def _readable(data: bytes) -> Iterator[str]:
    try:
        yield data.decode()
    except UnicodeDecodeError:
        return


def _from_hex(code: str) -> bytes:
    return bytes.fromhex(re.sub(r"\\x|0x|[ :,]", "", code))


def _from_base32(code: str) -> bytes:
    bare = code.rstrip("=")
    return base64.b32decode(bare + "=" * (-len(bare) % 8))


def _from_binary(code: str) -> bytes:
    bits = re.sub(r"[ ,]", "", code)
    return bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits), 8))


def _from_escapes(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


_CODES: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (_HEX, _from_hex),
    (_BINARY, _from_binary),
)
_MARKED: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (_ENTITY, html.unescape),
    (_PERCENT, unquote),
    (_ESCAPED, _from_escapes),
)
