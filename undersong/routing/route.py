"""Decide how deep and how wide each message of a conversation is read, and say why."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.core.text import counted
from undersong.datafiles import yaml_loader
from undersong.datafiles.scan_config import tier_of
from undersong.models import TIERS, Conversation, Depth, Message, Route, Scan, ThreadScan, Tier, Width
from undersong.models.row import REPEAT_FLAGS, THREAD_SIGNAL, flagged_before
from undersong.routing.budget import NEVER, TRIAGE, UNSCORED, BudgetCutoff, Draws, Levels, draws, level_of, rank_of
from undersong.routing.lookback import DirectedMessage

DEPTHS: dict[Tier, Depth] = {
    "standard": "skip",
    "focused": "standard",
    "deep": "thorough",
    "deep_with_context": "thorough",
}
WIDTHS: dict[Tier, Width] = {
    "standard": "none",
    "focused": "message",
    "deep": "prior_messages",
    "deep_with_context": "thread_and_history",
}

CLAIM = "claim_fixed"  # label of the phrases with which an agent says that something is done; rules/structure.yaml
NONE_ELSEWHERE: Mapping[int, str] = MappingProxyType({})
THREAD_REASONS = (THREAD_SIGNAL, REPEAT_FLAGS)


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The router's numbers: ``rules/router.yaml``, each with its reason there."""

    repeat_before: int
    look_back: int
    concentration_share: float
    segment: int
    sample_rate: float
    sample_minimum: int
    budget_share: float


class TierRaises:
    """The tiers of one conversation while rules raise them; a tier never falls."""

    def __init__(self, tiers: Iterable[Tier]) -> None:
        self.tiers = list(tiers)
        self.reasons: list[list[str]] = [[] for _ in self.tiers]

    def raise_to(self, tier: Tier, index: int, reason: str) -> None:
        """Raise message ``index`` to at least ``tier`` and record why."""
        self.tiers[index] = max(self.tiers[index], tier, key=TIERS.index)
        self.reasons[index].append(reason)


def load_policy() -> Policy:
    """The shipped numbers."""
    return yaml_loader.read(yaml_loader.RULES / "router.yaml", Policy)


