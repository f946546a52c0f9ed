"""The files of a report folder: read back, and compared with the hashes of its manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from undersong.core.manifest import BESIDE, NAME, RUN, SCHEMA, Manifest, canonical, digest_of
from undersong.errors import UsageError
from undersong.models import (
    Case,
    Conversation,
    Finding,
    Lead,
    LedgerClaim,
    Record,
    Review,
    Row,
    SequenceReading,
    SessionVerdict,
    decode,
)
from undersong.report.writer import CASE, CLAIMS, CONVERSATIONS, EVALUATIONS, FINDINGS, LEADS, REVIEWS, SEQUENCES

N = TypeVar("N", bound=Record)


class Discrepancy(Record, frozen=True, kw_only=True):
    """One thing that no longer agrees: what, where, and both values where there are two."""

    what: str
    where: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        sides = (("expected", self.expected), ("found", self.found))
        values = ", ".join(f"{name} {value}" for name, value in sides if value)
        return f"{self.where}: {self.what}{f' ({values})' if values else ''}"


class NotPossibleError(Exception):
    """A step cannot be done again here, for a reason that is no disagreement."""


INTERNAL = "this is not a report that undersong wrote"
LEAST_DIGITS = 16  # of a digest that was kept elsewhere: 64 bits, as many as `audit` prints on the screen


def bytes_of(path: Path) -> bytes | Discrepancy:
    """The bytes of a file of the report, or why there are none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return Discrepancy(what="is missing", where=path.name)
    except OSError as error:
        return Discrepancy(what=f"cannot be read: {error.strerror}", where=path.name)


def decoded(path: Path, read: Callable[[bytes], Any]) -> Any:
    """What ``read`` makes of a file of the report, or a Discrepancy that says why it cannot."""
    data = bytes_of(path)
    if isinstance(data, Discrepancy):
        return data
    try:
        return read(data)
    except UnicodeDecodeError as error:
        return Discrepancy(what=f"is not UTF-8, at byte {error.start}", where=path.name)
    except (msgspec.DecodeError, RecursionError) as error:
        return Discrepancy(what=f"cannot be read as JSON: {error}", where=path.name)


def read_manifest(data: bytes) -> tuple[Manifest | None, list[Discrepancy]]:
    """The manifest where it can be understood, and what is wrong with it."""
    try:
        value: Any = json.loads(data.decode("utf-8"))
        form = canonical(value)
    except UnicodeDecodeError as error:
        return None, [Discrepancy(what=f"is not UTF-8, at byte {error.start}", where=NAME)]
    except (ValueError, RecursionError) as error:
        return None, [Discrepancy(what=f"is not valid JSON: {error}", where=NAME)]
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None, [Discrepancy(what=INTERNAL, where=NAME, expected=SCHEMA, found=_schema(value))]
    discrepancies = []
    if form != data:
        discrepancies.append(Discrepancy(what="is not in its canonical form", where=NAME))
    if value.get("digest") != digest_of(value):
        stated = str(value.get("digest"))
        discrepancies.append(
            Discrepancy(what="digest does not agree", where=NAME, expected=digest_of(value), found=stated)
        )
    try:
        return msgspec.convert(value, type=Manifest), discrepancies
    except msgspec.ValidationError as error:
        return None, [*discrepancies, Discrepancy(what=f"does not have the form of a manifest: {error}", where=NAME)]


def compare_digest(data: bytes, digest: str) -> Iterator[Discrepancy]:
    """Whether the manifest carries the digest that somebody kept elsewhere: a report that was sealed again does not.

    Raises UsageError for a digest that is none, or too short to mean one report only.
    """
    wanted = digest.strip().removesuffix("…").lower()
    if len(wanted) < LEAST_DIGITS or len(wanted) > 64 or set(wanted) - set("0123456789abcdef"):
        remedy = f"give the {LEAST_DIGITS} to 64 hex digits that `undersong audit` printed"
        raise UsageError(f"{digest[:80]!r} is not a digest", where="--digest", remedy=remedy)
    try:
        value = json.loads(data)
        actual = digest_of(value) if isinstance(value, dict) else ""
    except (ValueError, RecursionError):  # told by read_manifest
        actual = ""
    if not actual.startswith(wanted):
        what = "is not the manifest whose digest was kept: another report, or this one sealed again"
        yield Discrepancy(what=what, where=NAME, expected=wanted, found=actual or "no digest")


