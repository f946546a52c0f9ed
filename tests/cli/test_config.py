"""Settings in a file: what holds, from where, what is refused, and what they change in an audit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.cli.configuration import PARAMETERS, project_file, settings_here, settings_of
from undersong.errors import UsageError

DOC = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def no_settings_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "undersong" / "undersong.toml"


def held(folder: Path) -> dict[str, object]:
    return {setting.key: setting.value for setting in settings_here(folder)}


def test_the_file_of_the_page_sets_every_key_but_one(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOC, re.DOTALL)
    (tmp_path / "undersong.toml").write_text(example)
    assert set(held(tmp_path)) == set(PARAMETERS) - {"budget.recall"}
    assert held(tmp_path)["rules"] == str(tmp_path / "rules")


def test_pyproject_counts_where_it_has_the_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert project_file(tmp_path) is None
    (tmp_path / "pyproject.toml").write_text("[tool.undersong.gates]\nfail_under = 70\n")
    assert held(tmp_path) == {"gates.fail_under": 70}
    (tmp_path / "undersong.toml").write_text("[gates]\nfail_under = 60\n")
    assert held(tmp_path) == {"gates.fail_under": 60}


def test_settings_are_looked_for_up_to_the_root_of_the_repository_and_not_above(tmp_path: Path) -> None:
    (tmp_path / "undersong.toml").write_text("[gates]\nfail_under = 60\n")
    inner = tmp_path / "repo" / "logs"
    inner.mkdir(parents=True)
    assert held(inner) == {}
    (tmp_path / ".git").mkdir()
    assert held(inner) == {"gates.fail_under": 60}
    (tmp_path / "repo" / ".git").mkdir()
    assert held(inner) == {}


def test_a_gate_for_ways_round_a_check_is_none_of_commands_that_see_scores_alone(tmp_path: Path) -> None:
    (tmp_path / "undersong.toml").write_text("[gates]\nfail_on = 'bypass'\n")
    settings = settings_here(tmp_path)
    assert [each.value for each in settings_of(settings, "audit", {"fail_on"})] == ["bypass"]
    assert settings_of(settings, "detect", {"fail_on"}) == ()


def test_the_projects_file_goes_before_the_persons(tmp_path: Path, no_settings_of_ones_own: Path) -> None:
    no_settings_of_ones_own.parent.mkdir(parents=True)
    no_settings_of_ones_own.write_text('judge = "command:my-judge"\n[gates]\nfail_under = 10\n')
    (tmp_path / "undersong.toml").write_text("[gates]\nfail_under = 60\n")
    assert held(tmp_path) == {"judge": "command:my-judge", "gates.fail_under": 60}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[gates]\nfail_no = 'high'\n", "unknown key 'gates.fail_no'; did you mean 'fail_on'?"),
        ("jugde = 'x'\n", "unknown key 'jugde'; did you mean 'judge'?"),
        ("gates = 3\n", "Expected `object`"),
        ("[gates]\nfail_on = 'hihg'\n", "gates.fail_on"),
        ("[budget]\nusd = 'five'\n", "budget.usd"),
        ("judge = \n", "not valid TOML"),
        ("judge = 'command:rm -rf x'\n", "starts a program"),
        ("judge = 'openai:m@http://example.org/v1'\n", "an address of its choice"),
        ("judge = 'focused=openai:m,deep=command:x'\n", "starts a program"),
        ("judge = 'openai:m,replay:x'\n", "reads files"),
    ],
)
def test_what_a_projects_file_may_not_say_is_refused_with_its_name(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "undersong.toml").write_text(text)
    with pytest.raises(UsageError) as raised:
        settings_here(tmp_path)
    assert words in str(raised.value)
    assert str(tmp_path / "undersong.toml") in str(raised.value)


def test_an_audit_heeds_the_settings_and_says_so(undersong: Undersong) -> None:
    Path("undersong.toml").write_text('[gates]\nfail_under = 60\n[redaction]\nnames = ["kira_x"]\n')
    ran = undersong("audit", "samples")
    assert ran.code == 1
    assert "settings: gates.fail_under 60, redaction.names ['kira_x'] (see `undersong config`)" in ran.err
    assert "--fail-under 60: 1 session" in ran.out
    assert "kira_x" not in Path("undersong-report/report.html").read_text()
    assert undersong("audit", "samples", "--fail-under", "10").code == 0
    quiet = undersong("formats")
    assert (quiet.code, quiet.err) == (0, "")


def test_config_shows_what_holds_and_from_where(undersong: Undersong) -> None:
    Path("undersong.toml").write_text("[budget]\nusd = 2.5\n")
    lines = undersong("config").out.splitlines()
    (line,) = [line for line in lines if line.startswith("budget.usd")]
    assert line.split()[1:] == ["2.5", str(Path("undersong.toml").absolute())]
    assert any(line.startswith("judge") and "the command's default" in line for line in lines)
    facts = json.loads(undersong("config", "--json").out)
    assert facts == {"budget.usd": {"value": 2.5, "from": str(Path("undersong.toml").absolute())}}
