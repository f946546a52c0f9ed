"""What a user may choose for a run, and what follows from it before anything is judged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from fnmatch import fnmatch
from itertools import count
from typing import TYPE_CHECKING, Literal

import msgspec

from undersong.core.text import counted
from undersong.errors import UsageError
from undersong.formats.sources import DateOrder
from undersong.judges.limits import RunLimits
from undersong.ml.triage import RoleTriage
from undersong.models import SIGNALS, Conversation
from undersong.models.verdict import Profile
from undersong.patterns.significance import ResamplingConfig
from undersong.routing.budget import BudgetCutoff, DemandHistogram, for_recall, within_share
from undersong.routing.route import Policy

if TYPE_CHECKING:
    from undersong.patterns.language.compile import PatternRule

Progress = Callable[[str, int, int], None]  # step, how much is done, how much in all (0 = not known yet), see UNITS
UNITS = {"read": "bytes", "scan": "messages", "evaluate": "messages", "detect": "rules", "weigh": "rules",
         "sequences": "sequences"}  # fmt: skip


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may choose; everything that changes a result is in the manifest.

    ``dates`` decides where the dates of a messenger's export can be read in two ways.
    ``fields``: keys of the inputs and what each of them is called in our JSON Lines, for JSON of a form of its own.
    ``confidence``: that of the shipped figures, or fitted to the reviews in the store where there are enough.
    ``budget_share`` (0-1, of all messages) and ``recall`` (0-1, as in the triage model's card) say how much is read;
    neither = the policy's budget, which a judge that reads for free does not heed.
    ``read``: whether the judge scores messages one by one, reads whole sequences, or both.
    ``prevalence``: the share of speakers that show a shape, for the confidence of findings; None: by who speaks.
    ``signals`` (some of SIGNALS) are of ``scan_rows`` alone. ``processes`` changes no result.
    ``terms`` say what a paid judge may spend; its ledger is the store's, or the file ``ledger`` beside a server.
    ``thinking``: whether what agents wrote for themselves is read, where the source keeps it.
    ``profile``: what kind of talk the conversations are, None: by their content.
    ``add``: messages are added to those that the store has of a conversation, instead of taking their place.
    ``effort`` None: chance, q and stability are not computed. It has its own seed, for ``weigh``.
    """

    source_format: str | None = None
    dates: DateOrder | None = None
    fields: dict[str, str] | None = None
    judge: str = "offline"
    read_all: bool = False
    read: Literal["messages", "sequences", "both"] = "messages"
    prevalence: float | None = None
    confidence: Literal["shipped", "reviews"] = "shipped"
    budget_share: float | None = None
    recall: float | None = None
    seed: int = 0
    only: tuple[str, ...] = ()
    since: datetime | None = None
    policy: Policy | None = None
    rules: tuple[PatternRule, ...] | None = None
    signals: tuple[str, ...] = SIGNALS
    processes: int = 1
    effort: ResamplingConfig | None = ResamplingConfig()
    terms: RunLimits = RunLimits()
    ledger: str | None = None
    profile: Profile | None = None
    thinking: bool = True
    add: bool = False


def silent(step: str, done: int, total: int) -> None:
    """The progress of a run that nobody watches."""


def counter(progress: Progress, step: str, total: int) -> Callable[[], None]:
    """A function that reports one more of a step at each call."""
    numbers = count(1)

    def tick() -> None:
        progress(step, min(next(numbers), total), total)

    return tick


def reading_cutoff(
    demand: DemandHistogram, options: Options, policy: Policy, triage: RoleTriage | None
) -> BudgetCutoff:
    """Where reading ends: at the recall asked for, at the budget asked for, or at the policy's budget."""
    if options.recall is not None and triage is not None:
        reached = triage.threshold_for(options.recall)
        return for_recall(reached.threshold, reached.recall, options.recall)
    return within_share(demand, policy.budget_share if options.budget_share is None else options.budget_share)


def chosen(conversation: Conversation, options: Options) -> bool:
    """Whether ``--only`` and ``--since`` keep a conversation; an untimed one is never left out by time."""
    names = (conversation.id, conversation.title or "")
    if options.only and not any(fnmatch(name, pattern) for name in names for pattern in options.only):
        return False
    times = [message.time for message in conversation.messages if message.time]
    return options.since is None or not times or max(times) >= options.since


def matched_none(options: Options, conversations: int) -> UsageError:
    filters = [f"only {pattern}" for pattern in options.only]
    filters += [f"since {options.since.isoformat()}"] if options.since else []
    what = f"the filter ({', '.join(filters)}) matched none of {counted(conversations, 'conversation')}"
    return UsageError(what, remedy="ids and titles are matched as a whole, * stands for any characters")
