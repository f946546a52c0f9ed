"""A second look at findings of rules as they come: a judge reads the whole sequence of each, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from undersong.core.text import counted
from undersong.errors import JudgeError
from undersong.judges.protocol import Judge, SequenceWindow
from undersong.models import Finding, Message, Nomination, Row, SequenceReading, Usage
from undersong.models.finding import OWN_RULE
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.readings import reading_findings
from undersong.patterns.significance.confidence import OWN, confidence, doubted, usual_prevalence
from undersong.pipeline.judged_findings import compared_findings
from undersong.pipeline.sequence_pairs import compared_shapes, paired_windows
from undersong.pipeline.sequence_windows import shapes_of, windows_of
from undersong.pipeline.sequences import answers
from undersong.stores.protocol import Store

Texts = Callable[[str], Sequence[Message]]  # the messages of a conversation
RowsOf = Callable[[Collection[str] | None], Iterable[Row]]
DOUBTED = "a judge that read the whole sequence saw no such shape in it"


class FindingReader:
    """Reads the sequences of findings that nobody has read yet, and keeps count of what that took.

    ``read`` is how many findings were read, in ``windows`` for ``spent``, and ``unread`` why how many windows were not;
    ``failure`` is set where the judge failed as a whole: what it was not asked then stays unread and is asked about the
    next time. ``texts`` gives the messages of a conversation, none where it has none.
    """

    def __init__(self, judge: Judge, texts: Texts, rules: Sequence[PatternRule], prevalence: float | None) -> None:
        self.read = self.windows = self.pairs = 0
        self.spent = Usage()
        self.unread: Counter[str] = Counter()
        self.failure: JudgeError | None = None
        self._judge, self._texts, self._prevalence = judge, texts, prevalence
        self._rules, self._shapes = rules, shapes_of(rules)

    def weighed(self, findings: Sequence[Finding], rows: Sequence[Row]) -> tuple[Finding, ...]:
        """The findings, those that are new with what a reading of their messages says of them.

        ``findings`` have their confidence by rules; ``rows`` are all of their agents. A finding without texts, of a
        pattern that no shape describes, or whose reading failed, stays as it is.
        """
        fresh = [each for each in findings if self._asks(each)]
        places = list(dict.fromkeys((each.agent, name) for each in fresh for name in each.conversations))
        windows = [window for agent, name in places for window in self._windows(agent, name, fresh)]
        if not windows:
            return tuple(findings)
        readings = list(answers(self._judge, windows, self._shapes, self))
        self._count(readings)
        nominations = [Nomination(agent=agent, conversation=name) for agent, name in places]
        by_reading = reading_findings(readings, nominations, self._rules, rows)
        shown = {(each.agent, each.pattern): each for each in by_reading}
        states: dict[tuple[str, str | None], set[str]] = {}
        by_agent: dict[str, list[SequenceReading]] = {}
        for reading in readings:
            states.setdefault((reading.agent, reading.conversation), set()).add(reading.state)
            by_agent.setdefault(reading.agent, []).append(reading)
        usual = usual_prevalence(rows)
        weighed = []
        for finding in findings:
            whole = all(states.get((finding.agent, name)) == {"scored"} for name in finding.conversations)
            whole = whole and not any(each.failed_for(finding.pattern) for each in by_agent.get(finding.agent, ()))
            if self._asks(finding) and whole:
                self.read += 1
                share = self._prevalence or usual.get(finding.agent, OWN)
                finding = _with(finding, shown.get((finding.agent, finding.pattern)), share)
            weighed.append(finding)
        return tuple(weighed)

    def compared(self, rows_of: RowsOf, rules: Sequence[PatternRule]) -> tuple[Finding, ...]:
        """What is found in two conversations of one agent, read side by side, if one of the rules asks for it.

        ``rows_of`` gives the rows of some agents, of all with None.
        """
        asked = compared_shapes(shapes_of(rules))
        if not asked:
            return ()
        windows = paired_windows(rows_of(None), self._texts)
        if not windows:
            return ()
        readings = list(answers(self._judge, windows, asked, self))
        self._count(readings)
        self.pairs += len(readings)
        return compared_findings(readings, rules, rows_of({each.agent for each in readings}))

    def _asks(self, finding: Finding) -> bool:
        return not was_read(finding) and any(shape.id == finding.pattern for shape in self._shapes)

    def lines(self) -> Iterator[str]:
        """What reading took, and what was not read and why."""
        tokens = self.spent.input + self.spent.output
        price = "price not known" if self.spent.cost is None else f"${self.spent.cost:.2f}"
        share = f", {tokens // self.read:,} a finding" if self.read else ""
        read = f"read the sequences of {counted(self.read, 'finding')}"
        yield f"{read}: {counted(self.windows, 'window')}, {tokens:,} tokens{share}, {price}"
        if self.pairs:
            yield f"of these {counted(self.pairs, 'pair')} of conversations of one agent, read side by side"
        if self.unread:
            yield "not read: " + "; ".join(
                f"{counted(count, 'window')}: {why}" for why, count in sorted(self.unread.items())
            )

    def _count(self, readings: Sequence[SequenceReading]) -> None:
        self.windows += len(readings)
        self.spent = sum((each.usage for each in readings), self.spent)
        self.unread.update(each.reason or each.state for each in readings if each.state != "scored")
        self.unread.update(
            f"{shape.pattern}: {shape.reason}" for each in readings for shape in each.shapes if shape.reason
        )

    def _windows(self, agent: str, name: str, findings: Sequence[Finding]) -> Iterator[SequenceWindow]:
        """The windows of a conversation that hold a message of one of the findings."""
        own = [each for each in findings if each.agent == agent]
        bound = {place for each in own for place in zip(each.message_conversations, each.message_ids, strict=True)}
        for window in windows_of(Nomination(agent=agent, conversation=name), self._texts(name)):
            if any((message.conversation, message.id) in bound for message in window.messages):
                yield window


def stored_texts(store: Store) -> Texts:
    """The messages of a conversation as a store holds them."""
    return lambda name: store.conversation(name)[0].messages if store.length(name) else ()


def was_read(finding: Finding) -> bool:
    """Whether a judge has read the sequence of a finding of rules."""
    return finding.reading is not None or DOUBTED in finding.notes


def carried_over(findings: Sequence[Finding], store: Store) -> tuple[Finding, ...]:
    """The findings, those whose messages the store holds as read with what that reading said; not those that grew."""
    stored = {
        (each.finding_id, each.message_ids): each
        for agent in {each.agent for each in findings}
        for each in store.findings(agent)
    }
    return tuple(as_read_before(each, stored.get((each.finding_id, each.message_ids))) for each in findings)


def as_read_before(finding: Finding, before: Finding | None) -> Finding:
    """A finding as rules weigh it, with what a reading said of it as the store has it (None: not in the store)."""
    if before is None or not was_read(before):
        return finding
    if before.reading is None:
        return _with(finding, None, 0.0)
    return msgspec.structs.replace(finding, reading=before.reading, confidence=before.confidence)


def _with(finding: Finding, named: Finding | None, prevalence: float) -> Finding:
    """The finding with what a reading of its sequence says: ``named`` is the reading's own finding of the pattern."""
    if named is None:
        notes = (*finding.notes, DOUBTED)
        return msgspec.structs.replace(finding, confidence=doubted(finding.confidence), notes=notes)
    value = None if OWN_RULE in finding.notes else confidence(round(named.measures["certainty"]), prevalence)
    return msgspec.structs.replace(finding, reading=named.reading, confidence=value)
