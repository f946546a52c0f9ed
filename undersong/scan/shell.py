"""Code that a shell command writes: patches and files given as here-documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

LONGEST = 200_000  # characters of a command that are looked at
_PATCH = re.compile(r"\*\*\* Begin Patch\n.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_HERE = re.compile(
    r"(?:cat|tee)\s*(?P<mode>>{0,2})\s*(?P<path>[\w./~-]+)?\s*<<-?\s*['\"]?(?P<end>\w+)['\"]?\s*"
    r"(?:(?P<late>>{1,2})\s*(?P<after>[\w./~-]+))?\n"
)


class ShellWrite(NamedTuple):
    """A file or a patch that a command writes."""

    kind: Literal["write", "patch"]
    code: str
    path: str | None


def command_of(value: Any) -> str:
    """The command line in a tool's input: a string, a list of words, or an object with one of them."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("command", "cmd", "script", "code", "input") if key in value), "")
    if isinstance(value, list):
        return "\n".join(each for each in value if isinstance(each, str))
    return value if isinstance(value, str) else ""


def shell_writes(command: str) -> Iterator[ShellWrite]:
    """What a command line writes, in order; appended text is no version of a file."""
    if len(command) > LONGEST or ("<<" not in command and "*** Begin Patch" not in command):
        return
    for patch in _PATCH.finditer(command):
        yield ShellWrite("patch", patch[0], None)
    at = 0
    while here := _HERE.search(command, at):
        end = re.compile(rf"^\s*{re.escape(here['end'])}\s*$", re.MULTILINE).search(command, here.end())
        stop = end.start() if end else len(command)
        path = here["path"] or here["after"]
        if path and ">>" not in (here["mode"], here["late"]):
            yield ShellWrite("write", command[here.end() : stop], path)
        at = end.end() if end else len(command)
