"""Every file of a real report, and what commands print, is what its JSON Schema says."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from tests.cli.test_claims import session
from tests.conftest import Undersong
from tests.report.outputs import OUTPUTS, check
from undersong.cli import cli
from undersong.cli.schemas import output_schemas
from undersong.core.manifest import stored_manifest
from undersong.report.schemas import FILES, json_schema

DEMO = Path(__file__).parents[2] / "demo"
SESSION = Path(__file__).parents[1] / "samples" / "claude-code"
ELSEWHERE = {".html", ".md", ".svg", ".sarif", ".csv", ".parquet"}  # pages, tables, and SARIF with its own schema


@pytest.fixture
def report(undersong: Undersong, tmp_path: Path) -> Path:
    """The demo with a coding session: findings, readings of sequences, claims, leads, a review, all formats."""
    shutil.copytree(DEMO, tmp_path / "demo")
    shutil.copytree(SESSION, tmp_path / "demo" / "conversations" / "parser")
    formats = [word for name in ("json", "jsonl", "sarif", "csv", "parquet") for word in ("--format", name)]
    judge = ("--read", "sequences", "--judge", "replay:demo/readings.replay")
    undersong("audit", "demo/conversations", *judge)
    first = json.loads(undersong("review", "next", "--json").out)
    assert undersong("review", "set", first["id"], "confirmed").code == 0
    ran = undersong("audit", "demo/conversations", "samples", *judge, *formats, "--json", "--group-by", "author")
    assert ran.code in (0, 3, 4), ran.err
    assert check("audit --json", ran.out, closed=False) == 1
    return tmp_path / "undersong-report"


def test_every_file_of_a_report_is_what_its_schema_says(report: Path) -> None:
    numbers = {}
    for path in report.iterdir():
        if path.suffix not in ELSEWHERE:
            assert path.name in OUTPUTS, f"{path.name} has no schema"
            numbers[path.name] = check(path.name, path.read_text(encoding="utf-8"))
    assert set(numbers) == {output.name for output in FILES}
    assert set(stored_manifest(report)["files"]) > set(numbers) - {"manifest.json", "run.json"}
    assert min(numbers.values()) > 0, numbers


def test_what_commands_print_is_what_their_schema_says(report: Path, undersong: Undersong) -> None:
    def printed(name: str, *arguments: str, file: str | None = None) -> None:
        ran = undersong(*arguments)
        text = Path(file).read_text(encoding="utf-8") if file else ran.out
        assert check(name, text) > 0, f"{arguments}: {ran.err}"

    store = ("--store", "undersong-report.db")
    assert report.is_dir()
    printed("scan", "scan", "samples", "--out", "scan.jsonl", file="scan.jsonl")
    printed("evaluate", "evaluate", "samples", "--out", "rows.jsonl", file="rows.jsonl")
    printed("store export", "store", "export", "all.jsonl", *store, file="all.jsonl")
    printed("claims --json", "claims", "demo/conversations", "--json")
    printed("leads --json", "leads", "undersong-report", "--json", "--all")
    printed("leads --group-by --json", "leads", "demo/network.jsonl", "--group-by", "author", "--json")
    printed("plan --json", "plan", "samples", "--json", "--judge", "anthropic:claude-sonnet-5-5")
    printed("plan --messages --json", "plan", "--messages", "120000", "--json")
    printed("prices --json", "prices", "--json")
    printed("config --json", "config", "--json")
    printed("doctor --json", "doctor", "--json")
    printed("review next --json", "review", "next", "--from", "claim", "--json", *store)
    finding = json.loads(Path("undersong-report/findings.jsonl").read_text(encoding="utf-8").splitlines()[0])
    printed("review set --json", "review", "set", finding["finding_id"], "unsure", "--json", *store)
    printed("review stats --json", "review", "stats", "--json", *store)


WARM, COLD = {"compassion": 0.9, "manipulation": 0.1}, {"compassion": 0.1, "manipulation": 0.9}
DENIED = {"deception": 0.8, "manipulation": 0.1, "dismissal": 0.1, "exploitation": 0.1}
ATTACKED = {"deception": 0.1, "manipulation": 0.8, "dismissal": 0.8, "exploitation": 0.1}


def scored_rows() -> str:
    """A cycle of warmth and its turn by one agent, and two of the three steps of DARVO by another."""
    scores = [("kira", each) for each in (WARM, WARM, WARM, COLD)] + [("al", each) for each in (DENIED, ATTACKED)]
    rows = [
        {"id": f"r{number}", "agent": agent, "target": "bo", "conversation": "t", "position": number,
         "time": f"2026-01-{number + 1:02}T00:00:00Z", "judge": "mine", "judge_hash": "m", "traits": traits}
        for number, (agent, traits) in enumerate(scores)
    ]  # fmt: skip
    return "\n".join(map(json.dumps, rows)) + "\n"


def test_what_is_printed_of_rows_and_stores_is_what_its_schema_says(undersong: Undersong) -> None:
    Path("rows.jsonl").write_text(scored_rows(), encoding="utf-8")
    assert undersong("store", "import", "rows.jsonl").code == 0
    literal = ("--rule", "love_bombing_literal", "--no-chance")
    sweep = ("sweep", "--json", "--min-evaluations", "1", "--no-chance")
    for name, ran in {
        "detect": undersong("detect", "rows.jsonl", *literal),
        "watch": undersong("watch", "rows.jsonl", "--no-follow", "--rule", "love_bombing_literal"),
        "sweep --json": undersong(*sweep, *literal[:2]),
        "sweep --json ": undersong(*sweep, "--again", "--emerging"),
        "agents --json": undersong("agents", "--json"),
        "agent --json": undersong("agent", "kira", "--json"),
        "formats --json": undersong("formats", "--json"),
        "version --json": undersong("--version", "--json"),
    }.items():
        assert check(name.strip(), ran.out) > 0, f"{name}: {ran.err}"


def test_what_is_exported_of_reviews_is_what_its_schema_says(report: Path, undersong: Undersong) -> None:
    assert report.is_dir()
    store = ("--store", "undersong-report.db")
    assert check("review export", undersong("review", "export", *store).out) == 1


HOOKED = [("1 failed, 8 passed", "pytest", {"decision", "reason"}),
          ("9 passed", "git push --no-verify; pytest", {"decision", "reason", "systemMessage"})]  # fmt: skip


@pytest.mark.parametrize(("result", "command", "keys"), HOOKED)
def test_the_answer_to_a_hook_is_what_its_schema_says(
    undersong: Undersong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str, command: str, keys: set[str]
) -> None:
    path = session(tmp_path, result, failed="failed" in result)
    path.write_text(path.read_text(encoding="utf-8").replace("pytest -q", command), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"transcript_path": str(path)})))
    answer = undersong("claims", "--hook").out
    assert (check("claims --hook", answer), set(json.loads(answer))) == (1, keys)


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command)
    for verb in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, verb)
        assert below is not None
        yield from commands(below, f"{name} {verb}".strip())
    yield name or "version", command


def test_every_command_that_prints_json_has_a_schema() -> None:
    printing = {
        f"{name} --json"
        for name, command in commands(cli)
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert printing - set(OUTPUTS) == set()
    assert len(printing) > 15


def test_a_schema_is_one_of_the_dialect_and_requires_every_key() -> None:
    for output in output_schemas():
        schema = json_schema(output)
        Draft202012Validator.check_schema(schema)
        for part in schema["$defs"].values():
            optional = set(part.get("properties", {})) - set(part.get("required", []))
            hook = {"decision", "reason", "systemMessage"} if output.name == "claims --hook" else set()
            assert optional <= {"groups", "psychogenic_risk", "span", "finding", "lead", "claim"} | hook
    assert len({output.file for output in output_schemas()}) == len(OUTPUTS)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"confidence": "sure"}, "is not valid under any of the given schemas"),
        ({"level": "grave"}, "is not one of"),
        ({"no_such_key": 1}, "Additional properties"),
    ],
)
def test_a_wrong_finding_is_not_valid(report: Path, change: dict[str, Any], what: str) -> None:
    first = json.loads((report / "findings.jsonl").read_text(encoding="utf-8").splitlines()[0])
    validator = Draft202012Validator(json_schema(OUTPUTS["findings.jsonl"], closed=True))
    validator.validate(first)
    with pytest.raises(ValidationError, match=what):
        validator.validate(first | change)
    del first["stages"]
    with pytest.raises(ValidationError, match="required"):
        validator.validate(first)


def test_the_command_lists_prints_and_writes_them(undersong: Undersong) -> None:
    listed = undersong("schemas")
    assert [line.split("  ")[0] for line in listed.out.splitlines()] == list(OUTPUTS)
    assert json.loads(undersong("schemas", "leads.jsonl").out) == json_schema(OUTPUTS["leads.jsonl"])
    assert undersong("schemas", "--out", "here/schemas").code == 0
    assert {path.name for path in Path("here/schemas").iterdir()} == {output.file for output in OUTPUTS.values()}
    unknown = undersong("schemas", "finding.jsonl")
    assert unknown.code == 2
    assert "did you mean 'findings.jsonl'" in unknown.err
    Path("taken").write_text("")
    assert undersong("schemas", "--out", "taken/below").code == 2
