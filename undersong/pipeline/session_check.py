"""Sessions held against themselves: the verdict on each conversation, without a judge, a store or a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from undersong.formats.ingest import read
from undersong.models import Conversation, LedgerClaim, Problem, Scan, SessionVerdict, ThreadScan
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


def claims_in(
    conversation: Conversation, scans: Sequence[Scan], thread: ThreadScan, message_id: str
) -> list[LedgerClaim]:
    """What an agent says of its work in one message, as the ledger of its conversation has it."""
    ledger = session_verdict(conversation, scans, thread, ()).claims
    return [claim for claim in ledger if claim.message_id == message_id]
