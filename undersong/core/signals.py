"""Signals that wait: what must not be broken off in the middle ends first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM take effect after the block; in another thread than the main one they never come anyway.

    SQLite turns an interrupt that meets a function of ours into an error of the database.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as the system calls it
        waiting.append(number)

    numbers = [each for each in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(each))]
    before = {each: signal.signal(each, wait) for each in numbers}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
        for number in dict.fromkeys(waiting):
            signal.raise_signal(number)
