"""The answer of a session's card: its score, or what was looked at where a score has nothing to stand on."""

from __future__ import annotations

from collections.abc import Sequence

from undersong.core.text import counted
from undersong.models import SessionVerdict
from undersong.report.claims_view import against
from undersong.report.narrative import FULL, place_noun, score_name, score_words
from undersong.report.private_talk import is_graded

OFFLINE = "offline"
BETWEEN_PEOPLE = "requests that are worth a look together, and wording that is close to manipulation"
WITH_AN_ASSISTANT = (
    "admissions of a fault, confirmed beliefs, repeated replies, and wording that is close to manipulation"
)
LOOKED_FOR = "admissions of a fault, confirmed beliefs, repeated replies, deference, and claims of work"


def score_cell(verdict: SessionVerdict) -> str:
    """The score for a table; full marks are not shown where messages speak against a session without taking points."""
    if verdict.score is None:
        return "not graded" if is_graded((verdict,)) else "–"
    return "no points taken" if verdict.score == FULL and against(verdict) else str(verdict.score)


def lowest_score(sessions: Sequence[SessionVerdict]) -> str:
    """The lowest score of a run in the same words, "–" where no session has one."""
    scored = [verdict for verdict in sessions if verdict.score is not None]
    if not scored:
        return "–"
    lowest = min(scored, key=lambda verdict: verdict.score or 0)
    return "no points taken" if lowest.score == FULL and any(map(against, sessions)) else str(lowest.score)


def session_answer(verdict: SessionVerdict) -> str:
    """The score with what it stands on; without one, what was looked at and what a judge would add: no empty grade."""
    if verdict.score is not None:
        return score_words(verdict)
    turns = len({each.position for each in verdict.moments})
    noted = f"{counted(turns, 'turn')} noted" if turns else "no turn noted"
    if verdict.profile == "messenger":  # nobody's answers are graded between people
        looked = f"Looked at: {counted(verdict.messages, 'message')}, for {BETWEEN_PEOPLE}; {noted}."
        return f"{looked} {_what_a_judge_adds(verdict)}".rstrip()
    if verdict.profile == "companion":
        looked = f"Looked at: {counted(verdict.messages, 'message')}, for {WITH_AN_ASSISTANT}; {noted}."
        return f"{looked} {_what_a_judge_adds(verdict)}".rstrip()
    return (
        f"Not graded: a {score_name((verdict,))} holds answers of an AI against code, output, errors or objections, "
        f"and this {place_noun((verdict,))} has none of them. "
        f"Looked at: {counted(verdict.messages, 'message')}, for {LOOKED_FOR}; "
        f"{noted}. {_what_a_judge_adds(verdict)}"
    ).rstrip()


def _what_a_judge_adds(verdict: SessionVerdict) -> str:
    if verdict.read and set(verdict.judges) - {OFFLINE}:
        return ""
    return (
        "An LLM judge (--judge NAME) would add scores and indicators of each message, and with --read sequences the "
        "shapes that only the whole conversation shows."
    )
