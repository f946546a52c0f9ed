"""Find e-mails, phones, keys and listed names in a text, and write a numbered mask in the place of each."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import msgspec

from undersong.datafiles import yaml_loader

NAME = "NAME"
IN_IDS = ("KEY", "EMAIL")  # kinds that are masked in ids too: digits there are no phone unless they begin with +
_PLUS_PHONE = re.compile(r"(?<!\w)\+[1-9](?:[ ().\/-]{0,2}\d){7,14}(?!\w)")
_HASH = re.compile(r"[0-9a-f]{32,64}")


class SecretKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Expressions of one kind (a group ``value`` is what is masked, else all of it), and cases that hold."""

    expressions: tuple[str, ...]
    cases: tuple[dict[str, str | list[str]], ...]


class RedactionConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``rules/redaction.yaml``."""

    why: str
    kinds: dict[str, SecretKind]


@cache
def redaction_config() -> RedactionConfig:
    """The shipped kinds."""
    return yaml_loader.read(yaml_loader.RULES / "redaction.yaml", RedactionConfig)


@cache
def _expressions() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (name, re.compile(each)) for name, kind in redaction_config().kinds.items() for each in kind.expressions
    )


class MaskSpan(NamedTuple):
    """Characters ``start`` to ``end`` of a text that ``mask`` stands for."""

    start: int
    end: int
    mask: str


class Masked(NamedTuple):
    """A text with its masks; ``place`` maps a place in the text as it was."""

    text: str
    spans: tuple[MaskSpan, ...]

    def place(self, at: int) -> int:
        """Where a place of the old text is now; inside a mask it is the mask's beginning."""
        index = bisect_right(self.spans, at, key=lambda span: span.start) - 1
        shift = sum(len(span.mask) - (span.end - span.start) for span in self.spans[: max(index, 0)])
        if index < 0:
            return at
        span = self.spans[index]
        if at < span.end:
            return span.start + shift
        return at + shift + len(span.mask) - (span.end - span.start)

    def after(self, at: int) -> int:
        """As ``place`` for the end of a span: inside a mask it is the mask's end."""
        inside = next((span for span in self.spans if span.start < at < span.end), None)
        return self.place(at) if inside is None else self.place(inside.start) + len(inside.mask)


class Masker:
    """Gives every distinct secret one number, in the order of its first appearance: ``[EMAIL-1]``, ``[NAME-2]``."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """``names`` are matched in any case, as whole words, with any space, dot or line between their parts."""
        self.numbers: dict[tuple[str, str], int] = {}
        self.listed = tuple(dict.fromkeys(" ".join(name.split()) for name in names if name.strip()))
        self._names = _any_of(self.listed)

    def text(self, text: str) -> Masked:
        """A text of any length with everything masked."""
        return self._masked(text, self._matches(text))

    def name(self, text: str) -> str:
        """An id, a path or an author's name: digits are a phone there if they begin with a plus or are all there is."""
        if _HASH.fullmatch(text):
            return text
        matches = [each for each in self._matches(text) if each[2] in (*IN_IDS, NAME)]
        matches += [(*match.span(), "PHONE") for match in _PLUS_PHONE.finditer(text)]
        start = text.rfind("/") + 1
        if any(name == "PHONE" and each.fullmatch(text, start) for name, each in _expressions()):
            matches.append((start, len(text), "PHONE"))
        return self._masked(text, matches).text

    def counts(self) -> dict[str, int]:
        """Distinct secrets of each kind."""
        kinds = (*redaction_config().kinds, NAME)
        return {kind.lower(): sum(each == kind for each, _ in self.numbers) for kind in kinds}

    def _matches(self, text: str) -> Iterator[tuple[int, int, str]]:
        for name, expression in _expressions():
            for match in expression.finditer(text):
                group = "value" if "value" in expression.groupindex else 0
                yield *match.span(group), name
        if self._names is not None:
            for match in self._names.finditer(text):
                yield *match.span(), NAME

    def _masked(self, text: str, matches: Iterable[tuple[int, int, str]]) -> Masked:
        spans, parts, last = [], [], 0
        for start, end, kind in sorted(matches, key=lambda match: (match[0], -match[1])):
            if start < last:
                continue  # inside, or across the end of, what is masked already
            secret = " ".join(text[start:end].casefold().split())
            number = self.numbers.get((kind, secret))
            if number is None:
                number = self.numbers[kind, secret] = 1 + sum(each == kind for each, _ in self.numbers)
            spans.append(MaskSpan(start, end, f"[{kind}-{number}]"))
            parts += [text[last:start], spans[-1].mask]
            last = end
        return Masked("".join((*parts, text[last:])), tuple(spans))


def _any_of(names: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = [r"[\s._-]+".join(map(re.escape, name.split())) for name in sorted(names, key=len, reverse=True)]
    return re.compile(rf"(?i)(?<![^\W_])(?:{'|'.join(alternatives)})(?![^\W_])") if alternatives else None
