"""The summary of an audit: one JSON object, or lines for a person."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import click
import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import counted, mechanism_name
from undersong.models import TIERS, Case, Finding, RuleOutcome, SessionVerdict, by_pattern
from undersong.models.verdict import AGAINST, balance
from undersong.patterns.leads import shown_leads
from undersong.report.alignment_words import violation_words
from undersong.report.claims_view import balance_words
from undersong.report.narrative import (
    LOW_COVERAGE,
    address_words,
    agreement_words,
    annotation_words,
    basis_words,
    flagged_words,
    guns_words,
    kind_words,
    low_scores_words,
    missed_words,
    to_read_words,
    unassessed_words,
)
from undersong.report.sequence_words import sequence_words
from undersong.report.work_view import duration_words, work_view

SHOWN = 10  # findings and sessions on the screen; all of them are in the report


def summary(case: Case, folder: Path, digest: str) -> dict[str, Any]:
    """The facts of a run as JSON values."""
    return {
        "report": str(folder),
        "digest": digest,
        "inputs": len(case.inputs),
        "conversations": case.conversations,
        "messages": case.messages,
        "tiers": {tier: case.tiers.get(tier, 0) for tier in TIERS},
        "upgrades": case.upgrades,
        "states": case.states,
        "missed": msgspec.to_builtins(case.missed),
        "missed_words": list(missed_words(case.missed)),
        "ranked": case.ranked,
        "kind_words": list(kind_words(case)),
        "signals": {name: msgspec.structs.asdict(band) for name, band in case.signals.items()},
        "judge": {"name": case.parameters["judge"], "calibrated": case.parameters["calibrated"]},
        "agreement": case.parameters.get("judge_agreement", {}),
        "agreement_words": list(agreement_words(case.parameters)),
        "addresses": list(address_words(case.parameters)),
        "old_prices": list(_old_prices(case, date.today())),
        "answered_by": case.parameters.get("answered_by", {}),
        "judge_calls": case.judge_calls,
        "cost_usd": case.cost if case.spent is None else case.spent.total.cost,
        "spent": msgspec.to_builtins(case.spent),
        "violations": list(violation_words(case)),
        "findings": [_finding(finding) for finding in case.findings],
        "look_at": [{"agent": lead.agent, "reason": lead.reason} for lead in shown_leads(case.leads)],
        "cautions": list(low_scores_words(case)),
        "smoking_guns": list(guns_words(case)),
        "noted": list(annotation_words(case)),
        "flagged": list(flagged_words(case)),
        "not_looked_for": list(unassessed_words(case)),
        "sequences": list(sequence_words(case)),
        "chance": {name: case.parameters.get(f"chance_{name}", 0) for name in ("draws", "family", "tested")},
        "rules": {
            status: sorted(each.pattern for each in by_pattern(case.outcomes) if each.status == status)
            for status in ("ran", "not_applicable", "gave_up")
        },
        "rules_not_run": {each.pattern: each.reason for each in by_pattern(case.outcomes) if each.status != "ran"},
        "claims": _claims(case),
        "work": _work(case),
        "sovereignty": [_session(session) for session in case.sessions],
        "problems": {
            kind: sum(each.kind == kind for each in case.problems) for kind in ("file", "record", "note", "judge")
        },
    }


def _old_prices(case: Case, today: date) -> Iterable[str]:
    dates = case.parameters.get("price_dates", {})
    if not dates:
        return []
    from undersong.judges.llm.pricing import old_price_words

    return old_price_words({name: date.fromisoformat(as_of) for name, as_of in dates.items()}, today)


def print_summary(facts: dict[str, Any], as_json: bool) -> None:
    """Print the summary on stdout."""
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    for line in _lines(facts):
        click.echo(line)


def outcome_lines(outcomes: Iterable[RuleOutcome]) -> list[str]:
    """One line for the rules that ran, and one per reason for those that could not."""
    all_outcomes = tuple(outcomes)
    ran = [each for each in all_outcomes if each.status == "ran"]
    lines = [f"{counted(len(ran), 'rule')} ran, {counted(sum(each.findings for each in ran), 'finding')}"]
    return lines + not_run_lines(all_outcomes)


def not_run_lines(outcomes: Iterable[RuleOutcome]) -> list[str]:
    """One line per reason for the rules that could not run."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for outcome in by_pattern(outcomes):
        if outcome.status != "ran":
            reasons.setdefault((outcome.status.replace("_", " "), outcome.reason), []).append(outcome.pattern)
    return [f"{status}: {', '.join(names)} ({reason})" for (status, reason), names in reasons.items()]


