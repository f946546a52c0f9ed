"""Readings are filed only where every line is right, and those of real text without its words."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn")
from train.readings import LABELS, checked, file_real, wrong

GOOD: dict[str, Any] = {
    "id": "m1",
    "traits": [2, None, 0, 0, 2, None, 0, None, 2, 2, 0, 0],
    "indicators": [["no access", "VIR-SCOPE", 3]],
    "mechanisms": [],
    "stance": "neutral",
}
TEXT = "I have no access to that."


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({}, ""),
        ({"traits": [2] * 11}, "needs 12 marks"),
        ({"traits": [5, *[0] * 11]}, "needs 12 marks"),
        ({"traits": [True, *[0] * 11]}, "needs 12 marks"),
        ({"stance": "unsure"}, "stance"),
        ({"indicators": [["no access", "VIR-UNHEARD", 3]]}, "unknown indicator"),
        ({"indicators": [["no access", "VIR-SCOPE", 5]]}, "confidence"),
        ({"indicators": [["no entry", "VIR-SCOPE", 3]]}, "not in the text"),
    ],
)
def test_a_reading_says_what_is_wrong_with_it(change: dict[str, Any], what: str) -> None:
    found = wrong(GOOD | change, TEXT)
    assert found == what if not what else what in found


def test_ids_are_all_there_and_once() -> None:
    assert checked([GOOD], {"m1": TEXT}) == {"m1": GOOD}
    with pytest.raises(SystemExit, match="no reading of m2"):
        checked([GOOD], {"m1": TEXT, "m2": TEXT})
    with pytest.raises(SystemExit, match="there twice"):
        checked([GOOD, GOOD], {"m1": TEXT})


def test_a_message_of_a_source_is_filed_once_by_its_place(tmp_path: Path) -> None:
    answers, keys, target = (tmp_path / name for name in ("answers.jsonl", "keys.jsonl", "readings.jsonl.gz"))
    answers.write_text(json.dumps(GOOD) + "\n")
    keys.write_text(json.dumps({"id": "m1", "source": "a.jsonl", "conversation": "c", "place": 3, "kind": "k"}) + "\n")
    target.write_bytes(gzip.compress(b"", mtime=0))
    assert file_real(answers, keys, target) == 1
    assert b"no access" not in gzip.decompress(target.read_bytes())
    with pytest.raises(SystemExit, match="filed before"):
        file_real(answers, keys, target)


def test_the_shipped_labels_of_written_text_are_right() -> None:
    rows = {}
    for line in (LABELS / "written" / "messages.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows[row["id"]] = row["text"]
    readings = (LABELS / "written" / "readings.jsonl").read_text(encoding="utf-8").splitlines()
    assert checked(map(json.loads, readings), rows).keys() == rows.keys()
