"""What ``--judge`` may name, and what is said where it names nothing."""

from __future__ import annotations

import pytest

from undersong.errors import UsageError
from undersong.judges.llm.model_spec import ModelSpec, parse_model_spec

GOOD = [
    ("m", ModelSpec("openai", "m")),
    ("m+high", ModelSpec("openai", "m", "high")),
    ("m@http://h:1/v1", ModelSpec("openai", "m", None, "http://h:1/v1")),
    ("a/b:free+low@https://h/v1", ModelSpec("openai", "a/b:free", "low", "https://h/v1")),
]
BAD = [
    ("", "--judge 'openai:': names no model; write openai:MODEL or openai:MODEL@http://…"),
    ("@http://h", "--judge 'openai:@http://h': names no model; write openai:MODEL or openai:MODEL@http://…"),
    (
        "m+hihg",
        "--judge 'openai:m+hihg': unknown effort 'hihg'; known are none, minimal, low, medium, high, xhigh, max",
    ),
]


@pytest.mark.parametrize(("argument", "spec"), GOOD)
def test_a_model_may_have_an_effort_and_an_address(argument: str, spec: ModelSpec) -> None:
    assert parse_model_spec("openai", argument) == spec
    assert spec.name == f"openai:{argument}"


@pytest.mark.parametrize(("argument", "expected"), BAD)
def test_what_names_no_model_is_told_with_the_form(argument: str, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_model_spec("openai", argument)
    assert str(error.value) == expected
