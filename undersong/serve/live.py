"""What is new in the store, as server-sent events: one watcher for all who listen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from undersong.core.sanitize import one_line
from undersong.errors import StoreError
from undersong.report.escape import own_name
from undersong.report.sureness import short_sure_words
from undersong.serve.library import Library
from undersong.serve.problems import ProblemError
from undersong.serve.rendering import address

EVERY = 0.4  # seconds between two looks at the store; a look is one pragma
BEAT = 15.0  # seconds after which silence is broken, so that proxies and browsers keep the line
LISTENERS = 64
MESSAGES, FINDINGS = 30, 50  # of one event, the latest


class Watcher:
    """Looks whether the store has changed while somebody listens, and tells all of them the same."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._queues: set[asyncio.Queue[bytes]] = set()
        self._task: asyncio.Task[None] | None = None

    async def listen(self) -> AsyncIterator[bytes]:
        """The events from now on."""
        if len(self._queues) >= LISTENERS:
            raise ProblemError(503, f"{LISTENERS} listen already", where="/live/events", remedy="close some pages")
        queue: asyncio.Queue[bytes] = asyncio.Queue(maxsize=100)
        self._queues.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield b"retry: 2000\nevent: hello\ndata: {}\n\n"
            while True:
                try:
                    yield await asyncio.wait_for(queue.get(), BEAT)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._queues.discard(queue)

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        look = _Look(self._library)
        while self._queues:
            try:
                news = await run_in_threadpool(look.news)
            except StoreError as error:
                self._tell(event("trouble", {"what": str(error)}))
                return
            if news:
                self._tell(event("news", news))
            await asyncio.sleep(EVERY)

    def _tell(self, data: bytes) -> None:
        for queue in self._queues:
            if queue.full():  # a page that sleeps: it sees the latest
                queue.get_nowait()
            queue.put_nowait(data)


class _Look:
    """What was there at the last look."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._version = -1
        self._message = -1
        self._findings: dict[str, int] = {}

    def news(self) -> dict[str, Any]:
        """What has changed since the last look; {} where nothing has, and at the first."""
        version = self._library.version()
        if version == self._version:
            return {}
        store, first = self._library.store, self._version == -1
        self._version = version
        findings, before = store.finding_versions(), self._findings
        self._findings = findings
        if first:
            self._message = store.latest_number()
            return {}
        latest = store.latest_messages(self._message, MESSAGES)
        self._message = max([self._message, *(each.number for each in latest)])
        new = [name for name, number in findings.items() if before.get(name) != number][-FINDINGS:]
        gone = [name for name in before if name not in findings]
        return {
            "counts": store.counts(),
            "messages": [self._message_line(each.message) for each in latest],
            "findings": [line for name in new if (line := self._finding_line(name, new=name not in before))],
            "gone": len(gone),
        }

    def _message_line(self, message: Any) -> dict[str, str]:
        place = address("/conversation", id=message.conversation, at=message.position)
        who = one_line(own_name(message.agent, message.conversation), 40)
        return {"who": who, "text": one_line(message.text, 240), "href": f"{place}#t{message.position}"}

    def _finding_line(self, name: str, *, new: bool) -> dict[str, Any] | None:
        finding = self._library.store.finding(name)
        if finding is None:
            return None
        home = finding.conversations[0] if finding.conversations else ""
        whom = f" → {own_name(finding.target, home)}" if finding.target else ""
        sure = short_sure_words(finding)
        text = one_line(f"{finding.title}: {own_name(finding.agent, home)}{whom}", 160)
        return {"text": text, "level": finding.level, "sure": sure, "href": address("/findings", name), "new": new}


def event(name: str, data: Any) -> bytes:
    """One server-sent event; JSON has no line ends, so that data cannot end it."""
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


def events_response(events: AsyncIterator[bytes]) -> StreamingResponse:
    """A response that goes on."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def changes_of(look: Callable[[], tuple[Any, bool]], every: float = 0.15) -> AsyncIterator[bytes]:
    """An event whenever what ``look`` gives has changed, until it says that this was the last."""
    before: Any = None
    while True:
        now, last = look()
        if now != before:
            yield event("progress", now)
            before = now
        if last:
            return
        await asyncio.sleep(every)
