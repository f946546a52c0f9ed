"""The JSON Schema of pattern files, for editors: generated from the types that the reader uses."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from undersong.patterns.rulefile import AFTER, SPAN, RuleFile

_NAME = "^[A-Z][A-Z0-9_]*$"  # of a variable
_COLUMN = "^[a-z][a-z0-9_]*$"
_MEANING = {
    "id": "The name that findings carry.",
    "title": "A name for readers.",
    "level": "How grave a match is.",
    "falsepositives": "Innocent look-alikes; at least one.",
    "define": "Kinds of rows by variable (upper case): a condition on one row and its columns.",
    "pattern": "The order of the variables: A B, A | B, groups, * + ? {n,m}, reluctant with ?, ANY, ^ $, {- A -}.",
    "measures": "Numbers of a match by name; strength is required.",
    "aliases": "Other names of the rule.",
    "status": "How settled the rule is.",
    "description": "What the pattern is, for readers.",
    "why": "Where its numbers come from.",
    "references": "Sources.",
    "tags": "Words to choose rules by.",
    "misses": "What the rule does not find.",
    "enabled": "false: only when asked for by name.",
    "partition_by": "What makes a sequence.",
    "where": "Rows for which this is not true are not in the sequence at all.",
    "columns": "Values derived from the row and from earlier rows, by name (lower case).",
    "within": "From first to last row at most, such as 21 days; inclusive.",
    "max_unread": "Unread, refused or failed rows that one gap may hold.",
    "until": "No match takes or crosses a row for which this is true.",
    "after_match": "Where the search goes on after a match.",
    "keep": "Every match, or of those that overlap in one sequence the strongest.",
    "having": "Conditions on measures that a match must meet.",
    "overlaps": "Groups of variables that one row may well fit at once; the preference order decides which it is.",
    "cases": "Rows that the rule must find, and innocent look-alikes that it must not.",
}


def schema() -> dict[str, Any]:
    """The schema (2020-12). What it allows may still be refused: expressions are read by ``undersong rules check``."""
    (whole,), parts = msgspec.json.schema_components([RuleFile], ref_template="#/$defs/{name}")
    parts = dict(parts)
    root = dict(parts.pop(whole["$ref"].rsplit("/", 1)[1]))
    root["properties"] = {name: _property(name, value) for name, value in root["properties"].items()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "undersong pattern file"}
    root["description"] = "A pattern file; docs/rules.md explains each key."
    return {**{key: value for key, value in root.items() if key != "title"}, **head, "$defs": parts}


def schema_text() -> str:
    """The schema as the file in docs holds it."""
    return json.dumps(schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _property(name: str, value: dict[str, Any]) -> dict[str, Any]:
    stricter: dict[str, dict[str, Any]] = {
        "define": {"propertyNames": {"pattern": _NAME}, "minProperties": 1},
        "columns": {"propertyNames": {"pattern": _COLUMN}},
        "measures": {"propertyNames": {"pattern": _COLUMN}, "required": ["strength"]},
        "falsepositives": {"minItems": 1},
        "partition_by": {"contains": {"const": "agent"}, "uniqueItems": True},
        "max_unread": {"minimum": 0},
    }
    patterns = {"within": f"^{SPAN.pattern}$", "after_match": f"^{AFTER.pattern}$", "id": "^[A-Za-z_][A-Za-z0-9_]*$"}
    if name in patterns:
        stricter[name] = {"pattern": patterns[name]}
    return {"description": _MEANING[name], **value, **stricter.get(name, {})}
