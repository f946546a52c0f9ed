"""Spans of GenAI calls as the OpenTelemetry SDK makes them and its own encoder writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

Said = list[tuple[str, str]]


def parts(said: Said) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said])


def spans_of(calls: list[tuple[Said, str]], conversation: str, more: Mapping[str, str] | None = None) -> bytes:
    """An OTLP request in protobuf: each call in a trace of its own, all of one conversation."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "waterworks"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    for number, (said, answer) in enumerate(calls):
        span = tracer.start_span("chat", start_time=(1_770_000_000 + 60 * number) * 10**9)
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.conversation.id", conversation)
        span.set_attribute("gen_ai.request.model", "m-small")
        if answer:
            span.set_attribute("gen_ai.input.messages", parts(said))
            span.set_attribute("gen_ai.output.messages", parts([("assistant", answer)]))
        for key, value in (more or {}).items():
            span.set_attribute(key, value)
        span.end(end_time=(1_770_000_005 + 60 * number) * 10**9)
    data: bytes = encode_spans(exporter.get_finished_spans()).SerializeToString()
    return data
