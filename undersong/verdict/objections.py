"""What a person answers to a claim: words that it does not work, or the error of a program that they paste."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from undersong.datafiles.objections_config import objections_config
from undersong.datafiles.verdict_config import ledger_config, pattern
from undersong.models import Quote
from undersong.models.verdict import PASTED_ERROR, SAID_SO, LedgerKind
from undersong.verdict.claims import sentence
from undersong.verdict.tool_outcomes import outcome_pattern
from undersong.verdict.transcript import ASKS, Transcript, TranscriptTurn, quote

SAID = 400  # characters of a person's next words in which they may say that it does not work
PASTED = 4000  # characters of them in which a program that they paste may say so
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_TRACEBACK = "Traceback (most recent call last)"


class Objection(NamedTuple):
    """The words of a person that speak against the claims of a message, and the reason: their own words, or a paste."""

    words: Quote
    reason: str

    def denies(self, kind: LedgerKind) -> bool:
        """Whether it denies claims of a kind: a check only where it speaks of it, in a paste tests and builds alone."""
        config = ledger_config()
        if kind in config.disputable:
            return True
        named = config.disputable_by_name.get(kind)
        meant = self.reason == SAID_SO or kind in objections_config().disputable_by_name
        return meant and named is not None and pattern((named,)).search(self.words.text) is not None


def objections(transcript: Transcript) -> Iterator[tuple[str, Objection]]:
    """Message ids whose claims the person's next words deny, with those words."""
    last: TranscriptTurn | None = None
    harness = pattern((ledger_config().harness,))
    for turn in transcript.turns:
        if turn.is_agent and turn.claims:
            last = turn
        elif turn.message.role in ASKS and not harness.match(turn.message.text):
            if last is not None and (objection := _objection(turn)):
                yield last.message.id, objection
            last = None


def _objection(turn: TranscriptTurn) -> Objection | None:
    """The person's own words first; a denial below printed lines may be one, too: an error among them goes first."""
    matches = list(pattern((ledger_config().denies,)).finditer(turn.prose, 0, SAID))
    own = [match for match in matches if not _is_printed(turn.prose, *_line(turn.prose, match.start()))]
    apart = (match for match in own if not _is_printed(turn.prose, _paragraph(turn.prose, match.start()), match.end()))
    if denial := next(apart, None):
        return _denial(turn, denial)
    return _pasted(turn) or (_denial(turn, own[0]) if own else None)


def _denial(turn: TranscriptTurn, match: re.Match[str]) -> Objection:
    first, last = sentence(turn.prose, match.start(), match.end())
    return Objection(_quoted(turn, first, last), SAID_SO)


def _pasted(turn: TranscriptTurn) -> Objection | None:
    """The line in which a program says that it failed, unless the person says that it is about something else."""
    lines = [match.span() for match in _LINE.finditer(turn.message.text, 0, PASTED)]
    errors = [bounds for bounds in lines if _is_error(turn, *bounds)]
    own = (bounds for bounds in lines if bounds not in errors and not _is_printed(turn.prose, *bounds))
    other_work = pattern((objections_config().of_other_work,))
    if not errors or any(other_work.search(turn.prose, *bounds) for bounds in own):
        return None
    telling = (bounds for bounds in errors if not turn.message.text.startswith(_TRACEBACK, bounds[0]))
    return Objection(_quoted(turn, *next(telling, errors[0])), PASTED_ERROR)


def _is_error(turn: TranscriptTurn, start: int, end: int) -> bool:
    """Whether a program prints a line of its failure; what people say of checks, too, is that in a block of output."""
    text, config = turn.message.text, objections_config()
    if pattern(config.pasted).match(text, start, end):
        return True
    failed = outcome_pattern("failed_check").match(text, start, end) or outcome_pattern("broke").match(text, start, end)
    in_block = not turn.prose[start:end].strip()
    return failed is not None and (in_block or not pattern((config.words_of_checks,)).match(text, start, end))


def _is_printed(text: str, start: int, end: int) -> bool:
    return pattern((objections_config().printed,)).search(text, start, end) is not None


def _line(text: str, place: int) -> tuple[int, int]:
    end = text.find("\n", place)
    return text.rfind("\n", 0, place) + 1, end if end >= 0 else len(text)


def _paragraph(text: str, place: int) -> int:
    """Where the paragraph of a place begins."""
    blank = text.rfind("\n\n", 0, place)
    return blank + 2 if blank >= 0 else 0


def _quoted(turn: TranscriptTurn, first: int, last: int) -> Quote:
    """The words between two places without the white space around them."""
    words = turn.message.text[first:last]
    return quote(turn.message, first + len(words) - len(words.lstrip()), last - (len(words) - len(words.rstrip())))
