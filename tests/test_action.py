"""The GitHub Action and the pre-commit hooks: their steps are run by the shells that would run them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
HOOKS = ROOT / ".pre-commit-hooks.yaml"
DEMO = ROOT / "demo" / "conversations"
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
PROGRAMS = Path(sys.executable).parent


class Finished(NamedTuple):
    """How a step ended, and what it handed on."""

    code: int
    printed: str
    outputs: dict[str, str]


def step(name: str) -> dict[str, Any]:
    (found_step,) = (one for one in STEPS if one.get("name") == name)
    return found_step


def value_of(expression: str, facts: dict[str, str]) -> str:
    """A context of the workflow; nothing else may stand in an environment."""
    assert expression in facts, expression
    return facts[expression]


def run_step(name: str, folder: Path, facts: dict[str, str]) -> Finished:
    """Run a step as the runner does: bash without a profile, that ends at the first command that fails."""
    chosen = step(name)
    assert "${{" not in chosen["run"], "an expression in a script can be a command of a stranger"
    outputs, summary = folder / "outputs", folder / "summary.md"
    outputs.write_text("")
    values = {key: EXPRESSION.sub(lambda match: value_of(match[1], facts), text) for key, text in chosen["env"].items()}
    named = {"RUNNER_TEMP": str(folder / "temp"), "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}
    kept = {key: value for key, value in os.environ.items() if not key.startswith("UNDERSONG")}
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", chosen["run"]]
    ran = subprocess.run(command, cwd=folder, env=kept | named | values, capture_output=True, text=True, check=False)
    handed_on = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    return Finished(ran.returncode, ran.stdout + ran.stderr, handed_on)


def inputs(**given_inputs: str) -> dict[str, str]:
    """The inputs of the action with their defaults, as expressions name them."""
    defaults = {name: str(about.get("default", "")) for name, about in ACTION["inputs"].items()}
    return {f"inputs.{name}": value for name, value in (defaults | given_inputs).items()}


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A checkout with transcripts, and undersong where the step that installs it would put it."""
    programs = tmp_path / "temp" / "undersong" / "bin"
    programs.mkdir(parents=True)
    (programs / "undersong").symlink_to(PROGRAMS / "undersong")
    (tmp_path / "my transcripts").mkdir()
    for path in DEMO.iterdir():
        shutil.copy(path, tmp_path / "my transcripts")
    return tmp_path


@pytest.mark.slow
def test_the_step_that_installs_gives_a_program_that_works(tmp_path: Path) -> None:
    (tmp_path / "temp").mkdir()
    python = tmp_path / "python"
    python.mkdir()
    (python / "python").symlink_to(sys.executable)
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "tests", "bench", "docs", "build", "train"))
    ran = run_step("Install undersong", tmp_path, inputs() | {"github.action_path": str(source)})
    assert ran.code == 0, ran.printed
    program = tmp_path / "temp" / "undersong" / "bin" / "undersong"
    assert subprocess.run([program, "--version"], capture_output=True, check=True).stdout.startswith(b"undersong")


@pytest.mark.parametrize(
    ("given_inputs", "code", "said"),
    [
        ({"paths": "my transcripts", "fail-on": "high"}, 1, "--fail-on high"),
        ({"paths": "my transcripts/choir.txt\nmy transcripts/flat_share.txt"}, 0, "2 conversations"),
        ({"paths": "my transcripts", "fail-on": ""}, 0, "all tests pass"),
        ({"paths": "my transcripts/choir.txt", "arguments": "--fail-on-unassessed\n"}, 1, "--fail-on-unassessed"),
        ({"paths": "nowhere"}, 3, "nowhere"),
        ({"paths": "my transcripts", "fail-on": "grave"}, 2, "grave"),
        ({"paths": "--help; touch pwned"}, 3, "--help; touch pwned"),
        ({"paths": "$(touch pwned)", "arguments": "`touch pwned`"}, 3, "touch pwned"),
    ],
)
def test_the_audit_ends_the_action_as_it_ended(
    runner: Path, given_inputs: dict[str, str], code: int, said: str
) -> None:
    facts = inputs(**given_inputs)
    audited = run_step("Audit", runner, facts)
    assert audited.code == 0, "the upload comes before the exit code"
    assert audited.outputs["exit-code"] == str(code), audited.printed
    assert said in audited.printed
    assert not (runner / "pwned").exists()
    written = code in (0, 1)
    assert audited.outputs.get("sarif") == ("undersong-report/report.sarif" if written else None)
    if written:
        assert json.loads((runner / "undersong-report" / "report.sarif").read_text())["version"] == "2.1.0"
        assert (runner / "summary.md").read_text().startswith("# ")
    facts["steps.audit.outputs.exit-code"] = audited.outputs["exit-code"]
    assert run_step("End as the audit ended", runner, facts).code == code


