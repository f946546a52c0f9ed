"""Labelled messages for training: JSON Lines → typed rows, every wrong line named."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from undersong.errors import InputError
from undersong.models import TRAITS

SHAPE = '{"author": "...", "text": "...", "traits": {"virtue": 0.0-1.0, ... all twelve}}'


class LabelledMessage(msgspec.Struct, frozen=True):
    """One message, who wrote it, and its twelve scores in the order of ``TRAITS``."""

    author: str
    text: str
    scores: tuple[float, ...]
    month: str = ""
    source: str = ""
    license: str = ""


class _NestedMessage(msgspec.Struct):
    author: str
    text: str
    ts: datetime | None = None


class _Labels(msgspec.Struct):
    traits: dict[str, float]


class _Line(msgspec.Struct):
    """The two shapes that are read: flat, or ``messages`` of one element with ``labels.traits``."""

    author: str | None = None
    text: str | None = None
    traits: dict[str, float] | None = None
    messages: list[_NestedMessage] | None = None
    labels: _Labels | None = None
    time: datetime | None = None
    source: str = ""
    license: str = ""


def read_labels(path: Path, *, partial: bool = False) -> list[LabelledMessage]:
    """Every row of a ``.jsonl`` or ``.jsonl.gz`` file; raises InputError naming file and line of the first bad one.

    With ``partial`` a row may have labels of some traits only: those of the others are nan.
    """
    rows = [_row(line, f"{path}:{number}", partial=partial) for number, line in numbered_lines(path) if line.strip()]
    if not rows:
        raise InputError("has no labelled messages", where=str(path), remedy=f"a line is {SHAPE}")
    return rows


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a ``.jsonl`` or ``.jsonl.gz`` file from 1 on; raises InputError where it cannot be read."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from enumerate(file, start=1)
    except (OSError, EOFError, zlib.error) as error:
        what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(what, where=str(path), remedy="check the name and the file") from error


def _row(line: bytes, where: str, *, partial: bool) -> LabelledMessage:
    try:
        record = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a labelled message: {error}", where=where, remedy=f"a line is {SHAPE}") from error
    message = record.messages[0] if record.messages and len(record.messages) == 1 else record
    traits = record.traits if record.labels is None else record.labels.traits
    if message.author is None or message.text is None or traits is None:
        raise InputError("needs one message with its author and its traits", where=where, remedy=f"a line is {SHAPE}")
    if not message.text.strip():
        raise InputError("the text is blank", where=where, remedy="leave the line out")
    scores = _scores(traits, where, partial=partial)
    time = message.ts if isinstance(message, _NestedMessage) else message.time
    month = f"{time:%Y-%m}" if time else ""
    return LabelledMessage(message.author, message.text, scores, month, record.source, record.license)


def _scores(traits: dict[str, float], where: str, *, partial: bool) -> tuple[float, ...]:
    missing = [trait for trait in TRAITS if trait not in traits]
    if missing and not (partial and len(missing) < len(TRAITS)):
        remedy = "give one trait at least" if partial else "give all twelve traits"
        raise InputError(f"no score for {', '.join(missing)}", where=where, remedy=remedy)
    wrong = [f"{trait} {traits[trait]}" for trait in TRAITS if trait in traits and not 0.0 <= traits[trait] <= 1.0]
    if wrong:
        raise InputError(f"scores outside 0-1: {', '.join(wrong)}", where=where, remedy="scores run from 0 to 1")
    return tuple(traits.get(trait, float("nan")) for trait in TRAITS)
