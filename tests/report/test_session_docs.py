"""docs/sessions.md: its example is what its command gives, its kinds, files and groups are those of the package."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from tests.conftest import Undersong
from undersong.datafiles.verdict_config import mechanisms
from undersong.datafiles.yaml_loader import RULES
from undersong.report.order import group_of
from undersong.verdict.detectors import camouflage, contradicted_claims, instability, liability, same_code
from undersong.verdict.detectors.same_code import MECHANISM

TEXT = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text(encoding="utf-8")
KINDS = {
    instability.MECHANISM: {instability.FLIP, instability.CONCESSION},
    camouflage.MECHANISM: {camouflage.KIND},
    MECHANISM: {same_code.SAME, same_code.COMMENTS, contradicted_claims.AFTER, contradicted_claims.ERROR},
    liability.MECHANISM: {liability.KIND},
}


def test_the_example_is_what_its_command_gives(undersong: Undersong) -> None:
    (command,) = re.findall(r"<!-- run -->\n```sh\nundersong (.*?)\n```", TEXT)
    ran = undersong(*shlex.split(command))
    (session,) = json.loads(ran.out)["sessions"]
    table_rows = re.findall(r"^\| (\d+) \| (\d+) \| `(\w+)` \| `(\w+)` \| (\d+) \|$", TEXT, re.MULTILINE)
    (verdict,) = json.loads(Path("report/case.json").read_text(encoding="utf-8"))["sessions"]
    taken = [
        (str(each["position"]), str(each["points"]), each["mechanism"], each["kind"]) for each in verdict["deductions"]
    ]
    assert sorted(taken) == sorted(tuple(each[:4]) for each in table_rows)
    assert len({each[4] for each in table_rows}) == verdict["episodes"]
    assert session["score"] == 50
    assert "psychogenic_risk" not in session  # a session about code
    assert session["profile"] == "coding"
    assert session["assessed"] == 2


def test_every_mechanism_has_its_points_and_kinds() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+ \| .*) \|$", TEXT, re.MULTILINE))
    assert rows.keys() == mechanisms().mechanisms.keys() == KINDS.keys()
    for name, cells in rows.items():
        points, evidence, *_ = cells.split(" | ")
        assert int(points) == mechanisms().mechanisms[name].penalty
        assert set(re.findall(r"`(\w+)`", evidence)) == KINDS[name]


def test_every_rule_file_of_sessions_is_named() -> None:
    named = set(re.findall(r"`((?:session/)?\w+\.yaml)`", TEXT.replace("undersong/data/rules/session/", "session/")))
    assert {f"session/{path.name}" for path in (RULES / "session").glob("*.yaml")} <= named
    assert all((RULES / name).is_file() for name in named)


def test_the_glossary_has_both_families_with_what_stands_under_them() -> None:
    families = {
        name: re.findall(r"`(\w+)`", text.split("\n\n")[0])
        for name, text in re.findall(r"\*\*([^*]+)\*\*: (.*?)(?=\n\*\*|\Z)", TEXT, re.DOTALL)
    }
    assert families.keys() == {"Adversarial Compliance", "Psychogenic Harm"}
    for family, names in families.items():
        assert names
        assert {group_of(name) for name in names} == {family}
