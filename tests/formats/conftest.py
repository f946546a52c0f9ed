"""What every test of a format needs: bytes in, settled conversations and problems out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from undersong.formats.ingest import read
from undersong.models import Conversation, InputFile, Problem


class Outcome(NamedTuple):
    """Everything that ingest gave for an input."""

    conversations: list[Conversation]
    problems: list[Problem]
    files: list[InputFile]

    @property
    def only(self) -> Conversation:
        """The one conversation that there must be."""
        (conversation,) = self.conversations
        return conversation

    def problem_texts(self, kind: str) -> list[str]:
        """What the problems of a kind say."""
        return [problem.what for problem in self.problems if problem.kind == kind]


def outcome(*paths: str | Path, source_format: str | None = None) -> Outcome:
    """Read paths and sort what comes out."""
    items = list(read(paths, source_format=source_format))
    return Outcome(
        [each for each in items if isinstance(each, Conversation)],
        [each for each in items if isinstance(each, Problem)],
        [each for each in items if isinstance(each, InputFile)],
    )


@pytest.fixture
def ingest(tmp_path: Path) -> Callable[..., Outcome]:
    """Write ``content`` (bytes, text, or rows for JSON Lines) to a file and read it."""

    def ingest_content(content: Any, name: str = "input.json", source_format: str | None = None) -> Outcome:
        path = tmp_path / name
        path.write_bytes(as_bytes(content, name))
        return outcome(path, source_format=source_format)

    return ingest_content


def as_bytes(content: Any, name: str) -> bytes:
    """Bytes as they are, text as UTF-8, rows as JSON Lines for .jsonl, everything else as one JSON document."""
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    if name.endswith(".jsonl"):
        return b"".join(json.dumps(row).encode() + b"\n" for row in content)
    return json.dumps(content).encode()
