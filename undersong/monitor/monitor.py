"""The asynchronous monitor: a SyncMonitor in a thread of its own, so that no event loop is blocked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from undersong.errors import JudgeError
from undersong.judges.protocol import Judge
from undersong.monitor.state import Observation
from undersong.monitor.sync import MessageInput, SyncMonitor, closed
from undersong.stores.protocol import Store

T = TypeVar("T")
P = ParamSpec("P")


def _in_worker(
    method: Callable[Concatenate[SyncMonitor, P], T],
) -> Callable[Concatenate[Monitor, P], Coroutine[Any, Any, T]]:
    """A method of SyncMonitor as one of Monitor, which awaits it."""

    @wraps(method)
    async def awaited(monitor: Monitor, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await monitor._do(lambda opened: method(opened, *args, **kwargs))

    return awaited


class Monitor:
    """As SyncMonitor, whose arguments it takes, with ``await``; messages are taken in the order of the calls.

    Messages that come while the judge works are taken together when it is done. The store is opened at the first call;
    ``async with`` or ``await close()`` releases it; then whatever is asked raises UsageError.
    """

    def __init__(self, store: str | Path | Store, judge: str | Judge = "offline", **options: Any) -> None:
        self._open: Callable[[], SyncMonitor] = partial(SyncMonitor, store, judge, **options)
        self._opened: SyncMonitor | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="undersong-monitor")
        self._waiting: list[tuple[MessageInput, asyncio.Future[Observation]]] = []
        self._taking: asyncio.Task[None] | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def observe(self, message: MessageInput) -> Observation:
        """See SyncMonitor. A call that is cancelled leaves its message observed."""
        if self._is_closed:
            raise closed()
        future: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, future))
        if self._taking is None or self._taking.done():
            self._taking = asyncio.create_task(self._take())
        return await future

    begin = _in_worker(SyncMonitor.begin)
    session = _in_worker(SyncMonitor.session)
    rows = _in_worker(SyncMonitor.rows)
    signals = _in_worker(SyncMonitor.signals)
    emerging = _in_worker(SyncMonitor.emerging)
    findings = _in_worker(SyncMonitor.findings)
    finish = _in_worker(SyncMonitor.finish)
    outcomes = _in_worker(SyncMonitor.outcomes)
    failed_questions = _in_worker(SyncMonitor.failed_questions)
    sequences_read = _in_worker(SyncMonitor.sequences_read)

    @property
    def failure(self) -> JudgeError | None:
        """Why the judge did not come to a message or to a sequence, as of the last call; None where it came to all."""
        return None if self._opened is None else self._opened.failure

    async def close(self) -> None:
        """Wait for what was given, and release the store. A second time changes nothing."""
        self._is_closed = True
        if self._taking is not None:
            await self._taking
        opened, self._opened = self._opened, None
        if opened is not None:
            await asyncio.get_running_loop().run_in_executor(self._worker, opened.close)
        self._worker.shutdown()

    async def _take(self) -> None:
        """Take what waits, all of it at once, until nothing does."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            if not await self._take_together(waiting) and len(waiting) > 1:
                for item in waiting:  # one of them is wrong: the others are taken without it
                    await self._take_together([item])

    async def _take_together(self, waiting: list[tuple[MessageInput, asyncio.Future[Observation]]]) -> bool:
        """Whether the messages could be taken; of one alone, its caller gets the error."""
        taken = self._work(lambda monitor: monitor.extend([message for message, _ in waiting]))
        (done,) = await asyncio.gather(taken, return_exceptions=True)
        if isinstance(done, BaseException):
            if len(waiting) == 1 and not waiting[0][1].done():
                waiting[0][1].set_exception(done)
            return False
        for (_, future), observation in zip(waiting, done, strict=True):
            if not future.done():
                future.set_result(observation)
        return True

    async def _do(self, work: Callable[[SyncMonitor], T]) -> T:
        if self._is_closed:
            raise closed()
        return await self._work(work)

    async def _work(self, work: Callable[[SyncMonitor], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._in_thread, work)

    def _in_thread(self, work: Callable[[SyncMonitor], T]) -> T:
        if self._opened is None:
            self._opened = self._open()
        try:
            return work(self._opened)
        except StopIteration as error:  # which no future takes
            raise RuntimeError("the judge raised StopIteration") from error
