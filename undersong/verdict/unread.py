"""Sessions whose claims could not be read: what was not read is neither backed nor clean."""

from __future__ import annotations

from collections.abc import Sequence

from undersong.core.text import counted, turn_at
from undersong.models import Conversation, LedgerClaim
from undersong.verdict.language import other_language
from undersong.verdict.transcript import PlacedOutcome, Transcript

COMMAND, LINE = 80, 120  # characters of a command and of the line that says that it failed
WORDS = 8  # words of an agent from which on it may claim something


def unread_because(conversation: Conversation, transcript: Transcript, claims: Sequence[LedgerClaim]) -> str:
    """Why nothing can be said of what agents claim in a session with work of theirs, "" where it can.

    That is where it is mostly in another language than English, or where calls failed and no claim was recognised. The
    last call that failed is named: its output needs no language.
    """
    if not transcript.outcomes:
        return ""
    failed = [placed for placed in transcript.outcomes if placed.outcome.state == "failed"]
    language = other_language(conversation)
    if language:
        return f"it is mostly in {language}, and claims are read in English alone{_last(failed)}"
    if claims or not failed or not _speaks(transcript):
        return ""
    return f"no claim was recognised in it, and {counted(len(failed), 'call')} failed{_last(failed)}"


def _last(failed: Sequence[PlacedOutcome]) -> str:
    if not failed:
        return ""
    outcome = failed[-1].outcome
    line = outcome.message.text[outcome.start : outcome.end].strip().split("\n")[0][:LINE]
    command = " ".join(outcome.command.split())[:COMMAND] or outcome.tool
    return f"; the last call that failed, {turn_at(failed[-1].turn.message.position)}: {command}: {line}".rstrip(": ")


def _speaks(transcript: Transcript) -> bool:
    """Whether the last words of an agent are long enough to claim anything."""
    last = next((turn for turn in reversed(transcript.turns) if turn.is_agent and turn.prose.strip()), None)
    return last is not None and len(last.prose.split()) >= WORDS
