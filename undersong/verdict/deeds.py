"""Acts that a command does (a push, a deployment, a migration), held against the last such command of the session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from undersong.core.text import turn_at
from undersong.datafiles.verdict_config import calls_config, claims_config, pattern
from undersong.datafiles.work_rules import Deed
from undersong.verdict.admissions import admits_call
from undersong.verdict.check_claims import CheckEvent, Ruling
from undersong.verdict.claims import Claim, sentence
from undersong.verdict.refusals import refused_in
from undersong.verdict.shell import ShellPart, looks, shell_parts
from undersong.verdict.tool_outcomes import OutcomeState, ToolOutcome
from undersong.verdict.transcript import PlacedOutcome, Transcript, TranscriptTurn

RUNS_BACK = 2  # requests before the claim's own in which the act may have been done
ANSWER = "answer"  # calls of a service, of which each path is another one
NOT_DONE = "the last call that should do it failed"
SILENT = "what was called did not answer, and nothing called it since the last change"
_WORD = re.compile(r"[a-z]{3,}")
_URL = re.compile(
    r"(?:https?://|(?<=[ '\"]))(?:[\w.-]+|\[[\da-f:]+\])?(?::\d+)?(?P<path>/[^\s'\"?#|;)]*)?", re.IGNORECASE
)
_GUARDED = re.compile(r"\b40[13]\b|\b(?:Unauthorized|Forbidden)\b")  # it answers those who may ask
_PATH = re.compile(r"(?<![\w/.])/[\w/-]*\w")


class DeedCall(NamedTuple):
    """A command that should do an act, and what came of it; ``line`` says that it was refused."""

    placed: PlacedOutcome
    part: ShellPart
    state: OutcomeState
    line: str


def deed_of(turn: TranscriptTurn, claim: Claim) -> str:
    """The name of the act that a claim says was done, "" where it is none that a command shows."""
    if claim.kind not in ("act", "done", "verified") or claim.checks:
        return ""
    text, deeds = turn.prose, calls_config().deeds
    first, last = sentence(text, claim.start, claim.end)
    if claim.kind == "verified":
        return ANSWER if pattern((deeds[ANSWER].says,)).search(text, first, last) else ""
    matches = [
        (match.start(), name)
        for name, deed in deeds.items()
        if name != ANSWER
        for match in pattern((deed.says,)).finditer(text, first, last)
        if match.start() < claim.end and match.end() > claim.start
    ]
    return min(matches)[1] if matches else ""


def rule_on_deed(transcript: Transcript, turn: TranscriptTurn, claim: Claim) -> Ruling | None:
    """The ruling by the last command that should do what a claim says; None where there is none that decides."""
    name = deed_of(turn, claim)
    calls = [call for call in deed_calls(transcript, turn, name) if call.state != "unknown"] if name else []
    words = turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))]
    if name == ANSWER:
        calls = [] if pattern((calls_config().wanted_refusal,)).search(words) else _same_service(calls, words)
    if not calls:
        return None
    last = _meant(calls, words)
    if last.state == "passed":
        outcome = last.placed.outcome
        return Ruling("backed", f"by {outcome.tool or outcome.family} at {turn_at(last.placed.turn.message.position)}")
    event = CheckEvent(last.placed.turn.place, frozenset(), _refusal(last))
    if admits_call(turn, claim, last.placed.outcome):
        return Ruling("hedged", "the message says that some of it fails", event)
    if _done_since(transcript, turn, claim, last, name):
        return Ruling("unsupported", SILENT, event) if name == ANSWER else None
    return Ruling("contradicted", f"{NOT_DONE}, and no later one came right", event)


def deed_calls(transcript: Transcript, turn: TranscriptTurn, name: str) -> Iterator[DeedCall]:
    """The commands before a turn that should do an act, in order, on the request of the turn and the two before."""
    deed, tried = calls_config().deeds[name], pattern((calls_config().tried,))
    does = pattern((deed.does,))
    for placed in transcript.outcomes_before(turn.place, turn.run - RUNS_BACK):
        parts = shell_parts(placed.outcome.command) if does.search(placed.outcome.command) else ()
        for number, part in enumerate(parts):
            if not looks(part.words) and does.search(f"{part.text} ") and not tried.search(part.text):
                yield _call(deed, name, placed, parts, number)


def _call(deed: Deed, name: str, placed: PlacedOutcome, parts: Sequence[ShellPart], number: int) -> DeedCall:
    outcome, part = placed.outcome, parts[number]
    line = "" if part.handled else refused_in(part.text, outcome.text)
    done = list(pattern((deed.done,)).finditer(outcome.text))
    state: OutcomeState = "passed"
    if line and name == ANSWER and done:
        state = "unknown"  # several services, of which one answers
    elif line:
        mended = done and done[-1].start() > outcome.text.rfind(line)
        state, line = ("passed", "") if mended else ("failed", line)
    elif outcome.state == "failed" and not done:
        state = "unknown" if any(not looks(later.words) for later in parts[number + 1 :]) else "failed"
    elif not outcome.started or (name == ANSWER and outcome.end <= outcome.start):
        state = "unknown"
    return DeedCall(placed, part, state, line)


def went_unanswered(outcome: ToolOutcome) -> bool:
    """Whether a command only called a service, which refused: that it was run shows nothing of the code."""
    does = pattern((calls_config().deeds[ANSWER].does,))
    return outcome.kinds <= {"run"} and bool(does.search(outcome.command) and refused_in(outcome.command, outcome.text))


def _refusal(call: DeedCall) -> PlacedOutcome:
    """The outcome as a failed one, at the line that says so."""
    outcome = call.placed.outcome
    at = outcome.message.text.find(call.line, max(outcome.start - len(outcome.text), 0)) if call.line else -1
    bounds = (at, at + len(call.line)) if at >= 0 else (outcome.start, outcome.end)
    return call.placed._replace(outcome=outcome._replace(state="failed", start=bounds[0], end=bounds[1]))


def _meant(calls: Sequence[DeedCall], words: str) -> DeedCall:
    """The last call, or an earlier one that came right where the words of a claim name it and not the last one."""
    if calls[-1].state == "passed":
        return calls[-1]
    named, own = set(_WORD.findall(words.lower())), _specific(calls[-1])
    for call in reversed(calls[:-1]):
        if call.state == "passed" and named & (_specific(call) - own) and not named & (own - _specific(call)):
            return call
    return calls[-1]


def _specific(call: DeedCall) -> set[str]:
    return set(_WORD.findall(call.part.text.lower()))


def _same_service(calls: Sequence[DeedCall], words: str) -> list[DeedCall]:
    """The calls of what a sentence names by its path, else of what was called last.

    Where one path answers and another below it does not, or the same one asks for a key, the one that answers is meant;
    of several paths that a sentence names, the first whose last call did not.
    """
    paths = [(_path(call), call) for call in calls]
    named = list(dict.fromkeys(match[0] for match in _PATH.finditer(words)))
    last = {name: call for name in named for path, call in paths if path.startswith(name)}
    if len(last) > 1 and (failed := [call for call in last.values() if call.state != "passed"]):
        return failed[:1]
    if named:
        own = [(path, call) for path, call in paths if any(path.startswith(name) for name in named)]
    else:
        own = [(path, call) for path, call in paths if _head(path) == _head(paths[-1][0])] if paths else []
    guarded = bool(own) and _GUARDED.search(own[-1][1].line) is not None
    right = [call for path, call in own if call.state == "passed" and (guarded or path != own[-1][0])]
    return right or [call for _, call in own]


def _path(call: DeedCall) -> str:
    urls = [match["path"] or "/" for match in _URL.finditer(call.part.text) if match["path"] or "://" in match[0]]
    return urls[-1] if urls else "/"


def _head(path: str) -> str:
    return path.strip("/").split("/")[0]


def _done_since(transcript: Transcript, turn: TranscriptTurn, claim: Claim, failed: DeedCall, name: str) -> bool:
    """Whether a later call, which no rule knows, may have done it; of a service, whether anything was changed since."""
    acts = {"change", "create"} if name == ANSWER else set(claim.acts)
    tools = {tool for act in acts for tool in claims_config().acts[act].tools}
    for placed in transcript.outcomes_before(turn.place, failed.placed.turn.run):
        outcome = placed.outcome
        behind = placed.turn.place > failed.placed.turn.place and outcome.state != "failed"
        if not behind or outcome.family == "look" or outcome.command.startswith("git "):
            continue
        if name == ANSWER:
            if outcome.family in ("edit", "call"):
                return True
        elif tools & outcome.words and not refused_in(outcome.command, outcome.text):
            return True
    return False
