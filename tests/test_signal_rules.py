"""The phrase files: every case holds, every mistake is named with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from undersong.models import NEGATIVE_TRAITS, TRAITS
from undersong.rulebook import RULES, file_hash, read
from undersong.scan import load_book
from undersong.scan.cases import CaseResult, check_signals
from undersong.scan.cases import test_signals as run_cases
from undersong.scan.phrases import SIGNALS, PhraseFile, signal_files
from undersong.triage import load_triage

FILES = {path.stem: read(path, PhraseFile) for path in signal_files()}
GOOD = """\
trait: manipulation
why: a test
groups:
  - label: urgency
    indicator: MAN-URGENCY
    phrases:
      - hurry up now
fires:
  - {label: urgency, text: Hurry up now!}
passes:
  - Hurry up nowhere.
"""


def case_id(result: CaseResult) -> str:
    return f"{Path(result.where).name}-{result.text[:30]}"


@pytest.mark.parametrize("result", run_cases(), ids=case_id)
def test_the_case_beside_the_phrases_holds(result: CaseResult) -> None:
    assert result.ok, f"{result.where}: expected {result.expected}, got {result.labels}"


def test_the_shipped_files_have_no_problem() -> None:
    assert [str(problem) for problem in check_signals()] == []


def test_every_trait_and_every_hard_constraint_has_phrases() -> None:
    assert FILES.keys() == {*TRAITS, "hard_constraints"}
    assert {file.trait for file in FILES.values()} == {*TRAITS, "hard_constraint"}
    named = [group.constraint for group in FILES["hard_constraints"].groups]
    assert named == [f"HC-0{number}" for number in range(1, 8)]
    for group in FILES["hard_constraints"].groups:
        assert len(group.phrases) >= 10, group.label


@pytest.mark.parametrize("trait", TRAITS)
def test_a_file_has_enough_phrases_and_two_near_misses_for_three_hits(trait: str) -> None:
    file = FILES[trait]
    assert sum(len(group.phrases) for group in file.groups) >= (40 if trait in NEGATIVE_TRAITS else 20)
    assert len(file.passes) * 3 >= len(file.fires) * 2


def test_the_book_carries_the_hash_of_every_file_it_rests_on() -> None:
    hashes = dict(load_book().hashes)
    assert {"signals/manipulation.yaml", "structure.yaml", "telemetry.yaml", "routing.yaml"} <= hashes.keys()
    assert hashes.pop("triage/triage.model") == load_triage()[1]
    assert all(file_hash(RULES / name) == digest for name, digest in hashes.items())
    assert len([name for name in hashes if name.startswith("signals/")]) == len(list(SIGNALS.glob("*.yaml")))


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("trait: manipulation", "trait: manipulations", 1, "did you mean 'manipulation'"),
        ("indicator: MAN-URGENCY", "indicator: EXP-FEAR", 5, "no indicator of manipulation"),
        ("      - hurry up now", "      - hurry up now\n      - Hurry  up now", 8, "stands twice"),
        ("      - hurry up now", "      - '?!'", 7, "is no phrase"),
        ("      - hurry up now", '      - "hurry\\n\\nup"', 7, "is no phrase"),
        ("{label: urgency,", "{label: urgent,", 9, "did you mean 'urgency'"),
        ("    indicator:", "    indicater:", 5, "unknown key 'indicater'"),
        ("passes:\n  - Hurry up nowhere.", "passes: []", 10, "no cases under 'passes'"),
        ("    indicator: MAN-URGENCY", "    constraint: HC-01", 5, "only hard constraints"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, what: str) -> None:
    path = tmp_path / "manipulation.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert check_signals(path) == []
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    problems = [str(problem) for problem in check_signals(tmp_path)]
    assert any(problem.startswith(f"{path}:{line}: ") and what in problem for problem in problems), problems


def test_all_broken_files_are_named_in_one_run(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("trait: [", encoding="utf-8")
    (tmp_path / "b.yaml").write_text(GOOD.replace("why: a test\n", ""), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(GOOD, encoding="utf-8")
    places = [problem.where.rsplit("/", 1)[1].split(":")[0] for problem in check_signals(tmp_path)]
    assert places == ["a.yaml", "b.yaml"]


def test_a_case_that_does_not_hold_says_what_it_gave(tmp_path: Path) -> None:
    path = tmp_path / "manipulation.yaml"
    path.write_text(
        GOOD.replace("Hurry up now!", "Hurry!").replace("Hurry up nowhere.", "Hurry up now."), encoding="utf-8"
    )
    assert [(one.kind, one.labels, one.ok) for one in run_cases(path)] == [
        ("fires", (), False),
        ("passes", ("urgency",), False),
    ]
