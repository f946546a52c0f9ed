"""What a notebook shows of a case, a finding or a lead: HTML without scripts, its texts escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from undersong.models.finding import Finding
    from undersong.models.lead import Lead
    from undersong.models.verdict import Case

SHOWN = 20  # findings and leads of a case that a notebook shows
AGAINST = ("contradicted", "disputed")  # states of claims, as in undersong.models.verdict
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


def lead_html(lead: Lead) -> str:
    """A lead: what was counted, beside the same of others, and its quotes."""
    where = f" in {_text(lead.conversation)}" if lead.conversation else ""
    head = f"<b>{lead.rank}. {_text(lead.agent)}</b>{where}: {_text(lead.reason)}"
    figures = [(each.source, f"{each.value:.3g}", "" if each.compared_with is None else f"{each.compared_with:.3g}")
               for each in lead.evidence]  # fmt: skip
    quotes = [(quote.message_id, quote.text[:QUOTE]) for quote in lead.quotes]
    tables = (_table(("counted", "here", "others"), figures) if figures else "") + (
        _table(("message", "quote"), quotes) if quotes else ""
    )
    what = "where to look first; no accusation" if lead.above_cut else "no accusation"
    return f"<div><p>{head}<br><small>{what}</small></p>{tables}</div>"


def case_html(case: Case) -> str:
    """The counts of a case, its findings, claims and leads, and how much could not be looked for."""
    from undersong.models.finding import looked_for

    ran, patterns = looked_for(case.outcomes)
    whole = {each.agent for each in case.sequences if each.is_settled and not each.compares}
    read = f"read as a whole, for every pattern: what {len(whole):,} speakers wrote; " if whole else ""
    counts = (
        f"{case.messages:,} messages in {case.conversations:,} conversations; {read}"
        f"by rules looked for {ran} of {patterns} patterns"
    )
    ordered = sorted(
        case.findings, key=lambda one: (one.is_lead, -(one.confidence or 0), -one.strength, one.finding_id)
    )
    findings = [(one.title, one.level, one.agent, one.target or "", _sure(one), str(len(one.message_ids)))
                for one in ordered[:SHOWN]]  # fmt: skip
    leads = [(lead.agent, lead.reason) for lead in case.leads if lead.above_cut][:SHOWN]
    against = [(claim.state, claim.sentence.text[:QUOTE], claim.evidence[0].text[:QUOTE] if claim.evidence else "")
               for session in case.sessions for claim in session.claims if claim.state in AGAINST]  # fmt: skip
    parts = [f"<p>{counts}</p>", f"<p><b>Findings: {len(case.findings):,}</b></p>"]
    if findings:
        parts.append(_table(("pattern", "level", "agent", "towards", "how sure", "messages"), findings))
    if against:
        parts += [f"<p><b>Claims that the session speaks against: {len(against):,}</b></p>"]
        parts += [_table(("state", "claim", "against it"), against[:SHOWN])]
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
