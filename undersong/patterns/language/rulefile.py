"""The YAML of a pattern file, key by key, and its hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from undersong.datafiles.yaml_loader import YamlDocument, did_you_mean, load
from undersong.errors import RuleError
from undersong.models import TRAITS, Level

_KEYS = Path(__file__).parent / "rule_keys.yaml"
Key = Literal["agent", "target", "conversation"]
_MINUTES = {"minute": 1, "hour": 60, "day": 1440, "week": 10080}
_LONGEST = 100_000 * 1440  # minutes: 100,000 days, so that no sum of times leaves 64 bits
SPAN = re.compile(r"(\d+) (minute|hour|day|week)s?")
AFTER = re.compile(r"skip (?:past last row|to next row|to (?:first|last) [A-Z][A-Z0-9_]*)")
_NO_MEMBER = re.compile(r"Invalid enum value '(.*)'")
_CLAUSES = ("define", "pattern", "columns", "measures")
_STAND_INS: dict[str, Any] = {"id": "unread", "title": "", "level": "low", "falsepositives": ["unread"]}
# what a rule says of itself, and sets for others, changes no finding of its own, so it is not in the hash
_PROSE = (
    "aliases", "title", "description", "why", "reading", "references", "falsepositives", "misses", "overlaps", "sets",
    "cases",
)  # fmt: skip


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small table of rows and what must be found in it: per finding, the ids of its messages."""

    name: str
    rows: str
    finds: tuple[str, ...] = ()
    base: dict[str, float] = {}


class Examples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cases beside a rule: rows that it must find, and innocent look-alikes that it must not."""

    hits: tuple[Example, ...] = ()
    near_misses: tuple[Example, ...] = ()


class StageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage of a shape as a reader of the conversation is told it: ``shows`` is what its messages do."""

    name: str
    shows: str


class ShapeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pattern in prose, for a reader of the conversation itself; the stages in their order."""

    shape: str
    stages: tuple[StageFile, ...]


class RuleFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A pattern file as written; docs/rules.md explains each key."""

    id: str
    title: str
    level: Level
    falsepositives: tuple[str, ...]
    define: dict[str, str | float | bool]
    pattern: str
    measures: dict[str, str | float | bool]
    aliases: tuple[str, ...] = ()
    variant_of: str | None = None
    status: Literal["stable", "experimental", "deprecated"] = "experimental"
    description: str = ""
    why: str = ""
    reading: ShapeFile | None = None
    references: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    overlaps: tuple[tuple[str, ...], ...] = ()
    sets: dict[str, tuple[str, ...]] = {}
    enabled: bool = True
    partition_by: tuple[Key, ...] = ("agent", "target")
    where: str | bool | None = None
    columns: dict[str, str | float | bool] = {}
    within: str | None = None
    max_unread: int | None = None
    until: str | bool | None = None
    after_match: str = "skip past last row"
    keep: Literal["every", "strongest"] = "every"
    having: tuple[str | bool, ...] = ()
    cases: Examples = Examples()


def rule_hash(rule: RuleFile) -> str:
    """SHA-256 over the canonical JSON of what can change a finding; keys left at their default are left out."""
    values = {name: value for name, value in msgspec.to_builtins(rule).items() if name not in _PROSE}
    return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()


