"""Make the demo's replay file of the readings that its authors wrote.

python -m bench.demo_readings    # demo/readings.yaml → demo/readings.replay
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from undersong.judges.limits import LedgerEntry, MemoryLedger, RunLimits
from undersong.judges.llm.client import KeyedRequest
from undersong.judges.llm.judge import judge_of
from undersong.judges.llm.model_spec import tier_specs_of
from undersong.judges.llm.prompt_fingerprint import questions_hash
from undersong.judges.llm.prompts import render_segment
from undersong.judges.llm.providers.replay import replay_lines
from undersong.judges.llm.sequence_reader import keyed
from undersong.judges.llm.sequences import render_window
from undersong.judges.protocol import Segment, SequenceWindow
from undersong.patterns.catalog import load_rules
from undersong.patterns.nomination import nominate
from undersong.pipeline.options import Options
from undersong.pipeline.sequence_plan import scanned_rows
from undersong.pipeline.sequence_windows import shapes_of, windows_of
from undersong.pipeline.stages import ingest_and_scan, routed_threads
from undersong.scan import load_book
from undersong.stores.sqlite import temporary_store
from undersong.verdict import segments, session_verdict

DEMO = Path(__file__).parents[1] / "demo"
READ = ("conversations",)
JUDGE = "command:written-by-hand"  # no such program is ever started: a replay asks nobody


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    """One reading of a speaker's messages."""

    conversation: str
    speaker: str
    shape: str
    certainty: int
    innocent: str
    evidence: list[dict[str, str]]


class Place(msgspec.Struct, forbid_unknown_fields=True):
    """One answer about a flagged place."""

    conversation: str
    answer: str
    confidence: int
    quotes: list[str]


class Written(msgspec.Struct, forbid_unknown_fields=True):
    """``readings.yaml``."""

    sequences: list[Shape]
    places: list[Place]


def main() -> None:
    """Write the file."""
    written = msgspec.yaml.decode((DEMO / "readings.yaml").read_bytes(), type=Written)
    lines = list(replay_lines(JUDGE, questions_hash(), _entries(written)))
    (DEMO / "readings.replay").write_bytes(b"".join(lines))
    print(f"{len(lines) - 1} answers in demo/readings.replay")


def _entries(written: Written) -> Iterator[LedgerEntry]:
    """The answer to every question that an audit of the demo asks."""
    shapes = tuple(shapes_of(load_rules()))
    judge: Any = judge_of(tier_specs_of(JUDGE), RunLimits(ledger=MemoryLedger()), asks=False)
    with temporary_store() as store:
        options = Options()
        corpus = ingest_and_scan([DEMO / name for name in READ], store, load_book(), options, lambda *_: None)
        threads = list(routed_threads(corpus, store, options))
        rows = [row for thread in threads for row in scanned_rows(thread)]
        for nomination in nominate(rows, (), seed=options.seed):
            conversation, _, _ = store.conversation(nomination.conversation or "")
            for window in windows_of(nomination, conversation.messages):
                prompt = render_window(window, shapes)
                answer = {"control": prompt.control, "shapes": list(_shapes(window, written.sequences))}
                yield _entry(keyed(judge, window, shapes, prompt), answer)
        for thread in threads:
            verdict = session_verdict(thread.conversation, thread.scans, thread.thread, list(scanned_rows(thread)))
            for segment in segments(thread.conversation, verdict):
                prompt = render_segment(segment)
                yield _entry(judge._confirm_request(segment, prompt), _place(segment, prompt.control, written.places))


def _entry(question: KeyedRequest, answer: dict[str, Any]) -> LedgerEntry:
    return LedgerEntry(
        key=question.key,
        attempt=0,
        judge=JUDGE,
        model="written by hand",
        prompt_hash=question.prompt_hash,
        message_hash=question.message_hash,
        context_hash=question.context_hash,
        depth=question.depth,
        body=msgspec.json.encode(answer),
    )


def _shapes(window: SequenceWindow, written: Sequence[Shape]) -> Iterator[dict[str, Any]]:
    texts = [message.text for message in window.messages]
    for reading in written:
        if window.messages[0].conversation == reading.conversation and window.agent.endswith(reading.speaker):
            evidence = [item | {"message": 1 + _place_of(item["quote"], texts)} for item in reading.evidence]
            facts = {"shape": reading.shape, "evidence": evidence, "innocent": reading.innocent}
            yield facts | {"certainty": reading.certainty}


def _place(segment: Segment, control: str, written: Sequence[Place]) -> dict[str, Any]:
    texts = [message.text for message in segment.messages]
    place = next(each for each in written if each.conversation == segment.messages[0].conversation)
    quotes = [{"message": 1 + _place_of(quote, texts), "quote": quote} for quote in place.quotes]
    return {"control": control, "answer": place.answer, "quotes": quotes, "confidence": place.confidence}


def _place_of(quote: str, texts: Sequence[str]) -> int:
    return next(place for place, text in enumerate(texts) if quote in text)


if __name__ == "__main__":
    main()
