"""The judges: one module and one table line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol

from undersong.errors import UsageError
from undersong.models import Evaluation, Message, Noun, Route, Scan
from undersong.rulebook import did_you_mean

# name of --judge → module with a function ``open_judge(argument) -> Judge``; the argument is what follows the colon
JUDGES: dict[str, str] = {
    "offline": "undersong.judges.offline",
}


class Question(Noun, frozen=True, kw_only=True):
    """One message to score, with what the tier allows a judge to see: ``prior`` messages in order, oldest first."""

    message: Message
    scan: Scan
    route: Route
    prior: tuple[Message, ...] = ()


class Judge(Protocol):
    """Scores messages; one that cannot score a message returns an Evaluation whose state says why."""

    name: str
    """As in ``--judge``, written into every row."""
    hash: str
    """SHA-256 over model and prompt: a stored answer is reused only under the same hash."""
    reads_everything: bool
    """True where reading is free, so that the router need not save."""
    gives: frozenset[str]
    """What it fills: any of ``traits``, ``indicators``, ``mechanisms`` and names of signals."""
    hashes: dict[str, str]
    """Artefact or prompt name → SHA-256, for the manifest."""
    calibrated: bool
    """Whether its scores were compared with labels of this kind of text."""

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """One Evaluation per question, in order; raises JudgeError only when nothing can be asked at all."""
        ...


def open_judge(spec: str) -> Judge:
    """The judge named ``NAME`` or ``NAME:ARGUMENT``; raises UsageError for an unknown name."""
    name, _, argument = spec.partition(":")
    if name not in JUDGES:
        raise UsageError(f"unknown judge '{name}'", remedy=did_you_mean(name, list(JUDGES)))
    opener: Callable[[str], Judge] = import_module(JUDGES[name]).open_judge
    return opener(argument)
