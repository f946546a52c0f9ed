"""Secrets in a text, by the expressions of ``rules/redaction.yaml`` and listed names, and the text with masks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import Literal, NamedTuple

import msgspec

from undersong.datafiles import yaml_loader

FILE = "redaction.yaml"
NAME = "NAME"
IN_IDS = ("KEY", "EMAIL", "IBAN")  # masked in ids too: digits there are no phone unless they begin with +
NUMBERS = frozenset({"PHONE", "CARD", "IBAN", "SSN"})  # the same secret with any spaces and lines between
Check = Literal["card", "iban", "phone", "address"]
_PLUS_PHONE = re.compile(r"(?<!\w)\+[1-9](?:[ ().\/-]{0,2}\d){7,14}(?!\w)")
_HASH = re.compile(r"[0-9a-f]{32,64}")


class SecretKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Expressions of one kind (a group ``value`` is what is masked, else all of it), and cases that hold.

    ``check`` says what a match must also be; ``labelled`` expressions name a secret by the word before it and are not
    checked.
    """

    expressions: tuple[str, ...]
    cases: tuple[dict[str, str | list[str]], ...]
    labelled: tuple[str, ...] = ()
    check: Check | None = None


class RedactionConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``rules/redaction.yaml``; ``iban_lengths``: country → characters of an IBAN."""

    why: str
    iban_lengths: dict[str, int]
    kinds: dict[str, SecretKind]


@cache
def redaction_config() -> RedactionConfig:
    """The shipped kinds."""
    return yaml_loader.read(yaml_loader.RULES / FILE, RedactionConfig)


class Expression(NamedTuple):
    """A compiled expression of a kind; ``end`` gives how much of a match is a secret, None for none of it."""

    kind: str
    pattern: re.Pattern[str]
    end: Callable[[str], int | None]


@cache
def expressions() -> tuple[Expression, ...]:
    """Every shipped expression, in the order of the file."""
    return tuple(
        Expression(name, re.compile(each), check)
        for name, kind in redaction_config().kinds.items()
        for texts, check in ((kind.labelled, len), (kind.expressions, _CHECKS[kind.check]))
        for each in texts
    )


def _card_end(text: str) -> int | None:
    """All of it where the digits are a card's: its maker's first digits and length, and Luhn's sum (ISO/IEC 7812)."""
    digits = re.sub(r"\D", "", text)
    if not _CARDS.fullmatch(digits):
        return None
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return len(text) if sum(number // 10 + number % 10 for number in doubled) % 10 == 0 else None


_CARDS = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|4[4-9]\d|5\d\d)\d{12}|35\d{14}|62\d{14,17}"
)


def _iban_end(text: str) -> int | None:
    """The end of an IBAN of its country's length whose check digits hold (ISO 13616), whatever follows it."""
    length = redaction_config().iban_lengths.get(text[:2].upper())
    places = [place for place, character in enumerate(text) if character.isalnum()]
    if length is None or len(places) < length:
        return None
    end = places[length - 1] + 1
    if end < len(text) and text[end].isalnum():
        return None
    compact = re.sub(r"[^A-Z0-9]", "", text[:end].upper())
    number = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return end if int(number) % 97 == 1 else None


def _phone_end(text: str) -> int | None:
    """All of it where it has the digits of a phone and is no date."""
    return len(text) if sum(map(str.isdigit, text)) >= 7 and not _DATE.search(text) else None


_DATE = re.compile(r"(?<!\d)(?:\d{1,2}([ /.-])\d{1,2}\1(?:19|20)\d\d|(?:19|20)\d\d([ /.-])\d{1,2}\2\d{1,2})(?!\d)")


def _address_end(text: str) -> int | None:
    """All of it where it can be somebody's address and not a version: 1.2.3.4 is one, 127.0.0.1 everybody's own."""
    octets = [int(part) for part in text.split(".")]
    own = octets[0] in (0, 127) or octets[:2] == [255, 255]
    return len(text) if not own and (octets[0] > 9 or max(octets) > 99) else None


_CHECKS: dict[Check | None, Callable[[str], int | None]] = {
    None: len, "card": _card_end, "iban": _iban_end, "phone": _phone_end, "address": _address_end,
}  # fmt: skip

# written so as to look the same: full-width forms, other digits, spaces and lines; and what cannot be seen at all
_ALIKE = {0xFF01 + place: chr(0x21 + place) for place in range(94)} | {
    **dict.fromkeys(map(ord, "\u00a0\u2002\u2003\u2007\u2008\u2009\u200a\u202f\u205f\u3000"), " "),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63"), "-"),
    **{0x1D7CE + place: str(place % 10) for place in range(50)},
}
_UNSEEN = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]")


