"""Gates: what makes a command end with exit code 1, and which of them did not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from undersong.cli.options import NumberRange
from undersong.core.sanitize import one_line
from undersong.core.text import counted, mechanism_name
from undersong.models import LEVELS, Bypass, Case, Deduction, LedgerClaim
from undersong.models.verdict import BYPASS

if TYPE_CHECKING:
    from undersong.report.order import Result

F = TypeVar("F", bound=Callable[..., Any])
LEAD = "lead"  # in place of a level: any lead above the cut
SHOWN = 5  # sessions that a gate names
PLURALS = {"way round a check": "ways round a check"}


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has to hold to; None and False: not asked for.

    ``level`` with ``confidence`` is about findings, points taken, contradicted and disputed claims and ways round a
    check, or about contradicted claims and ways round a check alone (``BYPASS``), or any lead above the cut on which
    nobody decided (``LEAD``); ``score`` (0-100) about every session that has one, ``unassessed`` about what could not
    be looked for, ``unread`` about coding sessions whose claims could not be read and records that could
    not.
    """

    level: str | None = None
    confidence: float | None = None
    score: int | None = None
    unassessed: bool = False
    unread: bool = False

    def failures(self, case: Case) -> list[str]:
        """A line for each gate that does not hold."""
        return [*self._results(case), *self._scores(case), *self._gaps(case)]

    def warning(self, case: Case) -> str:
        """What a gate on findings that holds says nothing about; "" where all was looked for, or a gate is on that."""
        from undersong.report.narrative import idle_patterns

        idle, patterns = idle_patterns(case)
        on_findings = (self.level and self.level != BYPASS) or self.score is not None
        if not on_findings or self.unassessed or not idle or self.failures(case):
            return ""
        gap = f"{idle:,} of {counted(patterns, 'pattern')} could not be looked for"
        return f"the gates hold, but {gap}; --fail-on-unassessed fails then"

    def left_out(self, case: Case) -> list[str]:
        """A line for what a gate that was asked for does not count, since people decided on it."""
        from undersong.report.gated_leads import is_open, leads_above_cut

        decided = [lead for lead in leads_above_cut(case) if not is_open(lead)] if self.level == LEAD else []
        if not decided:
            return []
        verdicts = Counter(str(lead.decided) for lead in decided)
        how = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()))
        verb = "do not count: they were" if len(decided) > 1 else "does not count: it was"
        return [f"--fail-on {LEAD}: {counted(len(decided), 'lead')} above the cut {verb} decided on ({how})"]

    def _results(self, case: Case) -> Iterator[str]:
        from undersong.report.gated_leads import is_open, leads_above_cut
        from undersong.report.order import at_or_above

        if self.level == LEAD:
            above = sum(map(is_open, leads_above_cut(case)))
            if above:
                yield f"--fail-on {LEAD}: {counted(above, 'lead')} above the cut"
            return
        reaching = at_or_above(case, self.level, self.confidence) if self.level else []
        if self.level and reaching:
            yield failing_line(reaching, self.level, self.confidence)

    def _scores(self, case: Case) -> Iterator[str]:
        limit = self.score
        if limit is None:
            return
        scored = [(each.score, each.conversation) for each in case.sessions if each.score is not None]
        low = sorted((score, name) for score, name in scored if score < limit)
        if low:
            names = ", ".join(f"{one_line(name, 40)} {score}" for score, name in low[:SHOWN])
            more = f" and {len(low) - SHOWN:,} more" if len(low) > SHOWN else ""
            yield f"--fail-under {limit}: {counted(len(low), 'session')} ({names}{more})"

    def _gaps(self, case: Case) -> Iterator[str]:
        from undersong.report.claims_view import unread_sessions, unread_words
        from undersong.report.narrative import unassessed_words

        if self.unassessed:
            yield from (f"--fail-on-unassessed: {words}" for words in unassessed_words(case))
        if self.unread and (words := unread_words(unread_sessions(case))):
            yield f"--fail-on-unread: {words}"
        records = sum(problem.kind == "record" for problem in case.problems)
        if self.unread and records:
            were = "was" if records == 1 else "were"
            yield f"--fail-on-unread: {counted(records, 'record')} of files that were read {were} not"


level_option = click.option(
    "--fail-on", type=click.Choice(LEVELS), help="Exit with 1 at a finding of this level or above."
)
level_or_lead_option = click.option(
    "--fail-on",
    type=click.Choice((*LEVELS, LEAD)),
    help="Exit with 1 at a finding of this level or above, or at any undecided lead (lead).",
)
level_or_bypass_option = click.option(
    "--fail-on",
    type=click.Choice((*LEVELS, BYPASS, LEAD)),
    help="Exit with 1 at this level or above, at contradicted claims and ways round checks (bypass), at leads (lead).",
)
confidence_option = click.option(
    "--fail-confidence",
    type=NumberRange(0, 1),
    metavar="P",
    help="With --fail-on: findings at least this likely to be true, and those of which that is not known; .5.",
)


def gate_options(function: F) -> F:
    """The options of the gates of an audit; they become ``gates``."""

    @wraps(function)
    def with_gates(
        *args: Any,
        fail_on: str | None,
        fail_confidence: float | None,
        fail_under: int | None,
        fail_on_unassessed: bool,
        fail_on_unread: bool,
        **chosen: Any,
    ) -> Any:
        gates = Gates(
            level=fail_on,
            confidence=fail_confidence,
            score=fail_under,
            unassessed=fail_on_unassessed,
            unread=fail_on_unread,
        )
        return function(*args, gates=gates, **chosen)

    decorated: Any = with_gates
    for option in (
        click.option(
            "--fail-on-unread",
            is_flag=True,
            help="Exit with 1 at a coding session whose claims, or a record of a file, could not be read.",
        ),
        click.option("--fail-on-unassessed", is_flag=True, help="Exit with 1 where anything could not be looked for."),
        click.option(
            "--fail-under", type=click.IntRange(0, 100), metavar="SCORE", help="Exit with 1 at a session below this."
        ),
        confidence_option,
        level_or_bypass_option,
    ):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def failing_line(results: Iterable[Result], level: str, confidence: float | None = None) -> str:
    """``--fail-on medium: 2 deductions (false promise ×2)``."""
    kinds: dict[str, Counter[str]] = {}
    for result in results:
        noun, name = _kind(result)
        kinds.setdefault(noun, Counter())[name] += 1
    parts = (f"{counted(names.total(), noun, PLURALS.get(noun))} ({_times(names)})" for noun, names in kinds.items())
    gate = f"--fail-on {level}" + (f" --fail-confidence {confidence:g}" if confidence is not None else "")
    return f"{gate}: {', '.join(parts)}"


def _kind(result: Result) -> tuple[str, str]:
    from undersong.report.order import FindingResult

    if isinstance(result, FindingResult):
        return "finding", result.finding.pattern
    if isinstance(result.claim, Deduction):
        return "deduction", mechanism_name(result.claim.mechanism)
    if isinstance(result.claim, LedgerClaim):
        return f"{result.claim.state} claim", result.claim.kind
    if isinstance(result.claim, Bypass):
        return "way round a check", mechanism_name(result.claim.kind)
    if result.claim.kind == "conduct":
        return "noted turn", mechanism_name(result.claim.code)
    return "smoking gun", mechanism_name(result.claim.code)


def _times(names: Counter[str]) -> str:
    return ", ".join(one_line(name, 40) + (f" ×{count}" if count > 1 else "") for name, count in names.items())
