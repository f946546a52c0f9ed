"""Queries and forms of requests as typed values, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.datastructures import ImmutableMultiDict

from undersong.models import Record
from undersong.serve.problems import ProblemError

Q = TypeVar("Q", bound=Record)


def query_of(values: ImmutableMultiDict[str, Any], kind: type[Q], also: Sequence[str] = ()) -> Q:
    """The record of a query string: a list has its name several times. ``also`` are names that are read elsewhere.

    Empty values are as good as none. Raises ProblemError for an unknown name and for a value of the wrong kind.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    several = {name for name, field in fields.items() if "tuple" in str(field.type)}
    chosen: dict[str, Any] = {}
    for name in dict.fromkeys(values.keys()):
        texts = [text for text in values.getlist(name) if text != ""]
        if name in fields and texts:
            chosen[name] = texts if name in several else texts[-1]
        elif name not in fields and name not in also:
            names = [*fields, *also]
            raise ProblemError(
                400, f"unknown parameter '{name[:80]}'", where="query", remedy=f"it may be {', '.join(names)}"
            )
    return converted(chosen, kind, "query")


def converted(values: Mapping[str, Any], kind: type[Q], where: str) -> Q:
    """A record of texts; raises ProblemError that names the field and what it takes."""
    try:
        return msgspec.convert(values, type=kind, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        raise ProblemError(400, str(error), where=where, remedy="see /api/v1/openapi.json for what it takes") from error


def number(values: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    """A whole number of a query; raises ProblemError where it is none, or out of its range."""
    text = str(values.get(name, "") or default)
    if not (text.isascii() and text.isdigit() and len(text) < 12 and low <= int(text) <= high):
        raise ProblemError(400, f"'{text[:40]}' is no number from {low:,} to {high:,}", where=name, remedy="correct it")
    return int(text)
