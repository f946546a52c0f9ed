"""The files that a session changed on a request, by edits and by commands, without what it took back again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from os.path import commonpath
from typing import NamedTuple

from undersong.models import ToolCall
from undersong.verdict.edits import FileEdit, edits_by_command, edits_of
from undersong.verdict.shell import ShellPart, command_of, shell_parts
from undersong.verdict.transcript import Transcript, TranscriptTurn

_OUTSIDE = re.compile(r"^(?:/private)?/(?:tmp|var/folders|dev|proc)/|(?:^|/)\.(?:claude|codex|cursor)/|^\$|^~/\.")
_REDIRECTED = re.compile(r"(?<![0-9&<>=-])>>?[ ]*['\"]?(?P<path>[\w./@-]+\.\w+)")
_WRITING = re.compile(
    r"\bopen\([ ]*['\"](?P<opened>[\w./@-]+)['\"][ ]*,[ ]*['\"][wa]|"
    r"\bPath\([ ]*['\"](?P<path>[\w./@-]+)['\"][ ]*\)\.write_text|\bwriteFile(?:Sync)?\([ ]*['\"](?P<file>[\w./@-]+)"
)
_IN_PLACE = re.compile(r"^(?:(?:g?sed|perl)[ ].*?-\w*i|tee\b|truncate\b|(?:git[ ])?(?:rm|mv)\b|cp\b)")
_PATHS = re.compile(r"[\w./@+-]*[\w@-]+\.\w+")
_PATH = re.compile(r"^[\w./@+-]*[\w@-]+\.\w+$")
_TAKES_BACK = re.compile(
    r"^git[ ]+(?:(?:checkout|restore)\b(?![ ]+-[bB]\b)|stash\b(?![ ]+(?:pop|apply|list|show|drop|branch))"
    r"|reset[ ]+.*--hard|clean\b)"
)
_PUTS_BACK = re.compile(r"^git[ ]+stash[ ]+(?:pop|apply)\b")
_ANOTHER_COMMIT = re.compile(
    r"^git[ ]+(?:checkout|restore)[ ]+(?:--source[= ])?(?!HEAD\b(?!\W*[~^])|--|-|\.)\S+[ ]+--[ ]"
)


class TouchedFile(NamedTuple):
    """A change of one file; ``edit`` is None where a command names the file and not what it does to its lines.

    ``created``: the session did not have the file before, as far as its log says.
    """

    turn: TranscriptTurn
    path: str
    edit: FileEdit | None
    created: bool = False

    @property
    def only_adds(self) -> bool:
        """Whether no line that was there is gone."""
        return self.created or (
            self.edit is not None and self.edit.old is not None and not self.edit.deleted and not self.edit.removed
        )


def touched_files(transcript: Transcript, run: int, place: int) -> list[TouchedFile]:
    """What was changed from a request on and before a place, in order, as far as it was not taken back."""
    standing, stashed = list[TouchedFile](), list[TouchedFile]()
    before = {placed.outcome.path for placed in transcript.outcomes if placed.turn.run < run and placed.outcome.path}
    looks = [placed.outcome for placed in transcript.outcomes if placed.outcome.family == "look"]
    looked = {path for look in looks for path in (look.path, *_PATHS.findall(look.command))}
    checks = {placed.outcome.call for placed in transcript.outcomes if placed.outcome.family == "check"}
    for turn in transcript.turns:
        if turn.run < run or turn.place >= place or not turn.is_agent:
            continue
        for call in turn.message.tool_calls:
            if call.id and call.id in transcript.failed_calls and call.id not in checks:
                continue
            command = command_of(call)
            for part in shell_parts(command) if command.find("git ") >= 0 else ():
                if _PUTS_BACK.match(part.text):
                    standing, stashed = standing + stashed, []
                elif takes_back(part.text):
                    remaining = [item for item in standing if not _is_meant(part, item.path)]
                    stashed = [item for item in standing if item not in remaining] if " stash" in part.text else []
                    standing = remaining
            for path, edit in _changes(call, command):
                new = edit is not None and edit.old is None and not edit.deleted
                created = new and not any(is_same_file(path, other) for other in before | looked)
                own = any(is_same_file(path, item.path) and item.created for item in standing)
                standing.append(TouchedFile(turn, path, edit, created or own))
    return [item for item in standing if not _is_undone(item.path, standing)]


def takes_back(command: str) -> bool:
    """Whether a command begins with what puts files back as they were committed."""
    return _TAKES_BACK.match(command) is not None and not _ANOTHER_COMMIT.match(command)


def _changes(call: ToolCall, command: str) -> Iterator[tuple[str, FileEdit | None]]:
    edits = [*edits_of(call), *edits_by_command(command)]
    for edit in edits:
        if edit.path and not _OUTSIDE.search(edit.path):
            yield edit.path, edit
    shown = {edit.path for edit in edits}
    yield from ((path, None) for path in _written_paths(command) if path not in shown and not _OUTSIDE.search(path))


def _written_paths(command: str) -> Iterator[str]:
    """The files that a command line names as what it writes, moves or removes."""
    if not command:
        return
    for part in shell_parts(command):
        if _IN_PLACE.match(" ".join(part.words)) and part.words[0] not in ("echo", "printf"):
            paths = [word.strip("'\"") for word in part.words[1:] if _PATH.match(word.strip("'\""))]
            yield from paths[-1:] if part.words[0] == "cp" else paths
        if part.words[0] in ("echo", "printf", "cat", "sed", "jq", "awk", "sort"):
            yield from (match["path"] for match in _REDIRECTED.finditer(part.text))
    if "<<" in command or " -c " in command or " -e " in command:
        yield from (next(filter(None, match.groups())) for match in _WRITING.finditer(command))


def _is_meant(part: ShellPart, path: str) -> bool:
    """Whether a command that takes changes back is about a file: it names the file, a folder above it, or all."""
    names = [word.strip("'\"") for word in part.words[2:] if not word.startswith("-") and word != "HEAD"]
    if part.words[1:2] in (["stash"], ["reset"]) or any(name in (".", ":/", "*") for name in names):
        return True
    return any(is_same_file(path, name) or f"/{name.strip('./')}/" in f"/{path}" for name in names)


def _is_undone(path: str, items: Iterable[TouchedFile]) -> bool:
    """Whether what was added to a file and what was taken out of it come to nothing."""
    own = [item for item in items if is_same_file(item.path, path)]
    lines = Counter[str]()
    for item in own:
        if item.edit is None or (item.edit.old is None and not item.edit.deleted):
            return False
        if item.edit.deleted:
            return own[0].created and item is own[-1]
        lines.update(line.strip() for line in item.edit.added)
        lines.subtract(line.strip() for line in item.edit.removed)
    return len(own) > 1 and not any(lines.values())


def text_after(items: Sequence[TouchedFile]) -> str | None:
    """What the first of some changes of one file put in, as the later ones leave it; None where nobody can say."""
    text = items[0].edit.new if items and items[0].edit else None
    for item in items[1:]:
        if text is None or item.edit is None:
            return None
        old, new = item.edit.old, item.edit.new
        if old is None or (old and text.strip() in old):
            text = new
        elif old:
            text = text.replace(old, new, 1)
    return text


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths may be of one file: the same, or one the end of the other."""
    one, other = (path.replace("\\", "/").removeprefix("./") for path in (one, other))
    return bool(one and other) and (one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}"))


def within_project(paths: Sequence[str], path: str) -> str:
    """A path without the folders that all absolute ones of a session have in common."""
    absolute = [other for other in paths if other.startswith("/")]
    root = commonpath([other.rsplit("/", 1)[0] or "/" for other in absolute]) if absolute else ""
    return path.removeprefix(root).lstrip("/") if root and path.startswith(f"{root.rstrip('/')}/") else path