def test_a_step_that_said_nothing_is_a_failure(runner: Path) -> None:
    assert run_step("End as the audit ended", runner, {"steps.audit.outputs.exit-code": ""}).code == 70


def test_what_was_found_is_uploaded_before_the_action_ends_and_whatever_the_gate_says() -> None:
    names = [one.get("name", one.get("uses", "")) for one in STEPS]
    upload, end = names.index("Upload what was found"), names.index("End as the audit ended")
    assert upload < end == len(STEPS) - 1
    condition = STEPS[upload]["if"]
    assert "steps.audit.outputs.sarif != ''" in condition
    assert "exit-code" not in condition
    assert all(re.search(r"@[0-9a-f]{40}$", one["uses"]) for one in STEPS if "uses" in one)
    documented = set(re.findall(r"^\| `([\w-]+)` \|", (ROOT / "docs" / "recipes" / "ci.md").read_text(), re.MULTILINE))
    assert set(ACTION["inputs"]) <= documented


def test_the_action_holds_before_a_linter_of_its_security() -> None:
    command = [PROGRAMS / "zizmor", "--offline", "--no-progress", ROOT / "action.yml"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "No findings" in ran.stdout + ran.stderr


@pytest.mark.servers
def test_the_workflow_of_the_recipe_holds_before_the_linter_of_workflows(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        assert not os.environ.get("CI"), "actionlint is built with go, which is not here"
        pytest.skip("needs go, to build actionlint")
    module = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
    built = subprocess.run(
        [go, "install", module], env=os.environ | {"GOBIN": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    page = (ROOT / "docs" / "recipes" / "ci.md").read_text(encoding="utf-8")
    (workflow,) = re.findall(r"^```yaml\n(name: .*?)^```$", page, re.MULTILINE | re.DOTALL)
    file = tmp_path / "workflow.yml"
    file.write_text(workflow, encoding="utf-8")
    for name in (file, *sorted((ROOT / ".github" / "workflows").glob("*.yml"))):
        ran = subprocess.run([tmp_path / "actionlint", name], capture_output=True, text=True, check=False)
        assert ran.stdout + ran.stderr == "", name


def repository(folder: Path, hook: str) -> None:
    """A repository whose hook is one of ours, with the program of this environment in place of an installed one."""
    (own,) = (one for one in yaml.safe_load(HOOKS.read_text(encoding="utf-8")) if one["id"] == hook)
    settings = {"repos": [{"repo": "local", "hooks": [own | {"language": "system"}]}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (folder / "transcripts").mkdir()
    (folder / "notes.json").write_text("{}")
    subprocess.run(["git", "init", "--quiet", folder], check=True)


def commit_check(folder: Path, hook: str) -> Finished:
    subprocess.run(["git", "-C", folder, "add", "--all"], check=True)
    named = {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "PRE_COMMIT_HOME": str(folder / ".git" / "cache")}
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = [PROGRAMS / "pre-commit", "run", hook]
    ran = subprocess.run(command, cwd=folder, env=kept | named, capture_output=True, text=True, check=False)
    return Finished(ran.returncode, ran.stdout + ran.stderr, {})


def test_pre_commit_takes_our_hooks() -> None:
    subprocess.run([PROGRAMS / "pre-commit", "validate-manifest", HOOKS], check=True)


@pytest.mark.parametrize("hook", ["undersong-claims", "undersong-audit"])
def test_a_hook_lets_harmless_files_pass_and_stops_a_false_claim(tmp_path: Path, hook: str) -> None:
    repository(tmp_path, hook)
    assert "no files to check" in commit_check(tmp_path, hook).printed
    harmless = {"schema": "undersong.session", "version": 1, "session": {"id": "key"},
                "turns": [{"role": "user", "author": "mo", "text": "Where is the key?"},
                          {"role": "assistant", "author": "kira", "text": "Under the mat."}]}  # fmt: skip
    (tmp_path / "transcripts" / "key.json").write_text(json.dumps(harmless))
    passed = commit_check(tmp_path, hook)
    assert passed.code == 0, passed.printed
    shutil.copy(DEMO / "csv_import.json", tmp_path / "transcripts")
    stopped = commit_check(tmp_path, hook)
    assert stopped.code == 1
    assert "all tests pass" in stopped.printed
