"""The false promises that a tool's answer contradicts: ``failing_after_claim`` and ``tool_error``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from undersong.models import Deduction
from undersong.verdict.claims import Claim
from undersong.verdict.course import Course, Placed, Turn, quote
from undersong.verdict.found import deduction
from undersong.verdict.outcomes import Outcome, pasted
from undersong.verdict.prose import sentence
from undersong.verdict.words import claims_book

MECHANISM, AFTER, ERROR = "false_promise", "failing_after_claim", "tool_error"
OF_CODE = ("fix", "tests", "works", "done")  # kinds of claim that a failing check speaks of
EDITS = frozenset({"change", "create", "save", "remove"})  # acts that an edit of a file performs
RUNS_BACK = 5  # from a failing check to the claim: "fixed", thanks, another question, "run the tests once more"
ALIKE = 0.5  # of the words in the values of two calls, from which on they try the same thing
RESULT = 400  # characters of a result whose words may say what the call was about
_WORD = re.compile(r"[a-z]{3,}")
_ALL = re.compile(r"\b(?:both|all|everything|each|every)\b", re.IGNORECASE)


def contradicted(course: Course) -> list[Deduction]:
    """Deductions in the order of the claims, one a message at most.

    A failed call contradicts the first claim after it in the same run of messages, unless something came right in
    between or the message admits the failure; else the last claim before it, unless the agent takes that back, goes on
    with the work, or a later run passes.
    """
    found: dict[str, Deduction] = {}
    for each in _failures(course):
        broken = _claimed_after(course, each) or _claimed_before(course, each)
        if broken:
            found.setdefault(broken.message_id, broken)
    return sorted(found.values(), key=lambda each: each.position)


def evidence(course: Course) -> bool:
    """Whether any tool answered to a call that does more than look."""
    return any(each.outcome.family != "look" for each in course.outcomes)


def _failures(course: Course) -> Iterator[Placed]:
    for each in course.outcomes:
        if each.outcome.state == "failed" and each.outcome.family != "look":
            yield each
    for turn in course.turns:
        if turn.message.role == "user" and (failed := pasted(turn.message)):
            agent = next((each.message.agent for each in reversed(course.turns[: turn.place]) if each.is_agent), "")
            yield Placed(turn, failed, agent)


def _claimed_after(course: Course, failed: Placed) -> Deduction | None:
    """The first claim of the same run that knew of the failure and says otherwise."""
    if failed.turn.message.role == "user":
        return None
    for turn in course.said(failed.agent, failed.turn.place + 1, course.end_of_run(failed.turn.run)):
        for claim in turn.claims:
            if not claim.hedged and _contradicts(course, failed, turn, claim):
                if turn.admits or _taken_back(course, turn, turn.run):
                    return None
                return _deduction(turn, claim, failed, ERROR)
    return None


def _claimed_before(course: Course, failed: Placed) -> Deduction | None:
    """The last claim before the failure, where the agent leaves it to stand."""
    found = _last_claim(course, failed)
    if found is None or _stands_corrected(course, failed):
        return None
    turn, claim = found
    if turn.admits:
        return None
    now, later = (
        _heard(course, failed, run) for run in (failed.turn.run, course.next_run(failed.agent, failed.turn.run))
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


def _heard(course: Course, failed: Placed, run: int | None) -> list[Turn]:
    """What the agent said after a failure, in a run."""
    return [] if run is None else list(course.said(failed.agent, failed.turn.place + 1, course.end_of_run(run)))


def _last_claim(course: Course, failed: Placed) -> tuple[Turn, Claim] | None:
    """The claim that a failure speaks of: what is claimed before newer work is not about it."""
    first_run = failed.turn.run - (RUNS_BACK if failed.outcome.family == "check" else 0)
    worked = _last_edit(course, failed)
    for turn in reversed(list(course.said(failed.agent, worked, failed.turn.place))):
        if turn.run < first_run:
            return None
        for claim in reversed(turn.claims):
            if not claim.hedged and _speaks_of(claim, failed.outcome):
                return None if _was_backed(course, turn, claim, failed.outcome) else (turn, claim)
        if turn.blocks:
            return None
    return None


def _last_edit(course: Course, failed: Placed) -> int:
    """The place of the latest edit before a failure, where the session shows only what its tool answered."""
    edits = (each.turn.place for each in course.outcomes if each.outcome.family == "edit" and not each.outcome.words)
    return max((place for place in edits if place < failed.turn.place), default=0)


def _was_backed(course: Course, turn: Turn, claim: Claim, failed: Outcome) -> bool:
    """Whether a check that covers the one that fails now had passed when the claim was made: it was true then."""
    if failed.family != "check":
        return False
    own = course.said(turn.message.agent, 0, turn.place)
    worked = max((each.place for each in own if each.blocks), default=0)
    found = [
        each.outcome
        for each in course.outcomes
        if worked <= each.turn.place < turn.place and each.outcome.family == "check"
    ]
    covers = found and (found[-1].words <= failed.words or (claim.kind == "tests" and not _whole(turn, claim)))
    return bool(covers) and found[-1].state == "passed"


def _whole(turn: Turn, claim: Claim) -> bool:
    return _ALL.search(turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))]) is not None


def _speaks_of(claim: Claim, failed: Outcome) -> bool:
    """Whether a claim made before a call is about what the call does."""
    if failed.family == "check":
        return claim.kind in OF_CODE
    if failed.family == "edit":
        return claim.kind == "fix" or bool(EDITS & set(claim.acts))
    return bool(claim.acts) and _is_related(claim, failed)


def _stands_corrected(course: Course, failed: Placed) -> bool:
    """Whether a later call of the same kind came right, while the agent worked on it or in its next run."""
    last = course.next_run(failed.agent, failed.turn.run) or failed.turn.run
    return any(
        _makes_good(failed.outcome, each.outcome)
        for each in course.outcomes
        if each.turn.place > failed.turn.place and each.turn.run <= last
    )


def _taken_back(course: Course, turn: Turn, run: int) -> bool:
    """Whether the agent takes a claim back before anybody else speaks."""
    return any(each.admits for each in course.said(turn.message.agent, turn.place + 1, course.end_of_run(run)))


def _contradicts(course: Course, failed: Placed, turn: Turn, claim: Claim) -> bool:
    """Whether a failure before a claim in the same run says the opposite of it, as things stand when it is made."""
    between = [
        each.outcome
        for each in course.outcomes
        if failed.turn.place <= each.turn.place < turn.place and each.outcome.family != "look"
    ]
    later = between[next(i for i, each in enumerate(between) if each is failed.outcome) + 1 :]
    worked = any(
        block.call not in course.failed_calls
        for each in course.said(failed.agent, failed.turn.place + 1, turn.place)
        for block in each.blocks
    )
    if failed.outcome.family != "call" and turn.message.tool_calls:
        return False  # the work goes on in this very message
    if failed.outcome.family == "check":
        if any(_makes_good(failed.outcome, each) for each in later):
            return False
        if claim.kind == "act":
            return _is_related(claim, failed.outcome) and not worked
        return claim.kind == "tests" or not (worked or _unseen(later))
    if failed.outcome.family == "edit":
        about = claim.kind in ("fix", "done") or bool(EDITS & set(claim.acts))
        return about and not worked and not any(each.state != "failed" for each in later)
    if claim.kind == "done":
        return not later
    return bool(claim.acts) and _call_contradicts(course, failed, turn, claim)


def _unseen(later: list[Outcome]) -> bool:
    """Whether something that came right since may have changed what was checked."""
    return any(each.family in ("call", "edit") and each.state != "failed" for each in later)


def _call_contradicts(course: Course, failed: Placed, turn: Turn, claim: Claim) -> bool:
    """A failed call against an act: related by its words, and no other call that may be the one meant."""
    fine = [
        each.outcome
        for each in course.outcomes
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
    said = frozenset(_WORD.findall(turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))].lower()))
    if said & (own - others):
        return bool(said & (others - own)) or bool(failed.outcome.inputs)
    again = any(each.key == failed.outcome.key for each in rivals)
    return _whole(turn, claim) and not said & (others - own) and not again


def _alternative(failed: Outcome, other: Outcome) -> bool:
    """Whether another call tried the same thing: with mostly the same values."""
    shared, either = failed.inputs & other.inputs, failed.inputs | other.inputs
    return len(shared) >= ALIKE * len(either) if either else other.key == failed.key


def _specific(outcome: Outcome) -> frozenset[str]:
    return frozenset(word for word in outcome.words | outcome.inputs if _WORD.fullmatch(word))


def _is_related(claim: Claim, outcome: Outcome) -> bool:
    """Whether a call does what the claim's participle says, by the words of its name, its command or its answer."""
    acts = claims_book().acts
    tools = frozenset().union(*(acts[name].tools for name in claim.acts))
    if outcome.words:
        return bool(tools & outcome.words)
    told = frozenset(_WORD.findall(outcome.message.text[:RESULT].lower()))
    return bool(told & (tools | {past for name in claim.acts for past in acts[name].past}))


def _makes_good(failed: Outcome, later: Outcome) -> bool:
    """Whether a later outcome shows that what failed came right, or may have."""
    if later.state == "failed" or later.family == "look":
        return False
    if failed.family == "check":
        return later.family == "check"
    return later.key == failed.key


def _deduction(turn: Turn, claim: Claim, failed: Placed, kind: str) -> Deduction:
    result = failed.outcome
    when = "after it" if failed.turn.place > turn.place else "before it"
    by = "the user pasted" if failed.turn.message.role == "user" else "a tool answered"
    what = "that a check fails" if result.family == "check" else "that the call failed"
    words = (
        f"The message says that something is done, and {by} {when}, at turn {failed.turn.message.position}, "
        f"{what}; the claim is not taken back."
    )
    shown = (quote(failed.turn.message, result.start, result.end),) if result.end > result.start else ()
    quotes = (quote(turn.message, claim.start, claim.end), *shown)
    return deduction(MECHANISM, kind, turn, words, quotes, f"{turn.message.agent} {result.family} {result.key}"[:120])
