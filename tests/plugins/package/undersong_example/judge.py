"""A judge that takes capitals for grandiosity: ``--judge shouting``; ``--judge metered:NAME`` may spend something."""

from collections.abc import Sequence

from undersong.core.text import text_hash
from undersong.judges.limits import RunLimits
from undersong.judges.protocol import Judge, Question
from undersong.models import TRAITS, Evaluation


class ShoutingJudge(Judge):
    """Every message that it may read is scored by its share of capitals."""

    reads_everything = True
    gives = frozenset({"traits"})
    calibrated = False

    def __init__(self, name: str, most: int | None = None) -> None:
        self.name, self.hash, self.hashes = name, text_hash(f"{name} 1"), {"shouting": text_hash("1")}
        self._left = most

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        return [self._evaluate(question) for question in questions]

    def _evaluate(self, question: Question) -> Evaluation:
        text = question.message.text
        known = {
            "message_id": question.message.id,
            "judge": self.name,
            "judge_hash": self.hash,
            "message_hash": text_hash(text),
            "width": "message",
        }
        if self._left == 0:
            return Evaluation(state="unread", reason="the calls are used up", **known)
        self._left = None if self._left is None else self._left - 1
        share = round(sum(map(str.isupper, text)) / max(len(text), 1), 3)
        return Evaluation(state="scored", traits=dict.fromkeys(TRAITS, share), **known)


def open_judge(argument: str) -> ShoutingJudge:
    """A judge that reads for free."""
    return ShoutingJudge(f"shouting:{argument}" if argument else "shouting")


def open_metered_judge(argument: str, limits: RunLimits) -> ShoutingJudge:
    """A judge that keeps to ``--max-calls``."""
    return ShoutingJudge(f"metered:{argument}", limits.max_calls)
