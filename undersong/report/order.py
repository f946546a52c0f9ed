"""The order and grouping of what a report shows: filters, rankings, families of harm, and results by level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from undersong.datafiles import yaml_loader
from undersong.models import (
    LEVELS,
    AgentVerdict,
    Bypass,
    Case,
    Deduction,
    Finding,
    LedgerClaim,
    Moment,
    SessionVerdict,
)
from undersong.models.finding import distinct
from undersong.models.verdict import AGENT_ORDERS, BYPASS, ORDERS, TO_CHECK
from undersong.report.claims_view import against
from undersong.report.escape import own_name
from undersong.report.narrative import TO_READ

MOST = 300  # names that a menu offers; further ones share the last entry
REST = "all others"
FLAG = "flag"
MOMENTS = {  # the kind of a moment and its name in the menu
    "smoking_gun": "smoking gun", "distress": "distress code", "protective": "protective moment",
    "conduct": "noted turn", "candidate": "candidate",
}  # fmt: skip
DEDUCTION_LEVEL = "high"  # points taken stand beside findings of this level


@dataclass(frozen=True)
class Facet:
    """The values of one element: numbers of agents and kinds, and the number of its level, None without one."""

    agents: tuple[int, ...] = ()
    kinds: tuple[int, ...] = ()
    level: int | None = None


class Facets:
    """Numbers for the names that occur, in the order of their first appearance."""

    def __init__(self) -> None:
        self._agents: dict[str, int] = {}
        self._kinds: dict[str, int] = {}

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents by number."""
        return tuple(self._agents)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds by number."""
        return tuple(self._kinds)

    def of(
        self, agents: Iterable[str] = (), kinds: Iterable[str] = (), level: str | None = None, conversation: str = ""
    ) -> Facet:
        """The facet of one element; agents are named as inside ``conversation``."""
        return Facet(
            tuple(dict.fromkeys(_number(self._agents, own_name(agent, conversation)) for agent in agents)),
            tuple(dict.fromkeys(_number(self._kinds, kind) for kind in kinds)),
            LEVELS.index(level) if level in LEVELS else None,
        )


def _number(numbers: dict[str, int], name: str) -> int:
    if name not in numbers and len(numbers) >= MOST - 1:
        name = REST
    return numbers.setdefault(name, len(numbers))


ALIGNMENTS = ("violation", "misaligned", "drifting", "mixed", "aligned", "unknown")
ALL_IN_DETAIL = 10  # this few sessions are shown in full even where there is nothing to say


def order_findings(findings: tuple[Finding, ...]) -> list[Finding]:
    """Leads last; by confidence in tenths, as it is said, then by the number of messages that support it; of equal ones
    by level, strength and id. Without what repeats another finding (``distinct``)."""

    def rank(finding: Finding) -> tuple[bool, int, int, int, float, str]:
        tenths, level = round(10 * (finding.confidence or 0.0)), LEVELS.index(finding.level)
        support = len(finding.message_ids)
        return finding.is_lead, -tenths, -support, -level, -finding.strength, finding.finding_id

    return sorted(distinct(findings), key=rank)


def order_sessions(case: Case) -> list[SessionVerdict]:
    """By score where there is one, the level and number of findings, what speaks against it, moments, flags, and name.

    Of moments, distress codes count first: they stand for what is sustained or critical; then smoking guns, then all.
    """
    worst: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for finding in case.findings:
        for name in finding.conversations:
            worst[name] = max(worst.get(name, -1), LEVELS.index(finding.level))
            counts[name] += 1

    def rank(session: SessionVerdict) -> tuple[int, int, int, int, int, int, int, int, str]:
        name, score = session.conversation, 100 if session.score is None else session.score
        kinds = Counter[str](each.kind for each in session.moments)
        moments = -kinds["distress"], -kinds["smoking_gun"], -sum(kinds[kind] for kind in TO_READ)
        return score, -worst.get(name, -1), -counts[name], -against(session), *moments, -len(session.flags), name

    return sorted(case.sessions, key=rank)


def detailed_sessions(case: Case, limit: int) -> list[SessionVerdict]:
    """The sessions that are shown in full: those with something to say, the worst first, at most ``limit``."""
    named = {name for finding in case.findings for name in finding.conversations}
    return [
        each
        for each in order_sessions(case)
        if len(case.sessions) <= ALL_IN_DETAIL
        or each.deductions
        or each.bypasses
        or each.flags
        or each.moments
        or any(claim.state in TO_CHECK for claim in each.claims)
        or each.conversation in named
    ][:limit]


def alignment_rank(agent: AgentVerdict) -> tuple[int, float, float, str]:
    """By status, then by the value of safety, then by the share of messages with phrase flags, then by name."""
    safety = (agent.values or {}).get("safety", 2.0)
    return ALIGNMENTS.index(agent.alignment), safety, -agent.flagged / max(agent.messages, 1), agent.agent


OTHER = "Other patterns"


class HarmGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family and the names of what belongs to it."""

    title: str
    names: tuple[str, ...]


