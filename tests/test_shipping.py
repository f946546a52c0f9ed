"""What a stranger installs and what a maintainer releases: the package, the container, the workflows, the checklist."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import undersong
from release import package
from tests.conftest import Undersong
from undersong.cli import cli

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ONLY_POSIX = {"fcntl", "grp", "pwd", "pty", "resource", "termios"}
MANUALS = ("SECURITY.md", "CODE_OF_CONDUCT.md", "SUPPORT.md", "AGENTS.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE")


def program(name: str) -> Path:
    """A program of this environment."""
    return Path(sys.executable).with_name(name)


def ran(*command: str | Path, cwd: Path = ROOT, allowed: tuple[int, ...] = (0,)) -> str:
    """What a command prints on both of its outputs."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode in allowed, done.stdout
    return done.stdout


def clone(folder: Path) -> Path:
    """What is committed, in a repository of its own, with a name to commit by."""
    copy = folder / "undersong"
    ran("git", "clone", "--quiet", "--no-hardlinks", ROOT, copy)
    ran("git", "checkout", "--quiet", "-B", "main", cwd=copy)
    ran("git", "config", "user.name", "somebody", cwd=copy)
    ran("git", "config", "user.email", "somebody@example.org", cwd=copy)
    return copy


def test_a_bound_that_does_not_hold_is_named() -> None:
    assert package.wanted({"wheel_bytes": 17e6, "environment_bytes": 1, "seconds": 1}) == [
        "wheel_bytes: 17,000,000, at most 16,000,000"
    ]


def test_the_version_has_one_place() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in text
    assert not re.search(r"^version = ", text, re.MULTILINE)
    assert ran(sys.executable, "-m", "hatchling", "version").strip() == undersong.__version__


def test_nothing_that_only_posix_has_is_imported_when_a_module_is() -> None:
    for path in (ROOT / "undersong").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert not names & ONLY_POSIX, path


def test_no_two_files_differ_by_case_and_none_has_a_name_that_windows_reserves() -> None:
    names = ran("git", "ls-files").splitlines()
    assert len({name.casefold() for name in names}) == len(names)
    reserved = {"con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))}
    assert [name for name in names if {part.split(".")[0].casefold() for part in Path(name).parts} & reserved] == []
    assert [name for name in names if re.search(r'[<>:"\\|?*]|[. ]$', name)] == []


def test_line_ends_of_windows_change_nothing(tmp_path: Path, undersong: Undersong) -> None:
    text = (ROOT / "demo" / "network.jsonl").read_bytes()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "network.jsonl").write_bytes(text)
    (tmp_path / "b" / "network.jsonl").write_bytes(text.replace(b"\n", b"\r\n"))
    rows = [undersong("scan", str(tmp_path / name / "network.jsonl"), "--out", "-").out for name in "ab"]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_least_privileged_pinned_and_runs_what_is_here(path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
    ritual = ran(sys.executable, "make.py", allowed=(1,))
    for verb in re.findall(r"make\.py (\w+)", " ".join(step.get("run", "") for step in steps)):
        assert re.search(rf"^{verb} ", ritual, re.MULTILINE), verb


def test_the_workflows_hold_before_a_linter_of_their_security() -> None:
    assert "No findings" in ran(program("zizmor"), "--offline", "--no-progress", ".github")


@pytest.mark.skipif(not program("hadolint").exists(), reason="hadolint has no wheel for this system")
def test_the_containerfile_holds_before_a_linter() -> None:
    assert ran(program("hadolint"), "Containerfile") == ""


def services() -> dict[str, Any]:
    """What `compose.yaml` starts."""
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return services


def test_the_container_is_unprivileged_and_the_services_are_on_loopback() -> None:
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    users = [line for line in lines if line.startswith("USER ")]
    assert users == ["USER 10001"]
    assert set(services()) == {"undersong", "audit", "graph", "postgres", "neo4j"}
    ports = [port for service in services().values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for service in services().values():
        assert "image" in service
        assert "build" not in service or (service["read_only"] and service["cap_drop"] == ["ALL"])


@pytest.mark.parametrize("name", ["undersong", "audit", "graph"])
def test_a_service_runs_a_command_that_is_here_over_the_store_of_the_audits(name: str) -> None:
    arguments = services()[name]["command"]
    command: click.Command | None = cli
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), arguments.pop(0))
    assert command
    options = {option for parameter in command.params for option in parameter.opts}
    assert {argument for argument in arguments if argument.startswith("--")} <= options
    shared = services()["audit"]["command"][-1]
    assert shared.startswith("postgresql://")
    wanted = {"undersong": (shared,), "audit": (shared,), "graph": ("bolt://neo4j:7687", shared)}
    assert set(wanted[name]) <= set(arguments)


