"""Which results made a gate fail: each with its session, what was claimed or done, and the command that explains it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from undersong.cli.gates import LEAD, Gates
from undersong.core.sanitize import one_line
from undersong.core.text import counted, turn_at
from undersong.models import Bypass, Case, Deduction, LedgerClaim

if TYPE_CHECKING:
    from undersong.report.order import Result, SessionResult

SHOWN = 5  # results that are printed; --json has all
SENTENCE, TITLE = 160, 60  # characters


class FailedResult(TypedDict):
    """A result that made a gate fail; ``command`` explains it, "" where nothing is stored."""

    conversation: str
    title: str
    date: str
    place: str
    what: str
    command: str


def failed_results(gates: Gates, case: Case, explain: str) -> list[FailedResult]:
    """The results that ``--fail-on`` counts, the gravest first; ``explain`` is the command that explains an id."""
    from undersong.report.order import ORDER, FindingResult, at_or_above

    if gates.level is None or gates.level == LEAD:
        return []

    def rank(result: Result) -> int:
        return -ORDER.index(result.level)

    rows = sorted(at_or_above(case, gates.level, gates.confidence), key=rank)
    return [_of_finding(case, row, explain) if isinstance(row, FindingResult) else _of_session(case, row, explain)
            for row in rows]  # fmt: skip


def result_lines(rows: Sequence[FailedResult]) -> Iterator[str]:
    """Two lines for each of the first: what it is, and the command."""
    for row in rows[:SHOWN]:
        title = f"“{one_line(row['title'], TITLE)}”" if row["title"] else one_line(row["conversation"], TITLE)
        yield f"{', '.join(filter(None, (title, row['date'], row['place'])))}: {row['what']}"
        if row["command"]:
            yield f"  {row['command']}"
    if len(rows) > SHOWN:
        yield f"and {counted(len(rows) - SHOWN, 'more result')}"


def _of_finding(case: Case, row: Any, explain: str) -> FailedResult:
    from undersong.report.opening import finding_point

    point = finding_point(row.finding, case)
    return FailedResult(
        conversation=point.conversation,
        title=point.title,
        date=row.finding.start.date().isoformat() if row.finding.start else "",
        place="",
        what=one_line(point.sentence, SENTENCE),
        command=f"{explain} {row.finding.finding_id[:16]}" if explain else "",
    )


def _of_session(case: Case, row: SessionResult, explain: str) -> FailedResult:
    from undersong.cli.summary import explain_command

    session, item = row.session, row.claim
    return FailedResult(
        conversation=session.conversation,
        title=session.title or "",
        date=_date(case, session.conversation, item.message_id),
        place=turn_at(item.position),
        what=_what(row),
        command=explain_command(case, explain, item.message_id, session.conversation),
    )


def _what(row: SessionResult) -> str:
    from undersong.report.opening_sentences import sentences
    from undersong.report.opening_work import aside_words

    item = row.claim
    if isinstance(item, LedgerClaim):
        return f"{item.state} claim: “{one_line(item.sentence.text, SENTENCE)}”"
    if isinstance(item, Bypass):
        return f"{sentences().bypasses[item.kind]}{aside_words(item, row.session)}"
    if isinstance(item, Deduction):
        own = [claim for claim in row.session.claims if claim.message_id == item.message_id]
        words = own[0].sentence.text if len(own) == 1 else item.quotes[0].text if item.quotes else item.explanation
        return f"{item.mechanism.replace('_', ' ')}: “{one_line(words, SENTENCE)}”"
    quoted = f": “{one_line(item.quotes[0].text, SENTENCE)}”" if item.quotes else ""
    return f"{item.title}{quoted}"


def _date(case: Case, conversation: str, message_id: str) -> str:
    times = (each.time for each in case.cited if (each.conversation, each.id) == (conversation, message_id))
    return next((time.date().isoformat() for time in times if time), "")
