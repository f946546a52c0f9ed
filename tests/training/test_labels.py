"""Labelled messages: two shapes are read, and every wrong line is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from undersong.errors import InputError
from undersong.models import TRAITS
from undersong.training.datasets import LabelledMessage, read_labels

TRAIT_SCORES = {trait: i / 20 for i, trait in enumerate(TRAITS)}
FLAT: dict[str, Any] = {"author": "mo", "text": "Well argued.", "traits": TRAIT_SCORES, "time": "2026-03-01T10:00:00Z"}
NESTED: dict[str, Any] = {
    "messages": [{"author": "mo", "role": "agent", "text": "Well argued.", "ts": "2026-03-01T10:00:00+00:00"}],
    "labels": {"traits": TRAIT_SCORES, "indicators": []},
}


def write(path: Path, *lines: Any) -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.jsonl.gz"])
@pytest.mark.parametrize("line", [FLAT, NESTED])
def test_both_shapes_give_the_same_row(tmp_path: Path, name: str, line: Any) -> None:
    expected = LabelledMessage("mo", "Well argued.", tuple(TRAIT_SCORES.values()), month="2026-03")
    assert read_labels(write(tmp_path / name, line, "", line)) == [expected, expected]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{not json", "not a labelled message"),
        ('{"author": 7}', "not a labelled message: Expected `str"),
        ({**FLAT, "traits": {**TRAIT_SCORES, "virtue": "high"}}, r"\.traits"),
        ({**FLAT, "traits": {"virtue": 0.5}}, "no score for goodwill, manipulation"),
        ({**FLAT, "traits": {**TRAIT_SCORES, "virtue": 1.01}}, r"scores outside 0-1: virtue 1\.01"),
        ({**FLAT, "text": " "}, "the text is blank"),
        ({**FLAT, "author": None}, "its author"),
        ({**NESTED, "messages": NESTED["messages"] * 2}, "needs one message"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: Any, expected: str) -> None:
    path = write(tmp_path / "labels.jsonl", FLAT, line)
    with pytest.raises(InputError, match=expected) as raised:
        read_labels(path)
    assert raised.value.where == f"{path}:2"
    assert raised.value.remedy


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "labels.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="no labelled messages"):
        read_labels(tmp_path / "labels.jsonl")


def test_a_file_that_is_missing_or_not_gzip_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / "nowhere.jsonl")
    (tmp_path / "labels.jsonl.gz").write_bytes(b"plain")
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / "labels.jsonl.gz")
