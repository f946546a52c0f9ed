"""What a report folder says, read back: the case, its findings, the rows of scores and the transcripts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from undersong.models import Case, Conversation, Finding, Record, Row, decode
from undersong.report.writer import CASE, CONVERSATIONS, EVALUATIONS, FINDINGS
from undersong.verify.manifest_check import Discrepancy, decoded

N = TypeVar("N", bound=Record)


@dataclass(frozen=True)
class Content:
    """The nouns of a report folder; ``case`` has its findings again."""

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
    broken = [part for part in parts if isinstance(part, Discrepancy)]
    if broken:
        return None, broken
    case, findings, rows, conversations = parts
    return Content(msgspec.structs.replace(case, findings=findings), rows, conversations), []


def _lines(data: bytes, kind: type[N]) -> tuple[N, ...]:
    return tuple(decode(line, kind) for line in data.split(b"\n") if line)
