"""What a page says to the person who decides: which rule, which stages, in which order, and what suffices."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.serve.world import conversation, finding_of
from undersong.models import Finding
from undersong.patterns.catalog import all_rules
from undersong.serve.pattern_words import any_order, enough_words, found_by, plain, rule_paragraphs, stage_names

RULES = {rule.id: rule for rule in all_rules()}


def finding(rule: str, *stages: str, read: bool = False, **other: Any) -> Finding:
    """A finding of a rule with these stages, one a message."""
    made = finding_of(conversation(1, 12), 0)
    own = tuple((stage, message) for stage, message in zip(stages, made.message_ids, strict=False))
    measures = {"certainty": 3.0} if read else {"strength": 0.7}
    return msgspec.structs.replace(
        made, pattern=RULES[rule].pattern, rule_hash=RULES[rule].hash, title=RULES[rule].file.title, stages=own,
        measures=measures, **other,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "read", "words"),
    [
        ("darvo", False, "found by the main rule"),
        ("darvo_by_indicators", False, "found by the rule “by indicators”"),
        ("darvo_by_sums", False, "found by the rule “by sums”"),
        ("darvo_by_indicators", True, "found by reading the whole sequence"),
        ("darvo_slow", False, "found by the main rule"),  # a pattern of its own, with a title of its own
    ],
)
def test_findings_of_one_title_say_which_rule_found_them(rule: str, read: bool, words: str) -> None:
    assert found_by(finding(rule, "DENY", read=read)) == words


def test_a_rule_of_another_version_is_said_to_be_one() -> None:
    other = msgspec.structs.replace(finding("darvo", "DENY"), rule_hash="0" * 64)
    assert found_by(other) == "found by a rule that is not among those of today"


@pytest.mark.parametrize(
    ("rule", "read", "stages", "names"),
    [
        ("con_game", False, ("RAPPORT", "STING"), ("rapport", "tale", "sting")),
        ("con_game_by_indicators", True, ("ask",), ("rapport", "tale", "ask")),  # those of the reader
        ("sabotage_ramp", False, ("STEP",), ("step",)),
        ("sabotage_ramp_by_indicators", True, ("small step",), ("trusted work", "small step", "larger step")),
        ("darvo_by_indicators", True, (), ("deny", "attack", "reverse")),
    ],
)
def test_every_stage_of_the_pattern_is_named_seen_or_not(
    rule: str, read: bool, stages: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert stage_names(finding(rule, *stages, read=read)) == names


def test_what_suffices_to_confirm_names_the_stages_and_the_speaker() -> None:
    words = enough_words(finding("con_game", "RAPPORT"), "talk-00001")
    assert words == "Enough to confirm: what ada wrote shows rapport, tale and ask, whichever messages they are in."


def test_no_word_of_a_rule_needs_its_file_or_its_thresholds() -> None:
    for name in RULES:
        for line in rule_paragraphs(finding(name)):
            assert not any(part in line for part in (" .", "docs/", ".md", "bench/", "PAT-")), (name, line)
            assert line.rstrip(".")[-1:].isalnum(), (name, line)
    assert (
        plain("It asks for flattery. Manipulation past .45 counts. See docs/benchmark.md.") == "It asks for flattery."
    )
    assert plain("Help first (goodwill of .6 and more), then closeness.") == "Help first, then closeness."


def test_a_rule_that_takes_its_stages_in_any_order_says_nothing_of_another_order() -> None:
    assert any_order(finding("dependency_loop_by_indicators")) is (
        "PERMUTE" in RULES["dependency_loop_by_indicators"].file.pattern
    )
    assert not any_order(finding("con_game"))
