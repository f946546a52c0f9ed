"""Work shared out to other processes, with the results in the order of the work."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from undersong.errors import UndersongError, UsageError
from undersong.formats.sources import WorkDistributor, in_turn

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

A = TypeVar("A")
B = TypeVar("B")
AHEAD = 4  # pieces of work that wait for each process, so that none is idle and few are in memory


@contextmanager
def workers(number: int) -> Iterator[WorkDistributor]:
    """Something that shares work out to so many processes; with 1 all of it is done here, in turn.

    The processes are copies of this one, made when the first work comes: they see what it had opened and loaded by
    then. Raises UsageError where the system cannot copy a process.
    """
    if number <= 1:
        yield in_turn
        return
    import multiprocessing  # here, since most runs have one process and loading these takes a tenth of a small run
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    if "fork" not in multiprocessing.get_all_start_methods():
        raise UsageError("this system cannot copy a process", remedy="use --processes 1")
    pool = ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("fork"))
    try:
        yield _ProcessDistributor(pool, number * AHEAD)
    except BrokenProcessPool as error:
        raise UndersongError("a process that scanned was killed", remedy="use fewer --processes") from error
    finally:
        pool.shutdown(cancel_futures=True)


class _ProcessDistributor:
    in_turn = False

    def __init__(self, pool: ProcessPoolExecutor, ahead: int) -> None:
        self._pool, self._ahead = pool, ahead

    def __call__(self, work: Callable[[A], B], pieces: Iterable[A]) -> Iterator[tuple[A, B]]:
        waiting: deque[tuple[A, Future[B]]] = deque()
        for piece in pieces:
            waiting.append((piece, self._submit(work, piece)))
            if len(waiting) > self._ahead:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()

    def later(self, work: Callable[[A], B], piece: A) -> Callable[[], B]:
        """See Share."""
        return self._submit(work, piece).result

    def _submit(self, work: Callable[[A], B], piece: A) -> Future[B]:
        with warnings.catch_warnings():
            # copying a process that has threads: ours wait for work, and NumPy's are not used by the copies
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._pool.submit(work, piece)