class HarmGroups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``groups.yaml``."""

    why: str
    groups: dict[str, HarmGroup]


@cache
def groups() -> HarmGroups:
    """The shipped families."""
    return yaml_loader.read(Path(__file__).parent / "groups.yaml", HarmGroups)


@cache
def titles() -> tuple[str, ...]:
    """The titles in their order, what is in no family last."""
    return (*(group.title for group in groups().groups.values()), OTHER)


@cache
def group_of(name: str) -> str:
    """The title of the family of a pattern, mechanism, flag or smoking gun."""
    return next((group.title for group in groups().groups.values() if name in group.names), OTHER)


FAINT = 0.1  # confidence below which a finding is in the report alone: nine in ten such findings are wrong
SarifLevel = Literal["note", "warning", "error"]
ORDER: tuple[SarifLevel, ...] = ("note", "warning", "error")
SARIF: dict[str, SarifLevel] = {
    "informational": "note", "low": "note", "medium": "warning", "high": "error", "critical": "error",
}  # fmt: skip
GUN: SarifLevel = "note"
ORDER_TO_READERS: SarifLevel = "warning"  # certain that it is written, not that it is meant
HIDDEN: SarifLevel = "error"  # a check was silenced, emptied or passed by, and nobody was told
SUPPRESSED_CHECK: SarifLevel = "note"  # nobody saw it fail, and to silence it may well be right
OPEN: SarifLevel = "warning"  # the agent says so itself; or the check ran, and more is claimed than it showed
CLAIMS: dict[str, SarifLevel] = {
    "contradicted": "error",  # said that the tests pass, and the session shows that they failed
    "disputed": "warning",  # certain that a person says or shows that it fails, not who is right
}
FALSE_PROMISE = "false_promise"  # the mechanism of claims that a session contradicts
HEAVY = 20  # points from which a deduction is an error: a false promise; the other mechanisms rest on wording alone


class FindingResult(NamedTuple):
    """A finding with its level in SARIF."""

    finding: Finding
    level: SarifLevel


class SessionResult(NamedTuple):
    """Points, a claim that something speaks against, a way round a check or a smoking gun, with its level in SARIF."""

    claim: Deduction | LedgerClaim | Bypass | Moment
    session: SessionVerdict
    level: SarifLevel


def is_faint(finding: Finding) -> bool:
    """Whether a finding is too unlikely to be listed by itself; one whose confidence is not known is not."""
    return finding.confidence is not None and finding.confidence < FAINT


Result = FindingResult | SessionResult


def results(case: Case) -> Iterator[Result]:
    """Findings, then what a session has, the worst session first: deductions, contradicted and disputed claims, ways
    round a check, orders to readers, smoking guns.

    A claim in a message that had points deducted is that deduction's, and no second result.
    """
    for finding in order_findings(case.findings):
        yield FindingResult(finding, "note" if finding.is_lead else SARIF[finding.level])
    for session in order_sessions(case):
        yield from (SessionResult(each, session, _weight(each)) for each in session.deductions)
        deducted = {each.message_id for each in session.deductions}
        for claim in session.claims:
            if claim.state in CLAIMS and claim.message_id not in deducted:
                yield SessionResult(claim, session, CLAIMS[claim.state])
        for bypass in session.bypasses:
            yield SessionResult(bypass, session, _bypass_weight(bypass))
        orders = [each for each in session.moments if each.code in (ORDERS, AGENT_ORDERS)]
        yield from (SessionResult(each, session, ORDER_TO_READERS) for each in orders)
        yield from (SessionResult(each, session, GUN) for each in session.guns)


def _bypass_weight(bypass: Bypass) -> SarifLevel:
    return SUPPRESSED_CHECK if bypass.is_lead else HIDDEN if bypass.is_hidden else OPEN


def _weight(deduction: Deduction) -> SarifLevel:
    return "error" if deduction.points >= HEAVY else "warning"


def at_or_above(case: Case, level: str, confidence: float | None = None) -> list[Result]:
    """The results of ``level`` (one of ``LEVELS``) or above; what has a level in SARIF alone is compared by that.

    ``BYPASS`` in place of a level: claims of work that are contradicted, and ways round a check that are no leads.

    A finding counts from ``confidence`` (0-1, None: .5) on; one whose confidence is not known counts always.
    """
    return [each for each in results(case) if _reaches(each, level, confidence)]


def _reaches(result: Result, level: str, confidence: float | None) -> bool:
    if level == BYPASS:
        return not isinstance(result, FindingResult) and _is_against_work(result.claim)
    if not isinstance(result, FindingResult):
        return ORDER.index(result.level) >= ORDER.index(SARIF[level]) and level != "critical"
    return result.finding.counts_from(confidence) and LEVELS.index(result.finding.level) >= LEVELS.index(level)


def _is_against_work(item: Deduction | LedgerClaim | Bypass | Moment) -> bool:
    if isinstance(item, Bypass):
        return not item.is_lead
    if isinstance(item, Deduction):
        return item.mechanism == FALSE_PROMISE
    return isinstance(item, LedgerClaim) and item.state == "contradicted"
