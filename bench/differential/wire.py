"""The judge's server of a checkout behind a proxy that records every request: it needs no name of the server's code."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.differential.bench import Side
from bench.differential.inside.names import SERVER

OF_THE_CONNECTION = {"host", "connection", "accept-encoding", "x-stainless-read-timeout", "x-stainless-retry-count",
                     "x-stainless-timeout"}  # fmt: skip


class Recorder:
    """A proxy on a fixed port (the address is part of a judge's name); ``streams`` are what clients sent."""

    def __init__(self, port: int, behind: int) -> None:
        self.streams: list[bytearray] = []
        self._port, self._behind = port, behind
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    async def _start(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = bytearray()
        self.streams.append(stream)
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._behind)
        back = asyncio.create_task(_copy(theirs, writer, None))
        await _copy(reader, ours, stream)
        await back

    def stop(self) -> None:
        """Listen no more."""
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def requests(self) -> list[str]:
        """Every request as one line, in order of the lines, since that of concurrent requests is nobody's."""
        return sorted(line for stream in self.streams for line in requests_of(bytes(stream)))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray | None) -> None:
    with suppress(ConnectionError):
        while part := await reader.read(65536):
            if seen is not None:
                seen += part
            writer.write(part)
            await writer.drain()
    with suppress(ConnectionError, OSError, RuntimeError):
        writer.close()


def requests_of(stream: bytes) -> Iterator[str]:
    """Method, path, headers and body of the requests on one connection."""
    while stream:
        head, _, rest = stream.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", "0"))
        body, stream = rest[:length], rest[length:]
        boundary = headers.get("content-type", "").partition("boundary=")[2]
        text = body.decode("utf-8", "backslashreplace")
        shown = {k: v for k, v in sorted(headers.items()) if k not in OF_THE_CONNECTION}
        line = json.dumps([first, shown, text], ensure_ascii=False)
        yield line.replace(boundary, "<BOUNDARY>") if boundary else line


@contextmanager
def served(side: Side, port: int) -> Iterator[Recorder]:
    """A fresh server of the checkout, so that its faults count from the start, and the recorder before it."""
    program = next((side.checkout / name for name in SERVER if (side.checkout / name).is_file()), None)
    if program is None:
        raise SystemExit(
            f"{side.checkout}: no judge server at {', '.join(SERVER)}; see bench/differential/inside/names.py"
        )
    process = _start(side, program)
    try:
        assert process.stdout is not None
        recorder = Recorder(port, int(process.stdout.readline()))
        try:
            yield recorder
        finally:
            recorder.stop()
    finally:
        process.communicate()


def _start(side: Side, program: Path) -> subprocess.Popen[bytes]:
    command = [side.python, "-P", str(program), "--port", "0"]
    return subprocess.Popen(
        command, env=side.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
