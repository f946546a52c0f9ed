"""Rows in, findings out and back: the doors of the live core."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from undersong.models import Finding, Row, RuleOutcome
from undersong.patterns.findings import order
from undersong.patterns.inputs import NEVER_MISSING, given, gives, lacking
from undersong.patterns.live.agent import Agent, Setup, Standing
from undersong.patterns.live.archive import Archive, Change, Key, Line
from undersong.patterns.matcher import STEPS
from undersong.patterns.rules import PatternRule
from undersong.ranks import levelled

APART = 256  # rows between two marks of a timeline: what a row that is a little late replays at most twice


class Changes(NamedTuple):
    """What rows did: findings that are new or no longer what they were, and the ids of those that fell.

    A finding in ``found`` takes the place of an earlier one with its id.
    """

    found: tuple[Finding, ...]
    retracted: tuple[str, ...]


class Thread:
    """A timeline: its live state, the last row that it has seen, and the findings that were told.

    ``marks`` are copies of the state after some rows, so that a row that is a little late need not replay them all.
    """

    __slots__ = ("agent", "last", "marks", "since", "told")

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.last: Key | None = None
        self.marks: list[tuple[Key, Agent]] = []
        self.since = 0
        self.told: dict[str, Finding] = {}

    def feed(self, rows: Iterable[tuple[Key, Row, int | None]]) -> list[Standing]:
        """Take rows in order; what they made stand."""
        fresh: list[Standing] = []
        for key, row, time in rows:
            fresh += self.agent.take(row, time)
            self.last, self.since = key, self.since + 1
            if self.since == APART:
                self.marks, self.since = [*self.marks[-1:], (key, self.agent.copy())], 0
        return fresh

    def rewind(self, before: Key, empty: Agent) -> None:
        """Go back to the last mark before a row, or to the ``empty`` state."""
        self.marks = [(key, agent) for key, agent in self.marks if key < before]
        self.last, self.agent = (self.marks[-1][0], self.marks[-1][1].copy()) if self.marks else (None, empty)
        self.since = 0


class Live:
    """Rules over rows that come one at a time; after ``finish`` its findings are those of ``detect`` on the same rows.

    A match is told once no later row of its sequence can change it. A row that is not the last of its agent's
    timeline, or that repeats an id, replays that timeline. ``given_by`` names what the judge fills, as in ``detect``.
    The findings of a rule are held back until each of its inputs has been seen in some read row. ``steps`` bounds the
    work on a stretch of a sequence on which a rule always has an open match; where a rule reaches it, it gives up.
    """

    def __init__(
        self, rules: Sequence[PatternRule], *, given_by: Collection[str] | None = None, steps: int = STEPS
    ) -> None:
        self.rules = tuple(rules)
        self.given_by = given_by
        self.setup = Setup(self.rules, steps)
        self._wanted = frozenset[str]().union(*(rule.needs for rule in self.rules)) - NEVER_MISSING
        self.clear()

    def clear(self) -> None:
        """Hold no rows and nothing that was told, as at the beginning; the rules are not made ready again."""
        self.archive = Archive()
        self.threads: dict[Line, Thread] = {}
        self._has = NEVER_MISSING
        self._read = self._ranked = 0
        self._speaking = self._speak()

    def observe(self, row: Row) -> Changes:
        """Take one row."""
        return self.extend((row,))

    def extend(self, rows: Iterable[Row]) -> Changes:
        """Take several rows at once, in any order; a timeline is replayed at most once."""
        changes: dict[Line, list[Change]] = {}
        lost: set[str] = set()
        for row in levelled(rows):
            lost |= self._count(row)
            for change in self.archive.put(row):
                changes.setdefault(change.line, []).append(change)
        if lost:
            self._recount(lost)
        speaking = self._speaking if (self._has, self._read > 0) == self._heard else self._speak()
        found: list[Finding] = []
        retracted: list[str] = []
        again, self._speaking = speaking != self._speaking, speaking
        for line, changed in changes.items():
            fresh = self._advance(line, changed)
            if not again:
                self._tell(line, fresh, found, retracted)
        for line in self.threads if again else ():  # other rules speak now: what they hold back is told, or taken back
            self._tell(line, None, found, retracted)
        self.archive.settled()
        return _changes(found, retracted)

    def finish(self) -> Changes:
        """No row follows: what is open is decided, and findings get the balance of all their agent's rows."""
        found: list[Finding] = []
        for line, thread in self.threads.items():
            if not thread.agent.ended:
                thread.agent.end()
                self._tell(line, None, found, [], final=True)
        return _changes(found, [])

    def findings(self) -> tuple[Finding, ...]:
        """What has been told and stands, by agent, target, time and rule."""
        return _ordered(finding for thread in self.threads.values() for finding in thread.told.values())

    def outcomes(self) -> tuple[RuleOutcome, ...]:
        """What became of every rule so far."""
        return tuple(self._outcome(index, rule) for index, rule in enumerate(self.rules))

    def standing(self, line: Line) -> dict[str, Finding]:
        """What has been told of a timeline and stands, by id."""
        thread = self.threads.get(line)
        return thread.told if thread is not None else {}

    def silent(self) -> frozenset[str]:
        """The ids of the rules that tell nothing so far, since an input of theirs was not seen."""
        return frozenset(rule.id for index, rule in enumerate(self.rules) if index not in self._speaking)

    def _advance(self, line: Line, changes: list[Change]) -> list[Standing] | None:
        """Feed a timeline what is new; None where it had to be replayed."""
        thread = self.threads.get(line)
        if thread is None:
            thread = self.threads[line] = Thread(Agent(self.setup, *line))
        touched = sorted({change.key for change in changes})
        late = thread.last is not None and touched[0] <= thread.last
        if late or thread.agent.ended or any(change.gone for change in changes):
            thread.rewind(touched[0], Agent(self.setup, *line))
            thread.feed(self.archive.since(line, thread.last))
            return None
        return thread.feed((key, *self.archive.row(key)) for key in touched)

    def _tell(
        self,
        line: Line,
        fresh: list[Standing] | None,
        found: list[Finding],
        retracted: list[str],
        *,
        final: bool = False,
    ) -> None:
        """Compare what stands with what was told; ``fresh`` is what is new where nothing else can have changed."""
        thread = self.threads[line]
        standing = thread.agent.findings.values() if fresh is None else fresh
        now = {each.finding.finding_id: each.finding for each in standing if each.rule in self._speaking}
        if fresh is None:
            gone = [name for name in thread.told if name not in now]
            retracted += gone
            for name in gone:
                del thread.told[name]
        for name, finding in now.items():
            before = thread.told.get(name)
            if before is None or not _same(before, finding, final=final):
                thread.told[name] = finding
                found.append(finding)

    def _count(self, row: Row) -> set[str]:
        """Take note of what a row gives; returns the inputs that the row it replaces gave and it does not."""
        if row.branch is not None:
            return set()
        before = self.archive.get(row.conversation, row.id)
        if row.state == "scored":
            self._read += 1
            self._ranked += row.scale == "rank"
            self._has |= {name for name in self._wanted - self._has if gives(row, name)}
        if before is None or before.state != "scored":
            return set()
        self._read -= 1
        self._ranked -= before.scale == "rank"
        return {
            name for name in self._wanted if gives(before, name) and not (row.state == "scored" and gives(row, name))
        }

    def _recount(self, names: set[str]) -> None:
        rows = (row for line in self.archive.lines for row, _ in self.archive.rows(line) if row.state == "scored")
        self._has = (self._has - names) | given(rows, names)

    def _speak(self) -> frozenset[int]:
        """The rules that have their inputs."""
        self._heard = self._has, self._read > 0
        return frozenset(index for index in range(len(self.rules)) if not self._lacking(index))

    def _lacking(self, index: int) -> str:
        return lacking(self.rules[index], self._has, self.given_by, any_read=self._read > 0, ranks=self._ranked > 0)

    def _outcome(self, index: int, rule: PatternRule) -> RuleOutcome:
        reason = self._lacking(index)
        if reason:
            return RuleOutcome(pattern=rule.id, rule_hash=rule.hash, status="not_applicable", reason=reason)
        sequences = [each for thread in self.threads.values() for each in thread.agent.sequences(index)]
        given_up = [track.place.agent for track in sequences if index in track.gave_up]
        names = ", ".join(sorted(set(given_up))[:3])
        return RuleOutcome(
            pattern=rule.id,
            rule_hash=rule.hash,
            status="gave_up" if given_up else "ran",
            partitions=len(sequences),
            findings=sum(f.pattern == rule.id for thread in self.threads.values() for f in thread.told.values()),
            reason=f"gave up in {len(given_up)} of {len(sequences)} partitions (agents: {names}) at {self.setup.steps} "
            "steps; what follows there is not known"
            if given_up
            else "",
        )


def _changes(found: list[Finding], retracted: list[str]) -> Changes:
    again = {finding.finding_id for finding in found}
    return Changes(_ordered(found), tuple(sorted(set(retracted) - again)))


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: (order(finding), finding.conversations, finding.message_ids)))


def _same(before: Finding, after: Finding, *, final: bool) -> bool:
    """Whether a finding says what it said; the balance, which every row moves, counts only at the end."""
    return before == (after if final else msgspec.structs.replace(after, balance=before.balance))
