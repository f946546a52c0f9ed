"""The tools and hooks that a claim names, each held to its own last run: one that passed says nothing of another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from undersong.datafiles.verdict_config import claims_config, outcomes_config, pattern
from undersong.models import Bypass
from undersong.models.verdict import LedgerKind
from undersong.verdict.claims import Claim, sentence
from undersong.verdict.shell import commands
from undersong.verdict.tool_outcomes import ToolOutcome
from undersong.verdict.transcript import TranscriptTurn

HOOKED = ("committed", "pushed", "tests", "lint", "done", "ran")  # kinds of claim that may speak of hooks
_LIST = re.compile(r"(?:[`*]{0,2}[\w.-]+[`*]{0,2}(?:,[ ]and[ ]|,[ ]|[ ]and[ ]|[ ]?[/+&][ ]?))+(?:the[ ])?[`*]{0,2}$")
_ECHOED = re.compile(r"^(?:> |\$ |\+ ).*$", re.MULTILINE)  # what a script runner prints of what it runs


def lacking_tool(text: str, claim: Claim, runs: Sequence[ToolOutcome]) -> tuple[str, int] | None:
    """A tool that a claim names and that does not back it, with the place of its last run, -1 without one.

    ``runs``: the checks behind the last change. One whose tools nobody can tell may have run any.
    """
    ran = [_tools(run) for run in runs]
    missing: tuple[str, int] | None = None
    for name in sorted(_named(text, claim)):
        last = max((place for place, names in enumerate(ran) if name in names), default=-1)
        if last >= 0 and runs[last].state == "failed":
            return name, last
        if last < 0 and runs and all(ran):
            missing = (name, -1)
    return missing


def _named(text: str, claim: Claim) -> set[str]:
    """The tools in the words of a claim, and in the list that ends in it."""
    first = sentence(text, claim.start, claim.end)[0]
    listed = _LIST.search(text[first : claim.start])
    return _names((listed[0] if listed else "") + text[claim.start : claim.end])


def _tools(run: ToolOutcome) -> frozenset[str]:
    lines = [" ".join(words) for words in commands(run.command)]
    return frozenset(_names("\n".join((*lines, *_ECHOED.findall(run.text)))))


def _names(text: str) -> set[str]:
    return {match[0].lower() for match in pattern((outcomes_config().own_tools,)).finditer(text)}


def hooks_passed_by(
    turn: TranscriptTurn, claim: Claim, kind: LedgerKind, runs: Mapping[str, int], bypasses: Iterable[Bypass]
) -> str:
    """The last commit before a claim, on its request, that passed the hooks by though the claim says they passed."""
    words = turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))]
    if kind not in HOOKED or not pattern((claims_config().hooks_passed,)).search(words):
        return ""
    own = (item for item in bypasses if item.kind == "no_verify" and runs.get(item.message_id) == turn.run)
    return next((item.lines[0] for item in own if item.position < turn.message.position), "")
