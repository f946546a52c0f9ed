"""One audit of one file in a process of its own: ``python -m undersong.serve.audit_job``; prints progress as JSON."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from undersong.errors import NothingReadError, UndersongError
from undersong.formats.field_map import field_map
from undersong.models import Conversation
from undersong.models.message import Record
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options
from undersong.report.writer import write
from undersong.stores.protocol import open_store

NICE = 5  # pages come before audits
EVERY = 0.1  # seconds between two lines of progress


class JobNews(Record, frozen=True, kw_only=True):
    """One line of a job: how far it is, that it is done, or why it failed."""

    step: str = ""
    done: int = 0
    total: int = 0
    digest: str = ""
    what: str = ""
    where: str = ""
    remedy: str = ""


def main(store: str, folder: str, file: str, judge: str, fields: str = "") -> int:
    """Audit ``file`` into ``store`` and write the report into ``folder``; ``fields`` is as for ``--map``."""
    os.nice(NICE)
    last = 0.0

    def progress(step: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY or done == total:
            last = now
            _print(JobNews(step=step, done=done, total=total))

    began, started = time.monotonic(), datetime.now(UTC)
    try:
        with open_store(store) as opened:

            def conversation(name: str) -> Conversation:
                return opened.conversation(name)[0]

            case, rows = audit([file], opened, Options(judge=judge, fields=field_map(fields) or None), progress)
            progress("report", 0, 0)
            times = {"started": started.isoformat(), "seconds": time.monotonic() - began}
            _print(JobNews(digest=write(case, rows, Path(folder), run=times, conversations=conversation)))
    except NothingReadError as error:
        first = error.problems[0] if error.problems else error
        what = f"no message could be read: {first.what}"
        _print(JobNews(what=what, where=Path(file).name, remedy=first.remedy or "see docs/formats.md for what is read"))
        return error.exit_code
    except UndersongError as error:
        _print(JobNews(what=error.what, where=error.where, remedy=error.remedy))
        return error.exit_code
    return 0


def _print(news: JobNews) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(news) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