def files(report_dir: Path, manifest: Manifest) -> Iterator[Discrepancy]:
    """Files of the folder that are missing, changed or not in the manifest."""
    present = {path.name for path in report_dir.iterdir()} - {NAME, RUN, *BESIDE}
    for name, entry in sorted(manifest.files.items()):
        if name != Path(name).name:
            yield Discrepancy(what="is a file outside the report folder", where=name)
        elif name not in present:
            yield Discrepancy(what="is missing", where=name)
        else:
            yield from compare_file(report_dir / name, name, entry.sha256)
    for name in sorted(present - manifest.files.keys()):
        yield Discrepancy(what="is not in the manifest", where=name)


def compare_file(path: Path, name: str, expected: str) -> Iterator[Discrepancy]:
    """Whether a file has the hash that is expected of it."""
    try:
        with path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        yield Discrepancy(what=f"cannot be read: {error.strerror}", where=name)
        return
    if actual != expected:
        yield Discrepancy(what="has changed", where=name, expected=expected, found=actual)


def _schema(value: Any) -> str:
    return str(value.get("schema", "no schema")) if isinstance(value, dict) else "no object"


@dataclass(frozen=True)
class Content:
    """The records of a report folder; ``case`` has its findings, leads and sequence readings again."""

    case: Case
    rows: tuple[Row, ...]
    conversations: tuple[Conversation, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the case."""
        return self.case.findings


def read_content(report_dir: Path) -> tuple[Content | None, list[Discrepancy]]:
    """The content where every file can be read, and what is wrong with those that cannot."""
    parts: list[Any] = [decoded(report_dir / CASE, lambda data: decode(data, Case))]
    for name, kind in ((FINDINGS, Finding), (EVALUATIONS, Row), (CONVERSATIONS, Conversation)):
        parts.append(decoded(report_dir / name, lambda data, kind=kind: _lines(data, kind)))  # type: ignore[misc]
    parts.append(_optional(report_dir / LEADS, Lead))
    parts.append(_optional(report_dir / SEQUENCES, SequenceReading))
    parts.append(_optional(report_dir / CLAIMS, LedgerClaim))
    parts.append(_optional(report_dir / REVIEWS, Review))
    broken = [part for part in parts if isinstance(part, Discrepancy)]
    if broken:
        return None, broken
    case, findings, rows, conversations, leads, sequences, claims, reviews = parts
    case = msgspec.structs.replace(case, findings=findings, leads=leads, sequences=sequences, reviews=reviews)
    if claims:
        case = msgspec.structs.replace(case, sessions=_with_claims(case.sessions, claims))
    return Content(case, rows, conversations), []


def _with_claims(sessions: Iterable[SessionVerdict], claims: Iterable[LedgerClaim]) -> tuple[SessionVerdict, ...]:
    """The sessions with their ledgers again."""
    by_session: dict[str, list[LedgerClaim]] = {}
    for claim in claims:
        by_session.setdefault(claim.conversation, []).append(claim)
    return tuple(
        msgspec.structs.replace(session, claims=tuple(by_session.get(session.conversation, ()))) for session in sessions
    )


def _optional(path: Path, kind: type[N]) -> Any:
    """The records of a file that a report need not have, or a Discrepancy."""
    return decoded(path, lambda data: _lines(data, kind)) if path.exists() else ()


def _lines(data: bytes, kind: type[N]) -> tuple[N, ...]:
    return tuple(decode(line, kind) for line in data.split(b"\n") if line)
