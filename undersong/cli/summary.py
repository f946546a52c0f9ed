"""The summary of an audit: one JSON object, or lines for a person."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click
import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import TIERS, Case, Finding, RuleOutcome, SessionVerdict, by_pattern
from undersong.models.finding import looked_for
from undersong.models.verdict import AGAINST, balance
from undersong.patterns.leads import shown_leads
from undersong.report.alignment_words import violation_words
from undersong.report.claims_view import coding_sessions, work_words
from undersong.report.coverage import coverage_of
from undersong.report.escape import first_upper
from undersong.report.gated_leads import leads_not_shown
from undersong.report.input_lines import input_lines, listed
from undersong.report.narrative import (
    LOW_COVERAGE,
    address_words,
    agreement_words,
    annotation_words,
    flagged_words,
    guns_words,
    kind_words,
    low_scores_words,
    missed_words,
    to_read_words,
    unassessed_words,
)
from undersong.report.near_shapes import near_shapes
from undersong.report.opening import every_point, more_words, points_of
from undersong.report.opening_choice import Point, places_with_findings
from undersong.report.opening_sentences import sentences
from undersong.report.opening_title import look_title, next_step
from undersong.report.project_lines import project_lines
from undersong.report.sequence_words import sequence_words
from undersong.report.sureness import assumed_words
from undersong.report.work_view import duration_words, work_view


def summary(
    case: Case,
    folder: Path,
    digest: str,
    *,
    paths: Sequence[str] = (),
    more: str = "",
    explain: str = "",
    replayed: bool = False,
) -> dict[str, Any]:
    """The facts of a run as JSON values; ``explain`` is the command that explains an id, "" where nothing is kept.

    ``more`` are options that a command that runs it again keeps, with a space before. ``replayed``: a file gave the
    answers of the judge, and nobody was asked.
    """
    points, every, near = points_of(case), every_point(case), near_shapes(case)
    files = input_lines(case, every)
    return {
        "next_step": next_step(case),
        "look_title": look_title(case, points, places_with_findings(every)),
        "look": [_point(case, explain, point) for point in points],
        "let_go": [each.sentence for each in near if each.outcome == "let_go"],
        "failed_readings": [each.sentence for each in near if each.outcome == "failed"],
        "more": more_words(case, points, every),
        "more_leads": len(leads_not_shown(case, {point.lead_id for point in points})),
        "coverage": msgspec.to_builtins(coverage_of(case, paths, more)),
        "files": msgspec.to_builtins(files),
        "files_words": list(listed(files)),
        "projects": list(project_lines(case, every)),
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
        "judge": {"name": case.parameters["judge"], "calibrated": case.parameters["calibrated"], "replayed": replayed},
        "prevalence": assumed_words(case.parameters),
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
        "look_at": [
            {"id": lead.id, "rank": lead.rank, "kind": lead.kind, "agent": lead.agent, "reason": lead.reason}
            for lead in shown_leads(case.leads)
        ],
        "cautions": list(low_scores_words(case)),
        "smoking_guns": list(guns_words(case)),
        "noted": list(annotation_words(case)),
        "flagged": list(flagged_words(case)),
        "not_looked_for": list(unassessed_words(case)),
        "sequences": list(sequence_words(case)),
        "sequence_states": dict(Counter(each.state for each in case.sequences)),
        "sequence_outcomes": dict(Counter(each.outcome or each.state for each in case.sequences)),
        "chance": {name: case.parameters.get(f"chance_{name}", 0) for name in ("draws", "family", "tested")},
        "rules": {
            status: sorted(each.pattern for each in by_pattern(case.outcomes) if each.status == status)
            for status in ("ran", "not_applicable", "gave_up")
        },
        "rules_not_run": {each.pattern: each.reason for each in by_pattern(case.outcomes) if each.status != "ran"},
        "claims": _claims(case),
        "work": _work(case),
        "sessions": [_session(session) for session in case.sessions],
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
    asked, patterns = looked_for(all_outcomes)
    rules = f"{counted(len(ran), 'rule')} ran, {counted(sum(each.findings for each in ran), 'finding')}"
    lines = [f"{rules}; looked for {asked} of {counted(patterns, 'pattern')}" if all_outcomes else rules]
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
    claims = [claim for session in coding_sessions(case) for claim in session.claims]
    return {
        "states": balance(claims),
        "words": work_words(case),
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
        "shares": [
            {
                "by": row.by,
                "name": row.name,
                "claims": row.claims,
                "backed": row.backed,
                "unchecked": row.unchecked,
                "against": row.against,
                "words": f"backed {row.backed_words}, spoken against {row.against_words}",
            }
            for row in work.shares
        ],
        "subagents": [
            {
                "project": item.project,
                "conversation": item.claim.conversation,
                "sentence": item.claim.sentence.text,
                "against": item.against,
            }
            for item in work.subagents
        ],
        "bypasses": [{"project": project} | msgspec.to_builtins(item) for project, item in work.bypasses],
        "repeated": [
            {"project": project, "words": duration_words(row)} | msgspec.to_builtins(row)
            for project, row in work.failures
        ],
    }


def _session(session: SessionVerdict) -> dict[str, Any]:
    risk = {} if session.profile == "coding" else {"psychogenic_risk": session.psychogenic_risk}
    return risk | {
        "conversation": session.conversation,
        "title": session.title,
        "score": session.score,
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


def _point(case: Case, explain: str, point: Point) -> dict[str, Any]:
    command = explain_command(case, explain, point.id, point.conversation)
    return {**msgspec.to_builtins(point), "open": command}


def explain_command(case: Case, explain: str, name: str, conversation: str) -> str:
    """The command that explains an id; it names the conversation where others have a message of the same id."""
    if not explain or not name:
        return ""
    homes = {message.conversation for message in case.cited if message.id == name}
    where = f" --in {shlex.quote(conversation)}" if len(homes) > 1 and conversation else ""
    return f"{explain} {shlex.quote(name)}{where}"


def _lines(facts: dict[str, Any]) -> Iterable[str]:
    """What to look at, what was not looked at, where the report is; facts about the run come last."""
    yield from _look_lines(facts)
    yield ""
    for sentence in (*facts["failed_readings"], *facts["let_go"]):
        yield from _wrapped(sentence)
        yield ""
    yield from _wrapped(facts["coverage"]["looked"])
    yield from _wrapped(facts["coverage"]["missing"])
    if facts["coverage"]["command"]:
        yield from _command_lines(facts["coverage"]["command"].replace("undersong", program(), 1), "  ")
        yield from _here_lines(facts["coverage"]["command"])
        yield from _wrapped(facts["coverage"]["here"])
        yield from _command_lines(facts["coverage"]["here_command"].replace("undersong", program(), 1), "  ")
    listed_words = facts["projects"] or facts["files_words"]
    if listed_words:
        yield ""
        yield "By project:" if facts["projects"] else "Files:"
        for words in listed_words:
            yield from _wrapped(f"  {words}", indent="    ")
    yield ""
    yield from _run_lines(facts)
    if facts["work"]:
        yield f"claims     {facts['report']}{os.sep}work.md"
    yield f"report     {facts['report']}{os.sep}report.html (digest {facts['digest'][:16]}…)"


def _look_lines(facts: dict[str, Any]) -> Iterable[str]:
    points, more = facts["look"], facts["more"]
    if not points and facts["problems"]["judge"]:
        yield click.style("The judge failed, so nothing can be said of what it did not read.", bold=True)
        return
    if facts["next_step"]:
        yield from (click.style(line, bold=True) for line in _wrapped(f"{facts['look_title']}."))
        yield from _wrapped(f"{facts['next_step'].replace('`undersong', f'`{program()}')}.")
    elif not points:
        yield (click.style(f"{facts['look_title']}.", bold=True) + " That is no all-clear: see what was looked at.")
        return
    else:
        yield click.style(f"{facts['look_title']}:", bold=True)
    for number, point in enumerate(points, 1):
        yield ""
        first, *rest = _wrapped(f"{number}. {point['sentence']}", indent="   ")
        yield click.style(first, fg=_COLOURS.get(point["kind"]))
        yield from (click.style(line, fg=_COLOURS.get(point["kind"])) for line in rest)
        for line in point["lines"] or ([point] if point["quote"] and not point["kinds"] else []):
            yield from _wrapped(f"   {quoted_line(line)}", indent="   ")
        yield from _kind_lines(point)
        state = first_upper(sentences().states[point["state"]])
        yield from _wrapped(f"   {state}. {first_upper(point['sure'])}.", indent="   ")
        for words in point["decided"]:
            yield from _wrapped(f"   Decided: {one_line(words, 300)}", indent="   ")
        if point["open"]:
            command = point["open"].replace("undersong", program(), 1)
            yield from (click.style(line, dim=True) for line in _command_lines(command, "   "))
    if more:
        yield ""
        yield f"   … and {more} in the report{' and its work.md' if facts['work'] else ''}."
    if facts["more_leads"]:
        yield ""
        yield f"   … and {counted(facts['more_leads'], 'more lead')} above the cut:"
        yield from _command_lines(f"{program()} leads {shlex.quote(facts['report'])}", "   ")


def _kind_lines(point: dict[str, Any]) -> Iterable[str]:
    """What is in the messages of a lead, kind by kind."""
    if point["kinds"]:
        yield from _wrapped(f"   {point['kinds_head']}", indent="   ")
    for kind in point["kinds"]:
        yield from _wrapped(f"   - {first_upper(kind['does'])}: {kind['when']}", indent="     ")
        for line in kind["lines"]:
            yield from _wrapped(f"     {quoted_line(line)}", indent="     ")
        shown = {line["message_id"] for line in kind["lines"]}
        if more := sum(line["message_id"] not in shown for line in kind["every"]):
            yield from _wrapped(f"     … and {more} more, by date, in the report", indent="     ")


def quoted_line(line: dict[str, Any]) -> str:
    """``“Turn it back on.” – Dario, 2025-04-03 22:14: asks where somebody is``."""
    who = ", ".join(filter(None, (line["speaker"], line["when"])))
    return f"“{line['quote']}” – {who}{': ' + line['why'] if line.get('why') else ''}"


def _here_lines(command: str) -> Iterable[str]:
    """The same command with another judge that is ready on this machine."""
    from undersong.judges.llm.at_hand import for_this_machine

    here = for_this_machine(command)
    if here is not None:
        yield "  or, with what is ready here:"
        yield from _command_lines(here.replace("undersong", program(), 1), "  ")


def _command_lines(command: str, indent: str) -> Iterable[str]:
    """A command in lines that a shell joins again; a word that is wider than all is not cut."""
    if os.name == "nt" or len(command) + len(indent) <= COMMAND:
        yield f"{indent}{command}"
        return
    lines, line = [], ""
    for word in map(shlex.quote, shlex.split(command)):
        if line and len(line) + len(word) + len(indent) > WIDEST - 4:
            lines.append(line)
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    yield from (f"{indent}{one} \\" for one in lines)
    yield f"{indent}{line}"


def program() -> str:
    """What a shell takes for this program: its name where it is on the path, else where it lies."""
    if shutil.which("undersong"):
        return "undersong"
    script = Path(sys.executable).with_name("undersong")
    if not script.is_file():
        return f"{shlex.quote(sys.executable)} -m undersong"
    inside = script.is_relative_to(Path.cwd())
    return shlex.quote(str(script.relative_to(Path.cwd()) if inside else script))


def lost_words(records: int, report: str) -> str:
    """How many records of files that were read are lost, which the exit code does not say, and where they are."""
    listed = f"listed in {report}{os.sep}case.json; --fail-on-unread fails then"
    return f"{counted(records, 'record')} of files that were otherwise read: {listed}"


_COLOURS = {
    "violation": "red",
    "finding": "red",
    "claim": "red",
    "bypass": "yellow",
    "failure": None,
    "moment": "yellow",
    "lead": None,
}
WIDEST = 100  # characters of a line; a narrower terminal has its own width
COMMAND = 120  # characters of a command that stays on one line


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of a sentence within the width of the terminal; in a file or pipe always of the same width."""
    width = min(WIDEST, shutil.get_terminal_size((WIDEST, 0)).columns) if sys.stdout.isatty() else WIDEST
    lead = text[: len(text) - len(text.lstrip(" "))]
    return textwrap.wrap(
        text.strip(), max(width, 40), initial_indent=lead, subsequent_indent=indent, break_on_hyphens=False
    )


