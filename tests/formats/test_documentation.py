"""What docs/formats.md and the schema say is what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import outcome
from undersong.formats import FORMATS, json_stream, text
from undersong.formats import sources as limits
from undersong.formats.ingest import MOST_REPORTED

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```(jsonl?)\n(.*?)```", DOCUMENT, re.DOTALL)
SCHEMA = json.loads((ROOT / "undersong" / "formats" / "session.schema.json").read_text(encoding="utf-8"))
SESSION = json.loads((ROOT / "tests" / "samples" / "session" / "night.json").read_text(encoding="utf-8"))


def test_the_table_is_the_table_of_the_code() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| (.+?) \| (.+?) \|$", DOCUMENT, re.MULTILINE)
    assert rows[1 : len(FORMATS) + 1] == [(each.name, each.title, each.detected, each.export) for each in FORMATS]


@pytest.mark.parametrize(("kind", "example"), EXAMPLES)
def test_an_example_is_read_without_loss(tmp_path: Path, kind: str, example: str) -> None:
    path = tmp_path / f"example.{kind}"
    path.write_text(example, encoding="utf-8")
    result = outcome(path)
    assert result.problems == []
    assert len(result.only.messages) > 1
    assert result.files[0].source_format == ("jsonl" if kind == "jsonl" else "session")


LIMITS = (
    f"at most {json_stream.LIMIT >> 20} MiB and {json_stream.DEPTH} levels",
    f"at most {limits.BOMB_RATIO} times its size (above {limits.BOMB_FREE >> 20} MiB)",
    f"and {limits.BOMB_TOTAL >> 30} GiB, with at most {limits.ZIP_MEMBERS:,} members",
    f"transcript has at most {text.LIMIT >> 20} MiB",
    f"Of one file, {MOST_REPORTED} problems",
)


@pytest.mark.parametrize("limit", LIMITS)
def test_the_limits_are_those_of_the_code(limit: str) -> None:
    assert limit in " ".join(DOCUMENT.split())


def test_the_endings_are_those_of_the_code() -> None:
    assert all(f"`{suffix}`" in DOCUMENT for suffix in limits.SUFFIXES)


def test_the_schema_knows_every_key_of_the_sample() -> None:
    turn: dict[str, Any] = SCHEMA["$defs"]["turn"]["properties"]
    assert set(SESSION) <= set(SCHEMA["properties"])
    assert set(SESSION["session"]) <= set(SCHEMA["properties"]["session"]["properties"])
    assert {key for each in SESSION["turns"] for key in each} <= set(turn)
