"""Questions that wait in a folder for an answer that somebody writes: the reason that a reading gives for it."""

from __future__ import annotations

WAITING = "waiting"  # among the parameters of a case: folder → questions that wait in it for an answer
ASKED_IN, ANSWER_THERE = (
    "its question is in ",
    "put answers-ID.jsonl beside questions-ID.jsonl and run the same command again",
)


def waits_in(folder: str) -> str:
    """Why a question that waits in a folder for its answer has none."""
    return f"{ASKED_IN}{folder}: {ANSWER_THERE}"


def waiting_folder(reason: str | None) -> str | None:
    """The folder that a question waits in by such a reason; None for any other."""
    before, waits, _ = (reason or "").partition(f": {ANSWER_THERE}")
    return before.removeprefix(ASKED_IN) if waits else None
