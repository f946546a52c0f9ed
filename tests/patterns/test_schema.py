"""The JSON Schema for editors is the one that the types give."""

from __future__ import annotations

import re
from pathlib import Path

from undersong.patterns.catalog import all_rules
from undersong.patterns.language.rulefile import RuleFile, schema, schema_text

FILE = Path(__file__).parents[2] / "docs" / "pattern.schema.json"


def test_the_schema_in_docs_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text()


def test_every_key_is_described_and_no_other_allowed() -> None:
    properties = schema()["properties"]
    assert list(properties) == list(RuleFile.__struct_fields__)
    assert all(value["description"] for value in properties.values())
    assert schema()["additionalProperties"] is False


def test_the_shipped_rules_fit_its_patterns() -> None:
    properties = schema()["properties"]
    for rule in all_rules():
        assert all(re.search(properties["define"]["propertyNames"]["pattern"], name) for name in rule.file.define)
        assert all(re.search(properties["columns"]["propertyNames"]["pattern"], name) for name in rule.file.columns)
        assert re.search(properties["after_match"]["pattern"], rule.file.after_match)
        assert rule.file.within is None or re.search(properties["within"]["pattern"], rule.file.within)
    assert not re.search(properties["within"]["pattern"], "three weeks")
