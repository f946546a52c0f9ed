"""The answer to a Stop hook of Claude Code: to go on where the session speaks against what was just said, else nothing.

What such a hook means: exit code 0 and a JSON object on stdout is an answer, of which ``decision: block`` makes the
agent go on with the ``reason`` and ``systemMessage`` is shown to the person; exit code 2 would block, too; any other
exit code blocks nothing, and stderr is shown to the person.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import mechanism_name
from undersong.errors import InputError, UsageError

if TYPE_CHECKING:
    from undersong.models import Bypass, LedgerClaim
    from undersong.pipeline.session_check import CheckedSession

SENTENCE, LINE = 200, 200  # characters that are shown
FAILED = 1  # exit code where the hook cannot answer: it must not be 2, which would hold the agent
SETTINGS = "use --hook in the settings of Claude Code, as a Stop or SubagentStop hook"


class HookInput(msgspec.Struct, frozen=True):
    """What Claude Code hands to a hook on stdin, as far as it is used."""

    transcript_path: str
    session_id: str = ""
    stop_hook_active: bool = False
    last_assistant_message: str | None = None
    agent_transcript_path: str | None = None  # of a subagent that stops

    @property
    def path(self) -> Path:
        """The file of the session that ends."""
        return Path(self.agent_transcript_path or self.transcript_path).expanduser()


def hook_answer(text: str, source_format: str | None = None) -> dict[str, Any]:
    """The answer to the input of a hook; raises UsageError for what is none, InputError for an unreadable session."""
    hook = _input(text)
    if hook.stop_hook_active:  # the agent already goes on because of a hook: it is held once
        return {}
    return answer_for(_session(hook, source_format))


def _input(text: str) -> HookInput:
    try:
        return msgspec.json.decode(text, type=HookInput)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UsageError(f"stdin holds no input of a hook: {error}", remedy=SETTINGS) from error


def _session(hook: HookInput, source_format: str | None) -> CheckedSession:
    from undersong.core.collection import rare_collection
    from undersong.pipeline.session_check import ending_session

    path = hook.path
    if not path.is_file():
        what = "is a folder, not the file of a session" if path.is_dir() else "there is no such file"
        raise InputError(f"the session could not be checked: {what}", where=str(path), remedy=SETTINGS)
    name = "" if hook.agent_transcript_path else hook.session_id
    with rare_collection():
        session, problems = ending_session(path, name, hook.last_assistant_message or "", source_format)
    if session is None:
        what = one_line(problems[0].what, LINE) if problems else "no message in it"
        raise InputError(f"the session could not be checked: {what}", where=str(path), remedy=SETTINGS)
    return session


def answer_for(session: CheckedSession) -> dict[str, Any]:
    """Go on where the last claims are contradicted or a check was passed by without a word; what the person sees."""
    verdict, asked = session.verdict, session.asked
    last = max((claim.position for claim in verdict.claims if claim.position > asked), default=-1)
    contradicted = [each for each in verdict.claims if each.state == "contradicted" and each.position == last]
    bypasses = [each for each in verdict.bypasses if each.position > asked]
    parts = [*map(_contradiction, contradicted), *map(_hidden, session.untold)]
    answer: dict[str, Any] = {}
    if parts:
        reason = f"Held against this session: {'; '.join(parts)}. Mend it, or say what fails and what was passed by."
        answer = {"decision": "block", "reason": reason}
    if seen := list(_for_the_person(bypasses)):
        answer["systemMessage"] = f"undersong: {'; '.join(seen)}"
    return answer


def _contradiction(claim: LedgerClaim) -> str:
    evidence = claim.evidence[0].text.strip() if claim.evidence else ""
    shown = one_line(evidence or claim.reason, LINE)
    wrote = f"you wrote “{one_line(claim.sentence.text, SENTENCE)}”"
    if not evidence or not claim.check:
        return f"{wrote}, and the session speaks against it: {shown.rstrip('.')}"
    return f"{wrote}, and your own check says “{shown}”"


def _hidden(bypass: Bypass) -> str:
    lines = one_line(" | ".join(bypass.lines), LINE)
    return f"you went round a check and did not say so ({mechanism_name(bypass.kind)}): “{lines}”"


def _for_the_person(bypasses: list[Bypass]) -> Iterator[str]:
    """Each way round a check in a line: the agent may have told of it, and the person should see it either way."""
    for bypass in bypasses:
        yield f"{mechanism_name(bypass.kind)}: {one_line(' | '.join(bypass.lines) or bypass.explanation, LINE)}"


def printed(answer: dict[str, Any]) -> str:
    """The answer as the one line that Claude Code reads."""
    return json.dumps(answer, ensure_ascii=False)