def _finding(finding: Finding) -> dict[str, Any]:
    names = ("finding_id", "pattern", "level", "agent", "target", "strength", "chance", "shuffles", "q", "stability",
             "confidence")  # fmt: skip
    return {name: getattr(finding, name) for name in names} | {
        "lead": finding.is_lead,
        "reading": finding.is_read,
        "messages": len(finding.message_ids),
        "start": finding.start.isoformat() if finding.start else None,
        "end": finding.end.isoformat() if finding.end else None,
        "first": finding.message_ids[0],
        "last": finding.message_ids[-1],
    }


def _claims(case: Case) -> dict[str, Any]:
    """The balance of the ledgers, and the claims that something speaks against."""
    claims = [claim for session in case.sessions for claim in session.claims]
    return {
        "states": balance(claims),
        "words": balance_words(case.sessions),
        "against": [msgspec.to_builtins(claim) for claim in claims if claim.state in AGAINST],
    }


def _work(case: Case) -> dict[str, Any] | None:
    """The page on the work of coding agents, None where there is none."""
    work = work_view(case)
    if work is None:
        return None
    return {
        "balance": work.balance,
        "claims": [
            {
                "state": item.state,
                "date": item.date,
                "project": item.project,
                "kind": item.claim.kind,
                "sentence": item.claim.sentence.text,
                "against": item.against,
                "thought": item.claim.thought,
                "command": item.command,
            }
            for item in work.claims
        ],
        "bypasses": [{"project": project} | msgspec.to_builtins(item) for project, item in work.bypasses],
        "repeated": [
            {"project": project, "words": duration_words(row)} | msgspec.to_builtins(row)
            for project, row in work.failures
        ],
    }


def _work_lines(work: dict[str, Any] | None) -> Iterable[str]:
    """The claims to look at, what was passed by, and where time was lost."""
    if work is None:
        return
    for item in work["claims"]:
        where = " · ".join(filter(None, (item["date"], one_line(item["project"], 50), item["kind"])))
        yield f"  {item['state']}: {where}: “{one_line(item['sentence'], 160)}”"
        yield f"    against it: {one_line(item['against'], 160)}"
        if item["thought"]:
            yield f"    before it answered, it wrote: “{one_line(item['thought'], 160)}”"
        yield f"    open it: {one_line(item['command'], 120)}"
    for item in work["bypasses"]:
        lines = one_line(" | ".join(item["lines"]), 160)
        yield f"  {item['kind'].replace('_', ' ')}: {one_line(item['project'], 50)}, turn {item['position']}: {lines}"
    for row in work["repeated"]:
        yield f"  failed {row['words']}: {one_line(row['project'], 50)}: {one_line(row['command'], 120)}"


def _session(session: SessionVerdict) -> dict[str, Any]:
    return {
        "conversation": session.conversation,
        "title": session.title,
        "score": session.score,
        "psychogenic_risk": session.psychogenic_risk,
        "profile": session.profile,
        "assessed": sum(each.assessment == "assessed" for each in session.mechanisms),
        "mechanisms": len(session.mechanisms),
        "deductions": [[each.mechanism, each.points, each.message_id] for each in session.deductions],
        "candidates": sum(each.kind == "candidate" for each in session.moments),
        "to_read": to_read_words((session,)),
        "flags": list(session.flags),
        "session_context_vector": list(session.session_context_vector),
        "messages": session.messages,
        "read": session.read,
        "low_coverage": session.read < LOW_COVERAGE * session.messages,
    }


