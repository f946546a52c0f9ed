"""Words under a key that nobody reads are named; ids, names and copies of what was read are not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from undersong.formats.ingest import read
from undersong.models import Problem


def line(**more: Any) -> dict[str, Any]:
    return {"role": "user", "author": "Ann", "text": "who has the key of the shed?"} | more


NAMED = (
    {"sampled": {"note": "it hangs by the door"}},
    {"sampled": {"id": "by the door"}},
    {"sampled": {"created_at": "in the spring"}},
    {"sampled": {"title": "It hangs by the door, and nobody has taken it."}},
    {"sampled": ["nobody", ["it hangs by the door"]]},
    {"sampled": '{"inner": "it hangs by the door"}'},
    {"sampled": "\u9375\u306f\u6249\u306e\u6a2a\u306b\u639b\u304b\u3063\u3066\u3044\u307e\u3059"},
)
SILENT = (
    {"sampled": {"id": "a1-b2", "kind": "form"}},
    {"sampled": {"cwd": "/home/ann lee/shed"}},
    {"sampled": {"created_at": "12 May 2026 10:00"}},
    {"sampled": {"title": "The Garden"}},
    {"sampled": {"name": "garden_shed", "label": "Garden Shed"}},
    {"sampled": {"copy": "who has the key of the shed?"}},
    {"sampled": '{"inner": "the key of the shed"}'},
    {"sampled": {"html": "<p>who has <b>the key</b> of the shed?</p>"}},
)


@pytest.mark.parametrize(("more", "number"), [*((each, 1) for each in NAMED), *((each, 0) for each in SILENT)])
def test_what_is_an_id_a_name_or_a_copy_is_no_word_that_is_lost(
    more: dict[str, Any], number: int, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(line(conversation_id="c", **more)) + "\n")
    problems = [item.what for item in read(tmp_path / "a.jsonl") if isinstance(item, Problem)]
    assert len(problems) == number, problems
    assert all(re.fullmatch(r"1 × words under '\w+', not read", what) for what in problems)
