"""Aggregates over the rows of a run, counted while the rows are written into the report folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from undersong.core.sanitize import one_line
from undersong.models import NEGATIVE_TRAITS, Deference, Row, SourceRef, TraitScores, encode
from undersong.models.row import DEATH_SPIRAL, own_loops, thread_signals, turn_flags
from undersong.models.verdict import WORDS_ONLY
from undersong.report.escape import own_name
from undersong.report.trait_chart import TraitReading
from undersong.rows.jsonl import rounded

REASONS = 200  # distinct reasons that are counted by name; what comes after is "another reason"


COURSE = 5000  # messages of an agent whose scores are kept for its chart
EPISODES = 1000  # distinct loops or signals that are kept of one conversation


@dataclass(frozen=True)
class WordsOnly:
    """A message that contains words of hard constraints, whatever it says with them."""

    conversation: str
    id: str
    position: int
    agent: str
    constraints: tuple[str, ...]
    source_ref: SourceRef | None


@dataclass(frozen=True)
class ChartTurn:
    """One message in a chart: the judge's highest harmful trait, None where it was not scored."""

    position: int
    id: str
    agent: str
    state: str
    trait: str | None
    score: float | None
    flags: tuple[str, ...]


@dataclass
class Episode:
    """An episode over turns of one agent: a loop or a thread signal, and where it occurs."""

    agent: str
    what: str
    times: int = 0
    turns: list[int] = field(default_factory=list)


@dataclass
class Trace:
    """One conversation over its turns; ``loops`` by agent and words, ``signals`` by agent and kind."""

    turns: list[ChartTurn] = field(default_factory=list)
    speakers: Counter[str] = field(default_factory=Counter)
    loops: dict[tuple[str, str], Episode] = field(default_factory=dict)
    signals: dict[tuple[str, str], Episode] = field(default_factory=dict)
    deference: dict[str, Deference] = field(default_factory=dict)
    first: datetime | None = None
    last: datetime | None = None


@dataclass
class RowAggregates:
    """What the rows of a run add up to.

    ``traces`` only of the conversations that are shown in detail, ``scores`` only of the messages in ``staged``.
    """

    wanted: frozenset[str]
    staged: frozenset[tuple[str, str]] = frozenset()
    scores: dict[tuple[str, str], TraitScores] = field(default_factory=dict)
    rows: int = 0
    sampled: int = 0
    first: datetime | None = None
    last: datetime | None = None
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    judges: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    not_applicable: Counter[str] = field(default_factory=Counter)  # trait → scored messages that it does not apply to
    traces: dict[str, Trace] = field(default_factory=dict)
    with_words: int = 0
    words_only: list[WordsOnly] = field(default_factory=list)
    followed: frozenset[str] = frozenset()  # agents whose course is kept
    courses: dict[str, list[TraitReading]] = field(default_factory=dict)  # of each of them, at most COURSE messages
    spans: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)  # of each conversation with times

    def add(self, row: Row) -> None:
        """Count one row."""
        self.rows += 1
        self.sampled += row.sampled
        self.before[row.tier_before or row.tier or "not routed"] += 1
        self.after[row.tier or "not routed"] += 1
        self.states[row.state] += 1
        self.first, self.last = _span(self.first, self.last, row.time)
        if row.time is not None:
            first, last = self.spans.get(row.conversation, (row.time, row.time))
            self.spans[row.conversation] = min(first, row.time), max(last, row.time)
        if row.state == "scored":
            self.judges[row.judge or "unnamed", row.judge_hash] += 1
            self.not_applicable.update(trait for trait, score in (row.traits or {}).items() if score is None)
        else:
            self._not_scored(row)
        if row.hard_constraints:
            self._words_only(row)
        if row.traits and row.scale != "rank" and (row.conversation, row.id) in self.staged:
            self.scores[row.conversation, row.id] = row.traits
        if row.agent in self.followed:
            self._follow(row)
        if row.conversation in self.wanted:
            self._trace(row)

    def _follow(self, row: Row) -> None:
        course = self.courses.setdefault(row.agent, [])
        if len(course) < COURSE:
            levels = row.absolute_scores if row.state == "scored" else None
            course.append(TraitReading(row.conversation, row.id, row.position, row.time, levels))

    def _not_scored(self, row: Row) -> None:
        key = (row.state, one_line(row.reason or "no reason given", 160))
        if key not in self.reasons and len(self.reasons) >= REASONS:
            key = (row.state, "another reason")
        self.reasons[key] += 1

    def _words_only(self, row: Row) -> None:
        self.with_words += 1
        if len(self.words_only) < WORDS_ONLY:
            name, words = own_name(row.agent, row.conversation), row.hard_constraints
            self.words_only.append(WordsOnly(row.conversation, row.id, row.position, name, words, row.source_ref))

    def _trace(self, row: Row) -> None:
        trace = self.traces.setdefault(row.conversation, Trace())
        trait, score = _worst(row)
        name = own_name(row.agent, row.conversation)
        flags = turn_flags(row)
        trace.turns.append(ChartTurn(row.position, row.id, name, row.state, trait, score, flags))
        trace.speakers[name] += 1
        _episodes(trace, row, name, DEATH_SPIRAL in flags)
        trace.first, trace.last = _span(trace.first, trace.last, row.time)


def _episodes(trace: Trace, row: Row, name: str, spiral: bool) -> None:
    for loop in own_loops(row) if spiral else ():
        _add(trace.loops, name, loop.ngram, row.position, loop.count)
    for signal in thread_signals(row.reasons):
        _add(trace.signals, name, signal, row.position)
    if row.deference is not None and row.deference.high:
        trace.deference[name] = row.deference


def _add(episodes: dict[tuple[str, str], Episode], agent: str, what: str, position: int, times: int = 1) -> None:
    if (agent, what) not in episodes and len(episodes) >= EPISODES:
        return
    episode = episodes.setdefault((agent, what), Episode(agent, what))
    episode.times = max(episode.times, times)
    episode.turns.append(position)


def write_rows(
    rows: Iterable[Row],
    path: Path,
    wanted: Iterable[str],
    staged: Iterable[tuple[str, str]] = (),
    followed: Iterable[str] = (),
) -> RowAggregates:
    """Write each row, without its text and with scores to three decimals, as one JSON line; return the counts."""
    aggregates = RowAggregates(wanted=frozenset(wanted), staged=frozenset(staged), followed=frozenset(followed))
    with path.open("wb") as file:
        for row in rows:
            aggregates.add(row)
            without_text = row if row.text is None else msgspec.structs.replace(row, text=None)
            file.write(encode(rounded(without_text)) + b"\n")
    for trace in aggregates.traces.values():
        trace.turns.sort(key=lambda turn: (turn.position, turn.id))
    return aggregates


def _worst(row: Row) -> tuple[str | None, float | None]:
    levels = row.absolute_scores if row.state == "scored" else None
    if not levels:
        return None, None
    scores = [(levels[trait], trait) for trait in sorted(NEGATIVE_TRAITS & levels.keys())]
    score, trait = max(scores, default=(None, None))
    return trait, score


def _span(
    first: datetime | None, last: datetime | None, time: datetime | None
) -> tuple[datetime | None, datetime | None]:
    if time is None:
        return first, last
    return (time if first is None or time < first else first), (time if last is None or time > last else last)
