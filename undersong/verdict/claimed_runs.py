"""Claims to have run a check again, held against the calls of the session: what was not run was not run again."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from undersong.core.text import turn_at
from undersong.datafiles.verdict_config import ledger_config, outcomes_config, pattern
from undersong.models.verdict import FEWER, NOT_RUN
from undersong.verdict.check_claims import CheckHistory, of_kinds
from undersong.verdict.claims import Claim, sentence
from undersong.verdict.shell import CheckKind
from undersong.verdict.transcript import PlacedOutcome, Transcript, TranscriptTurn

_WORD = re.compile(r"\w{3,}")


def missing_run(
    transcript: Transcript, history: CheckHistory, turn: TranscriptTurn, claim: Claim, kinds: Collection[CheckKind]
) -> str:
    """Why a sentence is contradicted that says that a check was run again, or so often; "" where nothing speaks so.

    It does where commands of the request are in the log and none of them is such a check, or where the sentence names a
    change behind which there is none.
    """
    first, last = sentence(turn.prose, claim.start, claim.end)
    config, text = ledger_config(), turn.prose[first:last].replace("\u2019", "'")
    said_again = pattern((config.run_again,)).search(text)
    said_behind = pattern((config.run_behind,)).search(text)
    if fewer := _fewer_runs(history, turn, text, kinds):
        return f"{FEWER}{fewer}"
    own = [placed for placed in transcript.outcomes_before(turn.place, turn.run) if placed.turn.place < turn.place]
    if not (said_again or said_behind) or not own or any(map(_is_opaque, own)):
        return ""
    runs = [event for event in of_kinds(history.before(turn.place, remote=True), kinds) if event.outcome]
    runs = [event for event in runs if event.outcome and event.outcome.turn.run == turn.run]
    if not runs:
        commands = sum(bool(placed.outcome.command) for placed in own)
        return f"{NOT_RUN}no call on this request ran it" if commands else ""
    changed = [placed for placed in own if placed.turn.place > runs[-1].place and placed.outcome.changes]
    named = [part for match in (said_again, said_behind) if match for part in match.groupdict().values() if part]
    meant = changed and any(_is_meant(changed, words) for words in named)
    return f"{NOT_RUN}{_no_run_behind(changed[-1])}" if meant else ""


def times_run(text: str) -> int:
    """How often a sentence says that something was run; 0 where it does not say."""
    numbers = ledger_config().numbers
    shape = ledger_config().run_times.replace("{numbers}", "|".join(numbers))
    stated = re.search(shape, text, re.IGNORECASE)
    return 0 if stated is None else numbers.get(stated["times"].lower()) or int(stated["times"])


def _fewer_runs(history: CheckHistory, turn: TranscriptTurn, text: str, kinds: Collection[CheckKind]) -> str:
    """What speaks against a number of runs that a sentence gives: fewer in the log, and none that runs many times."""
    times, runs = times_run(text), of_kinds(history.before(turn.place, remote=True), kinds)
    outcomes = [event.outcome.outcome for event in runs if event.outcome]
    often = pattern((ledger_config().runs_often,))
    if not outcomes or len(outcomes) >= times or any(event.reported for event in runs):
        return ""
    if any(outcome.tool in outcomes_config().subagents or often.search(outcome.command) for outcome in outcomes):
        return ""
    return (
        f"{len(outcomes)} run{'s' * (len(outcomes) > 1)} of {times} {'are' if len(outcomes) > 1 else 'is'} in the log"
    )


def _is_opaque(placed: PlacedOutcome) -> bool:
    """Whether a call may have run anything: that of another agent, or one whose answer the log lacks."""
    return placed.outcome.tool in outcomes_config().subagents


def _is_meant(changed: Collection[PlacedOutcome], words: str) -> bool:
    """Whether the change of which a sentence speaks is among some: by a name of its file, or as the last one."""
    if pattern((ledger_config().last_change,)).fullmatch(words.strip()):
        return True
    names = {word.lower() for word in _WORD.findall(words)}
    stems = {word for placed in changed for word in _parts(placed.outcome.path)}
    return bool(names & stems)


def _parts(path: str) -> set[str]:
    """The words of a file's name: "dunning_run" of "src/dunning_run.py" as a whole and in its parts."""
    stem = PurePosixPath(path).stem.lower()
    return {stem, *re.findall(r"[a-z]{3,}", stem)}


def _no_run_behind(placed: PlacedOutcome) -> str:
    path = placed.outcome.path or placed.outcome.command[:60]
    return f"no run follows the change of {path} at {turn_at(placed.turn.message.position)}"
