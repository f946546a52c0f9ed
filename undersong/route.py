"""Decide how deep and how wide each message of a conversation is read, and say why."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from undersong import rulebook
from undersong.budget import Cut, rank_of
from undersong.flags import REPEAT_FLAGS, THREAD_SIGNAL
from undersong.models import TIERS, Conversation, Depth, Message, Route, Scan, ThreadScan, Tier, Width
from undersong.tiers import tier_of
from undersong.wording import counted

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
    segment: int
    sample_rate: float
    sample_minimum: int
    budget_share: float


class Raised:
    """The tiers of one conversation while rules raise them; a tier never falls."""

    def __init__(self, tiers: Iterable[Tier]) -> None:
        self.tiers = list(tiers)
        self.reasons: list[list[str]] = [[] for _ in self.tiers]

    def to(self, tier: Tier, index: int, reason: str) -> None:
        """Raise message ``index`` to at least ``tier`` and record why."""
        self.tiers[index] = max(self.tiers[index], tier, key=TIERS.index)
        self.reasons[index].append(reason)


def load_policy() -> Policy:
    """The shipped numbers."""
    return rulebook.read(rulebook.RULES / "router.yaml", Policy)


def flag_tier(scan: Scan) -> Tier:
    """The tier of one message from its own flags."""
    return tier_of(scan.total, bool(scan.hard_constraints))


def sample_rate(policy: Policy, unread: int) -> float:
    """The audit sample's rate for a run that leaves out so many messages: at least ``sample_minimum`` of them."""
    return min(1.0, max(policy.sample_rate, policy.sample_minimum / unread)) if unread else 0.0


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules ask for in a conversation before a budget is known: all aligned with its messages.

    ``ranks`` say in which order a budget is spent on them (``budget.RANKS``).
    """

    before: list[Tier]
    tiers: list[Tier]
    reasons: list[list[str]]
    ranks: list[int]


def draft(
    conversation: Conversation,
    scans: Sequence[Scan],
    thread: ThreadScan,
    policy: Policy,
    also: Mapping[int, str] = NONE_ELSEWHERE,
) -> Draft:
    """The tiers by flags, thread signals, structure and reading backwards.

    ``also`` names the flagged message of another conversation for which a message, by its place, is to be read too.
    """
    messages = conversation.messages
    before = [flag_tier(scan) for scan in scans]
    raised = Raised(before)
    for index, scan in enumerate(scans):
        if scan.total or scan.hard_constraints:
            _own_flags(raised, index, scan)
    _thread_signals(raised, messages, thread)
    _repeat_flags(raised, messages, scans, policy)
    _structural(raised, messages, scans, policy)
    _backwards(raised, messages, scans, policy)
    for index, flagged in also.items():
        raised.to("focused", index, f"reading backwards from {flagged}, to the same target")
    ranks = [
        rank_of(tier, bool(scan.total), reasons)
        for tier, scan, reasons in zip(raised.tiers, scans, raised.reasons, strict=True)
    ]
    return Draft(before=before, tiers=raised.tiers, reasons=raised.reasons, ranks=ranks)


def route(
    conversation: Conversation,
    scans: Sequence[Scan],
    thread: ThreadScan,
    policy: Policy,
    *,
    rate: float = 0.0,
    seed: int = 0,
    cut: Cut | None = None,
    also: Mapping[int, str] = NONE_ELSEWHERE,
) -> tuple[Route, ...]:
    """One Route per message, in order; ``scans`` are aligned with the messages.

    ``cut`` is where the run's budget or recall target ends; without one all that the rules ask for is read, and triage
    routes nothing. ``rate`` is the share (0-1) of what is left out that is drawn into the audit sample; the draw hashes
    ``seed`` and the message id, so it depends on nothing else in the run. ``also`` is as for ``draft``.
    """
    asked = draft(conversation, scans, thread, policy, also)
    return tuple(
        _decide(message, scan, asked, index, cut, rate, seed)
        for index, (message, scan) in enumerate(zip(conversation.messages, scans, strict=True))
    )


def with_upgrades(thread: ThreadScan, conversation: Conversation, routes: Sequence[Route]) -> ThreadScan:
    """The thread with the number of messages per agent that a thread signal or repeat flags raised."""
    upgrades: dict[str, int] = {}
    for message, each in zip(conversation.messages, routes, strict=True):
        if each.tier != each.tier_before and any(reason.startswith(THREAD_REASONS) for reason in each.reasons):
            upgrades[message.agent] = upgrades.get(message.agent, 0) + 1
    return msgspec.structs.replace(thread, upgrades=upgrades)


def drawn(seed: int, message: Message, rate: float) -> bool:
    """Whether a message is in the audit sample: hash(seed, conversation, id) < rate; ids may repeat between threads."""
    digest = hashlib.sha256(f"{seed}\0{message.conversation}\0{message.id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < rate * 2**64


def _own_flags(raised: Raised, index: int, scan: Scan) -> None:
    for constraint in scan.hard_constraints:
        raised.reasons[index].append(f"hard-constraint words ({constraint})")
    if scan.total:
        raised.reasons[index].append(f"{counted(scan.total, 'flag')}: {', '.join(scan.labels)}")


def _thread_signals(raised: Raised, messages: Sequence[Message], thread: ThreadScan) -> None:
    places = {message.id: index for index, message in enumerate(messages)} if thread.signals else {}
    for signal in thread.signals:
        if signal.kind == "repeat_flags":
            continue  # raises what comes after the third flagged message only: _repeat_flags
        detail = f" on {signal.trait}" if signal.trait else ""
        for message_id in signal.message_ids:
            raised.to("deep_with_context", places[message_id], f"{THREAD_REASONS[0]}{signal.kind}{detail}")


def _repeat_flags(raised: Raised, messages: Sequence[Message], scans: Sequence[Scan], policy: Policy) -> None:
    flagged: dict[str, int] = {}
    for index, (message, scan) in enumerate(zip(messages, scans, strict=True)):
        if not scan.total:
            continue
        earlier = flagged.get(message.agent, 0)
        if earlier >= policy.repeat_before:
            raised.to(
                "deep",
                index,
                f"{THREAD_REASONS[1]}{message.agent} was flagged in {counted(earlier, 'earlier message')}",
            )
        flagged[message.agent] = earlier + 1


def _structural(raised: Raised, messages: Sequence[Message], scans: Sequence[Scan], policy: Policy) -> None:
    for index, reason, begins in _structural_flags(messages, scans):
        raised.to("deep", index, reason)
        if not begins:
            continue  # its segment was routed where it began
        for near in range(max(0, index - policy.segment), min(len(messages), index + policy.segment + 1)):
            if near != index:
                raised.to("deep", near, f"within {policy.segment} of {messages[index].id}: {reason}")


def _structural_flags(messages: Sequence[Message], scans: Sequence[Scan]) -> Iterable[tuple[int, str, bool]]:
    """(message, reason, whether the flag begins there) of every turn with a flag of the second seed.

    Deference is counted over all turns so far, so that only its start is a turn's own.
    """
    deferring: set[str] = set()
    looping: set[tuple[str, str]] = set()
    for index, (message, scan) in enumerate(zip(messages, scans, strict=True)):
        if scan.latency_drop:
            yield index, "latency drop", True
        if scan.deference and scan.deference.high and message.agent not in deferring:
            deferring.add(message.agent)
            yield index, "High Deference", True
        if scan.code_change_delta == 0 and any(hit.label == CLAIM for hit in scan.hits):
            yield index, "candidate of false promise", True
        loops = [loop for loop in scan.loops if loop.scope != "echo"]
        fresh = {(message.agent, loop.ngram) for loop in loops} - looping
        looping |= fresh
        if loops:
            yield index, f"loop ({loops[0].count} times)", bool(fresh)


def _backwards(raised: Raised, messages: Sequence[Message], scans: Sequence[Scan], policy: Policy) -> None:
    """Route what a flagged agent said before, so that a sequence has its beginning."""
    unread: dict[str, deque[int]] = {}
    for index, (message, scan) in enumerate(zip(messages, scans, strict=True)):
        earlier = unread.setdefault(message.agent, deque(maxlen=policy.look_back))
        if scan.total:
            for past in earlier:
                raised.to("focused", past, f"reading backwards from {message.id}")
            earlier.clear()
        elif raised.tiers[index] == "standard":
            earlier.append(index)


def _decide(message: Message, scan: Scan, asked: Draft, index: int, cut: Cut | None, rate: float, seed: int) -> Route:
    tier, rank, why = asked.tiers[index], asked.ranks[index], list(asked.reasons[index])
    read = tier != "standard" if cut is None else cut.reads(rank, scan.triage)
    if read and tier == "standard" and cut is not None:
        tier = "focused"
        why.append(f"triage {scan.triage:.3f} ≥ {cut.score:.3f} ({cut.why})")
    if not read and tier != "standard" and cut is not None:
        why.append(f"left out: {cut.why}")
    sampled = not read and bool(message.text.strip()) and drawn(seed, message, rate)
    if sampled:
        why.append("audit sample")
    return Route(
        message_id=message.id,
        tier=tier,
        tier_before=asked.before[index],
        depth="standard" if sampled else DEPTHS[tier] if read else "skip",
        width="message" if sampled else WIDTHS[tier] if read else "none",
        reasons=tuple(dict.fromkeys(why)) if why else (),
        sampled=sampled,
    )
