"""A report of an offline model of one's own is checked with that model, and without it says which one is needed."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.core.manifest import canonical, digest_of
from undersong.errors import JudgeError, UsageError
from undersong.judges.offline import SHIPPED
from undersong.judges.protocol import open_judge
from undersong.ml.prototypes import SHIPPED as PHRASES
from undersong.verify import check

SAID = (
    "You are the only one who understands me, and your idea is worth a fortune.",
    "Do as I say and send the money tonight, or everybody will hear of it.",
    "Thank you all for the kind words about the garden.",
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The shipped model with one phrase less."""
    folder = tmp_path / "model"
    shutil.copytree(SHIPPED, folder)
    shutil.copytree(PHRASES, folder / "prototypes")
    file = folder / "prototypes" / "scam_ask.yaml"
    lines = file.read_text().splitlines(keepends=True)
    lines.remove(next(line for line in lines if line.lstrip().startswith("- ")))
    file.write_text("".join(lines))
    return folder


@pytest.fixture
def report(tmp_path: Path, model: Path, undersong: Undersong) -> Path:
    rows = [
        {"id": f"m{n}", "conversation": "c", "author": "kira", "role": "agent", "agent_id": "kira", "text": text}
        for n, text in enumerate(SAID)
    ]
    (tmp_path / "talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert undersong("audit", "talk.jsonl", "--judge", f"offline:{model}", "--out", "told").code == 0
    return tmp_path / "told"


def test_a_fresh_report_agrees_with_the_model_that_made_it(report: Path, model: Path) -> None:
    result = check(report, judge=f"offline:{model}")
    assert result.discrepancies == ()
    assert {"offline scores done again", "what moved the scores done again"} <= set(result.checked)


def test_without_its_folder_verify_names_the_model_and_what_was_not_done(
    report: Path, model: Path, undersong: Undersong
) -> None:
    needed = open_judge(f"offline:{model}").hash[:16]
    ended = undersong("verify", report)
    assert ended.code == 0
    for step in ("offline scores", "what moved the scores"):
        assert f"not done again: {step}: the report was made with the offline model {needed}" in ended.out
    assert "--judge offline:DIR" in ended.out
    assert "detect done again" in ended.out
    assert (
        undersong("verify", report, "--judge", f"offline:{model}").out.count("not done again") == 1
    )  # route: no input


def test_the_line_that_makes_it_again_names_the_folder_and_not_the_way_to_it(report: Path, model: Path) -> None:
    for page in ("forensic_audit_report.md", "report.html"):
        text = (report / page).read_text()
        assert "--judge offline:model --seed 0" in text
        assert str(model.parent) not in text


def test_another_model_than_the_reports_is_a_discrepancy(report: Path) -> None:
    discrepancies = check(report, judge="offline").discrepancies
    assert [each.where for each in discrepancies] == ["prototypes"]


def forge(report: Path, **changes: str) -> None:
    """Change hashes that the manifest names and give it a right digest again."""
    value = json.loads((report / "manifest.json").read_bytes())
    value["hashes"] |= changes
    (report / "manifest.json").write_bytes(canonical(value | {"digest": digest_of(value)}))


def test_a_model_that_does_not_follow_from_its_hashes_is_no_model_of_ones_own(report: Path) -> None:
    forge(report, **{"trait_heads.model": "0" * 64})
    assert "trait_heads.model" in {each.where for each in check(report).discrepancies}


def test_scores_that_were_changed_contradict_the_model(report: Path, model: Path) -> None:
    path = report / "evaluations.jsonl"
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    rows[1]["traits"]["manipulation"] = 0.0 if rows[1]["traits"]["manipulation"] > 0.5 else 1.0
    path.write_bytes(b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows))
    value = json.loads((report / "manifest.json").read_bytes())
    value["files"][path.name]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (report / "manifest.json").write_bytes(canonical(value | {"digest": digest_of(value)}))
    discrepancies = {each.what for each in check(report, judge=f"offline:{model}").discrepancies}
    assert "its scores by judge offline: does not come out again within .001" in discrepancies


@pytest.mark.parametrize("spec", ["anthropic:claude", "offlin", "replay:folder"])
def test_a_judge_that_is_no_offline_model_is_refused(report: Path, spec: str) -> None:
    with pytest.raises(UsageError, match="is no offline model"):
        check(report, judge=spec)


def test_a_folder_without_a_model_is_refused_with_its_name(report: Path, tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="nowhere"):
        check(report, judge=f"offline:{tmp_path / 'nowhere'}")
