"""Files → rows of the scan, as the user chose them: no judge, no store, no report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from undersong.formats.spool import Spool
from undersong.models import Problem
from undersong.options import Options, Progress, chosen, matched_none, reading_cutoff, silent
from undersong.routing.route import load_policy
from undersong.scan import load_book
from undersong.scanrows.pieces import ScanJob
from undersong.scanrows.rowstream import stream
from undersong.waiting import SpillFile

Write = Callable[[bytes | memoryview], object]


def scan_rows(
    paths: str | Path | Sequence[str | Path],
    options: Options,
    write: Write,
    *,
    write_thread: Write | None = None,
    progress: Progress | None = None,
    text: bool = True,
) -> list[Problem]:
    """Write one JSON row per scanned and routed message, and one per conversation; returns what was not read."""
    problems: list[Problem] = []
    done = left_out = 0

    def work(spool: Spool, waiting: SpillFile) -> ScanJob:
        keep = partial(chosen, options=options)
        policy, book = options.policy or load_policy(), load_book()
        cut = partial(reading_cutoff, options=options, policy=policy, triage=book.triage)
        return ScanJob(
            spool, waiting, book, policy, frozenset(options.signals), options.seed, text, write_thread is not None,
            keep, cut,
        )  # fmt: skip

    def tell(messages: int) -> None:
        (progress or silent)("scan", messages, 0)

    for item in stream(paths, options.source_format, options.processes, work, tell):
        if isinstance(item, Problem):
            problems.append(item)
            continue
        problems += item.problems
        for part in item.rows:
            write(part)
        if write_thread:
            write_thread(item.threads)
        done, left_out = done + item.messages, left_out + item.left_out
    tell(done)
    if left_out and not done:
        raise matched_none(options, left_out)
    return problems
