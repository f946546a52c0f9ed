"""How often Python looks for cycles among values, in work that makes many values and hardly a cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTED = 1_000_000  # new values that can hold others, between two looks for cycles


@contextmanager
def rare_collection() -> Iterator[None]:
    """Have the collector of cycles look seldom, and not at what is loaded: a scan makes millions of short-lived values
    and hardly a cycle."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(COLLECTED, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
