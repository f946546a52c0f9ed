"""What asks to be read, counted over a run, and where a budget or a recall target cuts it off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from undersong.models import TIERS, Noun, Tier

# The order in which a budget is spent. What a rule asks for comes before what is only probable.
RANKS = ("deep_with_context", "deep", "focused", "backwards", "triage")
BACKWARDS, TRIAGE = RANKS.index("backwards"), RANKS.index("triage")
STEPS = 1000  # triage scores have 3 decimals


class Cut(Noun, frozen=True, kw_only=True):
    """Everything up to ``rank`` is read, and of that rank what has a triage score of ``score`` or more.

    ``why`` says where the cut comes from, in the words of a reason.
    """

    rank: int
    score: float
    why: str

    def reads(self, rank: int, triage: float | None) -> bool:
        """Whether a message is read; one without a triage score counts as 0, and triage alone never reads it."""
        if rank == TRIAGE and triage is None:
            return False
        return rank < self.rank or (rank == self.rank and _step(triage) >= _step(self.score))


class Demand:
    """How many messages ask to be read, by rank and triage score: five rows of numbers for a run of any size."""

    def __init__(self) -> None:
        self.messages = 0
        self.readable = 0
        self._counts = [[0] * (STEPS + 1) for _ in RANKS]

    def add(self, rank: int, triage: float | None) -> None:
        """Count one message; a blank one (nothing but triage could read it, and that has no score) is only counted."""
        self.messages += 1
        if rank == TRIAGE and triage is None:
            return
        self.readable += 1
        self._counts[rank][_step(triage)] += 1

    def promote(self, triage: float) -> None:
        """Move one message from triage to reading backwards."""
        self._counts[TRIAGE][_step(triage)] -= 1
        self._counts[BACKWARDS][_step(triage)] += 1

    def levels(self) -> Iterator[tuple[int, float, int]]:
        """(rank, triage score, messages) in the order in which a budget is spent, where there are any."""
        for rank, counts in enumerate(self._counts):
            yield from ((rank, step / STEPS, counts[step]) for step in range(STEPS, -1, -1) if counts[step])

    def read(self, cut: Cut) -> int:
        """How many messages a cut reads."""
        return sum(count for rank, score, count in self.levels() if cut.reads(rank, score))

    def unread(self, cut: Cut) -> int:
        """How many messages with text a cut leaves out: what the audit sample is drawn from."""
        return self.readable - self.read(cut)


NOTHING = Cut(rank=0, score=2.0, why="")


def within_share(demand: Demand, share: float) -> Cut:
    """The cut that reads the most, level by level, without passing ``share`` (0-1) of all messages.

    Messages of the same rank and score are read together or not at all, so that no order of the input matters.
    """
    room, cut = int(demand.messages * share + 1e-9), NOTHING
    for rank, score, count in demand.levels():
        room -= count
        if room < 0:
            break
        cut = Cut(rank=rank, score=score, why="")
    return msgspec.structs.replace(cut, why=f"budget of {share:.0%} of the messages")


def for_recall(threshold: float, recall: float, asked: float) -> Cut:
    """The cut of a recall target: all that a rule asks for, and triage from the model card's threshold on."""
    short = f", the most it reached; {asked:.2f} was asked for" if recall < asked else ""
    return Cut(rank=TRIAGE, score=threshold, why=f"recall {recall:.2f} on the triage model's labels{short}")


def rank_of(tier: Tier, flagged: bool, reasons: Sequence[str]) -> int:
    """The rank of a drafted message; a focused one without a flag of its own is there from reading backwards."""
    if tier == "standard":
        return TRIAGE
    if tier == "focused" and not flagged and reasons:
        return BACKWARDS
    return len(TIERS) - 1 - TIERS.index(tier)


def _step(triage: float | None) -> int:
    return round((triage or 0.0) * STEPS)
