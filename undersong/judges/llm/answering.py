"""The way to an answer that can be used: asked, and repaired once; what every kind of question shares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from undersong.judges.llm.client import KeyedRequest, ModelClient, Stored
from undersong.judges.llm.prompts import RenderedPrompt, shipped_prompts
from undersong.judges.llm.response import UnusableError
from undersong.judges.llm.transport import NoAnswerError

U = TypeVar("U")
R = TypeVar("R")


class RefusedError(Exception):
    """The model declined to answer; the text is what it said."""


class AnswerSteps(Generic[U]):
    """The way to an answer that can be used: a question, and one repair.

    ``make_request`` makes the request, with words of repair for the second one; ``use`` raises UnusableError.
    """

    def __init__(self, make_request: Callable[[str], KeyedRequest], use: Callable[[str], U]) -> None:
        self.make_request, self.use = make_request, use

    def next(self, stored: Stored) -> KeyedRequest | U:
        """What is to be asked next, or the answer; raises RefusedError, and UnusableError after a repair in vain."""
        request, why = self.make_request(""), ""
        for attempt in range(2):
            if attempt:
                request = self.make_request(shipped_prompts().words.repair.format(why=why))
            if attempt not in stored:
                return request
            try:
                return self.use(_text(request.model_client, stored[attempt].body))
            except UnusableError as error:
                why = str(error)
        raise UnusableError(f"{why}, also after one repair")


def _text(model: ModelClient, body: bytes) -> str:
    try:
        completion = model.parse(body)
    except NoAnswerError as error:  # kept by an earlier version
        raise UnusableError(str(error)) from None
    if completion.stop == "refusal":
        raise RefusedError(completion.text[:200] or "without a reason")
    if completion.stop == "length":
        raise UnusableError("it runs on to its longest")
    return completion.text


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


def with_repair(prompt: RenderedPrompt, repair: str) -> str:
    """The question, with the words of a repair after it where there are any."""
    return f"{prompt.user}\n{repair}" if repair else prompt.user
