"""Work that is shared out to processes: the results come in the order of the items, whoever worked on them."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext

A = TypeVar("A")
B = TypeVar("B")
AHEAD = 4  # items that wait for each process, so that none is idle and few are in memory


class Share(Protocol):
    """Calls ``work`` on each item, in any process; what it gives comes in the order of the items.

    ``work`` is a function of a module (or a ``partial`` of one), and items and results can be pickled.
    """

    def __call__(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]: ...


def in_turn(work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """A Share that does everything here, each item when its result is asked for."""
    return map(work, items)


def _nothing() -> None:
    """The first work of a process, so that it starts."""


@contextmanager
def shared_out(processes: int, prepare: Callable[[], object] = _nothing) -> Iterator[Share]:
    """A Share over so many processes; with 1 all of it is done here, in turn.

    The processes start at once, so that they are ready when the first work comes, and call ``prepare``. They start
    empty, which works on every system and beside open databases and leaves no file when this process is killed; a
    program that has set another start method gets that one. They end with this process, however it ends. Raises
    ChildProcessError where one of them was killed.
    """
    if processes <= 1:
        yield in_turn
        return
    from concurrent.futures import ProcessPoolExecutor  # here: loading it takes a tenth of a small run
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(processes, _context(), _begin, (prepare,))
    try:
        for _ in range(processes):
            pool.submit(_nothing)
        yield lambda work, items: _in_order(pool, processes * AHEAD, work, items)
    except BrokenProcessPool as error:
        what = "a process that worked for this one was killed; use fewer, they may lack memory"
        raise ChildProcessError(errno.ECHILD, what, "--processes") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _context() -> BaseContext:
    import multiprocessing

    return multiprocessing.get_context(multiprocessing.get_start_method(allow_none=True) or "spawn")


def _begin(prepare: Callable[[], object]) -> None:
    """What a process does first: a Ctrl-C is for the one that it works for, and with that one it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare()


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_order(pool: ProcessPoolExecutor, ahead: int, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    waiting: deque[Future[B]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