def _run_lines(facts: dict[str, Any]) -> Iterable[str]:
    """What share of speakers is assumed to do harm, who read it and what that cost, and what went wrong."""
    if facts["prevalence"]:
        yield f"prevalence {facts['prevalence']}"
    read, cost = facts["states"].get("scored", 0), facts["cost_usd"]
    if facts["judge"]["replayed"]:
        yield f"judge      {facts['judge']['name']}: kept readings, no model was asked"
        yield from _problem_lines(facts["problems"], facts["report"])
        return
    calibrated = "" if facts["judge"]["calibrated"] else ", uncalibrated"
    price = "price not known" if cost is None else f"${cost:.2f}"
    messages = counted(facts["messages"], "message")
    what = f"{read:,} of {messages} read" if read or not facts["sequences"] else "whole sequences read"
    yield f"judge      {facts['judge']['name']}{calibrated}: {what}, {price}"
    about_judge = (*facts["agreement_words"], *facts["addresses"], *facts["old_prices"])
    yield from (f"judge      {sentence}" for sentence in about_judge)
    others = (f"{one_line(name, 60)} ×{count:,}" for name, count in facts["answered_by"].items())
    yield from (f"  answered by another model than was asked for: {other}" for other in others)
    if any(state != "scored" for state in facts["sequence_states"]):
        yield from (f"sequences  {sentence}" for sentence in facts["sequences"])
    yield from _problem_lines(facts["problems"], facts["report"])


def _problem_lines(problems: dict[str, int], report: str) -> Iterable[str]:
    """What went wrong, and apart from it the notes, which are in every ordinary export."""
    if problems["file"]:
        yield f"not read   {counted(problems['file'], 'file')}, see stderr and the report"
    if problems["record"]:
        yield f"not read   {lost_words(problems['record'], report)}"
    if problems["judge"]:
        yield "judge      failed, see stderr and the report: what it did not read is marked"
    if problems["note"]:
        yield f"notes      {problems['note']:,} on what was left out, see stderr and the report"
