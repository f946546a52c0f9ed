"""What only a thread shows: escalation, repeat flags, trait concentration, cycling, and flags per agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from undersong.datafiles.tiers import SignalRules
from undersong.models import NEGATIVE_TRAITS, AgentFlags, Message, Scan, SignalKind, ThreadSignal


class ScannedTurn(NamedTuple):
    """A message of the thread with its flags."""

    id: str
    agent: str
    scan: Scan


def turns_of(messages: Sequence[Message], scans: Sequence[Scan]) -> list[ScannedTurn]:
    """The thread as the reader saw it: messages of abandoned branches are left out."""
    return [
        ScannedTurn(message.id, message.agent or message.author, scan)
        for message, scan in zip(messages, scans, strict=True)
        if message.branch is None
    ]


def thread_signals(turns: Sequence[ScannedTurn], rules: SignalRules) -> tuple[ThreadSignal, ...]:
    """The four thread signals; ``message_ids`` are the flagged messages that carry each."""
    flagged = {turn.agent for turn in turns if turn.scan.total}
    if not flagged:
        return ()
    by_agent: dict[str, list[ScannedTurn]] = {}
    for turn in turns:
        if turn.agent in flagged:
            by_agent.setdefault(turn.agent, []).append(turn)
    signals: list[ThreadSignal] = []
    for agent, own in by_agent.items():
        signals += _escalations(agent, own, rules.escalation.messages)
        signals += _repeats(agent, own, rules.repeat_flags.messages)
        signals += _cycles(agent, own, rules.cycling.span)
    return (*signals, *_concentrations(turns, rules.trait_concentration.messages, rules.trait_concentration.agents))


def agent_flags(turns: Sequence[ScannedTurn]) -> dict[str, AgentFlags]:
    """Messages, flagged messages and flags per trait for each agent, in order of appearance."""
    messages: dict[str, int] = {}
    flagged: dict[str, list[Scan]] = {}
    for turn in turns:
        messages[turn.agent] = messages.get(turn.agent, 0) + 1
        if turn.scan.total:
            flagged.setdefault(turn.agent, []).append(turn.scan)
    return {
        agent: _added(number, flagged[agent]) if agent in flagged else AgentFlags(messages=number, flagged=0, total=0)
        for agent, number in messages.items()
    }


def _added(messages: int, flagged: Sequence[Scan]) -> AgentFlags:
    flags: dict[str, int] = {}
    for scan in flagged:
        for trait, count in scan.flags.items():
            flags[trait] = flags.get(trait, 0) + count
    return AgentFlags(messages=messages, flagged=len(flagged), total=sum(flags.values()), flags=flags)


def _escalations(agent: str, own: Sequence[ScannedTurn], least: int) -> Iterator[ThreadSignal]:
    """Every longest stretch of the agent's messages over which its flag count rises strictly."""
    start = 0
    for place in range(1, len(own) + 1):
        if place < len(own) and own[place].scan.total > own[place - 1].scan.total:
            continue
        if place - start >= least:
            yield _signal("escalation", own[start:place], agent)
        start = place


def _repeats(agent: str, own: Sequence[ScannedTurn], least: int) -> Iterator[ThreadSignal]:
    flagged = [turn for turn in own if turn.scan.total]
    if len(flagged) >= least:
        yield _signal("repeat_flags", flagged, agent)


class _Cycle:
    """One kind of flag in one agent's messages: seen, gone quiet, seen again; ``then`` another kind closes it."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.quiet = False
        self.again: int | None = None

    def seen(self, place: int) -> None:
        """The kind is in this message."""
        if not self.quiet:
            if self.again is None:
                self.first = place
            return
        if self.again is not None:
            self.first = self.again
        self.again, self.quiet = place, False

    def pause(self) -> None:
        """A message without any flag."""
        self.quiet = self.first is not None


def _cycles(agent: str, own: Sequence[ScannedTurn], span: int) -> Iterator[ThreadSignal]:
    """A kind of flag, a quiet message, the same kind again, then another kind: within ``span`` messages."""
    cycles: dict[str, _Cycle] = {}
    for place, turn in enumerate(own):
        labels = turn.scan.labels
        if not labels:
            for cycle in cycles.values():
                cycle.pause()
            continue
        closed = _closed(cycles, labels, place, span)
        if closed:
            yield _signal("cycling", [own[at] for at in closed], agent)
            cycles = {}
        for label in labels:
            cycles.setdefault(label, _Cycle()).seen(place)


def _closed(cycles: dict[str, _Cycle], labels: Sequence[str], place: int, span: int) -> tuple[int, int, int] | None:
    """The three flagged places of a cycle that a message with these labels closes, if any does."""
    for label, cycle in cycles.items():
        if cycle.first is None or cycle.again is None or place - cycle.first >= span:
            continue
        if any(other != label for other in labels):
            return cycle.first, cycle.again, place
    return None


def _concentrations(turns: Sequence[ScannedTurn], least: int, agents: int) -> Iterator[ThreadSignal]:
    on_trait: dict[str, list[ScannedTurn]] = defaultdict(list)
    for turn in turns:
        for trait in turn.scan.flags:
            on_trait[trait].append(turn)
    for trait in sorted(on_trait.keys() & NEGATIVE_TRAITS):
        flagged = on_trait[trait]
        names = tuple(dict.fromkeys(turn.agent for turn in flagged))
        if len(flagged) >= least and len(names) >= agents:
            ids = tuple(turn.id for turn in flagged)
            yield ThreadSignal(kind="trait_concentration", message_ids=ids, agents=names, trait=trait)


def _signal(kind: SignalKind, turns: Sequence[ScannedTurn], agent: str) -> ThreadSignal:
    ids = tuple(turn.id for turn in turns if turn.scan.total)
    return ThreadSignal(kind=kind, message_ids=ids, agents=(agent,))
