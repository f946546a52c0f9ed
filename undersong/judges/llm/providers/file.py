"""``file:FOLDER``: questions are written into a folder, and answers that somebody put beside them are read."""

from __future__ import annotations

import hashlib
import string
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from undersong.errors import JudgeError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.model_spec import ModelSpec
from undersong.judges.llm.transport import BatchResult, Completion, Request, Response

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NAME = 12  # hexadecimal digits of a name made from content
OWNER_ONLY = 0o600  # questions hold private messages


class FileAnswer(msgspec.Struct, frozen=True):
    """One line of an answers file: the id of the question, and the answer as JSON or as its text."""

    id: str
    answer: Any


class FileQuestion(msgspec.Struct, frozen=True):
    """One line of a questions file."""

    id: str
    instructions: str
    schema: str
    question: str


class WrittenAnswer(NamedTuple):
    """An answer, and the file and line where it stands."""

    body: bytes
    where: str


def written_lines(path: Path) -> Iterator[tuple[int, WrittenAnswer]]:
    """The answers of one file by their questions' numbers; raises JudgeError naming file and line of what is none."""
    batch_id, seen = path.name.removeprefix("answers-").removesuffix(".jsonl"), set[int]()
    for number, line in enumerate(path.read_bytes().removeprefix(BYTE_ORDER_MARK).splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
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
            raise JudgeError(f"not an answer: {error}", where=where, remedy=remedy) from error
        seen.add(question)
        text = answer.answer if isinstance(answer.answer, str) else msgspec.json.encode(answer.answer).decode()
        yield question, WrittenAnswer(text.encode(), where)


class FileAnswers:
    """The answers of a folder by what was asked, so that they are found again whichever run asks."""

    def __init__(self, folder: Path, files: Iterable[Path]) -> None:
        """Of several answers to one question that of the file that was changed last holds."""
        self._by_question: dict[tuple[str, str, str], WrittenAnswer] = {}
        for path in files:
            name = path.name.removeprefix("answers-").removesuffix(".jsonl")
            asked = folder / f"questions-{name}.jsonl"
            if not asked.exists():
                _check_is_batch(path, name)
                continue
            questions = [msgspec.json.decode(line, type=FileQuestion) for line in asked.read_bytes().splitlines()]
            for number, written in written_lines(path):
                if not 0 <= number < len(questions):
                    what = f"the id {name}-{number} is none of the {len(questions):,} in {asked.name}"
                    raise JudgeError(what, where=written.where, remedy="copy the id of the question that it answers")
                question = questions[number]
                self._by_question[question.instructions, question.schema, question.question] = written

    def answer_to(self, request: Request) -> WrittenAnswer | None:
        """What somebody wrote in answer to this question."""
        names = _named_by_content(*_instructions(request)), _named_by_content(*_schema(request))
        return self._by_question.get((*names, request.user)) if self._by_question else None


def _check_is_batch(path: Path, name: str) -> None:
    """Raise JudgeError for a file of answers to nothing; that of a batch whose questions were moved is none."""
    if len(name) != NAME or set(name) - set(string.hexdigits):
        what = "is a file of answers, and no questions of that name lie beside it"
        raise JudgeError(
            what, where=str(path), remedy="name it answers-ID.jsonl after the questions-ID.jsonl it answers"
        )


def _instructions(request: Request) -> tuple[str, str, bytes]:
    return "instructions", "md", request.system.encode()


def _schema(request: Request) -> tuple[str, str, bytes]:
    return "schema", "json", msgspec.json.encode(request.schema)


def _named_by_content(kind: str, suffix: str, data: bytes) -> str:
    return f"{kind}-{hashlib.sha256(data).hexdigest()[:NAME]}.{suffix}"


class FileBackend:
    """A batch is a file of questions; it has ended once the file of its answers is there."""

    def __init__(self, spec: ModelSpec, limits: RunLimits) -> None:  # noqa: ARG002 - the form of every backend
        self._name, self._folder = spec.name, Path(spec.model)
        self._written: tuple[object, FileAnswers] | None = None

    async def send(self, request: Request) -> Response:  # noqa: ARG002 - see Backend
        """See Backend; questions go into files, never one by one."""
        raise JudgeError("answers only in batches", where=self._name, remedy="add --batch")

    async def submit(self, requests: Iterable[Request]) -> str:
        """Write ``questions-ID.jsonl``, and the instructions and forms of answers that its lines name."""
        listed = list(requests)
        parts = [[each.system, each.user, each.schema] for each in listed]
        name = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:NAME]
        self._folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for number, request in enumerate(listed):
            line = {
                "id": f"{name}-{number}",
                "instructions": self._shared(*_instructions(request)),
                "schema": self._shared(*_schema(request)),
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
        for number, written in written_lines(self._answers(batch_id)):
            yield BatchResult(number, written.body)

    def written_answers(self) -> FileAnswers:
        """All answers in the folder; raises JudgeError naming file and line of what is none."""
        files = sorted(self._folder.glob("answers*"), key=lambda path: (path.stat().st_mtime_ns, path.name))
        state = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
        if self._written is None or self._written[0] != state:
            self._written = state, FileAnswers(self._folder, files)
        return self._written[1]

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
        name = _named_by_content(kind, suffix, data)
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
