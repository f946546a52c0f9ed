"""Questions over plain HTTP without a library between: connections are kept, and what is odd ends in words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.judges.dialogue import Served, question
from undersong.judges.llm.transport import Http11Transport, HttpEndpoint, HttpResponse, TransportError

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def posted(talk: Talk, times: int = 1, most: int = 100) -> list[HttpResponse]:
    """The answers of a server that talks like this, one question after the other."""

    async def run() -> list[HttpResponse]:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        line = Http11Transport(
            HttpEndpoint("127.0.0.1", server.sockets[0].getsockname()[1], "/ask"), [("Host", "here")], most
        )
        try:
            return [await line.post(b"question") for _ in range(times)]
        finally:
            await line.close()
            server.close()
            await server.wait_closed()

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
        writer.close()

    return talk


def test_an_answer_comes_with_its_status_and_headers_in_lower_case() -> None:
    (response,) = posted(saying(b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nhi"))
    assert (response.status, response.headers["retry-after"], response.body) == (429, "3", b"hi")


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


def test_an_answer_that_is_compressed_unasked_says_so() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi"
    with pytest.raises(TransportError, match="compressed"):
        posted(saying(head))


def test_of_an_answer_without_end_no_more_is_read_than_is_used() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 1000)
                await writer.drain()
        except ConnectionError:
            writer.close()

    (response,) = posted(endless, most=5000)
    assert len(response.body) == 5001


def test_a_question_that_is_sent_elsewhere_arrives(served: Served) -> None:
    """A redirect is followed by the library, which knows when a key may go along."""
    (evaluation,) = served.judge().evaluate([question("please read fault=moved*2 now")])
    assert evaluation.state == "scored"
    assert len(served.server.seen) == 3
