"""How a live run routes: causal, so that a message is decided by what came before it and what it raises itself."""

from __future__ import annotations

import msgspec

from undersong.judges import Judge
from undersong.routing.budget import BudgetCutoff, for_recall
from undersong.routing.route import Policy, load_policy
from undersong.scan import SignalBook

RECALL = 0.8  # of harmful messages on the triage model's labels: about what the batch budget of .45 reads there


class RoutingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a live run; the same for every conversation, whatever else comes.

    ``cut`` is where reading ends, None where no triage model says so; ``rate`` is the audit sample's.
    """

    policy: Policy
    cut: BudgetCutoff | None
    seed: int
    rate: float
    read_all: bool


def build_routing_config(
    judge: Judge, book: SignalBook, *, recall: float | None, seed: int, read_all: bool, policy: Policy | None
) -> RoutingConfig:
    """The routing of a run; a judge that reads for free reads everything unless a ``recall`` is asked for.

    A batch run with the same ``recall`` and a ``sample_minimum`` of 0 routes the same messages alike.
    """
    policy = policy or load_policy()
    asked = RECALL if recall is None else recall
    cut = None
    if book.triage is not None:
        reached = book.triage.threshold_for(asked)
        cut = for_recall(reached.threshold, reached.recall, asked)
    return RoutingConfig(
        policy=policy,
        cut=cut,
        seed=seed,
        rate=policy.sample_rate,
        read_all=read_all or (judge.reads_everything and recall is None),
    )
