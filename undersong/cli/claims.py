"""``undersong claims``: what an agent says of its work, held against its session; as a check, or as a hook."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from undersong.cli.help import examples
from undersong.cli.open_session import open_command
from undersong.cli.options import echo, exit_code, nothing_read, show_problems
from undersong.core.sanitize import one_line, title_line
from undersong.core.text import counted, mechanism_name, turn_at, turn_number
from undersong.errors import UndersongError, UsageError

if TYPE_CHECKING:
    from undersong.models import Bypass, LedgerClaim, Problem, SessionVerdict
    from undersong.pipeline.session_check import CheckedSession

CHECK_FAILED = 1  # exit code
FALSE_PROMISE = "false_promise"  # the mechanism that holds claims against what a session shows
NO_WORK = "no tool changes or checks anything there and no code changes, so nothing said can be held against it"
NAMED = 3  # paths that a command names again
SENTENCE, LINE, TITLE = 200, 200, 60  # characters that are shown


@click.command(
    "claims",
    **examples(
        ("undersong claims ~/.claude/projects/quay/9f1c.jsonl", "one session"),
        ("undersong claims ~/.claude/projects --all", "every session, and what was backed, too"),
        ("undersong claims run.jsonl --json", "one line of JSON; exit code 1 where a claim is contradicted"),
        ("undersong claims --hook", "in the settings of Claude Code, as a Stop hook"),
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--from", "source_format", metavar="FORMAT", help="Input format; see `undersong formats`.")
@click.option("--all", "every", is_flag=True, help="Print every claim, also what is backed, hedged or never checked.")
@click.option("--hook", is_flag=True, help="Read the input of a Stop hook of Claude Code on stdin, and answer it.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def command(paths: tuple[str, ...], source_format: str | None, every: bool, hook: bool, as_json: bool) -> None:
    """Hold what agents say of their work against their sessions: no judge, no store, no report.

    Printed are the claims that something speaks against and the ways round a check, session by session. A turn is a
    message of the session, tool answers counted.

    Exit codes: 0 nothing of that kind, 1 a check or the answer of a tool contradicts a claim, a check was skipped,
    silenced or passed by and the agent does not say so, or the claims of a session could not be read (it is not in
    English, or calls failed in it and no claim was recognised), 2 wrong use, 3 a file could not be read.

    --hook looks at the last request only and prints one line of JSON: a decision to go on working with the reason, what
    the person should see, or nothing. It never stops a session twice. Where it cannot read its input or the session, it
    says so on stderr and ends with 1, which stops nothing.
    """
    if hook:
        _hook(paths, source_format)
        return
    if not paths:
        raise UsageError("no path", remedy="name a session file or a folder, or use --hook")
    sessions, problems = _sessions(paths, source_format)
    if not sessions:
        raise nothing_read(tuple(problems))
    show_problems(problems)
    if as_json:
        click.echo(json.dumps(_facts(sessions), ensure_ascii=False))
    else:
        echo(_lines(sessions, paths, every, f" --from {source_format}" if source_format else ""))
    failed = any(fails(each.verdict) for each in sessions)
    raise SystemExit(exit_code(tuple(problems)) or (CHECK_FAILED if failed else 0))


def _hook(paths: Sequence[str], source_format: str | None) -> None:
    """Answer a hook; whatever goes wrong is said on stderr with an exit code that holds nothing back."""
    from undersong.cli.stop_hook import FAILED, hook_answer, printed

    try:
        if paths:
            raise UsageError("--hook reads stdin, and takes no path", remedy="leave the path away, or --hook")
        click.echo(printed(hook_answer(sys.stdin.read(), source_format)))
    except (UndersongError, OSError, UnicodeError) as error:
        click.echo(f"undersong: {one_line(str(error), 2 * LINE)}", err=True)
        raise SystemExit(FAILED) from None


def _sessions(paths: Sequence[str], source_format: str | None) -> tuple[list[CheckedSession], list[Problem]]:
    from undersong.core.collection import rare_collection
    from undersong.pipeline.session_check import read_sessions

    with rare_collection():
        return read_sessions(paths, source_format)


def fails(verdict: SessionVerdict) -> bool:
    """What ends with 1: a contradicted claim, claims that could not be read, a check passed by without a word of it."""
    contradicted = any(claim.state == "contradicted" for claim in verdict.claims)
    return contradicted or bool(verdict.unread) or any(bypass.is_hidden for bypass in verdict.bypasses)


def _against(verdict: SessionVerdict) -> list[LedgerClaim]:
    """The claims that something or somebody speaks against, and those that a weakened check backs."""
    from undersong.models.verdict import AGAINST

    return [claim for claim in verdict.claims if claim.state in AGAINST or claim.is_weakened]


def _facts(sessions: Sequence[CheckedSession]) -> dict[str, Any]:
    from undersong.models.verdict import balance
    from undersong.report.claims_view import balance_words

    verdicts = [each.verdict for each in sessions]
    return {
        "states": balance(claim for verdict in verdicts for claim in verdict.claims),
        "words": balance_words(verdicts),
        "without_ledger": _without_ledger(verdicts),
        "unread": [
            {"conversation": verdict.conversation, "project": verdict.project, "why": verdict.unread}
            for verdict in verdicts
            if verdict.unread
        ],
        "sessions": [_session_fact(each) for each in sessions if _to_see(each.verdict)],
        "against": [_fact(claim, each) for each in sessions for claim in _against(each.verdict)],
        "bypasses": [
            {
                "conversation": each.verdict.conversation,
                "file": _file(each),
                "kind": bypass.kind,
                "turn": turn_number(bypass.position),
                "lines": bypass.lines,
            }
            for each in sessions
            for bypass in each.verdict.bypasses
        ],
    }


def _session_fact(session: CheckedSession) -> dict[str, Any]:
    return {
        "conversation": session.verdict.conversation,
        "title": session.verdict.title or "",
        "date": session.began.date().isoformat() if session.began else "",
        "file": _file(session),
        "open": _open(session),
    }


def _to_see(verdict: SessionVerdict) -> bool:
    return bool(verdict.bypasses or verdict.unread or _against(verdict))


def _file(session: CheckedSession) -> str:
    """The file of a session as a shell finds it; its name in the archive where it lies in one."""
    from undersong.formats.sources import printable_path

    return session.file if session.path is None or session.packed else printable_path(session.path)


def _open(session: CheckedSession) -> str:
    """The command that opens a session: its own program where that can, else an audit of its file."""
    own = session.path if session.path is not None and not session.packed else None
    return open_command(session.source_format, session.verdict.conversation, str(session.path or session.file), own)


def _fact(claim: LedgerClaim, session: CheckedSession) -> dict[str, Any]:
    return {
        "conversation": claim.conversation,
        "file": _file(session),
        "turn": turn_number(claim.position),
        "state": claim.state,
        "kind": claim.kind,
        "sentence": claim.sentence.text,
        "against": _evidence(claim),
        "check": claim.check,
    }


def _evidence(claim: LedgerClaim) -> str:
    """The line for or against a claim; where nothing was checked, why that is so, which no output of a check says."""
    if claim.state == "unsupported" or claim.is_weakened:
        return claim.reason
    return claim.evidence[0].text.strip() if claim.evidence and claim.evidence[0].text.strip() else claim.reason


def _lines(sessions: Sequence[CheckedSession], paths: Sequence[str], every: bool, own: str = "") -> Iterator[str]:
    """The balance, then each session that has something to see, then where the rest is."""
    from undersong.report.claims_view import balance_words

    verdicts = [each.verdict for each in sessions]
    unread = sum(bool(verdict.unread) for verdict in verdicts)
    yield balance_words(verdicts) or f"no claim of an agent about its work{' was recognised' if unread else ''}"
    if unread:
        yield f"not read: the claims of {unread:,} of {counted(len(verdicts), 'session')}; what they hide is not known"
    yield from _by_project(verdicts)
    if talks := _without_ledger(verdicts):
        yield f"no ledger is kept of {counted(talks, 'conversation')}: {NO_WORK}"
    ordered = sorted(sessions, key=lambda session: session.verdict.project)
    shown = [each for each in ordered if _to_see(each.verdict) or (every and each.verdict.claims)]
    for session in shown:
        yield ""
        yield from _session_lines(session, every)
    claims = sum(len(verdict.claims) for verdict in verdicts)
    printed = sum(len(verdict.claims if every else _against(verdict)) for verdict in verdicts)
    if claims > printed:
        yield ""
        names = shlex.join(paths) if len(paths) <= NAMED else "PATH..."
        rest = counted(claims - printed, "claim")
        yield f"Nothing speaks against {rest}: `undersong claims {names}{own} --all` lists all."


def _by_project(verdicts: Sequence[SessionVerdict]) -> Iterator[str]:
    """A line for each project, where there are several: claims, ways round a check, sessions that were not read."""
    from undersong.report.claims_view import balance_words
    from undersong.report.project_lines import project_name

    projects = sorted({verdict.project for verdict in verdicts})
    for project in projects if len(projects) > 1 else ():
        own = [verdict for verdict in verdicts if verdict.project == project]
        passed = sum(len(verdict.bypasses) for verdict in own)
        unread = sum(bool(verdict.unread) for verdict in own)
        parts = [balance_words(own) or "no claim recognised"]
        parts += [counted(passed, "way round a check", "ways round a check")] if passed else []
        parts += [f"{counted(unread, 'session')} not read"] if unread else []
        yield f"  {project_name(project)}: {', '.join(parts)}"


def _session_lines(session: CheckedSession, every: bool) -> Iterator[str]:
    """Which session it is, its claims and ways round a check by turn, and the command that opens it."""
    verdict, facts = session.verdict, _session_fact(session)
    title = f"“{title_line(facts['title'], TITLE)}”" if facts["title"] else one_line(verdict.conversation, TITLE)
    yield " · ".join(part for part in (title, facts["date"], one_line(facts["file"], LINE)) if part)
    if verdict.unread:
        yield f"  not read: {one_line(verdict.unread, 2 * LINE)}"
    claims = verdict.claims if every else _against(verdict)
    entries = [(claim.position, list(_claim_lines(claim))) for claim in claims]
    entries += [(bypass.position, [_bypass_line(bypass)]) for bypass in verdict.bypasses]
    for _, lines in sorted(entries, key=lambda entry: entry[0]):
        yield from (f"  {line}" for line in lines)
    yield f"  open it: {facts['open']}"


def _claim_lines(claim: LedgerClaim) -> Iterator[str]:
    from undersong.report.claims_view import relation_words, state_words

    yield f"{state_words(claim)}: {turn_at(claim.position)}: “{one_line(claim.sentence.text, SENTENCE)}”"
    if evidence := _evidence(claim):
        yield f"  {relation_words(claim)}: {one_line(evidence, LINE)}"


def _bypass_line(bypass: Bypass) -> str:
    lines = one_line(" | ".join(bypass.lines) or bypass.explanation, LINE)
    path = f" ({one_line(bypass.path, LINE)})" if bypass.path else ""
    return f"{mechanism_name(bypass.kind)}: {turn_at(bypass.position)}: {lines}{path}"


def _without_ledger(verdicts: Iterable[SessionVerdict]) -> int:
    """How many of these are talk: they have no claims, and nothing that claims could be held against."""
    return sum(
        not verdict.claims
        and any(each.name == FALSE_PROMISE and each.assessment == "not_applicable" for each in verdict.mechanisms)
        for verdict in verdicts
    )
