"""``command:PROGRAM ARGUMENTS``: a program reads the prompt on standard input and writes JSON on standard output."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

import msgspec

from undersong.core.sanitize import one_line
from undersong.errors import JudgeError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.transport import BatchResult, Completion, Request, Response, TransportError

NO_BATCHES = "a program has no batches"
EXCERPT = 200  # characters of standard error that are repeated


class CommandBackend:
    """One process for each question, started without a shell in this process's environment and working folder."""

    def __init__(self, spec: ModelSpec, limits: RunLimits) -> None:  # noqa: ARG002 - the form of every backend
        """Raises JudgeError for quotes that are not closed."""
        self._name = spec.name
        try:
            self._arguments = shlex.split(spec.model)
        except ValueError as error:
            raise JudgeError(f"is no command: {error}", where=spec.name, remedy="close the quotes") from error

    async def send(self, request: Request) -> Response:
        """See Backend; whatever ends the wait ends the program, too."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            remedy = "name a program that is installed, or its path"
            raise JudgeError(f"cannot be started: {error.strerror}", where=self._name, remedy=remedy) from error
        try:
            answer, complaint = await process.communicate(prompt_text(request).encode())
        finally:
            if process.returncode is None:
                _kill(process)
                await process.wait()
        if process.returncode:
            raise TransportError(f"exit code {process.returncode}: {_last_line(complaint)}", retryable=True)
        if not answer.strip():
            raise TransportError(f"it wrote nothing: {_last_line(complaint)}", retryable=True)
        return Response(answer[: shipped_prompts().limits.body_bytes + 1], {})

    def limit(self, request: Request) -> int:
        """See Backend."""
        return request.max_tokens

    @property
    def notes(self) -> tuple[str, ...]:
        """See Backend."""
        return ()

    async def submit(self, requests: Iterable[Request]) -> str:  # noqa: ARG002 - see Backend
        """See Backend."""
        raise JudgeError(NO_BATCHES, where=self._name, remedy="leave out --batch")

    def collect(self, batch_id: str) -> AsyncIterator[BatchResult]:  # noqa: ARG002 - see Backend
        """See Backend."""
        raise JudgeError(NO_BATCHES, where=self._name, remedy="leave out --batch")

    async def ended(self, batch_id: str) -> bool:  # noqa: ARG002 - see Backend
        """See Backend."""
        raise JudgeError(NO_BATCHES, where=self._name, remedy="leave out --batch")

    async def window(self) -> int | None:
        """See Backend."""
        return None

    async def close(self) -> None:
        """See Backend."""


def prompt_text(request: Request) -> str:
    """What the program reads: the instructions, the form of the answer as a JSON Schema on one line, the question."""
    schema = msgspec.json.encode(request.schema).decode()
    return f"{request.system}\n\n# JSON Schema of the answer\n{schema}\n\n{request.user}\n"


def parse_completion(body: bytes) -> Completion:
    """The whole output is the answer; a program says nothing of tokens, so they are estimated."""
    return Completion(body.decode("utf-8", "replace").strip(), "end", counted=False)


def _kill(process: asyncio.subprocess.Process) -> None:
    """End the program and what it started."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _last_line(complaint: bytes) -> str:
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    return one_line(lines[-1], EXCERPT) if lines else "nothing on standard error"
