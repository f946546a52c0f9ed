"""The OpenAPI document of the API, made from the same table and types that answer requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from undersong import __version__
from undersong.serve.api import OPERATIONS, PAGING, PREFIX, Observed, Operation
from undersong.serve.problems import MEDIA_TYPE, ProblemDetails

TEMPLATE = "#/components/schemas/{name}"
JSON = "application/json"
_PART = re.compile(r"\{(\w+)\}")


@cache
def document() -> dict[str, Any]:
    """The whole document, OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    problem = _schema(ProblemDetails, schemas)
    for operation in OPERATIONS:
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _described(
            operation, schemas, problem
        )
    paths[f"{PREFIX}/messages"] = {"post": _messages(schemas, problem)}
    paths["/v1/traces"] = {"post": _traces(problem)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "undersong", "version": __version__, "license": {"name": "MIT", "identifier": "MIT"},
                 "description": "Findings are consistent with a pattern; the person makes the call. Lists come by the "
                 "page: give `after` what `next` was."},
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items())), "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }  # fmt: skip


def _schema(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    (schema,), components = msgspec.json.schema_components([kind], ref_template=TEMPLATE)
    schemas.update(components)
    return schema


def _described(operation: Operation, schemas: dict[str, Any], problem: dict[str, Any]) -> dict[str, Any]:
    schema = _schema(operation.entry, schemas)
    if operation.paged:
        schema = _page(schema)
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": list(_parameters(operation)),
        "responses": {str(operation.status): _content("The answer.", schema), "default": _problem(problem)},
    }
    if operation.body is not None:
        body = _schema(operation.body, schemas)
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return described


def _page(items: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["items", "next", "total"],
        "properties": {
            "items": {"type": "array", "items": items},
            "next": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "`after` of the next page"},
            "total": {"type": "integer"},
        },
    }


def _parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    for name in _PART.findall(operation.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    _, components = msgspec.json.schema_components([operation.query], ref_template=TEMPLATE)
    own = components[operation.query.__name__]
    for name, schema in own.get("properties", {}).items():
        is_list = schema.get("type") == "array" or "prefixItems" in schema
        style = {"style": "form", "explode": True} if is_list else {}
        yield {"name": name, "in": "query", "required": name in own.get("required", ()), "schema": schema, **style}
    if operation.paged:
        yield {"name": PAGING[0], "in": "query", "required": False, "schema": {"type": "string"}}
        limit = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50}
        yield {"name": PAGING[1], "in": "query", "required": False, "schema": limit}


def _content(description: str, schema: dict[str, Any], media_type: str = JSON) -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _problem(problem: dict[str, Any]) -> dict[str, Any]:
    return _content("What is wrong, where, and what to do about it (RFC 9457).", problem, MEDIA_TYPE)


def _messages(schemas: dict[str, Any], problem: dict[str, Any]) -> dict[str, Any]:
    line = {"type": "object", "required": ["id", "conversation", "text"], "additionalProperties": True,
            "description": "A message with the keys of our JSON Lines, see docs/formats.md."}  # fmt: skip
    body = {"oneOf": [line, {"type": "array", "items": line}]}
    return {
        "operationId": "observe",
        "summary": "Messages of a conversation that goes on, into the monitor.",
        "parameters": [
            {
                "name": "map",
                "in": "query",
                "required": False,
                "schema": {"type": "string"},
                "description": "What keys of your own mean: text=body,author=user_id; else that of --map.",
            }
        ],
        "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
        "responses": {
            "200": _content("What became of them.", _schema(Observed, schemas)),
            "422": _content("None could be taken.", _schema(Observed, schemas)),
            "default": _problem(problem),
        },
    }


def _traces(problem: dict[str, Any]) -> dict[str, Any]:
    spans = {"schema": {"type": "object", "description": "ExportTraceServiceRequest of OTLP"}}
    content = {JSON: spans, "application/x-protobuf": {"schema": {"type": "string", "format": "binary"}}}
    return {
        "operationId": "traces",
        "summary": "Traces of model calls over OTLP/HTTP.",
        "requestBody": {"required": True, "content": content},
        "responses": {"200": _content("ExportTraceServiceResponse", {"type": "object"}), "default": _problem(problem)},
    }
