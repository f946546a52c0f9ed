"""doctor, completion, --version --json: what they say of an installation, and of one that is broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import undersong as package
from tests.conftest import Undersong
from undersong.cli import VERBS
from undersong.cli.doctor import EXTRAS, every_check
from undersong.core.environment import requirements


def test_the_version_comes_with_what_a_report_of_a_defect_needs(undersong: Undersong) -> None:
    assert undersong("--version").out.strip() == f"undersong, version {package.__version__}"
    facts = json.loads(undersong("--version", "--json").out)
    assert facts["undersong"] == package.__version__
    assert facts["python"] == sys.version.split()[0]
    assert facts["packages"]["numpy"]
    assert str(Path.home()) not in json.dumps(facts)


def test_a_group_without_a_command_is_wrong_use(undersong: Undersong) -> None:
    assert undersong("--json").code == 2


def test_a_sound_installation_passes_every_check(undersong: Undersong) -> None:
    ran = undersong("doctor", "--json")
    checks = {check["name"]: check for check in map(json.loads, ran.out.splitlines())}
    assert ran.code == 0
    assert [name for name, check in checks.items() if check["state"] == "failed"] == []
    assert checks["audit"]["state"] == "ok"
    assert set(EXTRAS) <= set(checks)


def test_every_extra_has_a_purpose() -> None:
    assert {needed.extra for needed in requirements()} - {""} == set(EXTRAS)


def test_settings_that_are_wrong_fail_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "undersong.toml").write_text("budgett = 3\n")
    failed = [check for check in every_check(tmp_path) if check.state == "failed"]
    assert [check.name for check in failed] == ["settings"]
    assert "undersong.toml" in failed[0].detail


def test_a_rule_that_is_broken_is_found(tmp_path: Path) -> None:
    copy = tmp_path / "undersong"
    shutil.copytree(Path(package.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "data/rules/patterns/darvo.yaml").write_text("pattern: [")
    ran = subprocess.run(
        [sys.executable, "-m", "undersong", "doctor"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert ran.returncode == 4
    assert "failed   data" in ran.stdout
    assert "darvo.yaml" in ran.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str, undersong: Undersong) -> None:
    script = undersong("completion", shell).out
    assert "_UNDERSONG_COMPLETE" in script
    variables = {"COMP_WORDS": "undersong d", "COMP_CWORD": "1" if shell != "fish" else "d"}
    ran = subprocess.run(
        [Path(sys.executable).with_name("undersong")], capture_output=True, text=True, check=True,
        env=os.environ | variables | {"_UNDERSONG_COMPLETE": f"{shell}_complete"},
    )  # fmt: skip
    offered = {verb for verb in VERBS if verb.startswith("d")}
    assert all(verb in ran.stdout for verb in offered)


def test_bash_runs_the_script_of_bash() -> None:
    program = Path(sys.executable).with_name("undersong")
    commands = f"""
eval "$({program} completion bash)"
COMP_WORDS=(undersong rul)
COMP_CWORD=1
_undersong_completion {program}
echo "${{COMPREPLY[@]}}"
"""
    ran = subprocess.run(["bash", "-c", commands], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "rules"
