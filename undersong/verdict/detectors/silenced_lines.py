"""Lines that tell a check to be silent at the place of its complaint, and steps of a build that may fail since."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from undersong.datafiles.verdict_config import bypass_config
from undersong.verdict.check_claims import CheckEvent
from undersong.verdict.edits import FileEdit
from undersong.verdict.shell import looks, shell_parts
from undersong.verdict.tool_outcomes import ToolOutcome
from undersong.verdict.transcript import Transcript, TranscriptTurn

FLAGS = re.MULTILINE
READERS = frozenset({"types", "lint", "build"})  # checks that read the code and say at which place they complain
_PLAIN = frozenset({"cd", "echo", "export", "set", "git", "mkdir", "rm", "cp", "mv", "test", "sleep", "source"})
_FILE = re.compile(r"[\w-]\.(?:py|pyi|js|jsx|ts|tsx|mjs|cjs|vue|svelte|go|rs|rb|java|kt|c|cc|cpp|h)\b")


def silencing_lines(edit: FileEdit, failed: Sequence[CheckEvent]) -> list[str]:
    """The new lines of an edit that tell a check that failed to be silent, or a type checker to look away."""
    config = bypass_config()
    lines = _new_lines(config.silencing_lines, edit)
    if lines and not is_at_its_place(edit, failed):
        lines = [line for line in lines if not re.search(config.in_code, line)]
    if not lines and is_at_its_place(edit, [event for event in failed if event.kinds & {"types", "build"}]):
        lines = _new_lines(config.untyped, edit) if re.search(r"\.(?:tsx?|vue|svelte|mts|cts|pyi?)$", edit.path) else []
    return lines


def is_at_its_place(edit: FileEdit, failed: Iterable[CheckEvent]) -> bool:
    """Whether a check that reads the code complained of the edited file, or does not say of which."""
    name = edit.path.replace("\\", "/").rsplit("/", 1)[-1]
    for event in failed:
        text = event.outcome.outcome.text if event.outcome and event.kinds & READERS else ""
        if text and (name in text or not _FILE.search(text)):
            return True
    return False


def is_in_code(edit: FileEdit) -> bool:
    """Whether an edit adds a line of code that tells a check to be silent."""
    lines = _new_lines(bypass_config().silencing_lines, edit)
    return any(re.search(bypass_config().in_code, line) for line in lines)


def steps_let_go(transcript: Transcript, turn: TranscriptTurn, edit: FileEdit, run: int) -> list[str]:
    """The new lines with which a step of a build may fail that failed since a request; [] where there are none."""
    config = bypass_config()
    if edit.old is None or not re.search(config.build_files, edit.path):
        return []
    lines = _new_lines(config.step_off, edit) or _new_lines(config.lets_fail, edit)
    failed = [
        placed.outcome for placed in transcript.outcomes_before(turn.place, run) if placed.outcome.state == "failed"
    ]
    around = " ".join(edit.new.split())
    return lines if any(name in around for outcome in failed for name in _names(outcome)) else []


def _names(outcome: ToolOutcome) -> Iterator[str]:
    """The first two words of each command of a line that failed: ``npm audit``."""
    for part in shell_parts(outcome.command) if outcome.family in ("call", "check") else ():
        words = [word for word in part.words if not word.startswith("-")]
        if len(words) > 1 and words[0] not in _PLAIN and not looks(part.words):
            yield " ".join(words[:3] if words[1] == "run" else words[:2])


def _new_lines(shape: str, edit: FileEdit) -> list[str]:
    """The added lines that have a shape, where the edit leaves more of it than there was."""
    of = re.compile(shape, FLAGS)
    if len(of.findall(edit.new)) <= len(of.findall(edit.old or "")):
        return []
    return [line for line in edit.added if of.search(line)]
