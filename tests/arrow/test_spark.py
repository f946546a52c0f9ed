"""Spark with executors in JVMs of their own: one is killed, and every byte is that of one process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from undersong.errors import UsageError
from undersong.pipeline.options import Options

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: make.py test --spark")
ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed; Spark needs 17")
def test_an_audit_with_a_killed_executor_is_that_of_one_process() -> None:
    small = ("--sets", "generated", "--messages", "400", "--parts", "3", "--kill", "score")
    command = [sys.executable, "-m", "bench.spark", "equal", *small]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    assert "400 messages, 2 findings, 3 parts, executors killed in score: equal" in ran.stdout


def test_a_paid_judge_is_asked_on_no_executor() -> None:
    from undersong import spark

    frame: Any = None
    with pytest.raises(UsageError, match="ask it in one place"):
        spark.audit(frame, Options(judge="anthropic:claude-sonnet-5-5"))


def test_what_is_heavy_has_a_partition_of_its_own_and_the_rest_is_spread() -> None:
    from undersong.spark import _places

    weights = {"kbusy": 1000, **{f"b{number}": 10 for number in range(30)}}
    places = _places(weights, 4)
    loads = [sum(weights[name] for name, place in places.items() if place == part) for part in range(4)]
    assert sorted(loads) == [100, 100, 100, 1000]
    assert places == _places(dict(reversed(weights.items())), 4)
