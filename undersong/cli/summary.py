"""The summary of an audit: one JSON object, or lines for a person."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from undersong.models import TIERS, Case, Finding, RuleOutcome, SessionVerdict
from undersong.visible import one_line
from undersong.wording import low_scores_words, mechanism_name, number

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
        "judge": {"name": case.parameters["judge"], "calibrated": case.parameters["calibrated"]},
        "judge_calls": case.judge_calls,
        "cost_usd": case.cost,
        "findings": [_finding(finding) for finding in case.findings],
        "cautions": list(low_scores_words(case)),
        "rules": {
            status: sorted(each.pattern for each in case.outcomes if each.status == status)
            for status in ("ran", "not_applicable", "gave_up")
        },
        "sovereignty": [_session(session) for session in case.sessions],
        "problems": {
            kind: sum(each.kind == kind for each in case.problems) for kind in ("file", "record", "note", "judge")
        },
    }


def print_summary(facts: dict[str, Any], as_json: bool) -> None:
    """Print the summary on stdout."""
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    for line in _lines(facts):
        click.echo(line)


def outcome_lines(outcomes: Iterable[RuleOutcome]) -> list[str]:
    """One line for the rules that ran, and one for each that could not."""
    ran = [each for each in outcomes if each.status == "ran"]
    lines = [f"{number(len(ran), 'rule')} ran, {number(sum(each.findings for each in ran), 'finding')}"]
    others = (each for each in outcomes if each.status != "ran")
    return lines + [f"{each.pattern}: {each.status.replace('_', ' ')}: {each.reason}" for each in others]


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "finding_id": finding.finding_id,
        "pattern": finding.pattern,
        "level": finding.level,
        "agent": finding.agent,
        "target": finding.target,
        "strength": finding.strength,
        "messages": len(finding.message_ids),
        "start": finding.start.isoformat() if finding.start else None,
        "end": finding.end.isoformat() if finding.end else None,
        "first": finding.message_ids[0],
        "last": finding.message_ids[-1],
    }


def _session(session: SessionVerdict) -> dict[str, Any]:
    return {
        "conversation": session.conversation,
        "title": session.title,
        "score": session.score,
        "psychogenic_risk": session.psychogenic_risk,
        "assessed": sum(each.assessment == "assessed" for each in session.mechanisms),
        "mechanisms": len(session.mechanisms),
        "deductions": [[each.mechanism, each.points, each.message_id] for each in session.deductions],
        "flags": list(session.flags),
        "context": list(session.context),
        "messages": session.messages,
        "read": session.read,
    }


def _lines(facts: dict[str, Any]) -> Iterable[str]:
    yield f"scanned    {number(facts['messages'], 'message')} in {number(facts['conversations'], 'conversation')}"
    yield "tiers      " + ", ".join(f"{count:,} {tier}" for tier, count in facts["tiers"].items())
    if facts["upgrades"]:
        raised = ", ".join(f"{one_line(agent, 40)} {count}" for agent, count in list(facts["upgrades"].items())[:SHOWN])
        yield f"upgraded   {sum(facts['upgrades'].values()):,} messages by thread signals: {raised}"
    states = ", ".join(f"{count:,} {state}" for state, count in facts["states"].items()) or "nothing"
    calibrated = "" if facts["judge"]["calibrated"] else ", uncalibrated"
    price = f"{number(facts['judge_calls'], 'answer')}, ${facts['cost_usd']:.2f}"
    yield f"evaluated  {states} (judge {facts['judge']['name']}{calibrated}; {price})"
    yield from _finding_lines(facts)
    yield from _session_lines(facts["sovereignty"])
    unreadable = {kind: count for kind, count in facts["problems"].items() if count}
    if unreadable:
        yield "not read   " + ", ".join(number(count, f"{kind} problem") for kind, count in unreadable.items())
    yield f"report     {facts['report']} (digest {facts['digest'][:16]}…)"


def _finding_lines(facts: dict[str, Any]) -> Iterable[str]:
    findings, rules = facts["findings"], facts["rules"]
    yield f"findings   {len(findings):,} by {number(len(rules['ran']), 'rule')}"
    yield from (f"  {caution}" for caution in facts["cautions"])
    for each in sorted(findings, key=lambda each: -each["strength"])[:SHOWN]:
        aim = f" towards {one_line(each['target'], 30)}" if each["target"] else ""
        span = one_line(f"{each['first']} … {each['last']}", 80)
        days = f", {each['start'][:10]} to {each['end'][:10]}" if each["start"] and each["end"] else ""
        who = f"{one_line(each['agent'], 40)}{aim}, {number(each['messages'], 'message')}{days}, {span}"
        yield f"  {each['pattern']} ({each['level']}, strength {each['strength']:.2f}): {who}"
    if len(findings) > SHOWN:
        yield f"  … and {len(findings) - SHOWN:,} more in the report"
    if rules["not_applicable"]:
        yield f"  not applicable with this judge: {', '.join(rules['not_applicable'])}"
    if rules["gave_up"]:
        yield f"  gave up: {', '.join(rules['gave_up'])}"


def _session_lines(sessions: list[dict[str, Any]]) -> Iterable[str]:
    scored = sorted((each for each in sessions if each["score"] is not None), key=lambda each: each["score"])
    for each in scored[:SHOWN]:
        risk = ', "Psychogenic Risk"' if each["psychogenic_risk"] else ""
        coverage = f"assessed {each['assessed']} of {each['mechanisms']}"
        taken = Counter(mechanism_name(mechanism) for mechanism, _, _ in each["deductions"])
        why = ", ".join(f"{name} ×{count}" for name, count in taken.items()) or "nothing found by what was assessed"
        yield f"sovereignty {each['score']}/100{risk}: {why}: {_named(each)} ({coverage})"
    rest = len(scored) - SHOWN
    if rest > 0:
        yield f"  … and {rest:,} more with a score in the report"
    if len(scored) < len(sessions):
        without = number(len(sessions) - len(scored), "session")
        yield f"sovereignty not assessed for {without}: no mechanism could be looked for"


def _named(session: dict[str, Any]) -> str:
    """The title of a session where it has one, and its id."""
    name = one_line(session["conversation"], 60)
    title = one_line(session["title"] or "", 60)
    return f"“{title}” ({name})" if title and title != name else name
