"""Conversations → their free signals: one Scan per message, and what each thread shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isnan

import msgspec

from undersong.datafiles.scan_config import StructureRules
from undersong.ml.triage import Triage
from undersong.models import COUNTED, SIGNALS, Conversation, Hit, Loop, Message, Scan, Telemetry, ThreadScan
from undersong.scan.code import FENCES, code_of
from undersong.scan.loops import loops_of
from undersong.scan.phrases import SignalBook
from undersong.scan.structure import NO_DEFERENCE, AgentSoFar, sentiment_score, session_context_vector, telemetry
from undersong.scan.text_batch import TextBatch
from undersong.scan.threads import agent_flags, thread_signals, turns_of

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


def add_triage(messages: Sequence[Message], scans: Sequence[Scan], model: Triage | None) -> None:
    """Fill in the triage scores of Scans that nobody has seen yet; with more messages at once it is faster."""
    if model is None:
        return
    for scan, score in zip(scans, model([message.text for message in messages]).tolist(), strict=True):
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
