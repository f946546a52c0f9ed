"""How well triage finds harmful messages of authors it never saw, beside keywords, and how fast it reads.

python bench/triage.py --data DIR        (DIR, or UNDERSONG_DATA, has moltbook_traits.jsonl.gz)
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from train.triage_report import (
    ROUTED,
    cross_calibrated,
    figures,
    ranked,
    recall_at,
    recall_table,
    reliability,
    reliability_table,
)
from undersong.ml.triage import FILE, SHIPPED, load_triage, triage_bytes
from undersong.models import NEGATIVE_TRAITS, Conversation, Message, Scan
from undersong.scan import load_book, scan_conversation
from undersong.training.datasets import LabelledMessage, read_labels
from undersong.training.triage import TriageCorpus, out_of_fold, train

SIZE = 1100  # characters of a message in the speed measurement
COUNT = 5000  # messages
Array = npt.NDArray[np.float64]


def main() -> None:
    """Train out of fold, compare, and time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--seed", type=int, default=0, help="of the intervals")
    options = parser.parse_args()
    if options.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    rows = read_labels(Path(options.data) / "moltbook_traits.jsonl.gz")
    model, unseen = train(rows)
    corpus, scans = TriageCorpus(rows), [scanned(row) for row in rows]
    keywords = np.array([scan.total for scan in scans], dtype=np.float64)
    routed = np.where(keywords > 0, 1 + keywords, unseen)  # flags first, triage for the rest of the budget
    scorers = {"triage": unseen, "flags, then triage": routed, "keyword-only router": keywords}
    for name, extra in dense(rows, scans).items():
        scorers[f"triage with {name}"] = out_of_fold(corpus, extra)
    print(f"{model.meta.messages} messages by {model.meta.authors} authors, {model.meta.harmful} harmful\n")
    print(figures({name: ranked(rows, scores, options.seed) for name, scores in scorers.items()}))
    share, recalled = (keywords > 0).mean(), corpus.harmful[keywords > 0].sum() / corpus.harmful.sum()
    at_same = recall_at(corpus.harmful, unseen, float(share))
    print(f"\nkeywords flag {share:.1%} of the messages and {recalled:.1%} of the harmful ones")
    print(f"triage at as many messages: {at_same:.1%} of the harmful ones")
    print(f"by chance {ROUTED:.0%} of the messages hold {ROUTED:.0%} of the harmful ones\n")
    print(reliability_table(reliability(cross_calibrated(out_of_fold(corpus), corpus), corpus.harmful)))
    print(f"\n{recall_table(model.meta)}\n")
    data = (SHIPPED / FILE).read_bytes()
    same = "the same bytes" if data == triage_bytes(model) else "NOT the bytes"
    print(f"{FILE}: {len(data)} bytes, {hashlib.sha256(data).hexdigest()[:12]}, {same} that this training gives")
    print(speed(rows))


def scanned(row: LabelledMessage) -> Scan:
    """The scan of one labelled message by itself."""
    message = Message(id="m", conversation="c", position=0, author="a", role="agent", text=row.text)
    (scan,), _ = scan_conversation(Conversation(id="c", source_format="jsonl", messages=(message,)), load_book())
    return scan


def dense(rows: list[LabelledMessage], scans: list[Scan]) -> dict[str, Array]:
    """The scan's own features, which the model was offered and does better without."""
    traits = [*sorted(NEGATIVE_TRAITS), "hard_constraint"]
    flags = np.array([[*(np.log1p(s.flags.get(trait, 0)) for trait in traits), s.density] for s in scans])
    form = np.array([_form(row.text) for row in rows])
    return {"flags": flags, "length, caps, digits, links, marks": form}


def _form(text: str) -> list[float]:
    size = len(text)
    shares = [sum(map(kind, text)) / size for kind in (str.isupper, str.isdigit)]
    return [float(np.log1p(size)), *shares, *(float(np.log1p(text.count(mark))) for mark in ("?", "!", "http"))]


def speed(rows: list[LabelledMessage]) -> str:
    """Messages a CPU second, beside the least that any reader does: encode the text and hash it."""
    long = [row.text[:SIZE] for row in rows if len(row.text) >= SIZE]
    texts = [long[i % len(long)] for i in range(COUNT)]
    model, _ = load_triage()
    model(texts[:100])
    floor = _seconds(lambda: [hashlib.sha256(text.encode()).digest() for text in texts])
    joined, single = _seconds(lambda: model(texts)), _seconds(lambda: [model([text]) for text in texts])
    return (
        f"messages of {SIZE} characters a CPU second: {COUNT / joined:,.0f} ({joined / COUNT * 1e6:.1f} µs each), "
        f"one by one {COUNT / single:,.0f}, encode and hash only {COUNT / floor:,.0f} (ratio {joined / floor:.0f})"
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
