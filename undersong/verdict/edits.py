"""The edits of tool calls: which file, which text was there, which text is there now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from undersong.datafiles.verdict_config import outcomes_config
from undersong.models import ToolCall
from undersong.verdict.shell import decoded

_PATCHED = re.compile(r"^\*\*\* (?P<verb>Add|Update|Delete) File: (?P<path>.+)$", re.MULTILINE)
_SED = re.compile(
    r"\bsed[ ]+(?:-\S+[ ]+(?:''[ ]+)?)*-i\S*[ ]+(?:''[ ]+)?(?:-\S+[ ]+)*['\"]?[^'\"\n]{0,20}?"
    r"s(?P<mark>[/|#,@])(?P<old>(?:(?!(?P=mark)).)+)(?P=mark)(?P<new>(?:(?!(?P=mark)).)*)(?P=mark)"
    r"\w*['\"]?(?P<paths>(?:[ ]+[\w./*-]+)+)",
    re.DOTALL,
)
_SED_LINE = re.compile(  # a line that is put in behind or before another one: "/^func TestLow/a \\tt.Skip()"
    r"\bsed[ ]+(?:-\S+[ ]+(?:''[ ]+)?)*-i\S*[ ]+(?:''[ ]+)?(?:-\S+[ ]+)*(?P<q>['\"])"
    r"(?:/(?P<at>(?:(?!/).)+)/|\d+|\$)[ ]*[ai](?:\\{1,2}(?=[\n ])|(?=[ \\]))[ \n]*"
    r"(?P<new>.+?)(?P=q)(?P<paths>(?:[ ]+[\w./*-]+)+)",
    re.DOTALL,
)
_QUOTED_PATH = re.compile(r"['\"](?P<path>[\w./-]+\.\w{1,5})['\"]")
_REPLACE = re.compile(
    r"\.replace\([ \n]*(?P<q>['\"]{1,3})(?P<old>(?:(?!(?P=q)).){1,2000})(?P=q),[ \n]*"
    r"(?P<r>['\"]{1,3})(?P<new>(?:(?!(?P=r)).){0,2000})(?P=r)",
    re.DOTALL,
)
_WRITTEN = re.compile(
    r"(?P<mode>>>?)[ ]*['\"]?(?P<path>[\w./-]+)['\"]?[ ]*<<-?[ ]*['\"]?(?P<end>\w+)['\"]?[^\n]*\n"
    r"(?P<text>.*?)\n[ \t]*(?P=end)\b",
    re.DOTALL,
)
_SPACED = re.compile(r"\.(?:py|js|ts|go|rs|java|kt|cs|cc?|cpp|h|hpp)$")  # space between signs means nothing there
_GAPS = re.compile(r"(\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)|(?<!\w)[ \t]+|[ \t]+(?!\w)")
_DOCSTRING = re.compile(r"(:[ \t]*\n)[ \t]*r?(\"{3}|'{3})[\s\S]*?\2[ \t]*(?:\n|\Z)")  # right behind a head
_OLD, _NEW = ("old_string", "old_str", "old"), ("new_string", "new_str", "new", "content", "file_text", "new_source")


class FileEdit(NamedTuple):
    """One edit: ``old`` is None where the call writes a whole file; ``deleted``: the file goes."""

    path: str
    old: str | None
    new: str
    deleted: bool = False

    @property
    def added(self) -> list[str]:
        """The lines that were not there before."""
        before = set((self.old or "").splitlines())
        return [line for line in self.new.splitlines() if line.strip() and line not in before]

    @property
    def removed(self) -> list[str]:
        """The lines that are gone."""
        after = set(self.new.splitlines())
        return [line for line in (self.old or "").splitlines() if line.strip() and line not in after]

    @property
    def is_of_form(self) -> bool:
        """Whether docstrings, or white space that means nothing, are all that differs."""
        if self.old is None or self.old == self.new or not _SPACED.search(self.path):
            return False
        sides = [_DOCSTRING.sub(r"\1", text) if self.path.endswith(".py") else text for text in (self.old, self.new)]
        bare = ["".join(text.split()) for text in sides]
        return bare[0] == bare[1] != "" and _signs(sides[0]) == _signs(sides[1])


def _signs(code: str) -> list[tuple[str, str]]:
    """The lines of a code with their indents, without the white space between signs."""
    lines = ((line, line.strip()) for line in code.splitlines())
    return [(line[: line.find(bare[0])], _GAPS.sub(lambda gap: gap[1] or "", bare)) for line, bare in lines if bare]


def edits_of(call: ToolCall) -> Iterator[FileEdit]:
    """The edits of a call, () where it is none or its source does not hold them."""
    if call.name not in outcomes_config().edit_tools:
        return
    value = call.input if isinstance(call.input, dict) else decoded(call.input) if isinstance(call.input, str) else None
    if isinstance(value, dict):
        patch = next((value[key] for key in ("patch", "input") if isinstance(value.get(key), str)), None)
        yield from _patched(patch) if patch else _edited(value)
    elif isinstance(call.input, str):
        yield from _patched(call.input)


def edits_by_command(command: str) -> Iterator[FileEdit]:
    """The edits that a command line shows: of ``sed -i``, of ``replace`` in a script, of a text that is written."""
    for match in _SED.finditer(command):
        old, new = match["old"], match["new"].replace("\\n", "\n").replace("\\\n", "\n")
        yield from (FileEdit(path, old, new) for path in match["paths"].split() if not path.startswith("-"))
    for match in _SED_LINE.finditer(command):
        at, line = (match["at"] or "").strip("^$ "), re.sub(r"^\\+t?", "", match["new"])
        yield from (FileEdit(path, at, f"{at}\n{line}") for path in match["paths"].split() if not path.startswith("-"))
    paths = [match["path"] for match in _QUOTED_PATH.finditer(command)]
    if "<<" in command or " -c " in command:
        for match in _REPLACE.finditer(command):
            old, new = (match[name].replace("\\n", "\n") for name in ("old", "new"))
            yield from (FileEdit(path, old, new) for path in paths[:1])
    for match in _WRITTEN.finditer(command):
        yield FileEdit(match["path"], "" if match["mode"] == ">>" else None, match["text"])


def _edited(value: dict[str, Any]) -> Iterator[FileEdit]:
    path = next((value[key] for key in outcomes_config().paths if isinstance(value.get(key), str)), "")
    parts = value["edits"] if isinstance(value.get("edits"), list) else [value]
    for part in parts:
        if isinstance(part, dict):
            old, new = (
                next((part[key] for key in keys if isinstance(part.get(key), str)), None) for keys in (_OLD, _NEW)
            )
            if new is not None or old is not None:
                yield FileEdit(path, old, new or "")


def _patched(patch: str) -> Iterator[FileEdit]:
    heads = list(_PATCHED.finditer(patch))
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(patch)
        lines = patch[head.end() : end].split("\n")
        old = "\n".join(line[1:] for line in lines if line[:1] in ("-", " "))
        new = "\n".join(line[1:] for line in lines if line[:1] in ("+", " "))
        verb = head["verb"]
        yield FileEdit(head["path"].strip(), None if verb == "Add" else old, new, deleted=verb == "Delete")
