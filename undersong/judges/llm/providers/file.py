"""``file:FOLDER``: questions are written into a folder, and answers that somebody put beside them are read."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import msgspec

from undersong.errors import JudgeError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.transport import BatchResult, Completion, Request, Response

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
OWNER_ONLY = 0o600  # questions hold private messages


class FileAnswer(msgspec.Struct, frozen=True):
    """One line of an answers file: the id of the question, and the answer as JSON or as its text."""

    id: str
    answer: Any


class FileBackend:
    """A batch is a file of questions; it has ended once the file of its answers is there."""

    def __init__(self, spec: ModelSpec, limits: RunLimits) -> None:  # noqa: ARG002 - the form of every backend
        self._name, self._folder = spec.name, Path(spec.model)

    async def send(self, request: Request) -> Response:  # noqa: ARG002 - see Backend
        """See Backend; questions go into files, never one by one."""
        raise JudgeError("answers only in batches", where=self._name, remedy="add --batch")

    async def submit(self, requests: Iterable[Request]) -> str:
        """Write ``questions-ID.jsonl``, and the instructions and forms of answers that its lines name."""
        listed = list(requests)
        parts = [[each.system, each.user, each.schema] for each in listed]
        name = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:12]
        self._folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for number, request in enumerate(listed):
            line = {
                "id": f"{name}-{number}",
                "instructions": self._shared("instructions", "md", request.system.encode()),
                "schema": self._shared("schema", "json", msgspec.json.encode(request.schema)),
                "question": request.user,
            }
            lines.append(msgspec.json.encode(line) + b"\n")
        self._write(f"questions-{name}.jsonl", b"".join(lines))
        return name

    async def ended(self, batch_id: str) -> bool:
        """See Backend."""
        return self._answers(batch_id).exists()

    async def collect(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """The answers by their questions' numbers; raises JudgeError naming file and line of what is none."""
        path, seen = self._answers(batch_id), set[int]()
        for number, line in enumerate(path.read_bytes().removeprefix(BYTE_ORDER_MARK).splitlines(), 1):
            if not line.strip():
                continue
            try:
                answer = msgspec.json.decode(line, type=FileAnswer)
                batch, _, place = answer.id.rpartition("-")
                if batch != batch_id:
                    raise ValueError(f"the id {answer.id} is none of questions-{batch_id}.jsonl")
                question = int(place)
                if question in seen:
                    raise ValueError(f"the id {answer.id} stands here a second time")
            except (msgspec.DecodeError, UnicodeError, ValueError, RecursionError) as error:
                remedy = 'write {"id": "…", "answer": {…}} on each line'
                raise JudgeError(f"not an answer: {error}", where=f"{path}:{number}", remedy=remedy) from error
            seen.add(question)
            text = answer.answer if isinstance(answer.answer, str) else msgspec.json.encode(answer.answer).decode()
            yield BatchResult(question, text.encode())

    def limit(self, request: Request) -> int:
        """See Backend."""
        return request.max_tokens

    @property
    def notes(self) -> tuple[str, ...]:
        """See Backend."""
        return ()

    async def window(self) -> int | None:
        """See Backend."""
        return None

    async def close(self) -> None:
        """See Backend."""

    def _answers(self, batch_id: str) -> Path:
        return self._folder / f"answers-{batch_id}.jsonl"

    def _shared(self, kind: str, suffix: str, data: bytes) -> str:
        """The name of a file with this content, written once."""
        name = f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}.{suffix}"
        if not (self._folder / name).exists():
            self._write(name, data)
        return name

    def _write(self, name: str, data: bytes) -> None:
        path = self._folder / name
        try:
            path.touch(mode=OWNER_ONLY)
            path.write_bytes(data)
        except OSError as error:
            raise JudgeError(f"cannot be written: {error.strerror}", where=str(path), remedy="name a folder") from error


def parse_completion(body: bytes) -> Completion:
    """The whole text is the answer; nobody counts its tokens, so they are estimated."""
    return Completion(body.decode("utf-8", "replace").strip(), "end", counted=False)
