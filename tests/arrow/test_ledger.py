"""A judge that is asked from one place: its answers are stored, and another run over the batches asks nothing again."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from tests.judges.test_command import PROGRAM
from undersong.arrow import message_batches, routing_from, rows_in, scan_batches, score_batches, summaries
from undersong.judges.limits import RunLimits
from undersong.models import Conversation, Row
from undersong.pipeline.options import Options
from undersong.stores.sqlite import temporary_store

COUNTED = f"""
import os
with open(os.path.join(os.path.dirname(__file__), "asked"), "a") as log:
    log.write("x")
{PROGRAM}"""
TALK = [("kira", "You owe me at least that."), ("bo", "I owe you nothing."), ("kira", "After all I did for you!")]


def test_an_answer_is_asked_for_once(tmp_path: Path) -> None:
    program, asked = tmp_path / "judge.py", tmp_path / "asked"
    program.write_text(COUNTED)
    limits = RunLimits(attempts=2, backoff=0.01)
    options = Options(judge=f"command:{sys.executable} {program}", read_all=True, terms=limits)
    columns = {"conversation": ["a"] * 3, "position": [0, 1, 2]}
    authors, texts = zip(*TALK, strict=True)
    messages = [pa.record_batch(columns | {"author": list(authors), "text": list(texts)})]
    scanned = list(scan_batches(messages, options))
    with temporary_store() as store:

        def score() -> list[Row]:
            return list(rows_in(score_batches(scanned, routing_from(summaries(scanned), options), options, store)))

        first = score()
        questions = len(asked.read_text())
        assert [row.state for row in first] == ["scored"] * 3
        assert score() == first
        assert len(asked.read_text()) == questions >= 3


def test_conversations_come_back_as_they_were() -> None:
    from undersong.arrow import conversations_in
    from undersong.formats.ingest import read

    talks = Path(__file__).parents[2] / "demo" / "conversations"
    whole = [each for each in read([talks]) if isinstance(each, Conversation)]
    assert list(conversations_in(message_batches(whole))) == whole
