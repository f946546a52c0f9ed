"""Sessions held against themselves: the verdict on each conversation, without a judge, a store or a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from undersong.formats.ingest import read
from undersong.models import Conversation, Problem, SessionVerdict
from undersong.scan import load_book, scan_conversation
from undersong.verdict import session_verdict


def checked_sessions(
    paths: Sequence[str | Path], source_format: str | None = None
) -> tuple[list[SessionVerdict], list[Problem]]:
    """The verdict on every conversation of some inputs in order, and what could not be read."""
    verdicts, problems = [], []
    for item in read(paths, source_format=source_format):
        if isinstance(item, Conversation):
            scans, thread = scan_conversation(item, load_book())
            verdicts.append(session_verdict(item, scans, thread, ()))
        elif isinstance(item, Problem):
            problems.append(item)
    return verdicts, problems
