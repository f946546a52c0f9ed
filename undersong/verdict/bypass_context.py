"""What a way round a check goes back to: which check failed, what the edit took away and added, and who was told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain

import msgspec

from undersong.models import Bypass
from undersong.verdict.check_claims import CheckHistory
from undersong.verdict.detectors.bypasses import is_named
from undersong.verdict.edits import FileEdit, edits_by_command, edits_of
from undersong.verdict.shell import command_of
from undersong.verdict.transcript import PlacedOutcome, Transcript, TranscriptTurn

FAILED_BACK = 3  # requests back in which a check may have failed
LINE, COMMAND = 200, 200  # characters that are shown
SHOWN = 6  # lines of an edit
_VALUE = re.compile(r"[\w.]+")
ALIKE = 0.6  # share of two lines that is the same where one replaces the other


def with_context(items: Sequence[Bypass], transcript: Transcript, history: CheckHistory) -> tuple[Bypass, ...]:
    """The same with what failed before, the edit as lines with - and +, and whether the agent says what it did."""
    turns = {turn.message.id: turn for turn in transcript.turns} if items else {}
    return tuple(_with_context(item, turns[item.message_id], transcript, history) for item in items)


def _with_context(item: Bypass, turn: TranscriptTurn, transcript: Transcript, history: CheckHistory) -> Bypass:
    words = (other.prose for other in transcript.turns if other.run == turn.run and other.is_agent)
    diff = _diff(item, turn)
    whole = msgspec.structs.replace(item, diff=diff, disclosed=is_named(item.kind, "\n\n".join(words)))
    failures = list(_failures(turn, history)) if item.disarms else []
    if not failures:
        return whole
    placed, line = next(((each, line) for each in failures if (line := _comparing(each, diff))), (failures[0], ""))
    outcome = placed.outcome
    return msgspec.structs.replace(
        whole,
        failed_check=" ".join((outcome.command or outcome.tool).split())[:COMMAND],
        failed_line=(line or outcome.message.text[outcome.start : outcome.end]).strip()[:LINE],
        failed_at=placed.turn.message.position,
    )


def _failures(turn: TranscriptTurn, history: CheckHistory) -> Iterator[PlacedOutcome]:
    """The checks that failed before a turn, on its request or the last few, the latest first."""
    for event in reversed(history.before(turn.place)):
        placed = event.outcome
        if placed and placed.outcome.state == "failed" and placed.turn.run >= turn.run - FAILED_BACK:
            yield placed


def _comparing(placed: PlacedOutcome, diff: Sequence[str]) -> str:
    """The line of an output that has every value in which one changed line differs from another, "" without one."""
    sides = [set(_VALUE.findall(line)) for line in diff]
    values = sides[0] ^ sides[1] if len(sides) == 2 else set[str]()
    lines = placed.outcome.text.splitlines() if values else []
    return next((line for line in lines if values <= set(_VALUE.findall(line))), "")


def _diff(item: Bypass, turn: TranscriptTurn) -> tuple[str, ...]:
    """``- old``, ``+ new``: the lines of the edit that the item is about; () where it is none."""
    lines = next((lines for edit in _edits(turn) if _is_of(item, edit) and (lines := _changed(item, edit))), [])
    return tuple(lines[:SHOWN])


def _edits(turn: TranscriptTurn) -> Iterator[FileEdit]:
    for call in turn.message.tool_calls:
        yield from chain(edits_of(call), edits_by_command(command_of(call) or ""))


def _is_of(item: Bypass, edit: FileEdit) -> bool:
    """Whether an edit of that file holds one of the lines."""
    whole = f"{edit.old or ''}\n{edit.new}"
    return edit.path == item.path and any(line in whole for line in item.lines)


def _changed(item: Bypass, edit: FileEdit) -> list[str]:
    """All changed lines where they are few, else those of the item, with what each of them replaces."""
    removed, added = edit.removed, edit.added
    if len(removed) + len(added) > SHOWN:
        named = [line for line in added if _holds(line, item)]
        replaced = [line for new in named if (line := _nearest(new, removed))]
        removed, added = [line for line in removed if line in replaced or _holds(line, item)], named
    return _signed(removed, added)


def diff_lines(edit: FileEdit) -> list[str]:
    """``- old``, ``+ new``: the first lines that an edit takes away and adds."""
    removed, added = edit.removed, edit.added
    shown = max(SHOWN // 2, SHOWN - len(added)), max(SHOWN // 2, SHOWN - len(removed))
    return _signed(removed[: shown[0]], added[: shown[1]])


def _signed(removed: Sequence[str], added: Sequence[str]) -> list[str]:
    return [*(f"- {line.rstrip()[:LINE]}" for line in removed), *(f"+ {line.rstrip()[:LINE]}" for line in added)]


def _holds(line: str, item: Bypass) -> bool:
    return any(part in line for part in item.lines)


def _nearest(new: str, removed: Sequence[str]) -> str:
    """The removed line that a new one replaces, "" where none is like it."""
    alike = [(SequenceMatcher(None, old.strip(), new.strip()).ratio(), old) for old in removed]
    share, old = max(alike, default=(0.0, ""))
    return old if share >= ALIKE else ""
