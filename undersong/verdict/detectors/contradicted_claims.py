"""The false promises that a tool's answer contradicts: ``failing_after_claim`` and ``tool_error``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from undersong.core.text import turn_at
from undersong.datafiles.verdict_config import claims_config
from undersong.models import Deduction
from undersong.verdict.admissions import admission_of, admits_failure
from undersong.verdict.check_claims import CheckHistory, check_claims, is_of_another_tool, kinds_of, names_other_tests
from undersong.verdict.claims import Claim, sentence
from undersong.verdict.projects import folder_of
from undersong.verdict.tool_outcomes import ToolOutcome, pasted
from undersong.verdict.transcript import PlacedOutcome, Transcript, TranscriptTurn, deduction, quote

MECHANISM, AFTER, ERROR = "false_promise", "failing_after_claim", "tool_error"
OF_CODE = ("fix", "tests", "works", "done")  # kinds of claim that a failing check speaks of
NO_PROMISE = ("verified", "read")  # kinds of claim that say what was looked at
EDITS = frozenset({"change", "create", "save", "remove"})  # acts that an edit of a file performs
RUNS_BACK = 5  # from a failing check to the claim: "fixed", thanks, another question, "run the tests once more"
ALIKE = 0.5  # of the words in the values of two calls, from which on they try the same thing
RESULT = 400  # characters of a result whose words may say what the call was about
_WORD = re.compile(r"[a-z]{3,}")
_ALL = re.compile(r"\b(?:both|all|everything|each|every)\b", re.IGNORECASE)


def contradicted_claims(transcript: Transcript, history: CheckHistory) -> list[Deduction]:
    """Deductions in the order of the claims, one a message at most.

    A failed call contradicts the first claim after it in the same run of messages, unless something came right in
    between or the message admits the failure; else the last claim before it, unless the agent takes that back, goes on
    with the work, or a later run passes.
    """
    by_message: dict[str, Deduction] = {}
    for ruled in check_claims(transcript, history) if transcript.outcomes else ():
        failed_check = ruled.ruling.check.outcome if ruled.ruling.check else None
        contradicted = ruled.ruling.state == "contradicted" and failed_check is not None
        if failed_check and contradicted and not _taken_back(transcript, ruled.turn, failed_check.outcome, ruled.claim):
            by_message.setdefault(ruled.turn.message.id, _deduction(ruled.turn, ruled.claim, failed_check, ERROR))
    for entry in _failures(transcript):
        broken = _claimed_after(transcript, entry) or _claimed_before(transcript, entry)
        if broken:
            by_message.setdefault(broken.message_id, broken)
    return sorted(by_message.values(), key=lambda entry: entry.position)


def has_tool_evidence(transcript: Transcript) -> bool:
    """Whether any tool answered to a call that does more than look."""
    return any(each.outcome.family != "look" for each in transcript.outcomes)


def _failures(transcript: Transcript) -> Iterator[PlacedOutcome]:
    for placed in transcript.outcomes:
        if placed.outcome.state == "failed" and placed.outcome.family not in ("look", "remote"):
            yield placed
    for turn in transcript.turns:
        if turn.message.role == "user" and (failed := pasted(turn.message)):
            agent = next((each.message.agent for each in reversed(transcript.turns[: turn.place]) if each.is_agent), "")
            yield PlacedOutcome(turn, failed, agent)


def _claimed_after(transcript: Transcript, failed: PlacedOutcome) -> Deduction | None:
    """The first claim of the same run that knew of the failure and says otherwise."""
    if failed.turn.message.role == "user":
        return None
    for turn in transcript.agent_turns(failed.agent, failed.turn.place + 1, transcript.end_of_run(failed.turn.run)):
        for claim in turn.claims:
            if not claim.hedged and claim.kind not in NO_PROMISE and _contradicts(transcript, failed, turn, claim):
                if admits_failure(turn, claim, failed.outcome) or _taken_back(transcript, turn, failed.outcome, claim):
                    return None
                return _deduction(turn, claim, failed, ERROR)
    return None


def _claimed_before(transcript: Transcript, failed: PlacedOutcome) -> Deduction | None:
    """The last claim before the failure, where the agent leaves it to stand."""
    last_claim = _last_claim(transcript, failed)
    if last_claim is None or _stands_corrected(transcript, failed):
        return None
    turn, claim = last_claim
    if admits_failure(turn, claim, failed.outcome):
        return None
    now, later = (
        _turns_after(transcript, failed, run)
        for run in (failed.turn.run, transcript.next_run(failed.agent, failed.turn.run))
    )
    provisional = claim.provisional or bool(turn.message.tool_calls) or failed.turn.message.role == "user"
    answered = any(each.prose.strip() for each in now)
    if provisional and not answered and not any(each.prose.strip() for each in later):
        return None  # the agent was about to look, and nothing more is known
    if any(each.admits for each in (*now, *later)):
        return None
    if any(each.goes_on or each.blocks for each in (now if answered else later)):
        return None
    kind = AFTER if failed.outcome.family == "check" else ERROR
    return _deduction(turn, claim, failed, kind)


def _turns_after(transcript: Transcript, failed: PlacedOutcome, run: int | None) -> list[TranscriptTurn]:
    """What the agent said after a failure, in a run."""
    return (
        []
        if run is None
        else list(transcript.agent_turns(failed.agent, failed.turn.place + 1, transcript.end_of_run(run)))
    )


def _last_claim(transcript: Transcript, failed: PlacedOutcome) -> tuple[TranscriptTurn, Claim] | None:
    """The claim that a failure speaks of: what is claimed before newer work is not about it."""
    first_run = failed.turn.run - (RUNS_BACK if failed.outcome.family == "check" else 0)
    worked = _last_edit(transcript, failed)
    for turn in reversed(list(transcript.agent_turns(failed.agent, worked, failed.turn.place))):
        if turn.run < first_run:
            return None
        for claim in reversed(turn.claims):
            if not claim.hedged and _speaks_of(claim, failed.outcome) and not _names_others(turn, claim, failed):
                return None if _was_backed(transcript, turn, claim, failed.outcome) else (turn, claim)
        if turn.blocks:
            return None
    return None


def _last_edit(transcript: Transcript, failed: PlacedOutcome) -> int:
    """The place of the latest edit before a failure, where the session shows only what its tool answered."""
    edits = (
        each.turn.place for each in transcript.outcomes if each.outcome.family == "edit" and not each.outcome.words
    )
    return max((place for place in edits if place < failed.turn.place), default=0)


def _was_backed(transcript: Transcript, turn: TranscriptTurn, claim: Claim, failed: ToolOutcome) -> bool:
    """Whether a check that covers the one that fails now had passed when the claim was made: it was true then."""
    if failed.family != "check":
        return False
    own = transcript.agent_turns(turn.message.agent, 0, turn.place)
    worked = max((each.place for each in own if each.blocks), default=0)
    checks = [
        each.outcome
        for each in transcript.outcomes
        if worked <= each.turn.place < turn.place and each.outcome.family == "check"
    ]
    covers = checks and (checks[-1].words <= failed.words or (claim.kind == "tests" and not _whole(turn, claim)))
    return bool(covers) and checks[-1].state == "passed"


def _whole(turn: TranscriptTurn, claim: Claim) -> bool:
    return _ALL.search(turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))]) is not None


def _speaks_of(claim: Claim, failed: ToolOutcome) -> bool:
    """Whether a claim made before a call is about what the call does."""
    if failed.family == "check":
        return claim.kind in OF_CODE and not _of_another_check(claim, failed)
    if failed.family == "edit":
        return claim.kind == "fix" or bool(EDITS & set(claim.acts))
    return bool(claim.acts) and _is_related(claim, failed)


def _stands_corrected(transcript: Transcript, failed: PlacedOutcome) -> bool:
    """Whether a later call of the same kind came right, while the agent worked on it or in its next run."""
    last = transcript.next_run(failed.agent, failed.turn.run) or failed.turn.run
    return any(
        _makes_good(failed.outcome, each.outcome)
        for each in transcript.outcomes
        if each.turn.place > failed.turn.place and each.turn.run <= last
    )


def _taken_back(transcript: Transcript, turn: TranscriptTurn, failed: ToolOutcome, claim: Claim) -> bool:
    """Whether the agent takes a claim back, or admits the failure, before anybody else speaks."""
    later = transcript.agent_turns(turn.message.agent, turn.place + 1, transcript.end_of_run(turn.run))
    if failed.family != "check" or not failed.kinds - {"run"}:
        return any(each.admits for each in later)
    return any(admission_of(each, failed, kinds_of(claim)) is not None for each in later)


def _of_another_check(claim: Claim, failed: ToolOutcome) -> bool:
    """Whether a claim is about tests and the failure about style, or the like."""
    kinds = failed.failed_kinds - {"run"}
    return bool(claim.checks and kinds) and not kinds & set(claim.checks)


def _names_others(turn: TranscriptTurn, claim: Claim, failed: PlacedOutcome) -> bool:
    """Whether a claim names tests or a tool, and those that failed are others."""
    if failed.outcome.family != "check" or not claim.checks:
        return False
    return names_other_tests(turn, claim, failed.outcome) or is_of_another_tool(turn, claim, failed.outcome)


def _contradicts(transcript: Transcript, failed: PlacedOutcome, turn: TranscriptTurn, claim: Claim) -> bool:
    """Whether a failure before a claim in the same run says the opposite of it, as things stand when it is made."""
    between = [
        each.outcome
        for each in transcript.outcomes
        if failed.turn.place <= each.turn.place < turn.place and each.outcome.family != "look"
    ]
    later = between[next(i for i, each in enumerate(between) if each is failed.outcome) + 1 :]
    worked = any(
        block.call not in transcript.failed_calls
        for each in transcript.agent_turns(failed.agent, failed.turn.place + 1, turn.place)
        for block in each.blocks
    )
    if _of_another_check(claim, failed.outcome) or _names_others(turn, claim, failed):
        return False
    if failed.outcome.family != "call" and turn.message.tool_calls:
        return False  # the work goes on in this very message
    if failed.outcome.family == "check":
        if any(_makes_good(failed.outcome, each) for each in later):
            return False
        if claim.kind == "act":
            return not claim.passive and _is_related(claim, failed.outcome) and not worked
        of_tests = claim.kind == "tests" and set(claim.checks) != {"lint"}  # an edit is what a linter asked for
        return of_tests or not (worked or _unseen(later))
    if failed.outcome.family == "edit":
        about = claim.kind in ("fix", "done") or bool(EDITS & set(claim.acts))
        return about and not worked and not any(each.state != "failed" for each in later)
    if claim.kind == "done":
        return not later
    return bool(claim.acts) and _call_contradicts(transcript, failed, turn, claim)


def _unseen(later: list[ToolOutcome]) -> bool:
    """Whether something that came right since may have changed what was checked."""
    return any(each.family in ("call", "edit") and each.state != "failed" for each in later)


def _call_contradicts(transcript: Transcript, failed: PlacedOutcome, turn: TranscriptTurn, claim: Claim) -> bool:
    """A failed call against an act: related by its words, and no other call that may be the one meant."""
    fine = [
        each.outcome
        for each in transcript.outcomes
        if each.turn.run == turn.run and each.turn.place < turn.place
        and each.outcome.family != "look" and each.outcome.state != "failed"
    ]  # fmt: skip
    if not failed.outcome.words and any(each.key == failed.outcome.key for each in fine):
        return False  # the source does not say what was called, and the same tool did something
    if not _is_related(claim, failed.outcome):
        return not failed.outcome.words and not fine
    rivals = [each for each in fine if _is_related(claim, each)]
    if not rivals:
        return True
    if any(_alternative(failed.outcome, each) for each in rivals):
        return False
    own = _specific(failed.outcome)
    others = frozenset().union(*(_specific(each) for each in rivals))
    claim_words = frozenset(_WORD.findall(turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))].lower()))
    if claim_words & (own - others):
        return bool(claim_words & (others - own)) or bool(failed.outcome.inputs)
    again = any(each.key == failed.outcome.key for each in rivals)
    return _whole(turn, claim) and not claim_words & (others - own) and not again


def _alternative(failed: ToolOutcome, other: ToolOutcome) -> bool:
    """Whether another call tried the same thing: with mostly the same values."""
    shared, either = failed.inputs & other.inputs, failed.inputs | other.inputs
    return len(shared) >= ALIKE * len(either) if either else other.key == failed.key


def _specific(outcome: ToolOutcome) -> frozenset[str]:
    return frozenset(word for word in outcome.words | outcome.inputs if _WORD.fullmatch(word))


def _is_related(claim: Claim, outcome: ToolOutcome) -> bool:
    """Whether a call does what the claim's participle says, by the words of its name, its command or its answer."""
    acts = claims_config().acts
    tools = frozenset().union(*(acts[name].tools for name in claim.acts))
    if outcome.words:
        return bool(tools & outcome.words)
    result_words = frozenset(_WORD.findall(outcome.message.text[:RESULT].lower()))
    return bool(result_words & (tools | {past for name in claim.acts for past in acts[name].past}))


def _makes_good(failed: ToolOutcome, later: ToolOutcome) -> bool:
    """Whether a later outcome shows that what failed came right, or may have."""
    if later.state == "failed" or later.family == "look":
        return False
    if failed.family == "check":
        return later.family == "check"
    return later.key == failed.key


def _deduction(turn: TranscriptTurn, claim: Claim, failed: PlacedOutcome, kind: str) -> Deduction:
    result = failed.outcome
    when = "after it" if failed.turn.place > turn.place else "before it"
    by = "the user pasted" if failed.turn.message.role == "user" else "a tool answered"
    what = "that a check fails" if result.family == "check" else "that the call failed"
    words = (
        f"The message says that something is done, and {by} {when}, at {turn_at(failed.turn.message.position)}, "
        f"{what}; the claim is not taken back."
    )
    shown = (quote(failed.turn.message, result.start, result.end),) if result.end > result.start else ()
    quotes = (quote(turn.message, claim.start, claim.end), *shown)
    about = " ".join((*claim.checks, *sorted(result.failed_kinds), folder_of(result.command))) or claim.kind
    episode = f"{turn.message.agent} {result.family} {result.key} {about}"[:160]
    return deduction(MECHANISM, kind, turn, words, quotes, episode)
