"""An answer is checked on our side: what nobody wrote, and what nobody asked for, does not get through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from undersong.judges.llm.prompts import shipped_prompts
from undersong.judges.llm.response import NEGATIVE, UnusableError, answer_schema, checked, confirmed
from undersong.models import TRAITS

REASONS: list[dict[str, str]] = [{"trait": trait, "reason": "It presses."} for trait in NEGATIVE]
UNIONS = 16  # of a schema that Anthropic compiles: parameters with anyOf, or with a list of types
TEXT = 'You "owe" me.\nDecide now,\tplease.'


def answer(**changes: Any) -> str:
    value: dict[str, Any] = {
        "control": "amber",
        "traits": dict.fromkeys(TRAITS, 2),
        "indicators": [{"id": "MAN-URGENCY", "quote": "Decide now", "confidence": 4}],
        "mechanisms": [{"id": "fault_admission", "quote": "please", "confidence": 1}],
        "acts": [{"act": "request", "quote": "Decide now"}],
        "reasons": REASONS,
        "stance": {"position": "holds", "claim": "that I owe"},
    }
    return json.dumps(value | changes)


def test_marks_become_scores_and_quotes_stand_in_the_message() -> None:
    result = checked(answer(), TEXT, "amber")
    assert set(result.traits.values()) == {0.5}
    assert [(each.id, each.quote, each.confidence) for each in result.indicators] == [
        ("MAN-URGENCY", "Decide now", 1.0)
    ]
    assert result.mechanisms[0].confidence == 0.25
    assert result.stance is not None
    assert result.stance.position == "holds"
    assert result.rejected == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("no", "not one JSON object"),
        ("[]", "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
        (answer(control="birch"), "control"),
        (answer(traits=None), "traits are missing"),
        (answer(traits=dict.fromkeys(TRAITS, 5)), "integer from 0 to 4"),
        (answer(traits=dict.fromkeys(TRAITS, 0.5)), "integer from 0 to 4"),
        (answer(traits=dict.fromkeys(TRAITS, True)), "integer from 0 to 4"),
        (answer(traits=dict.fromkeys(TRAITS[1:], 1)), "virtue has neither an integer"),
        (answer(traits=dict.fromkeys(TRAITS, "2")), "integer from 0 to 4"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, why: str) -> None:
    with pytest.raises(UnusableError, match=why):
        checked(text, TEXT, "amber")


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"indicators": [{"id": "MAN-NOSUCH", "quote": "Decide now", "confidence": 1}]}, "unknown_id"),
        ({"indicators": [{"id": "MAN-LOVEBOMB", "quote": "Decide now", "confidence": 1}]}, "unknown_id"),
        ({"indicators": [{"id": "MAN-URGENCY", "quote": "Decide today", "confidence": 1}]}, "quote_not_in_message"),
        ({"indicators": [{"id": "MAN-URGENCY", "quote": " ", "confidence": 1}]}, "quote_missing"),
        ({"indicators": [{"id": "MAN-URGENCY", "quote": "x" * 500, "confidence": 1}]}, "quote_too_long"),
        ({"indicators": [{"id": "MAN-URGENCY", "quote": "Decide now", "confidence": 9}]}, "out_of_range"),
        ({"indicators": ["MAN-URGENCY"]}, "malformed"),
        ({"indicators": [{"id": ["MAN-URGENCY"], "quote": "Decide now", "confidence": 1}]}, "malformed"),
        ({"indicators": None}, "list_missing"),
        ({"mechanisms": [{"id": "epistemic_drift", "quote": "Decide now", "confidence": 1}]}, "unknown_id"),
        ({"acts": [{"act": "orders", "quote": "Decide now"}]}, "unknown_id"),
        ({"stance": {"position": "wavers", "claim": ""}}, "stance"),
        ({"reasons": [*REASONS, {"trait": "virtue", "reason": "It is honest."}]}, "reason_superfluous"),
        ({"reasons": [*REASONS, REASONS[0]]}, "reason_superfluous"),
        ({"reasons": REASONS[1:]}, "reason_missing"),
        ({"reasons": [{**REASONS[0], "reason": "x" * 500}, *REASONS[1:]]}, "reason_too_long"),
        ({"traits": {**dict.fromkeys(TRAITS, 2), "manipulation": None}, "reasons": REASONS[1:]}, "null_not_offered"),
    ],
)
def test_what_is_dropped_is_counted_by_kind(changes: dict[str, Any], kind: str) -> None:
    assert checked(answer(**changes), TEXT, "amber").rejected == {kind: 1}


def test_null_is_kept_as_missing_and_is_neither_0_nor_an_error() -> None:
    traits = dict.fromkeys(TRAITS, 0) | {"accuracy": None, "fabrication": None, "virtue": 2.0}
    result = checked(answer(traits=traits, reasons=[]), TEXT, "amber")
    assert (result.traits["accuracy"], result.traits["fabrication"]) == (None, None)
    assert (result.traits["deception"], result.traits["virtue"]) == (0.0, 0.5)
    assert result.rejected == {}


def test_reasons_stand_by_the_traits_that_they_are_for() -> None:
    traits = dict.fromkeys(TRAITS, 0) | {"dismissal": 1, "manipulation": 3}
    reasons = [{"trait": "dismissal", "reason": " Waved away. "}, {"trait": "manipulation", "reason": "A debt."}]
    result = checked(answer(traits=traits, reasons=reasons), TEXT, "amber")
    assert list(result.reasons.items()) == [("manipulation", "A debt."), ("dismissal", "Waved away.")]


def test_a_quote_that_was_copied_with_its_escapes_is_the_one_in_the_message() -> None:
    result = checked(
        answer(indicators=[{"id": "MAN-URGENCY", "quote": 'You \\"owe\\" me.\\nDecide', "confidence": 2}]),
        TEXT,
        "amber",
    )
    assert result.indicators[0].quote == 'You "owe" me.\nDecide'


def test_a_code_fence_and_keys_that_nobody_asked_for_do_no_harm() -> None:
    assert checked(f"```json\n{answer(extra=1)}\n```", TEXT, "amber").traits["virtue"] == 0.5


def test_a_yes_needs_a_quote_from_each_message() -> None:
    reply = {"control": "amber", "answer": "yes", "confidence": 3}
    both = [{"message": 1, "quote": "false"}, {"message": 2, "quote": "true"}]
    assert confirmed(json.dumps({**reply, "quotes": both}), ("it is false", "it is true"), "amber").yes
    one = confirmed(json.dumps({**reply, "quotes": both[:1]}), ("it is false", "it is true"), "amber")
    assert (one.yes, one.rejected) == (False, {"unproven_yes": 1})
    no = confirmed(json.dumps({**reply, "answer": "no", "quotes": []}), ("a", "b"), "amber")
    assert (no.yes, no.quotes, no.rejected) == (False, (), {})


def test_hosted_interfaces_get_no_limits_that_they_refuse() -> None:
    hosted, local = json.dumps(answer_schema(lengths=False)), json.dumps(answer_schema(lengths=True))
    for keyword in ("maxLength", "maxItems"):
        assert keyword not in hosted
        assert keyword in local
    assert "minimum" not in local


def test_evidence_comes_first_and_null_only_where_it_is_offered() -> None:
    schema = answer_schema(lengths=False)
    assert schema["required"] == ["control", "indicators", "mechanisms", "acts", "reasons", "traits", "stance"]
    assert schema["required"] == list(schema["properties"])
    assert next(iter(schema["properties"]["indicators"]["items"]["properties"])) == "quote"
    marks = schema["properties"]["traits"]["properties"]
    nullable = {trait for trait, mark in marks.items() if {"type": "null"} in mark.get("anyOf", [])}
    assert nullable == set(TRAITS) - set(shipped_prompts().limits.always_marked)
    assert json.dumps(schema).count("anyOf") <= UNIONS