def test_the_files_that_people_look_for_are_there_and_their_links_lead_somewhere() -> None:
    for name in MANUALS:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert len(text) > 500, name
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (ROOT / target).exists(), f"{name}: {target}"
    for form in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        assert yaml.safe_load(form.read_text(encoding="utf-8")), form
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_the_checklist_says_what_stands_against_a_release(tmp_path: Path) -> None:
    copy = clone(tmp_path)
    said = ran(sys.executable, "-m", "release.checklist", "check", "two", cwd=copy, allowed=(1,))
    assert "'two' is no version" in said
    changelog = copy / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-11-01\n\n- It is there.\n")
    said = ran(sys.executable, "-m", "release.checklist", "check", "0.9.0", cwd=copy, allowed=(1,))
    assert "nothing under Unreleased" in said
    assert "not committed" in said


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which the checklist has made version 0.9.0: tested package, notes, tag."""
    copy = clone(tmp_path_factory.mktemp("release"))
    (copy / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n")
    ran("git", "commit", "--quiet", "--all", "--message", "A thing", cwd=copy)
    ran(sys.executable, "-m", "release.checklist", "check", "0.9.0", cwd=copy)
    said = ran(sys.executable, "-m", "release.checklist", "make", "0.9.0", cwd=copy)
    assert "tagged v0.9.0" in said
    return copy


@pytest.mark.slow
def test_a_release_is_made_by_the_checklist_alone(released: Path) -> None:
    assert ran("git", "tag", "--points-at", "HEAD", cwd=released).strip() == "v0.9.0"
    assert (released / "dist" / "undersong-0.9.0.tar.gz").is_file()
    assert "A thing." in (released / "dist" / "notes.md").read_text(encoding="utf-8")
    ran(sys.executable, "-m", "release.checklist", "check", "0.9.0", cwd=released)
    again = ran(sys.executable, "-m", "release.checklist", "make", "0.9.0", cwd=released, allowed=(1,))
    assert "tagged already" in again


@pytest.mark.slow
def test_the_wheel_describes_itself_without_links_that_lead_nowhere(released: Path) -> None:
    with zipfile.ZipFile(next((released / "dist").glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
        description = wheel.read(name).decode()
    assert "## What it finds" in description
    assert re.findall(r"\]\((?!https?:)[^)]*\)", description) == []


@pytest.mark.slow
def test_the_notes_of_a_version_are_its_part_of_the_changelog(released: Path) -> None:
    assert "A thing." in ran(sys.executable, "-m", "release.checklist", "notes", "0.9.0", cwd=released)
    said = ran(sys.executable, "-m", "release.checklist", "notes", "0.8.0", cwd=released, allowed=(1,))
    assert "nothing under 0.8.0" in said


@pytest.mark.slow
def test_the_bill_of_materials_names_what_is_installed(released: Path) -> None:
    bill = json.loads(next((released / "dist").glob("*.cdx.json")).read_text(encoding="utf-8"))
    assert {"numpy", "click", "undersong"} <= {part["name"] for part in bill["components"]}
    assert "file:" not in json.dumps(bill)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uvx") is None, reason="uv is not installed")
def test_the_program_runs_without_being_installed(released: Path, tmp_path: Path) -> None:
    wheel = next((released / "dist").glob("*.whl"))
    uvx = ["uvx", "--quiet", "--python", sys.executable, "--from", str(wheel)]
    done = subprocess.run(
        [*uvx, "undersong", "leads", "demo/network.jsonl"],
        cwd=ROOT, env=os.environ | {"UV_TOOL_DIR": str(tmp_path / "tools")}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "pellmell" in done.stdout
