"""How well the offline judge orders messages of authors it never saw, and how fast it reads.

python bench/offline.py --data DIR        (DIR, or UNDERSONG_DATA, has moltbook_traits.jsonl.gz)
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from undersong.judges import Question, open_judge
from undersong.judges.card import table, thresholds, within
from undersong.judges.heads import FILE, dump
from undersong.judges.labels import Labelled, read_labels
from undersong.judges.offline import SHIPPED
from undersong.judges.quality import measure
from undersong.judges.training import train
from undersong.models import Message, Route, Scan

SIZE = 1024  # characters of a message in the speed measurement
COUNT = 5000  # messages
BATCH = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--seed", type=int, default=0, help="of the intervals")
    options = parser.parse_args()
    if options.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    rows = read_labels(Path(options.data) / "moltbook_traits.jsonl.gz")
    heads, unseen = train(rows, options.seed)
    quality = measure(rows, unseen, options.seed)
    print(f"{quality.messages} messages by {quality.authors} authors, {quality.harmful} with a negative trait >= .5")
    print(f"Spearman with the labels, out of fold by author [95 % over authors]\n\n{table(quality)}\n")
    print(f"{within(quality)}\n\nfixed thresholds, out of fold:\n{thresholds(quality)}\n")
    print(shipped(dump(heads)))
    print(speed(rows))


def shipped(again: bytes) -> str:
    """Whether the model in the package is what training gives here and now."""
    data = (SHIPPED / FILE).read_bytes()
    same = "the same bytes" if data == again else "NOT the bytes"
    return f"{FILE}: {len(data)} bytes, {hashlib.sha256(data).hexdigest()[:12]}, {same} that this training gives\n"


def speed(rows: list[Labelled]) -> str:
    """Messages a CPU second, beside the least that any reader does: lower-case the text and hash it."""
    long = [row.text[:SIZE] for row in rows if len(row.text) >= SIZE]
    texts = [long[i % len(long)] for i in range(COUNT)]
    judge = open_judge("offline")
    batches = [[_question(text) for text in texts[i : i + BATCH]] for i in range(0, COUNT, BATCH)]
    floor = _seconds(lambda: [hashlib.sha256(t.lower().encode("utf-8", "surrogatepass")).digest() for t in texts])
    read = _seconds(lambda: [judge.evaluate(batch) for batch in batches])
    return (
        f"messages of {SIZE} characters a CPU second: judge {COUNT / read:,.0f}, "
        f"lower-case and hash only {COUNT / floor:,.0f} (ratio {read / floor:.0f})"
    )


def _question(text: str) -> Question:
    message = Message(id="m", conversation="c", position=0, author="a", role="agent", text=text)
    route = Route(message_id="m", tier="standard", tier_before="standard", depth="standard", width="message")
    return Question(message=message, scan=Scan(message_id="m"), route=route)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
