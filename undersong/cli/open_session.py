"""The command that opens a session: its own program where that can, else an audit of its file."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from itertools import islice
from pathlib import Path

HEAD = 200  # lines of a session in which its folder is looked for
RESUME = {"claude-code": "claude --resume", "codex": "codex resume"}  # what opens a session in its own program


def open_command(source_format: str, conversation: str, file: str, path: Path | None) -> str:
    """``cd /quay && claude --resume 9f1c``; ``path`` is the session's own file on disk, None where it lies in another.

    ``file`` is its name where it has no program of its own.
    """
    resume, name = RESUME.get(source_format), conversation.split("/", 1)[0]
    if not resume:
        return f"undersong audit {shlex.quote(file)}"
    folder = _folder(path, name) if path is not None and source_format == "claude-code" else ""
    return f"{f'cd {shlex.quote(folder)} && ' if folder else ''}{resume} {shlex.quote(name)}"


def _folder(file: Path, name: str) -> str:
    """The folder in which a session of Claude Code began, where alone it can be resumed; "" where its file has none."""
    with suppress(OSError, ValueError, AttributeError, RecursionError), file.open(encoding="utf-8") as lines:
        for line in islice(lines, HEAD):
            record = json.loads(line) if '"cwd"' in line else {}
            if record.get("sessionId", name) == name and isinstance(record.get("cwd"), str):
                return str(record["cwd"]) if record["cwd"].isprintable() else ""
    return ""
