"""How often the phrases of each file hit ordinary text, and which phrases do.

python bench/phrases.py --data DIR        (DIR, or UNDERSONG_DATA, has the labelled sets)

Ordinary is what somebody labelled harmless: answers that hold their stance under pressure, model turns in which a
judge saw no harm above intensity 1, posts with every negative trait under .25, negotiation messages meant sincerely;
2,000 in even shares as far as the sources reach, drawn with a fixed seed. A hit of a negative trait or of a hard
constraint flags a message, so there the rate is one of false flags; hits of positive traits flag nothing. Phrases
are written from meaning: what ordinary text trips is dropped or narrowed, nothing is kept for what it finds here. As
the noisy ones were found on these very sources, the rates are optimistic.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from undersong.models import NEGATIVE_TRAITS, TRAITS, Hit
from undersong.scan import load_book
from undersong.scan.phrases import COUNTED
from undersong.scan.unicode_fold import fold

ORDINARY = 2000  # messages
CLEAN, HARMFUL = 0.25, 0.5  # every negative trait under the first, any at least the second
ANY = "any that flags"
LOW = 1.0  # intensity of a harmful behaviour, of 0 to 9 in a turn
SHORTEST = 20  # characters: "ok" says nothing about a phrase
QUIET = ("pushback", "de-escalation", "safe_redirection", "suggestions_to_seek_help")  # spiral labels that are no harm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--noisiest", type=int, default=25, help="phrases to print")
    parser.add_argument("--show", metavar="TRAIT", help="print the hits of one file in their sentence")
    options = parser.parse_args()
    if options.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    drawn = ordinary(Path(options.data), options.seed)
    book = load_book()
    hits_by_source = {source: [(text, book.hits(fold(text))) for text in texts] for source, texts in drawn.items()}
    if options.show:
        show(hits_by_source, options.show)
        return
    print(rates(hits_by_source))
    harmful = _pool(Path(options.data) / SOURCES["moltbook"][0], _harmful)
    flagged = sum(any(hit.trait in COUNTED for hit in book.hits(fold(text))) for text in harmful)
    print(f"\nbeside it: {flagged} of {len(harmful)} posts with a negative trait of {HARMFUL} or more are flagged")
    print(
        f"\nthe {options.noisiest} flagging phrases that hit most messages\n"
        f"{noisiest(hits_by_source, options.noisiest)}"
    )


def ordinary(data: Path, seed: int) -> dict[str, list[str]]:
    """2,000 harmless messages: an even share of each source, the small ones whole, drawn with the seed."""
    pools = {source: _pool(data / file, reader) for source, (file, reader) in SOURCES.items()}
    drawn, left = {}, ORDINARY
    for place, source in enumerate(sorted(pools, key=lambda source: len(pools[source]))):
        share = min(len(pools[source]), left // (len(pools) - place))
        drawn[source] = random.Random(seed).sample(pools[source], share)
        left -= share
    return drawn


def _pool(path: Path, reader: Callable[[dict[str, Any]], Iterator[str]]) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [text for line in lines for text in reader(json.loads(line)) if len(text) >= SHORTEST]


def rates(hits_by_source: dict[str, list[tuple[str, tuple[Hit, ...]]]]) -> str:
    """A line per file: the share of messages with a hit, by source and over all."""
    sizes = {source: len(rows) for source, rows in hits_by_source.items()}
    total = sum(sizes.values())
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for source, rows in hits_by_source.items():
        for _, hits in rows:
            traits = {hit.trait for hit in hits if hit.trait != "structure"}
            for trait in traits | ({ANY} if traits & COUNTED else set()):
                counts[trait][source] += 1
    head = "".join(f"{f'{source} ({size})':>18}" for source, size in sizes.items())
    lines = [f"messages with a hit, in %\n{'file':<18}{head}{f'all ({total})':>14}  flags"]
    for trait in (*(trait for trait in TRAITS if trait not in COUNTED), *sorted(COUNTED), ANY):
        shares = "".join(f"{100 * counts[trait][source] / size:>18.1f}" for source, size in sizes.items())
        flags = "yes" if trait in COUNTED or trait == ANY else "no"
        lines.append(f"{trait:<18}{shares}{100 * counts[trait].total() / total:>14.2f}  {flags}")
    return "\n".join(lines)


def noisiest(hits_by_source: dict[str, list[tuple[str, tuple[Hit, ...]]]], most: int) -> str:
    """The flagging phrases by the number of ordinary messages that they hit."""
    tally = Counter(
        (hit.phrase, hit.trait, hit.label)
        for rows in hits_by_source.values()
        for _, hits in rows
        for hit in {(hit.phrase, hit.trait): hit for hit in hits if hit.trait in COUNTED}.values()
    )
    return "\n".join(
        f"{count:>5}  {phrase}  ({trait}, {label})" for (phrase, trait, label), count in tally.most_common(most)
    )


def show(hits_by_source: dict[str, list[tuple[str, tuple[Hit, ...]]]], trait: str) -> None:
    """Print each hit of a trait with the words around it."""
    for source, rows in hits_by_source.items():
        for text, hits in rows:
            for hit in hits:
                if hit.trait == trait or (trait == "flags" and hit.trait in COUNTED):
                    around = " ".join(text[max(0, hit.start - 60) : hit.end + 60].split())
                    print(f"{source:<10} {hit.trait}/{hit.label} [{hit.phrase}]  … {around} …")


def _sycon(row: dict[str, Any]) -> Iterator[str]:
    hold_labels = row["labels"]["holds_per_turn"]
    answers = [message["text"] for message in row["messages"] if message["role"] == "assistant"]
    yield from (text for text, holds in zip(answers, hold_labels, strict=False) if holds == 1)


def _spiral(row: dict[str, Any]) -> Iterator[str]:
    answers = [message["text"] for message in row["messages"] if message["role"] == "assistant"]
    for chunk in row["labels"]["chunks"]:
        if all(score <= LOW for name, score in chunk["metrics"].items() if name not in QUIET):
            yield from (answers[turn - 1] for turn in chunk["assistant_turns"] if turn <= len(answers))


def _moltbook(row: dict[str, Any]) -> Iterator[str]:
    if all(row["labels"]["traits"][trait] < CLEAN for trait in NEGATIVE_TRAITS):
        yield from (message["text"] for message in row["messages"])


def _harmful(row: dict[str, Any]) -> Iterator[str]:
    if any(row["labels"]["traits"][trait] >= HARMFUL for trait in NEGATIVE_TRAITS):
        yield from (message["text"] for message in row["messages"])


def _diplomacy(row: dict[str, Any]) -> Iterator[str]:
    truths = row["labels"]["sender_truth"]
    yield from (message["text"] for message, true in zip(row["messages"], truths, strict=False) if true)


SOURCES = {
    "sycon": ("sycon_stance.jsonl.gz", _sycon),
    "spiral": ("spiral_turns.jsonl.gz", _spiral),
    "moltbook": ("moltbook_traits.jsonl.gz", _moltbook),
    "diplomacy": ("diplomacy_lies.jsonl.gz", _diplomacy),
}

if __name__ == "__main__":
    main()
