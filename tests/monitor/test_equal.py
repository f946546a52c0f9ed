"""Live is batch: routes, evaluations, rows, findings and verdicts, whatever the order in which messages came."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitor import worlds


@pytest.mark.parametrize("portion", range(10))
def test_a_live_run_leaves_what_a_batch_run_leaves(portion: int, tmp_path: Path) -> None:
    findings = 0
    for seed in range(5 * portion, 5 * portion + 5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        difference, number = worlds.differences(folder, seed, most=24)
        assert difference == ""
        findings += number
    assert findings


@pytest.mark.parametrize("seed", [20, 150])
def test_what_a_phrase_says_is_found_in_rows_that_a_store_kept(seed: int, tmp_path: Path) -> None:
    """A match that needs words of agreement, in a world in which the run begins anew while it grows."""
    assert worlds.differences(tmp_path, seed)[0] == ""
