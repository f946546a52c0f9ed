#!/usr/bin/env python3
"""What --redact masks of written secrets and of innocent numbers, and how its time grows with hostile texts.

usage: redaction.py [--size 1000000]
The samples, the innocent lines and the hostile parts are those of tests/pipeline/test_masking.py, written for this
project by those who wrote the expressions: others will write secrets that are not masked. A hostile text repeats a part
up to an eighth of the size, and to the size; the exponent is 1 where eight times the text takes eight times as long.
Exit 1 where fewer than 58 of 62 samples are masked, more than 2 % of the innocent lines, or an exponent is over 1.2.
"""

from __future__ import annotations

import argparse
import sys
import time
from math import log
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.pipeline.test_masking import HOSTILE, INNOCENT, NAMES, SAMPLES, leftover, masked_innocents
from undersong.pipeline.masking import Masker

FEWEST, MOST, STEEPEST, STEP = 58 / 62, 0.02, 1.2, 8


def seconds(part: str, size: int) -> float:
    """CPU seconds for a text of this size, the least of two."""
    text, measured = (part * size)[:size], []
    for _ in range(2):
        began = time.process_time()
        Masker(NAMES).text(text)
        measured.append(time.process_time() - began)
    return min(measured)


def main() -> None:
    """Print the shares, and the slowest and the steepest of the hostile texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000)
    size = parser.parse_args().size
    masked, innocent = len(SAMPLES) - len(leftover()), len(masked_innocents())
    print(f"{masked} of {len(SAMPLES)} written secrets masked; {innocent} of {len(INNOCENT)} innocent lines")
    steepest = 0.0
    for part in HOSTILE:
        small, large = seconds(part, size // STEP), seconds(part, size)
        exponent = log(large / small, STEP)
        steepest = max(steepest, exponent)
        print(f"{part[:24]!r:<30}{small:>8.2f} s{large:>8.2f} s   exponent {exponent:.2f}", flush=True)
    print(f"steepest exponent {steepest:.2f}")
    good = masked >= FEWEST * len(SAMPLES) and innocent <= MOST * len(INNOCENT) and steepest <= STEEPEST
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
