"""Growing lines of rows → findings as they become sure: rules over rows that somebody else scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from undersong.errors import InputError
from undersong.models import Problem, Row
from undersong.patterns.live import Changes, LiveDetector
from undersong.rows import RowReader
from undersong.watch.growing import Pause, follow_lines


def watch(path: str | Path, live: LiveDetector, pause: Pause | None = None) -> Iterator[Problem | Changes]:
    """What each piece of a file of rows (``-``: standard input) brings, as it is written; see ``watch_rows``."""
    return watch_rows(follow_lines(path, pause), str(path), live)


def watch_rows(lines: Iterable[list[bytes]], name: str, live: LiveDetector) -> Iterator[Problem | Changes]:
    """What each piece of some lines brings, and at their end what is open.

    Of several lines with one id the first that was read stands, as in ``detect``. ``name`` is the file's. Raises
    InputError where no line held a row.
    """
    reader = RowReader(name)
    for piece in lines:
        rows: list[Row] = []
        for line in piece:
            item = reader.read(line)
            yield from reader.notes()
            if isinstance(item, Problem):
                yield item
            elif item is not None:
                rows.append(item)
        if rows:
            yield live.extend(rows)
    if not reader.seen:
        raise InputError("holds no row", where=name, remedy="`undersong evaluate` writes such rows")
    yield live.finish()