def written(value: str | float | bool) -> str:
    """An expression as text: YAML reads ``true`` and ``1`` as values of their own."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def span(text: str | None) -> int | None:
    """``21 days`` in microseconds (None: no bound); raises ValueError for anything else."""
    if text is None:
        return None
    parsed = SPAN.fullmatch(text)
    if not parsed:
        raise ValueError(f"'{text}' is no span of time such as 21 days or 6 hours")
    minutes = int(parsed[1]) * _MINUTES[parsed[2]]
    if minutes > _LONGEST:
        raise ValueError(f"'{text}' is longer than {_LONGEST // _MINUTES['day']:,} days; leave it out for no bound")
    return minutes * 60_000_000


def after_match(text: str) -> tuple[str, str]:
    """Where to go on, and the variable it names (or ""); raises ValueError for an unknown clause."""
    if not AFTER.fullmatch(text):
        accepted = "skip past last row, skip to next row, skip to first VARIABLE or skip to last VARIABLE"
        raise ValueError(f"'{text}' is no way to go on; write {accepted}")
    words = text.removeprefix("skip to ").split()
    if words[0] == "skip":
        return "past", ""
    return words[0], "" if words[0] == "next" else words[1]


@cache
def _fields() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(RuleFile)


def wrong_keys(document: YamlDocument) -> list[RuleError]:
    """Every key whose value is missing or of the wrong kind; reading the whole file stops at the first."""
    value, problems = document.value, []
    if not isinstance(value, Mapping):
        return [document.error("is not a list of keys and values", "$", "see docs/rules.md")]
    for field in _fields():
        if field.name not in value:
            if field.required:
                problems.append(document.error(f"lacks the key '{field.name}'", "$", "see docs/rules.md"))
            continue
        wrong = _wrong(value[field.name], field.type)
        if wrong:
            what, _, place = wrong.partition(" - at ")
            below = place.strip("`").removeprefix("key in `").removeprefix("$")
            remedy = _closed_set_remedy(what, field.name, field.type)
            problems.append(document.error(f"{field.name}: {what}", f"$.{field.name}{below}", remedy))
    return problems


def without_wrong_keys(document: YamlDocument) -> YamlDocument | None:
    """The file as if its wrong and unknown keys had their defaults, so that the rest is checked in the same run.

    None where ``define``, ``pattern``, ``columns`` or ``measures`` cannot be read: the others depend on them.
    """
    if not isinstance(document.value, Mapping):
        return None
    valid: dict[str, Any] = {}
    for field in _fields():
        if field.name in document.value and not _wrong(document.value[field.name], field.type):
            valid[field.name] = document.value[field.name]
        elif field.name in _CLAUSES and (field.required or field.name in document.value):
            return None
        elif field.required:
            valid[field.name] = _STAND_INS[field.name]
    return YamlDocument(document.path, valid, document.root)


def _wrong(value: Any, kind: Any) -> str:
    """What is wrong with the value of a key, in the words of msgspec; empty where nothing is."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _closed_set_remedy(what: str, name: str, kind: Any) -> str:
    """The remedy for a word that is none of a closed set."""
    invalid = _NO_MEMBER.match(what)
    choices = next((list(get_args(each)) for each in (kind, *get_args(kind)) if get_origin(each) is Literal), [])
    return did_you_mean(invalid[1], choices) if invalid and choices else f"docs/rules.md tells what '{name}' holds"


def unknown_keys(document: YamlDocument) -> list[RuleError]:
    """Keys that no pattern file has, with the nearest known one; the reader stops at the first, this names all."""
    errors = _not_fields(document, document.value, "$", RuleFile)
    cases = document.value.get("cases") if isinstance(document.value, Mapping) else None
    errors += _not_fields(document, cases, "$.cases", Examples)
    for group in ("hits", "near_misses"):
        examples = cases.get(group) if isinstance(cases, Mapping) else None
        for i, example in enumerate(examples if isinstance(examples, list) else ()):
            errors += _not_fields(document, example, f"$.cases.{group}[{i}]", Example)
            base = example.get("base") if isinstance(example, Mapping) else None
            errors += _not_among(document, base, f"$.cases.{group}[{i}].base", list(TRAITS))
    return errors


def _not_fields(document: YamlDocument, value: Any, path: str, kind: type[msgspec.Struct]) -> list[RuleError]:
    return _not_among(document, value, path, list(kind.__struct_fields__))


def _not_among(document: YamlDocument, value: Any, path: str, allowed: list[str]) -> list[RuleError]:
    if not isinstance(value, Mapping):
        return []
    unknown = [str(key) for key in value if key not in allowed]
    return [document.error(f"unknown key '{key}'", f"{path}.{key}", did_you_mean(key, allowed)) for key in unknown]


def schema() -> dict[str, Any]:
    """The schema (2020-12). What it allows may still be refused: expressions are read by ``undersong rules check``."""
    (whole,), parts = msgspec.json.schema_components([RuleFile], ref_template="#/$defs/{name}")
    parts = dict(parts)
    root = dict(parts.pop(whole["$ref"].rsplit("/", 1)[1]))
    keys = load(_KEYS).value
    for name, key in (("within", SPAN), ("after_match", AFTER)):
        keys[name]["pattern"] = f"^{key.pattern}$"
    root["properties"] = {name: {**value, **keys[name]} for name, value in root["properties"].items()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "undersong pattern file"}
    root["description"] = "A pattern file; docs/rules.md explains each key."
    return {**{key: value for key, value in root.items() if key != "title"}, **head, "$defs": parts}


def schema_text() -> str:
    """The schema as the file in docs holds it."""
    return json.dumps(schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
