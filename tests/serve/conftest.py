"""A real server on a free port in a thread of this process, and a client that shows every header."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn

from undersong.serve.app import application
from undersong.serve.server import bound
from undersong.serve.settings import ServeSettings

from .world import fill


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class Client(NamedTuple):
    """A program that speaks to a server."""

    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request; a body that is no bytes goes as JSON. Headers are named with ``_`` for ``-``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body, named = json.dumps(body).encode(), {"Content-Type": "application/json"} | named
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=named)
            answer = connection.getresponse()
            headers_back = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers_back, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.ask("POST", path, body, **headers)

    def form(self, path: str, text: str, **headers: str) -> Answer:
        """A form as a browser sends it."""
        given = {"Content-Type": "application/x-www-form-urlencoded"} | headers
        return self.ask("POST", path, text.encode(), **given)


@contextmanager
def running(settings: ServeSettings) -> Iterator[Client]:
    """The server, until the block ends."""
    opened = bound("127.0.0.1", 0)
    config = uvicorn.Config(application(settings), log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield Client(opened.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(20)
        opened.close()


Serve = Callable[..., Client]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of 12 conversations of 10 messages with 10 findings."""
    fill(tmp_path / "s.db", 12, 10, 10)
    return tmp_path / "s.db"


@pytest.fixture
def client(store: Path) -> Iterator[Client]:
    """A server over that store."""
    with running(ServeSettings(store=store)) as opened:
        yield opened
