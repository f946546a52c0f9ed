"""One request at a time over a provider's SDK: connections are kept, and what is no answer ends in words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from tests.judges.dialogue import Served, question
from undersong.judges.limits import RunLimits
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.providers.openai import OpenAIBackend
from undersong.judges.llm.transport import Request, Response, TransportError

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
REQUEST = Request("system", "user", {}, 100)
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def posted(talk: Talk, times: int = 1) -> list[Response]:
    """The answers of a server that talks like this, one question after the other."""

    async def run() -> list[Response]:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        backend = OpenAIBackend(ModelSpec("openai", "m", url=url), RunLimits(environment={}))
        try:
            return [await backend.send(REQUEST) for _ in range(times)]
        finally:
            await backend.close()
            server.close()
            await asyncio.gather(*handlers)

    handlers: list[asyncio.Task[None]] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.ensure_future(handled(reader, writer)))

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await talk(reader, writer)
            writer.close()
            await writer.wait_closed()

    return asyncio.run(run())


def saying(*answers: bytes, then_close: bool = False) -> Talk:
    """A server that gives these answers on each connection, one a question."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            if not await reader.read(1 << 16):
                break
            writer.write(answer)
        if not then_close:
            await reader.read()

    return talk


def test_an_error_comes_with_its_status_and_the_pause_that_was_asked_for() -> None:
    with pytest.raises(TransportError, match="HTTP 429: hi") as error:
        posted(saying(b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nhi"))
    assert (error.value.retryable, error.value.after) == (True, 3.0)


def test_nobody_there_is_told_from_a_connection_that_broke_off() -> None:
    async def ask() -> Response:
        backend = OpenAIBackend(ModelSpec("openai", "m", url="http://127.0.0.1:9/v1"), RunLimits(environment={}))
        try:
            return await backend.send(REQUEST)
        finally:
            await backend.close()

    with pytest.raises(TransportError, match="no connection") as error:
        asyncio.run(ask())
    assert not error.value.reached


def test_questions_one_after_the_other_share_a_connection() -> None:
    assert [each.body for each in posted(saying(WHOLE, WHOLE.replace(b"hi", b"ho")), times=2)] == [b"hi", b"ho"]


@pytest.mark.parametrize("answer", [WHOLE, WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")])
def test_a_connection_that_the_server_closed_is_not_used_again(answer: bytes) -> None:
    async def patient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await saying(answer, then_close=True)(reader, writer)

    assert len(posted(patient, times=3)) == 3


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE,
        b"HTTP/1.0 200 OK\r\n\r\nhi",
    ],
)
def test_the_forms_of_an_answer_are_all_read(answer: bytes) -> None:
    assert [each.body for each in posted(saying(answer, then_close=True), times=2)] == [b"hi", b"hi"]


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", b"SSH-2.0-server\r\n\r\n"])
def test_what_is_no_whole_answer_is_a_broken_connection(answer: bytes) -> None:
    with pytest.raises(TransportError, match="broke off") as error:
        posted(saying(answer, then_close=True))
    assert error.value.retryable


def test_of_an_answer_without_end_no_more_is_read_than_is_used() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        while True:
            writer.write(b"x" * 1000)
            await writer.drain()

    (response,) = posted(endless)
    assert len(response.body) == shipped_prompts().limits.body_bytes + 1


def test_a_question_that_is_sent_elsewhere_arrives(served: Served) -> None:
    """The SDK follows redirects, and knows when a key may go along."""
    (evaluation,) = served.judge().evaluate([question("please read fault=moved*2 now")])
    assert evaluation.state == "scored"
    assert len(served.server.seen) == 3
