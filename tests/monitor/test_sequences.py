"""A monitor has the sequence of each finding read once it is new or grew, and loses nothing where that fails."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.judges.dialogue import Served
from tests.monitor.test_monitor import CYCLE, make_message
from tests.monitor.worlds import Reader
from undersong.judges.limits import MemoryLedger
from undersong.judges.llm.judge import LLMJudge
from undersong.judges.protocol import PatternShape, SequenceWindow
from undersong.models import Finding, Message, SequenceReading
from undersong.monitor import SyncMonitor
from undersong.patterns.catalog import load_rules
from undersong.pipeline.finding_reader import DOUBTED

pytestmark = pytest.mark.servers
LITERAL = "love_bombing_literal"  # found from what the judge of these tests scores; named as the shape is


class SequenceReader(Reader):
    """Scores as its texts say; whole sequences are read by an LLM judge, or not at all while it is ``broken``."""

    reads_sequences = True

    def __init__(self, reader: LLMJudge) -> None:
        super().__init__()
        self.reader, self.broken = reader, False

    def read_sequences(
        self, windows: Sequence[SequenceWindow], shapes: Sequence[PatternShape]
    ) -> list[SequenceReading]:
        """See Judge."""
        if self.broken:
            raise ZeroDivisionError("out of order")
        return self.reader.read_sequences(windows, shapes)

    def sequence_not_read(self, window: SequenceWindow, why: str) -> SequenceReading:
        """See Judge."""
        return self.reader.sequence_not_read(window, why)


def talk(mark: str, moods: Sequence[tuple[float, float]] = CYCLE) -> list[Message]:
    return [make_message(place, mood, f"Message {place}. {mark}") for place, mood in enumerate(moods)]


def opened(folder: Path, judge: Reader, **options: Any) -> SyncMonitor:
    (literal,), shapes = load_rules(names=[LITERAL]), load_rules(names=["love_bombing"])
    as_variant = msgspec.structs.replace(literal, file=msgspec.structs.replace(literal.file, variant_of="love_bombing"))
    return SyncMonitor(folder / "undersong.db", judge, rules=(as_variant, *shapes), **options)


def literal(monitor: SyncMonitor) -> Finding:
    (finding,) = (each for each in monitor.findings() if each.rule_hash == monitor.rules[0].hash)
    return finding


@pytest.mark.parametrize("mark", ["shape=love_bombing", "nothing"])
def test_a_finding_is_read_once_when_it_is_new_and_again_when_it_grew(tmp_path: Path, mark: str) -> None:
    with closing(Served()) as served, opened(tmp_path, SequenceReader(served.judge(ledger=MemoryLedger()))) as monitor:
        seen = []
        for message in talk(mark):
            monitor.observe(message)
            seen.append(len(served.server.seen))
        assert seen == [0, 0, 0, 1]
        finding = literal(monitor)
        assert (finding.reading is not None, DOUBTED in finding.notes) == (mark != "nothing", mark == "nothing")
        monitor.extend([make_message(4, (0.5, 0.2))])
        monitor.finish()
        assert len(served.server.seen) == 1
        assert monitor.sequences_read()[0].startswith("read the sequences of 2 findings: 1 window, ")
        monitor.extend([make_message(place, mood, mark) for place, mood in enumerate(CYCLE, 5)])
        assert len(served.server.seen) > 1
    with closing(Served()) as served, opened(tmp_path, SequenceReader(served.judge(ledger=MemoryLedger()))) as monitor:
        monitor.extend(talk(mark))
        monitor.finish()
        assert served.server.seen == []


def test_without_sequences_and_with_a_judge_that_reads_none_nothing_is_asked(tmp_path: Path) -> None:
    with closing(Served()) as served:
        judge = SequenceReader(served.judge(ledger=MemoryLedger()))
        with opened(tmp_path, judge, sequences=False) as monitor:
            monitor.extend(talk("shape=love_bombing"))
            assert (literal(monitor).reading, monitor.sequences_read()) == (None, ())
        assert served.server.seen == []
    (tmp_path / "other").mkdir()
    with opened(tmp_path / "other", Reader()) as monitor:
        monitor.extend(talk("shape=love_bombing"))
        assert (literal(monitor).reading, monitor.sequences_read()) == (None, ())


def test_a_failing_reader_loses_nothing_is_named_and_asked_again_at_the_end(tmp_path: Path) -> None:
    with closing(Served()) as served:
        judge = SequenceReader(served.judge(ledger=MemoryLedger()))
        judge.broken = True
        with opened(tmp_path, judge) as monitor:
            (*_, last) = monitor.extend(talk("shape=love_bombing"))
            assert [each.message_ids for each in last.found if each.rule_hash == monitor.rules[0].hash]
            assert literal(monitor).reading is None
            assert "out of order" in str(monitor.failure)
            assert "not read: 1 window: the judge failed: " in monitor.sequences_read()[1]
            judge.broken = False
            monitor.finish()
            assert literal(monitor).reading is not None
            assert monitor.failure is None


def test_a_budget_that_is_spent_leaves_the_finding_as_the_rules_have_it(tmp_path: Path) -> None:
    with closing(Served()) as served:
        judge = SequenceReader(served.judge(ledger=MemoryLedger(), max_calls=0))
        with opened(tmp_path, judge) as monitor:
            monitor.extend(talk("shape=love_bombing"))
            finding = literal(monitor)
            assert (finding.reading, DOUBTED in finding.notes, served.server.seen) == (None, False, [])
            assert "not read: 1 window: " in monitor.sequences_read()[1]