def flag_tier(scan: Scan) -> Tier:
    """The tier of one message from its own flags."""
    return tier_of(scan.total, bool(scan.hard_constraints))


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules ask for in a conversation before a budget is known: all aligned with its messages.

    ``ranks`` say in which order a budget is spent on them (``budget.RANKS``).
    """

    before: list[Tier]
    tiers: list[Tier]
    reasons: list[list[str]]
    ranks: list[int]


def propose(
    conversation: Conversation,
    scans: Sequence[Scan],
    thread: ThreadScan,
    policy: Policy,
    also: Mapping[int, str] = NONE_ELSEWHERE,
) -> Proposal:
    """The tiers by flags, thread signals, structure and reading backwards.

    ``also`` names the flagged message of another conversation for which a message, by its place, is to be read too.
    """
    messages = conversation.messages
    quiet = tier_of(0, False)
    flagged = [index for index, scan in enumerate(scans) if scan.total or scan.hard_constraints]
    before = [quiet] * len(scans)
    for index in flagged:
        before[index] = flag_tier(scans[index])
    raised = TierRaises(before)
    for index in flagged:
        _own_flags(raised, index, scans[index])
    _thread_signals(raised, messages, thread, policy)
    _repeat_flags(raised, messages, scans, flagged, policy)
    _structural(raised, messages, scans, policy)
    _backwards(raised, messages, scans, flagged, policy)
    for index, caller in also.items():
        raised.raise_to("focused", index, called_for(caller))
    ranks = [
        TRIAGE if tier == "standard" else rank_of(tier, bool(scan.total), reasons)
        for tier, scan, reasons in zip(raised.tiers, scans, raised.reasons, strict=True)
    ]
    return Proposal(before=before, tiers=raised.tiers, reasons=raised.reasons, ranks=ranks)


def called_for(flagged: str) -> str:
    """The reason of a message that is read for a flagged one of another conversation."""
    return f"reading backwards from {flagged}, to the same target"


class ReadDemand(NamedTuple):
    """What the messages of a conversation ask for, in order: their levels in a budget, their draws in the audit sample.

    ``directed`` has what other conversations may call for; until it is known whether they do, such a message counts
    without its draw (``counted``).
    """

    levels: Levels
    draws: Draws
    directed: list[DirectedMessage]

    @property
    def counted(self) -> Draws:
        """The draws, NEVER for what may be called for."""
        if not self.directed:
            return self.draws
        counted_draws = self.draws.copy()
        counted_draws[[each.place for each in self.directed if each.score is not None]] = NEVER
        return counted_draws


def read_demand(conversation: Conversation, scans: Sequence[Scan], ranks: Sequence[int], seed: int) -> ReadDemand:
    """What a drafted conversation asks for; ``ranks`` are of its Draft."""
    drawn = draws(seed, conversation.messages)
    levels = np.array(levels_of(scans, ranks), dtype=np.int16)
    return ReadDemand(levels, drawn, directed_of(conversation.messages, scans, ranks, drawn))


def levels_of(scans: Sequence[Scan], ranks: Sequence[int]) -> list[int]:
    """The levels in a budget (``level_of``) of messages by their ranks."""
    return [
        UNSCORED if rank == TRIAGE and scan.triage is None else level_of(rank, scan.triage)
        for rank, scan in zip(ranks, scans, strict=True)
    ]


def directed_of(
    messages: Sequence[Message], scans: Sequence[Scan], ranks: Sequence[int], drawn: Draws
) -> list[DirectedMessage]:
    """What of the messages of a conversation other conversations may call for; all aligned."""
    if all([message.target is None for message in messages]):
        return []
    directed = [
        DirectedMessage.of(
            place, message, flagged=bool(scan.total), score=scan.triage if rank == TRIAGE else None, draw=draw
        )
        for place, (message, scan, rank, draw) in enumerate(zip(messages, scans, ranks, drawn.tolist(), strict=True))
        if message.target is not None
    ]
    return [each for each in directed if each is not None]


def route(
    conversation: Conversation,
    scans: Sequence[Scan],
    thread: ThreadScan,
    policy: Policy,
    *,
    rate: float = 0.0,
    seed: int = 0,
    cut: BudgetCutoff | None = None,
    also: Mapping[int, str] = NONE_ELSEWHERE,
    proposal: Proposal | None = None,
) -> tuple[Route, ...]:
    """One Route per message, in order; ``scans`` are aligned with the messages.

    ``cut`` is where the run's budget or recall target ends; without one all that the rules ask for is read, and triage
    routes nothing. ``rate`` is the share (0-1) of what is left out that is drawn into the audit sample; the draw hashes
    ``seed`` and the message id, so it depends on nothing else in the run. ``also`` is as for ``propose``.
    ``proposal`` is
    the draft without ``also`` where it is known already.
    """
    if proposal is None or also:
        proposal = propose(conversation, scans, thread, policy, also)
    return tuple(
        decide_routes(conversation.messages, scans, proposal, range(len(scans)), rate=rate, seed=seed, cut=cut)
    )


def decide_routes(
    messages: Sequence[Message],
    scans: Sequence[Scan],
    proposal: Proposal,
    places: Sequence[int],
    *,
    rate: float,
    seed: int,
    cut: BudgetCutoff | None,
) -> list[Route]:
    """The Routes of the messages at some places of a drafted conversation; see ``route``."""
    if not places:
        return []
    drawn = draws(seed, [messages[index] for index in places]) < rate if rate else np.zeros(len(places), dtype=bool)
    return [
        decide_route(
            proposal.tiers[index],
            proposal.before[index],
            proposal.reasons[index],
            read=proposal.tiers[index] != "standard" if cut is None else cut.reads(proposal.ranks[index], scan.triage),
            drawn=is_drawn,
            triage=scan.triage,
            cut=cut,
            message_id=messages[index].id,
        )
        for index, scan, is_drawn in zip(places, (scans[index] for index in places), drawn.tolist(), strict=True)
    ]


def decide_route(
    tier: Tier,
    before: Tier,
    reasons: Sequence[str],
    *,
    read: bool,
    drawn: bool = False,
    triage: float | None = None,
    cut: BudgetCutoff | None = None,
    message_id: str = "",
) -> Route:
    """The Route of a message that was drafted so, when it is known whether it is read, and drawn where it is not."""
    why = list(reasons)
    if read and tier == "standard" and cut is not None:
        tier = "focused"
        why.append(f"triage {triage:.3f} ≥ {cut.score:.3f} ({cut.why})")
    if not read and tier != "standard" and cut is not None:
        why.append(f"left out: {cut.why}")
    sampled = drawn and not read
    if sampled:
        why.append("audit sample")
    return Route(
        message_id=message_id,
        tier=tier,
        tier_before=before,
        depth="standard" if sampled else DEPTHS[tier] if read else "skip",
        width="message" if sampled else WIDTHS[tier] if read else "none",
        reasons=tuple(dict.fromkeys(why)) if why else (),
        sampled=sampled,
    )


UNREAD = decide_route("standard", "standard", (), read=False)


def unbudgeted_routes(proposal: Proposal) -> list[Route]:
    """The routes, without the ids of the messages, where no budget cuts anything, triage reads nothing and nothing is
    drawn."""
    return [
        UNREAD if tier == "standard" else decide_route(tier, before, reasons, read=True)
        for tier, before, reasons in zip(proposal.tiers, proposal.before, proposal.reasons, strict=True)
    ]


def with_upgrades(thread: ThreadScan, conversation: Conversation, routes: Sequence[Route]) -> ThreadScan:
    """The thread with the number of messages per agent that a thread signal or repeat flags raised."""
    upgrades: dict[str, int] = {}
    for message, message_route in zip(conversation.messages, routes, strict=True):
        if message_route.tier != message_route.tier_before and any(
            reason.startswith(THREAD_REASONS) for reason in message_route.reasons
        ):
            upgrades[message.agent] = upgrades.get(message.agent, 0) + 1
    return msgspec.structs.replace(thread, upgrades=upgrades)


def _own_flags(raised: TierRaises, index: int, scan: Scan) -> None:
    for constraint in scan.hard_constraints:
        raised.reasons[index].append(f"hard-constraint words ({constraint})")
    if scan.total:
        raised.reasons[index].append(f"{counted(scan.total, 'flag')}: {', '.join(scan.labels)}")


def _thread_signals(raised: TierRaises, messages: Sequence[Message], thread: ThreadScan, policy: Policy) -> None:
    """A concentration says something of the thread, so its first messages stand for it in the dearest tier."""
    room = max(1, int(policy.concentration_share * len(messages)))
    places = {message.id: index for index, message in enumerate(messages)} if thread.signals else {}
    for signal in thread.signals:
        if signal.kind == "repeat_flags":
            continue  # raises what comes after the third flagged message only: _repeat_flags
        detail = f" on {signal.trait}" if signal.trait else ""
        for message_id in signal.message_ids:
            capped = signal.kind == "trait_concentration" and room <= 0
            tier: Tier = "deep" if capped else "deep_with_context"
            raised.raise_to(tier, places[message_id], f"{THREAD_REASONS[0]}{signal.kind}{detail}")
            room -= signal.kind == "trait_concentration"


def _repeat_flags(
    raised: TierRaises, messages: Sequence[Message], scans: Sequence[Scan], places: Iterable[int], policy: Policy
) -> None:
    """``places`` are those of the messages that may have flags."""
    flagged: dict[str, int] = {}
    for index in places:
        message = messages[index]
        if not scans[index].total:
            continue
        earlier = flagged.get(message.agent, 0)
        if earlier >= policy.repeat_before:
            raised.raise_to(
                "deep",
                index,
                f"{flagged_before(message.agent)}{counted(earlier, 'earlier message')}",
            )
        flagged[message.agent] = earlier + 1


def _structural(raised: TierRaises, messages: Sequence[Message], scans: Sequence[Scan], policy: Policy) -> None:
    for index, reason, begins in _structural_flags(messages, scans):
        raised.raise_to("deep", index, reason)
        if not begins:
            continue  # its segment was routed where it began
        for near in range(max(0, index - policy.segment), min(len(messages), index + policy.segment + 1)):
            if near != index:
                raised.raise_to("deep", near, f"within {policy.segment} of {messages[index].id}: {reason}")


def _structural_flags(messages: Sequence[Message], scans: Sequence[Scan]) -> Iterable[tuple[int, str, bool]]:
    """(message, reason, whether the flag begins there) of every turn with a structural flag.

    Deference is counted over all turns so far, so that only its start is a turn's own.
    """
    deferring: set[str] = set()
    looping: set[tuple[str, str]] = set()
    for index, (message, scan) in enumerate(zip(messages, scans, strict=True)):
        high = scan.deference is not None and scan.deference.high
        if not (high or scan.loops or scan.latency_drop or scan.code_change_delta == 0):
            continue
        if scan.latency_drop:
            yield index, "latency drop", True
        if high and message.agent not in deferring:
            deferring.add(message.agent)
            yield index, "High Deference", True
        if scan.code_change_delta == 0 and any(hit.label == CLAIM for hit in scan.hits):
            yield index, "candidate of false promise", True
        loops = [loop for loop in scan.loops if loop.scope != "echo"]
        fresh = {(message.agent, loop.ngram) for loop in loops} - looping
        looping |= fresh
        if loops:
            yield index, f"loop ({loops[0].count} times)", bool(fresh)


def _backwards(
    raised: TierRaises, messages: Sequence[Message], scans: Sequence[Scan], places: Iterable[int], policy: Policy
) -> None:
    """Route what a flagged agent said before, so that a sequence has its beginning; ``places`` as above."""
    unread: dict[str, deque[int]] = {
        messages[index].agent: deque(maxlen=policy.look_back) for index in places if scans[index].total
    }
    if not unread:
        return
    for index in [index for index, message in enumerate(messages) if message.agent in unread]:
        scan, earlier = scans[index], unread[messages[index].agent]
        if scan.total:
            for past in earlier:
                raised.raise_to("focused", past, f"reading backwards from {messages[index].id}")
            earlier.clear()
        elif raised.tiers[index] == "standard":
            earlier.append(index)
