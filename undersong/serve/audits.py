"""Files that were dropped on the page: kept for the audit, audited one after the other, removed."""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from undersong.core.manifest import is_report
from undersong.core.sanitize import visible
from undersong.core.text import counted
from undersong.pipeline.options import UNITS
from undersong.serve.audit_job import JobNews
from undersong.serve.problems import HttpProblem, ProblemError
from undersong.serve.runs import MAIN, NAME_FILE, RUN_ID
from undersong.serve.settings import ServeSettings

PATIENCE = 5.0  # seconds that an audit is given to end
WAITING_AT_MOST = 20  # files that wait for their turn
STEPS = {"read": "reading the file", "scan": "scanning every message", "evaluate": "scoring messages",
         "sequences": "reading sequences", "detect": "looking for patterns", "weigh": "weighing what was found",
         "report": "writing the report"}  # fmt: skip
WEIGHTS = {"read": 10, "scan": 25, "evaluate": 40, "sequences": 5, "detect": 8, "weigh": 9, "report": 3}  # of 100
_UNSAFE = re.compile(r"[^\w .()+,=@-]+")


@dataclass
class AuditJob:
    """One file on its way to a report; ``fields`` says what its keys mean, as ``--map`` does."""

    id: str
    name: str
    folder: Path
    fields: str = ""
    news: JobNews = JobNews()  # noqa: RUF009 - frozen
    finished: bool = False
    problem: HttpProblem | None = None

    @property
    def failed(self) -> bool:
        """Whether it came to no report."""
        return self.problem is not None

    @property
    def words(self) -> str:
        """How far it is, in words."""
        if self.problem is not None:
            return f"not audited: {self.problem.what}"
        if self.finished:
            return "audited"
        if not self.news.step:
            return "waiting for its turn"
        words = STEPS.get(self.news.step, self.news.step)
        if not self.news.total:
            return words
        unit = UNITS.get(self.news.step, "steps").removesuffix("s")
        return f"{words}, {self.news.done:,} of {counted(self.news.total, unit)}"

    @property
    def percent(self) -> int | None:
        """How far it is of 100, by what steps take in a usual audit; None before it begins."""
        if self.finished:
            return 100
        if self.news.step not in WEIGHTS:
            return None
        before = sum(weight for name, weight in list(WEIGHTS.items())[: list(WEIGHTS).index(self.news.step)])
        share = self.news.done / self.news.total if self.news.total else 0
        return round(before + WEIGHTS[self.news.step] * share)


class Audits:
    """The queue of audits of one server; one runs at a time, in a process of its own."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._jobs: dict[str, AuditJob] = {}
        self._waiting: deque[AuditJob] = deque()
        self._work: asyncio.Task[None] | None = None
        self._process: Process | None = None

    def recover(self) -> None:
        """Say of every upload that an ended server left undone that it was not audited."""
        uploads = self._settings.uploads
        for folder in sorted(uploads.iterdir()) if uploads.is_dir() else ():
            if not RUN_ID.fullmatch(folder.name) or is_report(folder / MAIN) or self._settings.read_only:
                continue
            for file in folder.glob("file/*"):
                file.unlink()
            name = (folder / NAME_FILE).read_text(encoding="utf-8") if (folder / NAME_FILE).exists() else folder.name
            problem = HttpProblem(503, "the server ended before it was done", name, "drop the file again")
            self._jobs[folder.name] = AuditJob(folder.name, name, folder, problem=problem)

    def new(self, name: str, fields: str = "") -> AuditJob:
        """A place for a file of this name; raises ProblemError where too many wait."""
        if len(self._waiting) >= WAITING_AT_MOST:
            what = f"{counted(len(self._waiting), 'file')} wait already"
            raise ProblemError(429, what, where="/audits", remedy="wait until some are done")
        run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        folder = self._settings.uploads / run_id
        (folder / "file").mkdir(parents=True, mode=0o700)
        self._settings.uploads.chmod(0o700)
        shown = visible(Path(name.replace("\\", "/")).name)[:200] or "file"
        (folder / NAME_FILE).write_text(shown, encoding="utf-8")
        job = AuditJob(run_id, shown, folder, fields)
        self._jobs[run_id] = job
        return job

    def path_of(self, job: AuditJob) -> Path:
        """Where its file goes: the ending of a name decides how it is read, the rest may hold anything."""
        safe = _UNSAFE.sub("_", job.name).lstrip(". ")[-120:] or "file"
        return job.folder / "file" / safe

    def start(self, job: AuditJob) -> None:
        """Put a job whose file is there into the queue."""
        self._waiting.append(job)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._run_all())

    def discard(self, job: AuditJob) -> None:
        """Forget a job whose file did not come whole."""
        self._jobs.pop(job.id, None)
        shutil.rmtree(job.folder, ignore_errors=True)

    def job(self, job_id: str) -> AuditJob | None:
        """A job of this server by its id."""
        return self._jobs.get(job_id)

    def jobs(self) -> list[AuditJob]:
        """The jobs of this server, the latest first."""
        return sorted(self._jobs.values(), key=lambda job: job.id, reverse=True)

    async def close(self) -> None:
        """End the audit that runs; the store keeps what was stored of it."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), PATIENCE)
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work

    async def _run_all(self) -> None:
        while self._waiting:
            await self._run(self._waiting.popleft())

    async def _run(self, job: AuditJob) -> None:
        file = self.path_of(job)
        command = (str(self._settings.store), str(job.folder / MAIN), str(file), self._settings.judge, job.fields)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "undersong.serve.audit_job", *command, stdin=DEVNULL, stdout=PIPE, stderr=None
        )
        assert self._process.stdout is not None
        try:
            async for line in self._process.stdout:
                self._hear(job, line)
            code = await self._process.wait()
            if not job.finished and job.problem is None:
                what, remedy = f"the audit ended with code {code}", "see what the server printed"
                job.problem = HttpProblem(500, what, job.name, remedy)
        finally:
            file.unlink(missing_ok=True)  # its messages are in the store; a second copy would only lie around

    def _hear(self, job: AuditJob, line: bytes) -> None:
        try:
            news = msgspec.json.decode(line, type=JobNews)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # a library that prints
        if news.what:
            job.problem = HttpProblem(422, news.what, news.where, news.remedy)
        elif news.digest:
            job.finished = True
        else:
            job.news = news
