"""A judge of an installed package is opened by the name of its entry point, and held to the limits of the run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import SAMPLES

from .conftest import Command


def evaluations(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]


def test_an_audit_by_a_judge_of_another_package_has_its_scores(run: Command, tmp_path: Path) -> None:
    audited = run("-m", "undersong", "audit", SAMPLES, "--judge", "shouting", "--no-chance", "--out", "report")
    assert (audited.returncode, audited.stderr) == (0, "")
    rows = evaluations(tmp_path / "report")
    assert {row["judge"] for row in rows} == {"shouting"}
    assert {row["state"] for row in rows} == {"scored"}
    assert run("-m", "undersong", "verify", "report").returncode == 0


def test_a_judge_that_takes_limits_is_given_those_of_the_run(run: Command, tmp_path: Path) -> None:
    arguments = ("--judge", "metered:x", "--max-calls", "3", "--no-chance", "--out", "report")
    assert run("-m", "undersong", "audit", SAMPLES, *arguments).returncode == 0
    states = [row["state"] for row in evaluations(tmp_path / "report")]
    assert states.count("scored") == 3
    assert "unread" in states


def test_such_a_judge_can_be_planned_for(run: Command) -> None:
    planned = run("-m", "undersong", "plan", SAMPLES, "--judge", "metered:x")
    assert (planned.returncode, planned.stderr) == (0, "")


def test_an_unknown_judge_is_refused_and_a_close_name_proposed(run: Command) -> None:
    audited = run("-m", "undersong", "audit", SAMPLES, "--judge", "shoutin")
    assert audited.returncode == 2
    assert "unknown judge 'shoutin'" in audited.stderr
    assert "shouting" in audited.stderr
