"""The kinds of ``every_kind`` in the files that pack them: a messenger's ZIP, Parquet, OTLP protobuf."""

from __future__ import annotations

import io
import json
import zipfile

from tests.formats.every_kind import CONTROL, OPENAI, otel


def whatsapp() -> bytes:
    """The ZIP of a chat with media; its export has a line of its own for each message, and no other kinds."""
    said = ("[25.02.26, 08:59:00] Dana created group said_system", "[25.02.26, 09:00:00] Dana: read_text",
            "[25.02.26, 09:00:10] Ivo: \u200e<attached: 00000001-PHOTO.jpg>", "[25.02.26, 09:01:00] Ivo: read_text3",
            f"read_text2 in a second line {CONTROL}", "[25.02.26, 09:02:00] Dana: \u200eThis message was deleted.",
            "[25.02.26, 09:03:00] Ivo: read_edited \u200e<This message was edited>")  # fmt: skip
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(zipfile.ZipInfo("_chat.txt"), "\n".join(said) + "\n")
        archive.writestr(zipfile.ZipInfo("00000001-PHOTO.jpg"), b"\xff\xd8\xff said_block ")
    return target.getvalue()


def parquet() -> bytes:
    """The rows of ``OPENAI`` that are lists of messages, in columns of JSON as data sets of ragged rows have them."""
    import pyarrow
    import pyarrow.parquet

    rows = [json.loads(line) for line in OPENAI().splitlines()[:3]]
    flat = [{"id": row["id"], "system": row.get("system"), "messages": json.dumps(row["messages"]),
             "tools": json.dumps(row.get("tools"))} for row in rows]  # fmt: skip
    target = io.BytesIO()
    table = pyarrow.Table.from_pylist(flat)
    pyarrow.parquet.write_table(table, target, row_group_size=1, compression="none", use_dictionary=False)
    return target.getvalue()


def otlp() -> bytes:
    """The request of ``otel`` in protobuf, as a collector's file exporter writes it."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    request = json.loads(otel())
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "00112233"
    data: bytes = ParseDict(request, TracesData()).SerializeToString()
    return data
