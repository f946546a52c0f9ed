"""The results of a case, each with its level: what SARIF lists and what ``--fail-on`` counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from undersong.models import LEVELS, Case, Deduction, Finding, Moment, SessionVerdict
from undersong.report.order import order_findings, order_sessions

SarifLevel = Literal["note", "warning", "error"]
ORDER: tuple[SarifLevel, ...] = ("note", "warning", "error")
SARIF: dict[str, SarifLevel] = {
    "informational": "note", "low": "note", "medium": "warning", "high": "error", "critical": "error",
}  # fmt: skip
DEDUCTION: SarifLevel = "warning"
GUN: SarifLevel = "note"


class FindingResult(NamedTuple):
    """A finding with its level in SARIF."""

    finding: Finding
    level: SarifLevel


class SessionResult(NamedTuple):
    """Points that were deducted, or a smoking gun, with the session and the level in SARIF."""

    claim: Deduction | Moment
    session: SessionVerdict
    level: SarifLevel


Result = FindingResult | SessionResult


def results(case: Case) -> Iterator[Result]:
    """Findings, then deductions and smoking guns session by session, the worst first."""
    for finding in order_findings(case.findings):
        yield FindingResult(finding, SARIF[finding.level])
    for session in order_sessions(case):
        yield from (SessionResult(each, session, DEDUCTION) for each in session.deductions)
        yield from (SessionResult(each, session, GUN) for each in session.moments if each.kind == "smoking_gun")


def at_or_above(case: Case, level: str) -> list[Result]:
    """The results of ``level`` (one of ``LEVELS``) or above; what has a level in SARIF alone is compared by that."""
    return [each for each in results(case) if _reaches(each, level)]


def _reaches(result: Result, level: str) -> bool:
    if isinstance(result, FindingResult):
        return LEVELS.index(result.finding.level) >= LEVELS.index(level)
    return ORDER.index(result.level) >= ORDER.index(SARIF[level])
