"""The standing texts of a report, read from ``words.yaml``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from undersong import rulebook


class Method(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step in plain words."""

    title: str
    text: str


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the glossary."""

    term: str
    text: str


class ReportTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``words.yaml``."""

    caution: str
    reading_guide: str
    guns: str
    rank: str
    clinical: str
    noted: str
    candidates: str
    transcript: str
    redacted: str
    reproduce: tuple[str, ...]
    methods: tuple[Method, ...]
    missing: tuple[Method, ...]
    limits: tuple[str, ...]
    glossary: tuple[Term, ...]


@cache
def words() -> ReportTexts:
    """The shipped texts."""
    return rulebook.read(Path(__file__).parent / "words.yaml", ReportTexts)
