"""Whether what a command printed, or a file that it wrote, is what the published JSON Schema of it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from undersong.cli.schemas import output_schemas
from undersong.report.schemas import OutputSchema, json_schema

OUTPUTS = {output.name: output for output in output_schemas()}


def documents(output: OutputSchema, text: str) -> Iterator[Any]:
    yield from (json.loads(part) for part in (text.splitlines() if output.lines else [text]))


def check(name: str, text: str, *, closed: bool = True) -> int:
    """How many documents there are, all of them valid; ``closed``: without a key that the schema does not name."""
    validator = Draft202012Validator(json_schema(OUTPUTS[name], closed=closed), format_checker=FormatChecker())
    every = list(documents(OUTPUTS[name], text))
    for document in every:
        validator.validate(document)
    return len(every)
