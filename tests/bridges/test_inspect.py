"""Inspect and Scout as people run them, in an environment of their own: eval, score, scan, a store as transcripts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import Undersong
from tests.formats.conftest import outcome

ROOT = Path(__file__).parents[2]
PROJECT = Path(__file__).parent / "inspect_project"
SESSION = ROOT / "demo" / "conversations" / "csv_import.json"
PACKAGES = ("inspect-ai==0.3.285", "inspect-scout==0.6.1")
HARMLESS = {"schema": "undersong.session", "version": 1, "session": {"id": "key"},
            "turns": [{"role": "user", "author": "mo", "text": "Where is the key?"},
                      {"role": "assistant", "author": "kira", "text": "Under the mat."}]}  # fmt: skip
READ_SAMPLES = """
import json
from glob import glob
from inspect_ai.log import read_eval_log, write_eval_log
log = read_eval_log(glob("logs/*.eval")[0])
write_eval_log(log, "json/log.json")
print(json.dumps({sample.uuid: [
    [message.id, message.role, message.text, [[call.id, call.function, call.arguments] for call in
     getattr(message, "tool_calls", None) or ()], getattr(message, "tool_call_id", None)]
    for message in sample.messages] for sample in log.samples}))
"""
READ_LOG = """
import json
from glob import glob
from inspect_ai.log import read_eval_log
log = read_eval_log(glob("logs/*.eval")[0])
print(json.dumps({
    "accuracy": {score.name: score.metrics["accuracy"].value for score in log.results.scores},
    "samples": {sample.id: sample.scores["audit"].model_dump(mode="json") for sample in log.samples},
    "messages": {sample.id: [message.id for message in sample.messages] for sample in log.samples},
}))
"""


class Programs:
    """The programs of an environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, program: str, *arguments: str, cwd: Path) -> str:
        """What a program prints; it must succeed."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "UNDERSONG"))}
        named = {"INSPECT_DISPLAY": "plain", "SCOUT_DISPLAY": "plain", "NO_COLOR": "1", "HOME": str(cwd)}
        command = [str(self.folder / program), *arguments]
        ran = subprocess.run(command, cwd=cwd, env=kept | named, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """An environment with Inspect, Scout and this package."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv, with which the environment is there in seconds")
    folder = tmp_path_factory.mktemp("inspect") / "venv"
    install = [uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
    core = str(ROOT / "requirements" / "core.txt")
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
        [*install, *PACKAGES, "--constraint", core],
        [*install, "--requirement", core],
        [*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
    ):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    return Programs(folder / "bin")


@pytest.fixture(scope="module")
def project(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Inspect has run a task over two sessions with its mock model, which generates nothing."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(PROJECT / "sessions.py", folder)
    shutil.copy(SESSION, folder / "csv_import.session.json")
    (folder / "key.session.json").write_text(json.dumps(HARMLESS))
    (folder / "job.yaml").write_text("scanners:\n  - name: undersong/audit\n    params: {level: medium}\n")
    programs.run("inspect", "eval", "sessions.py", "--model", "mockllm/model", "--log-dir", "logs", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def samples(programs: Programs, project: Path) -> dict[str, list[Any]]:
    """What Inspect reads in its log, which is written as JSON beside it."""
    read: dict[str, list[Any]] = json.loads(programs.run("python", "-c", READ_SAMPLES, cwd=project))
    return read


@pytest.mark.parametrize("form", ["eval", "json"])
def test_every_message_of_a_log_that_inspect_wrote_is_read(
    project: Path, samples: dict[str, list[Any]], form: str
) -> None:
    (log,) = (project / {"eval": "logs", "json": "json"}[form]).glob(f"*.{form}")
    result = outcome(log)
    assert [file.source_format for file in result.files] == ["inspect"]
    assert [problem.what for problem in result.problems if problem.kind != "note"] == []
    assert len(result.conversations) == len(samples) == 2
    for conversation in result.conversations:
        messages = [
            [message.id, message.role, message.text,
             [[call.id, call.name, call.input] for call in message.tool_calls],
             message.tool_results[0].call_id if message.tool_results else None]
            for message in conversation.messages
        ]  # fmt: skip
        assert messages == samples[conversation.id]


def test_inspect_scores_a_log_with_what_contradicts_the_assistant(programs: Programs, project: Path) -> None:
    (log,) = (project / "logs").glob("*.eval")
    arguments = (str(log), "--scorer", "undersong/audit", "--action", "append", "--overwrite")
    programs.run("inspect", "score", *arguments, cwd=project)
    facts = json.loads(programs.run("python", "-c", READ_LOG, cwd=project))
    assert facts["accuracy"] == {"audit": 0.5}
    wrong, fine = facts["samples"]["csv_import"], facts["samples"]["key"]
    assert (wrong["value"], wrong["answer"], fine["value"]) == ("I", "false_promise", "C")
    assert "“all tests pass” [M8]" in wrong["explanation"]
    assert "Not looked for: " in fine["explanation"]
    messages = facts["messages"]["csv_import"]
    references = wrong["metadata"]["scanner_references"]
    assert [(one["cite"], one["id"]) for one in references] == [("[M8]", messages[7]), ("[M7]", messages[6])]


def scanned(programs: Programs, folder: Path, transcripts: str, scans: str) -> dict[str, dict[str, Any]]:
    """The first result of each transcript of a scan, by the name of its task or conversation."""
    options = ("--scans", scans, "--max-processes", "1")
    programs.run("scout", "scan", "job.yaml", "-T", transcripts, *options, cwd=folder)
    (results,) = (folder / scans).glob("*/audit.parquet")
    rows = pq.read_table(results).to_pylist()
    assert all(row["scan_error"] is None for row in rows)
    return {row["transcript_task_id"]: json.loads(row["value"])[0] for row in rows}


def test_scout_scans_a_log_by_the_name_of_our_scanner(programs: Programs, project: Path) -> None:
    rows = scanned(programs, project, "logs", "scans")
    wrong, fine = rows["csv_import"], rows["key"]
    assert (wrong["value"], wrong["label"]) == (True, "false_promise")
    assert [one["cite"] for one in wrong["references"]] == ["[M8]", "[M7]"]
    assert (fine["value"], fine["label"]) == (False, "nothing_found")
    assert "Not looked for: " in fine["explanation"]


def test_a_store_is_a_transcript_database_that_scout_reads(
    programs: Programs, undersong: Undersong, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "demo", tmp_path / "demo")
    undersong("audit", "demo/conversations", "--read", "sequences", "--judge", "replay:demo/readings.replay")
    ran = undersong("store", "export", "transcripts", "--format", "scout")
    assert (ran.code, "3 rows" in ran.out) == (0, True)
    assert "passed" in programs.run("scout", "db", "validate", "transcripts", cwd=tmp_path)
    (tmp_path / "job.yaml").write_text("scanners:\n  - name: undersong/audit\n")
    rows = scanned(programs, tmp_path, "transcripts", "scans")
    references = rows["Fix the CSV import"]["references"]
    assert [one["id"] for one in references] == ["csv-import:7", "csv-import:6"]
    (file,) = (tmp_path / "transcripts").glob("*.parquet")
    transcripts = {row["transcript_id"]: row for row in pq.read_table(file).to_pylist()}
    (finding,) = json.loads(transcripts["flat_share"]["undersong_findings"])
    assert (finding["pattern"], len(finding["message_ids"]), finding["lead"]) == ("love_bombing", 5, False)
