"""Reports beside the store: what each run looked at, its leads and claims, for pages that a store alone cannot fill."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from undersong.core.manifest import is_report
from undersong.errors import InputError
from undersong.models import Case, Finding, Lead, LedgerClaim, Record, SequenceReading, SessionVerdict
from undersong.report.coverage import Coverage, coverage_of
from undersong.report.near_shapes import NearShape, near_shapes
from undersong.report.opening import every_point, points_of
from undersong.report.opening_choice import Point, places_with_findings
from undersong.report.opening_title import look_title
from undersong.report.writer import CASE, CLAIMS, FINDINGS, LEADS, SEQUENCES
from undersong.serve.problems import missing
from undersong.serve.settings import ServeSettings

R = TypeVar("R", bound=Record)
MAIN = "report"  # the id of the report that has the store's name
RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
NAME_FILE = "name.txt"  # in the folder of an upload: the name of the file, as the browser gave it


class Run:
    """One finished report; its parts are read when they are asked for."""

    def __init__(self, run_id: str, folder: Path, name: str) -> None:
        self.id, self.folder, self.name = run_id, folder, name

    @cached_property
    def case(self) -> Case:
        """The case with everything that has a file of its own."""
        bare = _decoded(self.folder / CASE, Case)
        claims: dict[str, list[LedgerClaim]] = {}
        for claim in records_in(self.folder / CLAIMS, LedgerClaim):
            claims.setdefault(claim.conversation, []).append(claim)
        sessions = (
            msgspec.structs.replace(each, claims=tuple(claims.get(each.conversation, ()))) for each in bare.sessions
        )
        return msgspec.structs.replace(
            bare,
            findings=tuple(records_in(self.folder / FINDINGS, Finding)),
            leads=tuple(records_in(self.folder / LEADS, Lead)),
            sequences=tuple(records_in(self.folder / SEQUENCES, SequenceReading)),
            sessions=tuple(sessions),
        )

    @cached_property
    def sessions(self) -> dict[str, SessionVerdict]:
        """The verdicts by conversation."""
        return {each.conversation: each for each in self.case.sessions}

    @cached_property
    def readings(self) -> dict[str, SequenceReading]:
        """The readings of sequences by id."""
        return {each.id: each for each in self.case.sequences}

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """What to look at first."""
        return points_of(self.case)

    @cached_property
    def title(self) -> str:
        """What there is to look at, in the words of the terminal and the report."""
        return look_title(self.case, self.points, places_with_findings(every_point(self.case)))

    @cached_property
    def near(self) -> tuple[NearShape, ...]:
        """The look-alikes that a judge let go, and readings that failed."""
        return near_shapes(self.case)

    @cached_property
    def coverage(self) -> Coverage:
        """What was looked at, and what was not."""
        return coverage_of(self.case)


class Runs:
    """The reports beside a store: the one of its name, and those of files that were dropped on the page."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._runs: dict[Path, tuple[int, Run]] = {}

    def all(self) -> list[Run]:
        """Every finished report, the latest first."""
        return [run for _, run in sorted(self._current(), key=lambda pair: -pair[0])]

    def run(self, run_id: str) -> Run:
        """A report by its id; raises ProblemError where there is none."""
        for run in self.all():
            if run.id == run_id:
                return run
        raise missing("there is no such run", run_id)

    def _current(self) -> Iterator[tuple[int, Run]]:
        for run_id, folder in self._folders():
            if is_report(folder):
                changed = (folder / CASE).stat().st_mtime_ns
                if self._runs.get(folder, (0, None))[0] != changed:
                    self._runs[folder] = changed, Run(run_id, folder, _name(folder, run_id))
                yield self._runs[folder]

    def _folders(self) -> Iterator[tuple[str, Path]]:
        if self._settings.report is not None:
            yield MAIN, self._settings.report
        uploads = self._settings.uploads
        if uploads.is_dir():
            yield from ((path.name, path / MAIN) for path in sorted(uploads.iterdir()) if RUN_ID.fullmatch(path.name))


def _name(folder: Path, run_id: str) -> str:
    if run_id == MAIN:
        return folder.name
    try:
        return (folder.parent / NAME_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return run_id


def _decoded(path: Path, kind: type[R]) -> R:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), remedy="audit the files again") from error


def records_in(path: Path, kind: type[R]) -> Iterator[R]:
    """The records of a file; none where a report does not have it."""
    if not path.exists():
        return
    decoder = msgspec.json.Decoder(kind)
    try:
        yield from decoder.decode_lines(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), remedy="audit the files again") from error
