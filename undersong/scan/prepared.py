"""Machine code for the scan, loaded where an input is large enough to be worth it."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

from undersong.jit import installed
from undersong.models import Conversation, Message
from undersong.scan.beginnings import begun
from undersong.scan.conversation import scan_conversation
from undersong.scan.hearing import hear, likely
from undersong.scan.phrases import SignalBook
from undersong.triage.summing import window_sums

WORTH = 256 << 20  # bytes of input: loading takes a second of CPU time, which 115 MiB of text did not win back
KERNELS = (begun, hear, likely, window_sums)
SIGNALS = frozenset({"loops", "triage"})  # that use them
_SAID = ("it is so", "it is as it is, as it is, and that is how it is: \u201cunconstitutionally\u201d")


def prepare(
    book: SignalBook, paths: str | Path | Sequence[str | Path], signals: Collection[str] = SIGNALS, worth: int = WORTH
) -> bool:
    """Load machine code for what is done with every byte; whether that was done.

    It is where numba is installed, ``signals`` use it and the files in ``paths`` are known to have ``worth`` bytes
    together (what comes through a pipe does not count). The first time on a machine, it is compiled in some seconds
    and kept beside the package. Scans are the same either way, and processes that are copied from this one afterwards
    need not load it again.
    """
    if SIGNALS.isdisjoint(signals) or not installed() or not _has(paths, worth):
        return False
    for kernel in KERNELS:
        kernel.compiled  # noqa: B018
    messages = tuple(
        Message(id=str(place), conversation="", position=place, author="a", role="agent", text=text)
        for place, text in enumerate(_SAID)
    )
    scan_conversation(
        Conversation(id="", source_format="jsonl", messages=messages), book
    )  # tells numba the types of all arguments
    return True


def _has(paths: str | Path | Sequence[str | Path], worth: int) -> bool:
    """Whether files and folders have so many bytes together; not all are looked at where some have."""
    size = 0
    for path in map(Path, [paths] if isinstance(paths, str | Path) else paths):
        for root, _, names in os.walk(path):
            for name in names:
                size += _size(Path(root, name))
                if size >= worth:
                    return True
        size += _size(path)
    return size >= worth


def _size(path: Path) -> int:
    try:
        found = path.stat()
    except OSError:  # reading says what is wrong with it
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
