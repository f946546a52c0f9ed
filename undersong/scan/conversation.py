"""Conversations → their free signals: one Scan per message, and what only a thread shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from typing import NamedTuple

import msgspec

from undersong.datafiles.scan_config import SignalRules, StructureRules
from undersong.ml.triage import RoleTriage
from undersong.models import (
    COUNTED,
    NEGATIVE_TRAITS,
    SIGNALS,
    AgentFlags,
    Conversation,
    Hit,
    Loop,
    Message,
    Scan,
    SignalKind,
    Telemetry,
    ThreadScan,
    ThreadSignal,
)
from undersong.scan.code import FENCES, code_of
from undersong.scan.loops import loops_of
from undersong.scan.phrases import SignalBook
from undersong.scan.structure import NO_DEFERENCE, AgentSoFar, sentiment_score, session_context_vector, telemetry
from undersong.scan.text_batch import TextBatch

ALL: frozenset[str] = frozenset(SIGNALS)
_fill = msgspec.structs.force_setattr
BLOCK = 600_000  # characters of a block: so many that what is done once a block does not count

Scanned = tuple[tuple[Scan, ...], ThreadScan]


def scan_conversation(conversation: Conversation, book: SignalBook) -> Scanned:
    """The Scans, aligned with ``conversation.messages``, and the ThreadScan; free, pure and linear in the text.

    A turn knows its agent's past only, so a live scan of the same messages gives the same Scans. Messages of
    abandoned branches are scanned for themselves and add to nobody's past. ``upgrades`` is left to the router.
    """
    return scan_conversations([conversation], book)[0]


def scan_conversations(
    conversations: Sequence[Conversation], book: SignalBook, signals: frozenset[str] = ALL, *, summed: bool = True
) -> list[Scanned]:
    """As ``scan_conversation`` for each, but faster: texts are looked at in blocks.

    ``signals`` are some of SIGNALS, phrases among them: what the others would fill keeps its default (``words`` of a
    message without hits belong to structure). Without ``summed`` the ThreadScans have their signals only: no agents and
    no telemetry.
    """
    messages = [message for conversation in conversations for message in conversation.messages]
    blocks = list(_blocks([message.text for message in messages]))
    loops = loops_of(conversations, messages, blocks, book.loops) if "loops" in signals else {}
    scans = scans_of(messages, blocks, loops, book, "structure" in signals)
    if "structure" in signals:
        _add_structures(conversations, scans, blocks, book.structure)
    if "triage" in signals:
        add_triage(messages, scans, book.triage)
    results, first = [], 0
    for conversation in conversations:
        own = tuple(scans[first : first + len(conversation.messages)])
        first += len(own)
        results.append((own, thread_of(conversation, own, book, signals, summed)))
    return results


def add_triage(messages: Sequence[Message], scans: Sequence[Scan], model: RoleTriage | None) -> None:
    """Fill in the triage scores of Scans that nobody has seen yet; with more messages at once it is faster."""
    if model is None:
        return
    scores = model([message.text for message in messages], [message.role == "agent" for message in messages])
    for scan, score in zip(scans, scores.tolist(), strict=True):
        if not isnan(score):
            _fill(scan, "triage", score)


def count_flags(hits: tuple[Hit, ...]) -> dict[str, int]:
    """Hits per negative trait and for ``hard_constraint``: what flags a message."""
    flags: dict[str, int] = {}
    for hit in hits:
        if hit.trait in COUNTED:
            flags[hit.trait] = flags.get(hit.trait, 0) + 1
    return flags


def _blocks(texts: Sequence[str]) -> Iterator[TextBatch]:
    """The texts in blocks of at least BLOCK characters, the last one smaller."""
    first = size = 0
    for index, text in enumerate(texts):
        size += len(text)
        if size >= BLOCK:
            yield TextBatch(texts[first : index + 1])
            first, size = index + 1, 0
    if first < len(texts):
        yield TextBatch(texts[first:])


def scans_of(
    messages: Sequence[Message],
    blocks: Iterable[TextBatch],
    loops: dict[int, tuple[Loop, ...]],
    book: SignalBook,
    structure: bool,
) -> list[Scan]:
    """Hits, loops and (with ``structure``) words of each message."""
    scans: list[Scan] = []
    for block in blocks:
        first = len(scans)
        hits = book.hits_of(block)
        own = messages[first : first + len(block)]
        if structure:
            counted = zip(own, block.word_counts, strict=True)
            scans += [Scan(message_id=message.id, words=words) for message, words in counted]
        else:
            scans += [Scan(message_id=message.id) for message in own]
        for index, message_hits in hits.items():
            words = scans[first + index].words if structure else block.words_of(index)
            scans[first + index] = _flagged_scan(own[index], message_hits, words)
    for place, message_loops in loops.items():
        _fill(scans[place], "loops", message_loops)
    return scans


def _add_structures(
    conversations: Iterable[Conversation], scans: Sequence[Scan], blocks: Iterable[TextBatch], rules: StructureRules
) -> None:
    """Fill in the structural signals of Scans that nobody has seen yet."""
    fenced: set[int] = set()
    place = 0
    for block in blocks:
        fenced |= {place + index for index in block.texts_with(FENCES)}
        place += len(block)
    place = 0
    for conversation in conversations:
        agents: dict[str, AgentSoFar] = {}
        for message in conversation.messages:
            has_code = bool(message.tool_calls) or place in fenced
            add_structure(scans[place], message, has_code, rules, agent_of(message, agents, rules))
            place += 1


def _flagged_scan(message: Message, hits: tuple[Hit, ...], words: int) -> Scan:
    flags = count_flags(hits)
    total = sum(flags.values())
    return Scan(
        message_id=message.id,
        hits=hits,
        flags=flags,
        total=total,
        density=round(total / max(words, 1), 6),
        words=words,
        hard_constraints=tuple(sorted({hit.constraint for hit in hits if hit.constraint})),
    )


def agent_of(message: Message, agents: dict[str, AgentSoFar], rules: StructureRules) -> AgentSoFar | None:
    """The agent's turns so far; None in an abandoned branch, which adds to nobody's past."""
    if message.branch is not None:
        return None
    name = message.agent or message.author
    agent = agents.get(name)
    if agent is None:
        agent = agents[name] = AgentSoFar(rules)
    return agent


def add_structure(
    scan: Scan, message: Message, has_code: bool, rules: StructureRules, agent: AgentSoFar | None
) -> None:
    """Fill in the structural signals of a Scan that nobody has seen yet."""
    hits = scan.hits
    if hits:
        _fill(scan, "sentiment_score", sentiment_score(message.text, hits, rules.sentiment.label))
    if has_code:
        codes = code_of(message, rules.code)
        _fill(scan, "code_blocks", tuple(code.block for code in codes))
        if agent is not None:
            _fill(scan, "code_change_delta", agent.code_change(codes))
    if agent is not None and message.role not in NO_DEFERENCE:
        _fill(scan, "deference", agent.deference(hits))
    if agent is not None and message.latency is not None:
        _fill(scan, "latency_drop", agent.latency_drop(message))


def thread_of(
    conversation: Conversation, scans: tuple[Scan, ...], book: SignalBook, signals: frozenset[str], summed: bool
) -> ThreadScan:
    turns = turns_of(conversation.messages, scans) if "threads" in signals else []
    detected = thread_signals(turns, book.routing.signals)
    if not summed:
        return ThreadScan(conversation=conversation.id, signals=detected)
    session = telemetry(conversation, scans, book.telemetry) if "telemetry" in signals else None
    return ThreadScan(
        conversation=conversation.id,
        signals=detected,
        agents=agent_flags(turns),
        session_context_vector=session_context_vector(session, conversation.context, book.telemetry),
        telemetry=session or Telemetry(),
    )


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