def _lines(facts: dict[str, Any]) -> Iterable[str]:
    yield from (f"violation  {sentence}" for sentence in facts["violations"])
    yield f"scanned    {counted(facts['messages'], 'message')} in {counted(facts['conversations'], 'conversation')}"
    yield "tiers      " + ", ".join(f"{count:,} {tier}" for tier, count in facts["tiers"].items())
    if facts["upgrades"]:
        raised = ", ".join(f"{one_line(agent, 40)} {count}" for agent, count in list(facts["upgrades"].items())[:SHOWN])
        yield f"upgraded   {counted(sum(facts['upgrades'].values()), 'message')} by thread signals: {raised}"
    states = ", ".join(f"{count:,} {state}" for state, count in facts["states"].items()) or "nothing"
    calibrated = "" if facts["judge"]["calibrated"] else ", uncalibrated"
    cost = "price not known" if facts["cost_usd"] is None else f"${facts['cost_usd']:.2f}"
    price = f"{counted(facts['judge_calls'], 'answer')}, {cost}"
    yield f"evaluated  {states} (judge {facts['judge']['name']}{calibrated}; {price})"
    about_judge = (*facts["agreement_words"], *facts["addresses"], *facts["old_prices"])
    yield from (f"judge      {sentence}" for sentence in about_judge)
    others = (f"{one_line(name, 60)} ×{count:,}" for name, count in facts["answered_by"].items())
    yield from (f"  answered by another model than was asked for: {other}" for other in others)
    yield from (f"left out   {sentence}" for sentence in facts["missed_words"])
    yield from (f"signals    {sentence}" for sentence in facts["kind_words"])
    yield from (f"sequences  {sentence}" for sentence in facts["sequences"])
    yield from _finding_lines(facts)
    if facts["claims"]["words"]:
        yield f"claims     {facts['claims']['words']}"
    yield from _work_lines(facts["work"])
    yield from _session_lines(facts["sovereignty"])
    yield from _look_lines(facts)
    yield from (f"moments    {sentence}" for sentence in (*facts["smoking_guns"], *facts["noted"]))
    yield from (f"phrases    {sentence}" for sentence in facts["flagged"])
    yield from (f"caution    {sentence}" for sentence in facts["not_looked_for"])
    yield from _problem_lines(facts["problems"])
    yield f"report     {facts['report']} (digest {facts['digest'][:16]}…)"


def _look_lines(facts: dict[str, Any]) -> Iterable[str]:
    """The agent to look at first, and where the others are; nothing where none stands out."""
    for first in facts["look_at"][:1]:
        yield f"look at    {one_line(first['agent'], 60)} first: {first['reason']}"
        yield f"  no accusation; {counted(len(facts['look_at']), 'lead')} in `undersong leads {facts['report']}`"


def _problem_lines(problems: dict[str, int]) -> Iterable[str]:
    """What went wrong, and apart from it the notes, which are in every ordinary export."""
    unread = [counted(problems[kind], kind) for kind in ("file", "record") if problems[kind]]
    if unread:
        yield f"not read   {', '.join(unread)}, see stderr and the report"
    if problems["judge"]:
        yield "judge      failed, see stderr and the report: what it did not read is marked"
    if problems["note"]:
        yield f"notes      {problems['note']:,} on what was left out, see stderr and the report"


