"""What the lines of a growing file are: rows that were scored elsewhere, or messages in one of the input formats."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from undersong.formats import Format, detect
from undersong.formats.sources import TextSource

LOOKED_AT = 20  # lines with something on them, after which it must be clear what they are
SCORED = frozenset({"traits", "state"})  # the keys by which a row is known


class DetectedInput(NamedTuple):
    """The format of some messages, None for rows, and all their lines from the first on."""

    form: Format | None
    lines: Iterator[list[bytes]]


def detect_input(
    pieces: Iterable[list[bytes]], name: str, *, messages: bool = False, unclear: Callable[[int], object] = bool
) -> DetectedInput:
    """Wait for the lines that say what they are: rows where the first has ``traits`` or ``state``, else messages.

    With ``messages`` rows are read as messages, too, since they may hold texts. Lines of no known format are rows.
    ``unclear`` hears once of how many lines it has to wait for more. Raises InputError for what is no text.
    """
    seen: list[list[bytes]] = []
    rest = iter(pieces)
    form = None
    notified = False
    for piece in rest:
        seen.append(piece)
        lines = list(islice((line for each in seen for line in each if line.strip()), LOOKED_AT))
        if not lines:
            continue
        if not messages and _is_row(lines[0]):
            break
        form = detect(_source(lines, name))
        if form is not None or len(lines) == LOOKED_AT:
            break
        if not notified:
            notified = True
            unclear(len(lines))
    return DetectedInput(form, chain(seen, rest))


def _is_row(line: bytes) -> bool:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return isinstance(value, dict) and not SCORED.isdisjoint(value)


def _source(lines: list[bytes], name: str) -> TextSource:
    return TextSource(name, name, lambda: io.BytesIO(b"\n".join(lines)))