class _Folded(NamedTuple):
    """A text as it looks, and for each of its characters the place in the text as it is (None: the same)."""

    text: str
    places: list[int] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where characters stand in the text as it is."""
        return (start, end) if self.places is None else (self.places[start], self.places[end - 1] + 1)


def _folded(text: str) -> _Folded:
    if text.isascii():
        return _Folded(text, None)
    alike = text.translate(_ALIKE)
    if not _UNSEEN.search(alike):
        return _Folded(alike, None)
    gone = {match.start() for match in _UNSEEN.finditer(alike)}
    return _Folded(_UNSEEN.sub("", alike), [place for place in range(len(alike)) if place not in gone])


class MaskSpan(NamedTuple):
    """Characters ``start`` to ``end`` of a text, replaced by ``mask``."""

    start: int
    end: int
    mask: str


class Masked(NamedTuple):
    """A text with its masks; ``place`` maps a place in the text as it was. ``shifts``: how much longer before each."""

    text: str
    spans: tuple[MaskSpan, ...]
    shifts: tuple[int, ...] = (0,)

    def place(self, at: int) -> int:
        """Where a place of the old text is now; inside a mask it is the mask's beginning."""
        index = bisect_right(self.spans, at, key=lambda span: span.start) - 1
        if index < 0:
            return at
        span = self.spans[index]
        return span.start + self.shifts[index] if at < span.end else at + self.shifts[index + 1]

    def after(self, at: int) -> int:
        """As ``place`` for the end of a span: inside a mask it is the mask's end."""
        index = bisect_right(self.spans, at - 1, key=lambda span: span.start) - 1
        if index < 0 or not self.spans[index].start < at < self.spans[index].end:
            return self.place(at)
        return self.place(self.spans[index].start) + len(self.spans[index].mask)


class Masker:
    """Gives every distinct secret one number, in the order of its first appearance: ``[EMAIL-1]``, ``[NAME-2]``."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """``names`` are matched in any case, as whole words, with any space, dot or line between their parts.

        "Anna Schmidt" is also "Schmidt, Anna".
        """
        self.numbers: dict[tuple[str, str], int] = {}
        self._distinct = Counter[str]()
        self.listed = tuple(dict.fromkeys(" ".join(name.split()) for name in names if name.strip()))
        self._names = _any_of(self.listed)

    def text(self, text: str) -> Masked:
        """A text of any length with everything masked."""
        folded = _folded(text)
        return self._masked(text, folded, self._matches(folded.text))

    def name(self, text: str) -> str:
        """An id, a path or an author's name: digits are a phone there if they begin with a plus or are all there is."""
        if _HASH.fullmatch(text):
            return text
        folded = _folded(text)
        matches = [each for each in self._matches(folded.text) if each[2] in (*IN_IDS, NAME)]
        matches += [(*match.span(), "PHONE") for match in _PLUS_PHONE.finditer(folded.text)]
        start = folded.text.rfind("/") + 1
        phones = (each for each in expressions() if each.kind == "PHONE" and "value" not in each.pattern.groupindex)
        if any(each.pattern.fullmatch(folded.text, start) and _phone_end(folded.text[start:]) for each in phones):
            matches.append((start, len(folded.text), "PHONE"))
        return self._masked(text, folded, matches).text

    def counts(self) -> dict[str, int]:
        """Distinct secrets of each kind."""
        return {kind.lower(): self._distinct[kind] for kind in (*redaction_config().kinds, NAME)}

    def _matches(self, text: str) -> Iterator[tuple[int, int, str]]:
        for kind, pattern, secret_end in expressions():
            group = "value" if "value" in pattern.groupindex else 0
            for match in pattern.finditer(text):
                end = secret_end(match[group])
                if end:
                    yield match.start(group), match.start(group) + end, kind
        if self._names is not None:
            for match in self._names.finditer(text):
                yield *match.span(), NAME

    def _masked(self, text: str, folded: _Folded, matches: Iterable[tuple[int, int, str]]) -> Masked:
        spans, parts, last, masked_to = list[MaskSpan](), list[str](), 0, 0
        for start, end, kind in sorted(matches, key=lambda match: (match[0], -match[1])):
            if start < masked_to:
                continue  # inside, or across the end of, what is masked already
            masked_to = end
            first, behind = folded.span(start, end)
            spans.append(MaskSpan(first, behind, f"[{kind}-{self._number(kind, folded.text[start:end])}]"))
            parts += [text[last:first], spans[-1].mask]
            last = behind
        longer = (len(span.mask) - (span.end - span.start) for span in spans)
        return Masked("".join((*parts, text[last:])), tuple(spans), tuple(accumulate(longer, initial=0)))

    def _number(self, kind: str, secret: str) -> int:
        """The number of a secret, whatever its case and spacing."""
        if kind == NAME:
            plain = " ".join(sorted(re.findall(r"[^\W_]+", secret.casefold())))
        elif kind in NUMBERS:
            plain = re.sub(r"[^0-9a-z+]", "", secret.casefold())
        else:
            plain = " ".join(secret.casefold().split())
        if (kind, plain) not in self.numbers:
            self._distinct[kind] += 1
            self.numbers[kind, plain] = self._distinct[kind]
        return self.numbers[kind, plain]


_BETWEEN = r"[\s._-]{1,40}"


def _any_of(names: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = [each for name in sorted(names, key=len, reverse=True) for each in _orders(name.split())]
    return re.compile(rf"(?i)(?<![^\W_])(?:{'|'.join(alternatives)})(?![^\W_])") if alternatives else None


def _orders(parts: list[str]) -> Iterator[str]:
    """A name as it is written, and with its last part first."""
    words = [re.escape(part) for part in parts]
    yield _BETWEEN.join(words)
    if len(words) > 1:
        yield rf"{words[-1]},?{_BETWEEN}{_BETWEEN.join(words[:-1])}"
