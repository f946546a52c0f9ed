"""Checks that were narrowed after they failed: files, rules or tests that a configuration leaves out from then on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from undersong.datafiles.verdict_config import bypass_config, pattern
from undersong.verdict.any_of import any_of
from undersong.verdict.check_claims import CheckEvent, CheckHistory
from undersong.verdict.edits import FileEdit, edits_by_command, edits_of
from undersong.verdict.shell import CheckKind, check_kind, command_of, commands
from undersong.verdict.transcript import ASKS, Transcript, TranscriptTurn

BACK = 3  # requests back in which the check may have failed
_LIST = re.compile(
    r"(?P<key>[\w-]+)['\"]?[ \t]*[:=][ \t]*(?:\[(?P<listed>[^\]]*)\]|"
    r"\n(?P<below>(?:[ \t]*-[^\n]*\n?|[ \t]+[\w.*/ ,-]+\n?)+)|['\"]?(?P<bare>[^\n{\[]*))"
)
_ITEM = re.compile(r"[\w./*@-]*\w[\w./*@-]*")
_RULE = re.compile(r"['\"]?(?P<rule>@?[\w-]+(?:/[\w-]+)*)['\"]?[ ]*:[ ]*\[?[ ]*['\"]?(?P<level>off|warn|error|[012])\b")
_SCRIPT = re.compile(r"['\"](?P<name>[\w:-]+)['\"][ ]*:[ ]*['\"](?P<command>[^\n]*)['\"]")
_LEVELS = {"off": 0, "warn": 1, "error": 2, "0": 0, "1": 1, "2": 2}


class Narrowing(NamedTuple):
    """An edit of a configuration behind a failing check, with its lines: which kinds of check look at less since."""

    turn: TranscriptTurn
    kinds: frozenset[CheckKind]
    lines: tuple[str, ...]
    path: str


def narrowings(transcript: Transcript, history: CheckHistory) -> Iterator[Narrowing]:
    """What narrows a check that failed last, in order; what is left out stands in the output of the failure.

    What a person asked for in the last messages before is none.
    """
    configs, words = pattern((bypass_config().narrowable,)), any_of("narrowed", bypass_config().asked["narrowed"])
    asked = list[bool]()
    for turn in transcript.turns:
        asked += [words.search(turn.prose) is not None] if turn.message.role in ASKS else []
        for call in turn.message.tool_calls if turn.is_agent and not any(asked[-BACK:]) else ():
            if call.id and call.id in transcript.failed_calls:
                continue
            for edit in (*edits_of(call), *edits_by_command(command_of(call))):
                failed = _failing(turn, history, edit.path) if configs.search(edit.path) else []
                for event in failed:
                    if lines := _narrowing_lines(edit, event):
                        yield Narrowing(turn, event.kinds, tuple(lines), edit.path)
                        break


def is_narrowed(turn: TranscriptTurn, kinds: Collection[CheckKind], earlier: Iterable[Narrowing]) -> bool:
    """Whether a check of some kinds was narrowed on the request of a turn, which has no word of it."""
    own = any(
        item.turn.run == turn.run and item.turn.place < turn.place and item.kinds & set(kinds) for item in earlier
    )
    return own and not pattern((bypass_config().asked["narrowed"],)).search(turn.prose)


def _failing(turn: TranscriptTurn, history: CheckHistory, path: str) -> list[CheckEvent]:
    """The checks that failed on the last requests before a turn, and of whose kinds none passed since.

    Of what is configured for a server for builds, what it says counts, too.
    """
    failing = list[CheckEvent]()
    for event in history.before(turn.place, remote=_is_workflow(path)):
        if event.outcome is None:
            continue
        if event.state(event.kinds) == "failed" and event.outcome.turn.run >= turn.run - BACK:
            failing.append(event)
        elif event.state(event.kinds) == "passed":
            failing = [earlier for earlier in failing if not earlier.kinds & event.kinds]
    return failing[::-1]


def _narrowing_lines(edit: FileEdit, failed: CheckEvent) -> list[str]:
    """The lines of an edit that make a check look at less of what it complained of; [] where there are none."""
    output = failed.outcome.outcome.text if failed.outcome else ""
    loosened = _is_loosened(edit) and bool(failed.kinds & {"types", "lint", "build"})
    left_out = _left_out(edit, output) or _left_out_by_file(edit, output) or _not_looked_for(edit, output)
    stepped_over = _is_workflow(edit.path) and _loses_its_step(edit, failed)
    if loosened or left_out or stepped_over or _switched_off(edit, output) or _loses_its_check(edit, failed):
        return edit.removed + edit.added if edit.old is not None else edit.added[:2]
    return []


def _is_loosened(edit: FileEdit) -> bool:
    """Whether a setting that makes a checker strict is switched off, in text that was there."""
    strict = pattern((bypass_config().strict,))
    off = {match["setting"] or match["loose"] for match in strict.finditer(edit.new)}
    return edit.old is not None and bool(
        off - {match["setting"] or match["loose"] for match in strict.finditer(edit.old)}
    )


def _left_out(edit: FileEdit, output: str) -> bool:
    """Whether a list of what is left out has a new entry that an output names, and that nobody wrote by a tool."""
    config, before = bypass_config(), set(_entries(edit.old or ""))
    made, entries = pattern((config.generated,)), [*_entries(edit.new)]
    if edit.path.endswith("ignore"):
        entries += [item for line in edit.added for item in _ITEM.findall(line)]
    parts = (_last(item) for item in entries if item not in before and not made.search(item))
    return any(re.search(rf"(?<![\w-]){re.escape(part)}(?![\w-])", output) for part in parts if len(part) > 1)


def _is_workflow(path: str) -> bool:
    """Whether a file configures a server for builds or hooks of commits."""
    return pattern((bypass_config().workflows,)).search(path) is not None


def _left_out_by_file(edit: FileEdit, output: str) -> bool:
    """Whether a rule that an output names is left out for files that it names, from then on."""
    before = set(_by_file(edit.old or ""))
    return any(rule in output and (not part or part in output) for rule, part in set(_by_file(edit.new)) - before)


def _by_file(text: str) -> Iterator[tuple[str, str]]:
    """Each rule that a text leaves out for a file, with the last part of its path."""
    for match in pattern((bypass_config().per_file,)).finditer(text):
        path = match["path"] or match["ini"]
        for rule in re.findall(r"[A-Za-z]+\d*", match["rules"] or match["codes"] or ""):
            yield rule, _last(path)


def _not_looked_for(edit: FileEdit, output: str) -> bool:
    """Whether an entry is gone from a list of what a checker looks for, and an output has such a complaint."""
    gone = set(_entries(edit.old or "", bypass_config().looked_for)) if edit.old else set()
    gone -= set(_entries(edit.new, bypass_config().looked_for))
    return any(re.search(rf"(?<![\w-]){re.escape(entry)}(?:\d+)?(?![\w-])", output) for entry in gone)


def _loses_its_step(edit: FileEdit, failed: CheckEvent) -> bool:
    """Whether a server for builds no longer runs a check that failed, or goes on whatever it says."""
    off = pattern((bypass_config().step_off,))
    if len(off.findall(edit.new)) > len(off.findall(edit.old or "")):
        return edit.old is not None
    gone, stays = ({kind for line in lines for kind in _kinds(_command_in(line))}
                   for lines in (edit.removed, edit.new.splitlines()))  # fmt: skip
    return edit.old is not None and bool((gone - stays) & failed.kinds)


def _command_in(line: str) -> str:
    """The command of a step: "- run: pytest" without its key."""
    return re.sub(r"^[ \t]*-?[ ]*(?:(?:run|script|command|entry|id):)?[ ]*['\"|]?", "", line).strip("'\" ")


def _entries(text: str, names: str = "") -> Iterator[str]:
    """The entries of the lists in a text that say what is left out, or of those of other names."""
    keys = pattern((names or bypass_config().leaving_lists,))
    for match in _LIST.finditer(text):
        if keys.fullmatch(match["key"]):
            yield from _ITEM.findall(match["listed"] or match["bare"] or match["below"] or "")
    for line in text.splitlines() if not names else ():
        if pattern((bypass_config().leaving_lines,)).search(line):
            yield from _ITEM.findall(line)


def _last(item: str) -> str:
    """The last part of a path that is no wild card."""
    parts = [part.strip("*.") if "*" in part else part for part in item.split("/")]
    return next((part for part in reversed(parts) if part), "")


def _switched_off(edit: FileEdit, output: str) -> bool:
    """Whether a rule that an output names is switched off or only warns from then on."""
    before = {match["rule"]: _LEVELS[match["level"]] for match in _RULE.finditer(edit.old or "")}
    now = {match["rule"]: _LEVELS[match["level"]] for match in _RULE.finditer(edit.new)}
    lower = [rule for rule, level in now.items() if level < before.get(rule, 2)]
    bare = pattern((bypass_config().lint_rules,)).search(edit.path) is not None
    return any(re.search(rf"(?<![\w-]){re.escape(rule)}(?![\w-])", output) for rule in lower if bare or "-" in rule)


def _loses_its_check(edit: FileEdit, failed: CheckEvent) -> bool:
    """Whether the script or step behind the command that failed checks nothing of the kind any more."""
    command = failed.outcome.outcome.command if failed.outcome else ""
    before = {match["name"]: match["command"] for match in _SCRIPT.finditer(edit.old or "")}
    now = {match["name"]: match["command"] for match in _SCRIPT.finditer(edit.new)}
    named = [name for name in now if name in before and re.search(rf"(?:^|[ ]){re.escape(name)}(?:[ ]|$)", command)]
    return any(_kinds(before[name]) and not _kinds(now[name]) for name in named)


def _kinds(command: str) -> Sequence[CheckKind]:
    return [kind for words in commands(command) if (kind := check_kind(words)) and kind != "run"]
