"""Runs questions to their end from anywhere: also from a notebook, where an event loop is running already."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

R = TypeVar("R")


def run_sync(work: Coroutine[Any, Any, R]) -> R:
    """The result of ``work`` in an event loop of its own.

    Where a loop is running in this thread, in another thread meanwhile: the caller's loop waits, as in any other call
    that takes its time. ``await asyncio.to_thread(undersong.audit, ...)`` keeps it free.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="undersong-judge") as pool:
        return pool.submit(copy_context().run, asyncio.run, work).result()
