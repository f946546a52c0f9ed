"""The sentences of the first screen (``opening.yaml``), typed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from undersong.datafiles import yaml_loader
from undersong.patterns.lead_weights import lead_weights


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sentence of something that happened once, and of something that happened more often."""

    once: str
    more: str


class Sure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A word for a confidence of ``least`` or more."""

    least: float
    word: str


class Sentences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``opening.yaml``."""

    patterns: dict[str, str]
    promises: dict[str, Promise]
    mechanisms: dict[str, Promise]
    claims: dict[str, str]
    against: dict[str, str]
    bypasses: dict[str, str]
    disclosed: dict[str, str]
    moments: dict[str, str]
    turns: dict[str, str]
    sure: tuple[Sure, ...]
    how_sure: dict[str, str]
    sides: dict[str, str]
    states: dict[str, str]
    kinds_head: str


@cache
def sentences() -> Sentences:
    """The shipped sentences; raises RuleError with file and line."""
    shipped = yaml_loader.read(Path(__file__).parent / "opening.yaml", Sentences)
    sure = {"lead": shipped.how_sure["lead"].format(err=lead_weights().err)}
    return msgspec.structs.replace(shipped, how_sure=shipped.how_sure | sure)
