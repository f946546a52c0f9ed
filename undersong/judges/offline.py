"""The judge that needs no key and no server: twelve traits from n-grams, with weights that ship in the package.

It reads one message at a time and nothing around it. A score is an estimate of what an LLM judge would have said of
such a message on Moltbook, the agent network that its labels come from; on other text it is unmeasured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from undersong.judges import Question
from undersong.judges.heads import FILE, Heads, load
from undersong.models import TRAITS, Evaluation

SHIPPED = Path(__file__).parent / "models"
CODE_VERSION = 1  # raise it when the same weights would give other scores: stored answers are then not reused


class OfflineJudge:
    """Twelve trait scores in [0, 1], to 3 decimals, for every message that has text."""

    name = "offline"
    reads_everything = True
    calibrated = False  # measured on agent posts (Moltbook) only
    gives = frozenset({"traits"})

    def __init__(self, heads: Heads, sha256: str) -> None:
        self._scorer = heads.scorer()
        self.hashes = {FILE: sha256}
        self.hash = hashlib.sha256(f"{sha256}:{CODE_VERSION}".encode()).hexdigest()

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """One Evaluation per question, in order: scored, or unread where there is nothing to read."""
        found = [self._scorer.raw(q.message.text) if q.message.text.strip() else None for q in questions]
        raw = np.stack([scores if scores is not None else np.zeros(len(TRAITS)) for scores in found] or [_NOTHING])
        rows = self._scorer.calibrate(raw).tolist()
        return [
            self._scored(question, row) if scores is not None else self._unread(question)
            for question, scores, row in zip(questions, found, rows, strict=False)
        ]

    def _scored(self, question: Question, scores: list[float]) -> Evaluation:
        return Evaluation(
            message_id=question.message.id,
            state="scored",
            judge=self.name,
            judge_hash=self.hash,
            message_hash=_sha256(question.message.text),
            traits=dict(zip(TRAITS, scores, strict=True)),
            width="message",  # it reads nothing around a message, whatever the route allows
        )

    def _unread(self, question: Question) -> Evaluation:
        text = question.message.text
        return Evaluation(
            message_id=question.message.id,
            state="unread",
            judge=self.name,
            judge_hash=self.hash,
            message_hash=_sha256(text),
            width="none",
            reason="nothing in its text is known to the model" if text.strip() else "no text to read",
        )


_NOTHING = np.zeros(len(TRAITS))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def open_judge(argument: str) -> OfflineJudge:
    """The shipped model, or the one in the directory ``argument``; raises JudgeError where it cannot be used."""
    return OfflineJudge(*load(Path(argument) if argument else SHIPPED))
