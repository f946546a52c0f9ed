"""Incremental pattern detection over agents: one live engine, histories read from the store when needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from undersong.models import Emerging, Finding, Row, RuleOutcome
from undersong.patterns.catalog import other_ways
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.live.changes import LATE, REFUSED, Changes, changes_between, joined
from undersong.patterns.live.detector import LiveDetector
from undersong.pipeline.finding_reader import DOUBTED, FindingReader, as_read_before, was_read
from undersong.pipeline.history_sweep import unfinished
from undersong.stores.protocol import Store

ROWS = 200_000  # rows that the engine holds before it begins anew with those that are needed
_COMPUTED_LATER = ("outcome", "why", "chance", "q", "stability", "shuffles", "replicas", "confidence")
_ADDED = {"quotes": (), **dict.fromkeys(_COMPUTED_LATER)}  # by a sweep or from the texts
_GROWS = ("message_ids", "message_conversations", "stages", "strength", "measures")  # what makes it another finding


class AgentTracker:
    """The agents of a store as one judge reads them.

    ``reader``, where it is set, reads the sequence of each finding that is new or grew.
    """

    reader: FindingReader | None = None

    def __init__(self, store: Store, rules: Sequence[PatternRule], judge: str, judge_hash: str) -> None:
        self._store, self._rules = store, tuple(rules)
        self._judge, self._judge_hash = judge, judge_hash
        self._ids, self._others = frozenset(rule.pattern for rule in rules), other_ways(rules)
        self._live = LiveDetector(self._rules)
        self.clear()

    def clear(self) -> None:
        """Hold nothing: all is read from the store again."""
        self._live.clear()
        self._versions: dict[str, int] = {}
        self._untimed: dict[str, set[str]] = {}  # the conversations of each agent: those without times stand alone
        self._row_count = 0
        self._late: set[str] = set()  # findings that the last rows took back because they came late
        self._stored: dict[str, dict[str, Finding]] = {}  # the findings of each agent as the store has them

    def load(self, versions: Mapping[str, int]) -> None:
        """Bring the engine to these versions of the agents."""
        changed = any(agent in self._versions and self._versions[agent] != mark for agent, mark in versions.items())
        if changed or self._row_count > ROWS:  # where somebody else wrote, rows may be gone, too
            self.clear()
        for agent, version in versions.items():
            if agent not in self._versions:
                self._extend(self._store.history(agent, self._judge_hash))
                self._versions[agent] = version
                self._stored[agent] = {each.finding_id: each for each in self._store.findings(agent) if self._own(each)}

    def linked(self, agents: Iterable[str]) -> set[str]:
        """Whom these agents address, or by whom they are, as far as it is loaded and a rule binds rows of both."""
        return self._live.linked(agents)

    def addressed_by(self, rows: Sequence[Row]) -> set[str]:
        """Whom these rows address, where a rule binds rows of both."""
        return self._live.addressed_by(rows)

    def feed(self, rows: Sequence[Row], agents: Iterable[str]) -> Changes:
        """Take rows; what has changed for these agents since the store has it."""
        changed = self._extend(rows)
        return self._compare({*agents, *changed}, final=False)

    def finish(self, agents: Iterable[str], *, settle: bool) -> Changes:
        """No row follows for now: all is weighed anew, and with ``settle`` what is open is settled."""
        self._live.finish(settle=settle)
        return self._compare(agents, final=True)

    def mark_saved(self, changes: Changes, versions: Mapping[str, int]) -> None:
        """Take over that the store has these changes and versions now."""
        for own in self._stored.values():
            for name in changes.removed & own.keys():
                del own[name]
        for finding in changes.findings:
            self._stored.setdefault(finding.agent, {})[finding.finding_id] = finding
        self._versions |= versions

    def findings_toward(self, agents: Iterable[str], conversation: str) -> Iterator[Finding]:
        """The stored findings of these agents that have a target and cite a conversation."""
        for agent in agents:
            stored = self._stored.get(agent, {}).values()
            yield from (each for each in stored if each.target is not None and conversation in each.conversations)

    def emerging(self, agent: str) -> tuple[Emerging, ...]:
        """Sequences of an agent that are on their way, as the store has its rows."""
        rows = self._store.history(agent, self._judge_hash)
        return tuple(unfinished(self._rules, rows, self._stored.get(agent, {}).values()))

    def outcomes(self) -> tuple[RuleOutcome, ...]:
        """What became of every rule."""
        return tuple(self._live.outcomes())

    def _extend(self, rows: Sequence[Row]) -> set[str]:
        """Take rows; the loaded agents whose findings changed by them."""
        for row in rows:
            self._untimed.setdefault(row.agent, set()).add(row.conversation)
        self._row_count += len(rows)
        changes = self._live.extend(rows)
        self._late = {each.finding_id for each in changes.retracted if each.reason == LATE}
        return {finding.agent for finding in changes.findings if finding.agent in self._versions}

    def _own(self, finding: Finding) -> bool:
        """Whether a stored finding is one of this engine: by one of its rules, from rows of its judge.

        Not one that rests on a reading of the sequence: rules neither find it nor take it back.
        """
        own = finding.pattern in self._ids and finding.rule_hash not in self._others and not finding.is_read
        return own and set(finding.judges) <= {self._judge}

    def _compare(self, agents: Iterable[str], *, final: bool) -> Changes:
        """The current findings against the stored ones; a rule that is inactive yet retracts nothing."""
        inactive, parts = self._live.inactive(), []
        for agent in sorted(agents):
            now = self._current(agent)
            stored = {
                name: each
                for name, each in self._stored.setdefault(agent, {}).items()
                if name in now or each.rule_hash not in inactive
            }
            changes = changes_between(stored, now, partial(_same, final=final), self._why)
            parts.append(changes._replace(findings=self._weighed(changes.findings, stored, now if final else {})))
        return joined(parts)

    def _why(self, gone: Finding) -> str:
        return LATE if gone.finding_id in self._late else REFUSED

    def _weighed(
        self, changed: Iterable[Finding], stored: Mapping[str, Finding], final: Mapping[str, Finding]
    ) -> tuple[Finding, ...]:
        """The changed findings: with their confidence where they are new or grew, else with what was added before.

        All the ``final`` ones are weighed, and added where this gives another confidence.
        """
        by_id = {each.finding_id: each for each in changed}
        grown = {name: each for name, each in (by_id | dict(final)).items() if final or _grew(stored.get(name), each)}
        weighed = {each.finding_id: each for each in self._read(self._live.weighed(grown.values()), stored)}
        unchanged = {name: _as_before(stored[name], each) for name, each in by_id.items() if name not in weighed}
        others = {name for name in weighed.keys() - by_id.keys() if _is_other(weighed[name], stored[name])}
        return tuple((weighed | unchanged)[name] for name in (*by_id, *sorted(others)))

    def _read(self, findings: Sequence[Finding], stored: Mapping[str, Finding]) -> Iterator[Finding]:
        """The findings with what a reading says: the reader's where nobody has read these messages, else the stored.

        What could not be read now keeps what was said of fewer messages.
        """
        before = {each.finding_id: stored.get(each.finding_id) for each in findings}
        unread = [each for each in findings if _asks_for_reader(before[each.finding_id], each)]
        fresh: dict[str, Finding] = {}
        if self.reader is not None and unread:
            self.reader.failure = None  # it is asked again, as about messages
            rows = self._live.rows({each.agent for each in unread})
            fresh = {each.finding_id: each for each in self.reader.weighed(unread, rows) if was_read(each)}
        for finding in findings:
            yield fresh.get(finding.finding_id) or as_read_before(finding, before[finding.finding_id])

    def _current(self, agent: str) -> dict[str, Finding]:
        current = dict(self._live.current((agent, None)))
        for conversation in self._untimed.get(agent, ()):
            current |= self._live.current((agent, conversation))
        return current


def _same(stored: Finding, now: Finding, *, final: bool) -> bool:
    """Whether the stored finding is the same; what a sweep or the texts added is not compared."""
    added = _ADDED if final else _ADDED | {"balance": now.balance}
    notes = tuple(note for note in stored.notes if note != DOUBTED)
    return msgspec.structs.replace(stored, **added, reading=None, notes=notes) == now


def _grew(stored: Finding | None, now: Finding) -> bool:
    """Whether a finding is new, or over other messages or measures than the stored one."""
    return stored is None or any(getattr(stored, name) != getattr(now, name) for name in _GROWS)


def _asks_for_reader(stored: Finding | None, now: Finding) -> bool:
    """Whether nobody has read the messages of a finding."""
    return stored is None or not was_read(stored) or _grew(stored, now)


def _is_other(now: Finding, stored: Finding) -> bool:
    """Whether a finding over the same messages is weighed or read otherwise than the stored one."""
    return now.confidence != stored.confidence or was_read(now) != was_read(stored)


def _as_before(stored: Finding, now: Finding) -> Finding:
    """A finding over the same messages as before, with what was added to the stored one."""
    notes = (*now.notes, *(note for note in stored.notes if note == DOUBTED))
    added = {name: getattr(stored, name) for name in _ADDED}
    return msgspec.structs.replace(now, **added, reading=stored.reading, notes=notes)
