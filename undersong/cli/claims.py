"""``undersong claims``: what an agent says of its work, held against its session; as a check, or as a hook."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from undersong.cli.help import examples
from undersong.cli.options import echo, exit_code, nothing_read, show_problems
from undersong.core.sanitize import one_line
from undersong.core.text import counted, turn_at, turn_number
from undersong.errors import UsageError

if TYPE_CHECKING:
    from undersong.models import LedgerClaim, Problem, SessionVerdict

CONTRADICTED = 1  # exit code
FALSE_PROMISE = "false_promise"  # the mechanism that holds claims against what a session shows
NO_WORK = "no tool changes or checks anything there and no code changes, so nothing said can be held against it"
SENTENCE, LINE = 200, 200  # characters that are shown


@click.command(
    "claims",
    **examples(
        ("undersong claims ~/.claude/projects/quay/9f1c.jsonl", "one session"),
        ("undersong claims run.jsonl --json", "one line of JSON; exit code 1 where a claim is contradicted"),
        ("undersong claims --hook", "in the settings of Claude Code, as a Stop hook"),
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--from", "source_format", metavar="FORMAT", help="Input format; see `undersong formats`.")
@click.option("--hook", is_flag=True, help="Read the input of a Stop hook of Claude Code on stdin, and answer it.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def command(paths: tuple[str, ...], source_format: str | None, hook: bool, as_json: bool) -> None:
    """Hold what agents say of their work against their sessions: no judge, no store, no report.

    Exit code 1 where a check or the answer of a tool contradicts a claim. --hook looks at the last request only and
    prints one line of JSON: a decision to go on working with the reason, or nothing to say. It never stops a session
    twice, and where it cannot read the session it says so and stops nothing.
    """
    if hook:
        click.echo(json.dumps(_answer(_hook_input(sys.stdin.read())), ensure_ascii=False))
        return
    if not paths:
        raise UsageError("no path", remedy="name a session file or a folder, or use --hook")
    verdicts, problems = _verdicts(paths, source_format)
    if not verdicts:
        raise nothing_read(tuple(problems))
    show_problems(problems)
    against = [claim for verdict in verdicts for claim in verdict.claims if claim.state in _against()]
    if as_json:
        click.echo(json.dumps(_facts(verdicts, against), ensure_ascii=False))
    else:
        echo(_lines(verdicts, against))
    contradicted = any(claim.state == "contradicted" for claim in against)
    raise SystemExit(exit_code(tuple(problems)) or (CONTRADICTED if contradicted else 0))


def _verdicts(paths: Sequence[str], source_format: str | None) -> tuple[list[SessionVerdict], list[Problem]]:
    from undersong.core.collection import rare_collection
    from undersong.pipeline.session_check import checked_sessions

    with rare_collection():
        return checked_sessions(paths, source_format)


def _against() -> Sequence[str]:
    from undersong.models.verdict import AGAINST

    return tuple(AGAINST)


def _facts(verdicts: Sequence[SessionVerdict], against: Iterable[LedgerClaim]) -> dict[str, Any]:
    from undersong.models.verdict import balance
    from undersong.report.claims_view import balance_words

    return {
        "states": balance(claim for verdict in verdicts for claim in verdict.claims),
        "words": balance_words(verdicts),
        "without_ledger": _without_ledger(verdicts),
        "against": [_fact(claim) for claim in against],
        "bypasses": [
            {
                "conversation": verdict.conversation,
                "kind": bypass.kind,
                "turn": turn_number(bypass.position),
                "lines": bypass.lines,
            }
            for verdict in verdicts
            for bypass in verdict.bypasses
        ],
    }


def _fact(claim: LedgerClaim) -> dict[str, Any]:
    return {
        "conversation": claim.conversation,
        "turn": turn_number(claim.position),
        "state": claim.state,
        "kind": claim.kind,
        "sentence": claim.sentence.text,
        "against": _evidence(claim),
        "check": claim.check,
    }


def _evidence(claim: LedgerClaim) -> str:
    return claim.evidence[0].text.strip() if claim.evidence and claim.evidence[0].text.strip() else claim.reason


def _lines(verdicts: Sequence[SessionVerdict], against: Iterable[LedgerClaim]) -> Iterator[str]:
    from undersong.report.claims_view import balance_words

    yield balance_words(verdicts) or "no claim of an agent about its work"
    if talks := _without_ledger(verdicts):
        yield f"no ledger is kept of {counted(talks, 'conversation')}: {NO_WORK}"
    for claim in against:
        yield f"{claim.state}: {turn_at(claim.position)}: “{one_line(claim.sentence.text, SENTENCE)}”"
        yield f"  against it: {one_line(_evidence(claim), LINE)}"
    for bypass in (bypass for verdict in verdicts for bypass in verdict.bypasses):
        lines = one_line(" | ".join(bypass.lines), LINE)
        yield f"{bypass.kind.replace('_', ' ')}: {turn_at(bypass.position)}: {lines}"


def _without_ledger(verdicts: Iterable[SessionVerdict]) -> int:
    """How many of these are talk: they have no claims, and nothing that claims could be held against."""
    return sum(
        not verdict.claims
        and any(each.name == FALSE_PROMISE and each.assessment == "not_applicable" for each in verdict.mechanisms)
        for verdict in verdicts
    )


def _hook_input(text: str) -> dict[str, Any]:
    """What Claude Code hands to a hook; raises UsageError for anything else."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(
            "stdin holds no input of a hook", remedy="use --hook in the settings of Claude Code"
        ) from error
    if not isinstance(value, dict) or not isinstance(value.get("transcript_path"), str):
        raise UsageError("the input of the hook has no 'transcript_path'", remedy="use it as a Stop hook")
    return value


def _answer(given_input: dict[str, Any]) -> dict[str, Any]:
    """The answer to a hook: to go on where a claim of the last request is contradicted, else nothing."""
    if given_input.get("stop_hook_active"):
        return {}
    path = str(Path(given_input["transcript_path"]).expanduser())
    verdicts, problems = _verdicts((path,), None)
    if not verdicts:
        what = one_line(problems[0].what, LINE) if problems else "no message in it"
        return {"systemMessage": f"undersong could not read the session: {what}"}
    last = max(verdicts, key=lambda verdict: verdict.messages)
    return _decision([claim for claim in last.claims if claim.state == "contradicted" and _is_last(claim, last)])


def _is_last(claim: LedgerClaim, verdict: SessionVerdict) -> bool:
    """Whether a claim stands in the agent's last message that claims anything."""
    return claim.position == max(each.position for each in verdict.claims)


def _decision(contradicted: Sequence[LedgerClaim]) -> dict[str, Any]:
    if not contradicted:
        return {}
    pairs = ((one_line(claim.sentence.text, SENTENCE), one_line(_evidence(claim), LINE)) for claim in contradicted)
    named = "; ".join(f"you wrote “{words}”, and your own check says “{shown}”" for words, shown in pairs)
    return {"decision": "block", "reason": f"Held against this session: {named}. Mend it, or say what fails."}
