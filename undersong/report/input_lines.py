"""What became of each file: findings, leads, neither, or why it was not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import Case, InputFile
from undersong.report.claims_view import unread_sessions
from undersong.report.message_times import input_of
from undersong.report.opening_choice import Point
from undersong.report.opening_title import noted_turns

Outcome = Literal["finding", "lead", "clean", "unread"]
ORDER: tuple[Outcome, ...] = ("finding", "lead", "unread", "clean")  # in which files are listed
NAME = 60  # characters of a name
SHOWN = 12  # files of a list that a person reads; the rest is counted


class FileOutcome(msgspec.Struct, frozen=True):
    """A file, what became of it, and that in words."""

    name: str
    outcome: Outcome
    words: str


def input_lines(case: Case, points: Iterable[Point]) -> tuple[FileOutcome, ...]:
    """A line for each file: those with findings first, then with leads, then what was not read, then the rest.

    ``points`` is all that there is to look at, not only what a first screen names.
    """
    names = {each.name for each in case.inputs}
    noted = Counter[str]()
    files = {(message.conversation, message.id): input_of(message.source_ref.file, names) for message in case.cited
             if message.source_ref is not None}  # fmt: skip
    homes = {conversation: file for (conversation, _), file in files.items()}
    counts: dict[str, Counter[str]] = {}
    first: dict[tuple[str, str], Point] = {}
    for point in points:
        first.setdefault((point.conversation, point.message_id), point)
    for point in first.values():
        file = files.get((point.conversation, point.message_id)) or homes.get(point.conversation)
        if file is not None:
            counts.setdefault(file, Counter())["lead" if point.state == "lead" else "finding"] += 1
    for session in case.sessions:
        noted[homes.get(session.conversation, "")] += noted_turns(session)
    unread = {problem.where: problem.what for problem in case.problems if problem.kind == "file"}
    for session in unread_sessions(case):
        unread.setdefault(homes.get(session.conversation, ""), "what agents claim there was not read")
    lines = [
        _line(file, counts.get(file.name, Counter()), noted[file.name], unread.get(file.name, ""))
        for file in case.inputs
    ]
    return tuple(sorted(lines, key=lambda line: ORDER.index(line.outcome)))


def listed(lines: Sequence[FileOutcome]) -> tuple[str, ...]:
    """Words for the first files and the number of the others; nothing where there is one file, which was read."""
    if len(lines) < 2 and all(line.outcome != "unread" for line in lines):
        return ()
    shown = [f"{_short(line.name)}: {line.words}" for line in lines[:SHOWN]]
    rest = Counter(line.outcome for line in lines[SHOWN:])
    others = [f"{rest[outcome]:,} {REST[outcome]}" for outcome in ORDER if rest[outcome]]
    return (*shown, f"and {counted(len(lines) - SHOWN, 'more file')}: {', '.join(others)}") if others else tuple(shown)


def _short(name: str) -> str:
    """A name on one line; of a long path the end, by which files differ."""
    line = one_line(name, 4 * NAME)
    return line if len(line) <= NAME else f"…{line[1 - NAME :]}"


REST: dict[Outcome, str] = {
    "finding": "with findings",
    "lead": "with leads",
    "unread": "not read",
    "clean": "in which nothing stands out",
}


def _line(file: InputFile, counts: Counter[str], noted: int, why: str) -> FileOutcome:
    if not file.messages:
        return FileOutcome(file.name, "unread", f"not read: {why or 'no message in it'}")
    size = counted(file.messages, "message")
    parts = [counted(counts[noun], noun) for noun in ("finding", "lead") if counts[noun]]
    outcome: Outcome = "finding" if counts["finding"] else "lead" if counts["lead"] else "clean"
    nothing = why or "nothing stands out"
    nothing = f"no lead, {counted(noted, 'turn')} noted" if noted else nothing
    lost = f", {counted(file.skipped, 'record')} not read" if file.skipped else ""
    return FileOutcome(file.name, outcome, f"{', '.join(parts) or nothing} in {size}{lost}")
