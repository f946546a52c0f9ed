"""The files that a claim names, held against those that a session touched: an edit of another file backs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from undersong.datafiles.verdict_config import ledger_config, outcomes_config, pattern
from undersong.verdict.claims import Claim, sentence
from undersong.verdict.shell import ShellPart, changes_code, check_kind, looks, shell_parts
from undersong.verdict.tool_outcomes import ToolOutcome
from undersong.verdict.transcript import PlacedOutcome

_MARKS = "`*_'\"([{"
_BETWEEN = re.compile(r"[`*_'\"\s]*(?:,|&|\band\b|,[ ]*and\b)?[`*_'\"\s]*")
_BEHIND_OBJECT = re.compile(r"[;\n]|[ ](?:to|so|for|because|which|that|like|as|from|using|with|via|by|when|where)\b")
_BEFORE_OBJECT = re.compile(r"[ ](?:(?:both|the|file|files|in)[ ]){0,3}[`*_'\"]*")
_UNSEEN = re.compile(r"[*?$]")  # a command that takes its files from a pattern of names
_HARMLESS = frozenset({"mkdir", "touch", "rm", "rmdir", "chmod", "kill", "pkill"})


def named_files(text: str, claim: Claim) -> tuple[tuple[str, ...], bool]:
    """The files that the clause of a claim names as what was done, and whether they are a list of its objects.

    Behind a claim they stand up to the words that say why or how; before a passive one, anywhere in its sentence.
    """
    first, last = sentence(text, claim.start, claim.end)
    if claim.passive:
        return tuple(_files(text[first : claim.start])), False
    rest = text[claim.end : last]
    end = _BEHIND_OBJECT.search(rest)
    rest = rest[: end.start()] if end else rest
    start = _BEFORE_OBJECT.match(rest)
    return tuple(_files(rest)), start is not None and _is_list(rest[start.end() :])


def _files(text: str) -> list[str]:
    shape = pattern((ledger_config().files,))
    return list(dict.fromkeys(match[0].strip(_MARKS) for match in shape.finditer(text)))


def _is_list(rest: str) -> bool:
    """Whether a text begins with several names of files and nothing but commas between them."""
    matches = list(pattern((ledger_config().files,)).finditer(rest))
    if len(matches) < 2 or matches[0].start():
        return False
    return all(_BETWEEN.fullmatch(rest, one.end(), other.start()) for one, other in pairwise(matches))


def untouched(names: Sequence[str], every: bool, outcomes: Iterable[PlacedOutcome]) -> str:
    """The first of some files that no call of a session touched; "" where one was, or nobody can say.

    ``every``: each of them must have been touched, else one suffices.
    """
    done = [
        placed.outcome for placed in outcomes if placed.outcome.state != "failed" or placed.outcome.family == "check"
    ]
    edits = [outcome for outcome in done if outcome.family == "edit"]
    if not names or not edits or not all(outcome.path for outcome in edits) or any(map(may_touch_any, done)):
        return ""
    missing = [name for name in names if not any(_touches(outcome, _base(name)) for outcome in done)]
    return missing[0] if missing and (every or len(missing) == len(names)) else ""


def _touches(outcome: ToolOutcome, name: str) -> bool:
    if outcome.family == "edit":
        return _base(outcome.path) == name
    return outcome.family != "look" and name in outcome.command.lower()


def may_touch_any(outcome: ToolOutcome) -> bool:
    """Whether a call may have changed files that it does not name: of another agent, a script, an unknown tool."""
    if outcome.tool in outcomes_config().subagents:
        return True
    if outcome.family in ("look", "edit", "remote"):
        return False
    return not outcome.command or any(map(_may_write_any, shell_parts(outcome.command)))


def _may_write_any(part: ShellPart) -> bool:
    words, kind = part.words, check_kind(part.words)
    if kind is not None or looks(words) or words[0] in _HARMLESS:
        return kind == "run"
    if words[0] in ("git", "gh"):
        return changes_code(words)
    return not changes_code(words) or _UNSEEN.search(part.text) is not None


def _base(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1].lower()