def _finding_lines(facts: dict[str, Any]) -> Iterable[str]:
    findings, rules = facts["findings"], facts["rules"]
    read = sum(finding["reading"] for finding in findings)
    by_reading = f", {read:,} read in whole sequences" if facts["sequences"] else ""
    leads = sum(finding["lead"] for finding in findings)
    likely = f"{len(findings) - leads:,} likely, {counted(leads, 'lead')}; " if findings else ""
    yield f"findings   {likely}{len(findings) - read:,} by {counted(len(rules['ran']), 'rule')}{by_reading}"
    yield from (f"  {caution}" for caution in facts["cautions"])
    ranked = sorted(findings, key=lambda row: (row["lead"], -(row["confidence"] or 0), -row["strength"]))
    for finding in ranked[:SHOWN]:
        aim = f" towards {one_line(finding['target'], 30)}" if finding["target"] else ""
        span = one_line(f"{finding['first']} … {finding['last']}", 80)
        days = f", {finding['start'][:10]} to {finding['end'][:10]}" if finding["start"] and finding["end"] else ""
        who = f"{one_line(finding['agent'], 40)}{aim}, {counted(finding['messages'], 'message')}{days}, {span}"
        yield f"  {finding['pattern']} ({finding['level']}, strength {finding['strength']:.2f}{_sure(finding)}): {who}"
    if len(findings) > SHOWN:
        yield f"  … and {len(findings) - SHOWN:,} more in the report"
    yield from (f"  {words}" for words in basis_words(**facts["chance"]))
    yield from _not_run_lines(facts)


def _not_run_lines(facts: dict[str, Any]) -> Iterable[str]:
    """The rules that did not run, one line per reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for status, words in (("not_applicable", "not applicable"), ("gave_up", "gave up")):
        for name in facts["rules"][status]:
            reasons.setdefault((words, facts["rules_not_run"][name]), []).append(name)
    for (words, reason), names in reasons.items():
        yield f"  {words}: {', '.join(names)} ({one_line(reason, 160)})"


def _sure(finding: dict[str, Any]) -> str:
    """``, in 3 of 999 shuffles, q 0.04``, or ``, confidence 0.98``; nothing where it was not computed."""
    if finding["confidence"] is not None:
        return f", confidence {finding['confidence']:.2f}"
    if finding["chance"] is None:
        return ""
    strong, drawn = finding["shuffles"]
    return f", in {strong:,} of {drawn:,} shuffles, q {finding['q']:.2g}"


def _session_lines(sessions: list[dict[str, Any]]) -> Iterable[str]:
    scored = sorted((each for each in sessions if each["score"] is not None), key=lambda session: session["score"])
    for session in scored[:SHOWN]:
        risk = ', "Psychogenic Risk"' if session["psychogenic_risk"] else ""
        coverage = f"assessed {session['assessed']} of {session['mechanisms']}"
        if session["to_read"]:
            coverage += f"; {session['to_read']} to read, without points"
        if session["low_coverage"]:
            coverage += f"; low coverage: {session['read']:,} of {counted(session['messages'], 'turn')} read by a judge"
        taken = Counter(mechanism_name(mechanism) for mechanism, _, _ in session["deductions"])
        why = ", ".join(f"{name} ×{count}" for name, count in taken.items()) or _no_points(session)
        name = "score" if session["profile"] == "coding" else "sovereignty"
        yield f"{name:<10} {session['score']}/100{risk}: {why}: {_named(session)} ({coverage})"
    rest = len(scored) - SHOWN
    if rest > 0:
        yield f"  … and {counted(rest, 'more session')} with a score in the report"
    if len(scored) < len(sessions):
        without = counted(len(sessions) - len(scored), "session")
        name = "score" if {each["profile"] for each in sessions} == {"coding"} else "sovereignty"
        yield f"{name:<10} not assessed for {without}: no mechanism could be looked for"


def _no_points(session: dict[str, Any]) -> str:
    return "no points taken" if session["to_read"] else "nothing found by what was assessed"


def _named(session: dict[str, Any]) -> str:
    """The title of a session where it has one, and its id."""
    name = one_line(session["conversation"], 60)
    title = one_line(session["title"] or "", 60)
    return f"“{title}” ({name})" if title and title != name else name
