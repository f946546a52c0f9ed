"""The phrase files: every case holds, every mistake is named with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from undersong.datafiles.taxonomy import taxonomy
from undersong.datafiles.yaml_loader import RULES, file_hash, read
from undersong.ml.triage import TALK_FILE, load_triage
from undersong.models import TRAITS
from undersong.scan import load_book
from undersong.scan.lint import FIRES, PASSES, check_signals, stem
from undersong.scan.lint import test_signals as run_cases
from undersong.scan.phrases import SIGNALS, PhraseFile, signal_files

FILES = {path.stem: read(path, PhraseFile) for path in signal_files()}
GOOD = """\
trait: manipulation
why: a test
groups:
  - label: urgency
    indicator: MAN-URGENCY
    phrases:
      - hurry up now
      - no time to lose
      - the deadline is minutes away
      - quick, before they notice
    fires:
      - Hurry up now!
      - There is no time to lose.
      - Quick, before they notice it.
    passes:
      - Hurry up nowhere.
      - We lose time.
"""
WORDS = frozenset(["you", "are", "you're", "is", "the", "a", "to", "of"])


@pytest.mark.parametrize("path", signal_files(), ids=lambda path: path.stem)
def test_the_cases_beside_the_phrases_hold(path: Path) -> None:
    results = run_cases(path)
    assert len(results) >= 40
    assert [result for result in results if not result.ok] == []


def test_the_shipped_files_have_no_problem() -> None:
    assert [str(problem) for problem in check_signals()] == []


def test_every_trait_and_every_hard_constraint_has_phrases() -> None:
    assert FILES.keys() == {*TRAITS, "hard_constraints"}
    assert {file.trait for file in FILES.values()} == {*TRAITS, "hard_constraint"}
    named = [group.constraint for group in FILES["hard_constraints"].groups]
    assert named == [f"HC-0{number}" for number in range(1, 8)]
    for group in FILES["hard_constraints"].groups:
        assert len(group.phrases) >= 10, group.label


def test_every_indicator_has_phrases_or_a_reason_why_none_can_reveal_it() -> None:
    for trait in TRAITS:
        file = FILES[trait]
        with_phrases = {group.indicator for group in file.groups if group.indicator}
        assert with_phrases | file.no_wording.keys() == set(taxonomy().traits[trait].indicators)


def test_there_are_over_1200_phrases_and_two_near_misses_for_three_hits() -> None:
    groups = [group for file in FILES.values() for group in file.groups]
    assert sum(len(group.phrases) for group in groups) >= 1200
    assert all(len(group.fires) >= FIRES and len(group.passes) >= PASSES for group in groups)
    misses = sum(len(file.passes) for file in FILES.values()) + sum(len(group.passes) for group in groups)
    assert misses * 3 >= sum(len(group.fires) for group in groups) * 2


def test_a_variant_of_a_phrase_has_the_same_stem() -> None:
    assert stem("You’re imagining things", WORDS) == stem("you are imagining the thing", WORDS)
    assert stem("you are", WORDS) == {"you", "are"}
    assert stem("imagining things", WORDS) != stem("dreaming things", WORDS)


def test_the_book_carries_the_hash_of_every_file_it_rests_on() -> None:
    hashes = dict(load_book().hashes)
    assert hashes.pop("triage/triage.model") == load_triage()[1]
    assert hashes.pop("triage/talk_triage.model") == load_triage(file=TALK_FILE)[1]
    assert {"signals/manipulation.yaml", "structure.yaml", "telemetry.yaml", "routing.yaml"} <= hashes.keys()
    assert all(file_hash(RULES / name) == digest for name, digest in hashes.items())
    assert len([name for name in hashes if name.startswith("signals/")]) == len(list(SIGNALS.glob("*.yaml")))


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("trait: manipulation", "trait: manipulations", 1, "did you mean 'manipulation'"),
        ("indicator: MAN-URGENCY", "indicator: EXP-FEAR", 5, "no indicator of manipulation"),
        ("indicator: MAN-URGENCY", "indicator: MAN-URGENT", 5, "did you mean 'MAN-URGENCY'?"),
        ("      - hurry up now", "      - hurry up now\n      - Hurry  up now", 8, "stands twice"),
        ("      - hurry up now", "      - '?!'", 7, "is no phrase"),
        ("      - hurry up now", '      - "hurry\\n\\nup"', 7, "is no phrase"),
        ("    indicator:", "    indicater:", 5, "unknown key 'indicater'"),
        (
            "    passes:\n      - Hurry up nowhere.\n      - We lose time.",
            "    passes: []",
            15,
            "has 0 cases under 'passes'",
        ),
        ("      - Hurry up now!\n", "", 12, "has 2 cases under 'fires', fewer than 3"),
        ("      - no time to lose", "      - hurry up", 7, "has 3 distinct stems, fewer than 4"),
        ("    indicator: MAN-URGENCY", "    constraint: HC-01", 5, "only hard constraints"),
        ("groups:", "no_wording: {MAN-DERVO: a sequence}\ngroups:", 3, "did you mean 'MAN-DARVO'?"),
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
    assert [(one.kind, one.labels, one.ok, one.where) for one in run_cases(path) if not one.ok] == [
        ("fires", (), False, f"{path}:12"),
        ("passes", ("urgency",), False, f"{path}:16"),
    ]
