"""What failed of a judge: the run as a whole, or single questions, how many and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.errors import JudgeError
from undersong.judges.llm.refusals import same_kind
from undersong.models import Problem, Row

SHOWN = 5  # kinds of failures that are named, the most frequent first
REASON_CHARACTERS = 200  # of one of them
PREFIXES = ("the judge did not answer: ", "the judge's answer cannot be used: ", "no usable answer: ")
UNUSABLE = "the judge's answer cannot be used: "
FORGET = "`undersong judge forget --failed` has those asked again whose answers could not be used"
AGAIN = "the same command asks again"


class FailureTally:
    """Counts the questions that a judge answered, refused or failed, and why they failed."""

    def __init__(self) -> None:
        self.questions = self.failed = 0
        self._unusable = 0
        self._kinds: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, state: str, reason: str | None) -> None:
        """Count a question by its state; what was left unread was not asked."""
        if state == "unread":
            return
        self.questions += 1
        if state != "failed":
            return
        self.failed += 1
        words = reason or "no reason given"
        self._unusable += words.startswith(UNUSABLE) and "cut off" not in words
        kind = same_kind(_plain(words))
        self._kinds[kind] += 1
        self._first.setdefault(kind, _plain(words))

    def problem(self, max_failed: float) -> Problem | None:
        """One line about the failures: a failure of the judge where they are more than a share, else a note."""
        if not self.failed:
            return None
        shown = sorted(self._kinds.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
        listed = [f"{count:,} × {one_line(self._first[kind], REASON_CHARACTERS)}" for kind, count in shown]
        rest = self.failed - sum(count for _, count in shown)
        listed += [f"{rest:,} × something else"] if rest else []
        what = f"{self.failed:,} of {counted(self.questions, 'question')} failed: {', '.join(listed)}"
        remedies = [AGAIN] if self._unusable < self.failed else []
        remedies += [FORGET] if self._unusable else []
        loud = self.failed > max_failed * self.questions
        return Problem(what=what, where="judge", remedy="; ".join(remedies), kind="judge" if loud else "note")


def judge_problems(failure: JudgeError | None, tally: FailureTally, max_failed: float) -> tuple[Problem, ...]:
    """The failure of the judge as a whole, and the questions that failed."""
    problems = [tally.problem(max_failed)]
    if failure is not None:
        problems.insert(
            0, Problem(what=failure.what, where=failure.where or "judge", remedy=failure.remedy, kind="judge")
        )
    return tuple(each for each in problems if each is not None)


def answered_by(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Models that answered, by their own account, where another one was asked → messages; nothing where none did."""
    readings = (row.reading for row in rows if row.reading is not None)
    others = Counter(each.model for reading in readings for each in (reading.panel or (reading,)) if each.model)
    return {"answered_by": {str(name): count for name, count in sorted(others.items())}} if others else {}


def _plain(reason: str) -> str:
    """A reason without what every reason of its kind begins with."""
    for prefix in PREFIXES:
        reason = reason.removeprefix(prefix)
    return reason
