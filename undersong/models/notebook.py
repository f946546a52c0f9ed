"""What a notebook shows of a case or a finding: HTML without scripts, every text escaped and held in its direction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from undersong.models.finding import Finding
    from undersong.models.verdict import Case

SHOWN = 20  # findings and leads of a case that a notebook shows
QUOTE = 280  # characters of a quote


def finding_html(finding: Finding) -> str:
    """A finding with its stages and quotes."""
    quotes = {quote.message_id: quote.text for quote in finding.quotes}
    stages = finding.stages or tuple(("", name) for name in finding.message_ids)
    rows = [(stage, name, quotes.get(name, "")[:QUOTE]) for stage, name in stages]
    aim = f" towards {_text(finding.target)}" if finding.target else ""
    head = f"<b>{_text(finding.title)}</b> ({_text(finding.level)}): {_text(finding.agent)}{aim}"
    claim = "consistent with the pattern, no statement about intent"
    table = _table(("stage", "message", "quote"), rows)
    return f"<div><p>{head}<br><small>{_sure(finding)}; {claim}</small></p>{table}</div>"


def case_html(case: Case) -> str:
    """The counts of a case, its findings and leads, and how much could not be looked for."""
    ran = sum(outcome.status == "ran" for outcome in case.outcomes)
    counts = (
        f"{case.messages:,} messages in {case.conversations:,} conversations; {ran} of {len(case.outcomes)} rules ran"
    )
    ordered = sorted(
        case.findings, key=lambda one: (one.is_lead, -(one.confidence or 0), -one.strength, one.finding_id)
    )
    findings = [(one.title, one.level, one.agent, one.target or "", _sure(one), str(len(one.message_ids)))
                for one in ordered[:SHOWN]]  # fmt: skip
    leads = [(lead.agent or "", lead.reason) for lead in case.leads[:SHOWN]]
    parts = [f"<p>{counts}</p>", f"<p><b>Findings: {len(case.findings):,}</b></p>"]
    if findings:
        parts.append(_table(("pattern", "level", "agent", "towards", "how sure", "messages"), findings))
    if leads:
        parts += ["<p><b>Where to look first</b> (no accusation)</p>", _table(("agent", "why"), leads)]
    return f"<div>{''.join(parts)}</div>"


def _sure(finding: Finding) -> str:
    if finding.confidence is None:
        return "how likely it is to be true is not known"
    return f"confidence {finding.confidence:.2f}{', a lead' if finding.is_lead else ''}"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(text: str) -> str:
    return f"<bdi>{escape(text.encode('utf-8', 'replace').decode())}</bdi>"
