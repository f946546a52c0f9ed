"""The comparison of two forms of the answer: what it counts, and what it refuses to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.schemas import COLUMNS, paired, read, report, trait_figures
from undersong.models import TRAITS

MARKS = [0, 1, 2, 3, 4, None]


def lines(path: Path, shift: int = 0, **changes: Any) -> Path:
    """Six messages; ``shift`` moves every mark of manipulation up by so much, as far as that goes."""
    rows = []
    for number, mark in enumerate(MARKS):
        traits = [mark] * len(TRAITS)
        traits[TRAITS.index("manipulation")] = min(4, number + shift)
        row = {"id": f"m{number}", "indicators": [["now", "MAN-URGENCY", 3]], "mechanisms": [], "reasons": []}
        rows.append(json.dumps(row | {"traits": traits, "stance": "neutral"} | changes))
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_equal_readings_agree_fully_and_null_is_no_mark(tmp_path: Path) -> None:
    first, second = (read(lines(tmp_path / name), frozenset()) for name in "ab")
    figures = trait_figures(paired(first, second, sorted(first)))
    virtue = dict(zip(COLUMNS, figures[TRAITS.index("virtue")], strict=True))
    assert virtue == pytest.approx({name: 1.0 for name in COLUMNS} | {"null": 1 / 6})


def test_a_shift_lowers_kappa_and_leaves_the_order(tmp_path: Path) -> None:
    first, second = read(lines(tmp_path / "a"), frozenset()), read(lines(tmp_path / "b", 1), frozenset())
    row = trait_figures(paired(first, second, sorted(first)))[TRAITS.index("manipulation")]
    assert row[COLUMNS.index("kappa")] < 0.9
    assert row[COLUMNS.index("spearman")] > 0.9


def test_both_forms_stand_beside_each_other_with_intervals(tmp_path: Path) -> None:
    pair = paired(*(read(lines(tmp_path / name), frozenset()) for name in "ab"), [f"m{n}" for n in range(6)])
    result = report({"old": pair, "new": pair}, {"old": "", "new": "x" * 40}, list("uvwxyz"), 1)
    assert result["new"]["indicators"] == (1.0, 1.0)
    assert result["kappa of new less old, 95 %"] == (0.0, 0.0)
    assert (result["old"]["prompt tokens"], result["new"]["prompt tokens"]) == (None, 10.0)
    assert np.isfinite(result["new"]["answer tokens"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traits": [5] * 12}, "virtue is 5"),
        ({"traits": [1] * 11}, "11 traits"),
        ({"indicators": [["MAN-NOSUCH", 2]]}, "known ID"),
        ({"mechanisms": [["false_promise", 7]]}, "known ID"),
        ({"stance": "sits"}, "stance is 'sits'"),
    ],
)
def test_a_line_that_is_no_reading_is_named_by_its_place(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SystemExit, match=f"a:1: .*{words}"):
        read(lines(tmp_path / "a", **changes), frozenset())


def test_messages_that_nobody_read_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="1 messages are not read, the first is m9"):
        read(lines(tmp_path / "a"), frozenset([*(f"m{n}" for n in range(6)), "m9"]))
