"""What asks to be read, counted over a run, and where a budget or a recall target cuts it off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from undersong.models import TIERS, Record, Tier
from undersong.routing.audit_sample import Draws, Levels, LowestDraws

# The order in which a budget is spent. What a rule asks for comes before what is only probable.
RANKS = ("deep_with_context", "deep", "focused", "backwards", "triage")
BACKWARDS, TRIAGE = RANKS.index("backwards"), RANKS.index("triage")
STEPS = 1000  # triage scores have 3 decimals
WIDTH = STEPS + 1  # levels of a rank
UNSCORED = len(RANKS) * WIDTH  # the level of what only triage could read, where it gave no score: nothing reads it


class BudgetCutoff(Record, frozen=True, kw_only=True):
    """Everything up to ``rank`` is read, and of that rank what has a triage score of ``score`` or more.

    ``why`` says where the cut comes from, in the words of a reason.
    """

    rank: int
    score: float
    why: str

    @property
    def level(self) -> int:
        """The last level that is read; below 0 where nothing is."""
        return level_of(self.rank, self.score)

    def reads(self, rank: int, triage: float | None) -> bool:
        """Whether a message is read; one without a triage score counts as 0, and triage alone never reads it."""
        return level_of(rank, triage) <= self.level


class DemandHistogram:
    """How many messages ask to be read, by level: one row of numbers for a run of any size.

    Of the draws of each level the ``least`` lowest are kept, from which the audit sample's rate is known.
    """

    def __init__(self, least: int = 0) -> None:
        self.messages = 0
        self._counts = np.zeros(UNSCORED + 1, dtype=np.int64)
        self._lowest = LowestDraws(UNSCORED + 1, least)

    def add(self, levels: Levels, draws: Draws) -> None:
        """Count messages by their levels (``level_of``), with their draws in the audit sample."""
        self.messages += len(levels)
        self._counts += np.bincount(levels, minlength=UNSCORED + 1)
        self._lowest.add(levels, draws)

    def resolve(self, scores: Sequence[float], draws: Draws, *, backwards: bool) -> None:
        """Messages that were added with their triage ``scores`` and without draws, since another thread might call for
        them: now it is known whether reading backwards does."""
        triage = np.array([level_of(TRIAGE, score) for score in scores], dtype=np.int16)
        levels = triage - WIDTH if backwards else triage
        np.subtract.at(self._counts, triage, 1)
        np.add.at(self._counts, levels, 1)
        self._lowest.add(levels, draws)

    def levels(self) -> Iterator[tuple[int, float, int]]:
        """(rank, triage score, messages) in the order in which a budget is spent, where there are any."""
        for level in np.flatnonzero(self._counts[:UNSCORED]).tolist():
            rank, step = divmod(level, WIDTH)
            yield rank, (STEPS - step) / STEPS, int(self._counts[level])

    def read(self, cut: BudgetCutoff) -> int:
        """How many messages a cut reads."""
        return int(self._counts[: max(cut.level + 1, 0)].sum())

    def sample_rate(self, cut: BudgetCutoff, rate: float) -> float:
        """The audit sample's rate: ``rate``, or what draws ``least`` of the messages with text that a cut leaves."""
        return self._lowest.rate(cut.level, rate)


NOTHING = BudgetCutoff(rank=0, score=2.0, why="")


def within_share(demand: DemandHistogram, share: float) -> BudgetCutoff:
    """The cut that reads the most, level by level, without passing ``share`` (0-1) of all messages.

    Messages of the same rank and score are read together or not at all, so that no order of the input matters.
    """
    room, cut = int(demand.messages * share + 1e-9), NOTHING
    for rank, score, count in demand.levels():
        room -= count
        if room < 0:
            break
        cut = BudgetCutoff(rank=rank, score=score, why="")
    return msgspec.structs.replace(cut, why=f"budget of {share:.0%} of the messages")


def for_recall(threshold: float, recall: float, asked: float) -> BudgetCutoff:
    """The cut of a recall target: all that a rule asks for, and triage from the model card's threshold on."""
    short = f", the most it reached; {asked:.2f} was asked for" if recall < asked else ""
    return BudgetCutoff(rank=TRIAGE, score=threshold, why=f"recall {recall:.2f} on the triage model's labels{short}")


def rank_of(tier: Tier, flagged: bool, reasons: Sequence[str]) -> int:
    """The rank of a drafted message; a focused one without a flag of its own is there from reading backwards."""
    if tier == "standard":
        return TRIAGE
    if tier == "focused" and not flagged and reasons:
        return BACKWARDS
    return len(TIERS) - 1 - TIERS.index(tier)


def level_of(rank: int, triage: float | None) -> int:
    """Ranks and triage scores as one number, in the order in which a budget is spent: 0 comes first.

    >>> level_of(0, 1.0), level_of(0, 0.0), level_of(1, 0.998), level_of(TRIAGE, None) == UNSCORED
    (0, 1000, 1003, True)
    """
    if triage is None and rank == TRIAGE:
        return UNSCORED
    return rank * WIDTH + STEPS - round((triage or 0.0) * STEPS)
