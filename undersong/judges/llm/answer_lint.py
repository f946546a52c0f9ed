"""What is wrong with an answer that somebody wrote by hand, held to the JSON Schema of its question, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from undersong.datafiles.yaml_loader import did_you_mean

MOST_SHOWN = 40  # characters of a wrong value
FEW = 12  # allowed values that are listed one by one
TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "null": (type(None),),
}  # fmt: skip
TYPES_NAMED = {
    "object": "an object", "array": "a list", "string": "a text", "integer": "a whole number", "null": "null",
}  # fmt: skip


def answer_problems(value: Any, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Each problem in a sentence with its place, such as ``traits.virtue is 7: one of 0, 1, 2, 3, 4 is asked for``.

    Keys that nobody asks for are passed over, unless one that is asked for is missing.
    """
    if "anyOf" in schema:
        choices = [list(answer_problems(value, choice, place)) for choice in schema["anyOf"]]
        if all(choices):
            yield f"{_named(place)} is {_shown(value)}: {_asked_for(schema)} is asked for"
    elif not _is_a(value, schema):
        yield f"{_named(place)} is {_shown(value)}: {_asked_for(schema)} is asked for"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{_named(place)} is {_shown(value)}: {_enum_remedy(value, schema['enum'])}"
    elif isinstance(value, dict):
        yield from _keys(value, schema, place)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from answer_problems(item, schema["items"], f"{place}[{number}]")


def _keys(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties: Mapping[str, Any] = schema["properties"]
    foreign = [key for key in value if key not in properties]
    for key, part in properties.items():
        where = f"{place}.{key}".lstrip(".")
        if key in value:
            yield from answer_problems(value[key], part, where)
        elif key in schema["required"]:
            near = [name for name in foreign if did_you_mean(name, [key]).startswith("did you mean")]
            yield f"{where} is missing" + (f"; is it what stands under {_shown(near[0])}?" if near else "")


def _is_a(value: Any, schema: Mapping[str, Any]) -> bool:
    return isinstance(value, TYPES[schema["type"]]) and not isinstance(value, bool)


def _named(place: str) -> str:
    return place or "the answer"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _asked_for(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(map(_asked_for, schema["anyOf"]))
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum'][:FEW]))}"
    return TYPES_NAMED[schema["type"]]


def _enum_remedy(value: Any, allowed: list[Any]) -> str:
    if isinstance(value, str) and (len(allowed) > FEW or isinstance(allowed[0], str)):
        remedy = did_you_mean(value, [str(each) for each in allowed])
        return remedy if len(allowed) <= FEW or remedy.startswith("did you mean") else "the schema lists what it may be"
    return f"one of {', '.join(map(str, allowed))} is asked for"
