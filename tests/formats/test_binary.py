"""Parquet and OTLP protobuf are read as the lines that they stand for; what is damaged says so."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import outcome

SAMPLES = Path(__file__).parent.parent / "samples"
FIRST, SECOND = (
    [("user", "Is valve 2 open?")],
    [("user", "Is valve 2 open?"), ("assistant", "Yes."), ("user", "Shut it.")],
)


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet_module = pytest.importorskip("pyarrow.parquet")
    parquet_module.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=2)
    return path


def test_rows_of_parquet_are_those_of_the_same_json_lines() -> None:
    pytest.importorskip("pyarrow")
    binary, text = (outcome(SAMPLES / "wildchat" / name) for name in ("rows.parquet", "rows.jsonl"))
    assert [[message.text for message in each.messages] for each in binary.conversations] == [
        [message.text for message in each.messages] for each in text.conversations
    ]
    assert str(binary.conversations[1].source_ref) == "rows.parquet:2"


def test_columns_that_hold_json_are_unpacked(tmp_path: Path) -> None:
    rows = [{"id": f"t{number}", "messages": json.dumps([{"role": "user", "content": f"hello {number}"}]),
             "metadata": "{}"} for number in range(5)]  # fmt: skip
    result = outcome(parquet(tmp_path / "a.parquet", rows))
    assert [each.messages[0].text for each in result.conversations] == [f"hello {number}" for number in range(5)]
    assert result.problem_texts("file") == []


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_a_damaged_parquet_file_is_a_problem_of_the_file(tmp_path: Path, share: float) -> None:
    pytest.importorskip("pyarrow")
    data = (SAMPLES / "wildchat" / "rows.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[: int(len(data) * share)])
    assert len(outcome(tmp_path / "a.parquet").problem_texts("file")) == 1


def test_spans_of_the_sdk_in_protobuf_are_one_conversation_however_they_are_framed(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from tests.formats.otlp_spans import spans_of

    data = spans_of([(FIRST, "Yes."), (SECOND, "Shut.")], "valves")
    halves = [spans_of([call], "valves") for call in ((FIRST, "Yes."), (SECOND, "Shut."))]
    framed = b"".join(len(half).to_bytes(4, "big") + half for half in halves)
    for name, content in (("a.pb", data), ("b.bin", framed)):
        (tmp_path / name).write_bytes(content)
        result = outcome(tmp_path / name)
        assert (result.only.id, result.only.source_format) == ("valves", "otel")
        assert len(result.only.messages) in (4, 3)
        texts = [message.text for message in result.only.messages]
        assert texts[0] == "Is valve 2 open?"
        assert texts[-2:] == ["Shut it.", "Shut."]
        assert result.only.messages[1].model == "m-small"


def test_a_protobuf_file_that_is_larger_than_a_buffer_is_read_to_its_end(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from tests.formats.otlp_spans import spans_of

    calls = [([("user", f"Is valve {number} open?" + " again?" * 3000)], f"Yes, {number}.") for number in range(9)]
    (tmp_path / "a.pb").write_bytes(spans_of(calls, "valves"))
    result = outcome(tmp_path / "a.pb")
    assert (len(result.only.messages), result.problems) == (18, [])
    assert [file.source_format for file in result.files] == ["otel"]


def test_a_call_of_the_sdk_without_content_is_said(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from tests.formats.otlp_spans import spans_of

    (tmp_path / "a.pb").write_bytes(spans_of([(FIRST, "")], "valves"))
    result = outcome(tmp_path / "a.pb")
    assert "were not captured" in " ".join(result.problem_texts("note"))


def test_text_behind_blank_lines_is_no_protobuf(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text("\n\n\naa\naaaaa\n")  # the first bytes could be a field of ten bytes
    assert "ResourceSpans" not in str(outcome(tmp_path / "chat.jsonl").problems)


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_damaged_protobuf_is_no_traceback(tmp_path: Path, cut: int) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from tests.formats.otlp_spans import spans_of

    (tmp_path / "a.pb").write_bytes(spans_of([(FIRST, "Yes.")], "valves")[:-cut])
    assert outcome(tmp_path / "a.pb").problem_texts("file")


def test_a_messengers_zip_with_pictures_is_read_and_they_are_counted(tmp_path: Path) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("_chat.txt", "[25.02.26, 21:14:05] Dana: where are you?\n"
                         "[25.02.26, 21:15:00] Ivo: \u200e<attached: 00000001-PHOTO.jpg>\n"
                         "[25.02.26, 21:16:00] Ivo: at the quay\n")  # fmt: skip
        archive.writestr("00000001-PHOTO.jpg", b"\xff\xd8\xff")
    (tmp_path / "WhatsApp Chat - Dana.zip").write_bytes(target.getvalue())
    result = outcome(tmp_path / "WhatsApp Chat - Dana.zip")
    assert [message.text for message in result.only.messages] == ["where are you?", "", "at the quay"]
    assert result.only.id == "WhatsApp Chat - Dana"
    assert result.problem_texts("note") == [
        "1 × picture, recording or deleted message, which the export leaves out",
        "1 member of another ending, not read: 00000001-PHOTO.jpg",
    ]


def test_transcripts_of_scout_keep_their_ids_and_models() -> None:
    """The sample was written by inspect-scout 0.6."""
    pytest.importorskip("pyarrow")
    result = outcome(SAMPLES / "openai" / "scout.parquet")
    assert [each.id for each in result.conversations] == ["t0", "t1", "t2"]
    assert [(message.role, message.text, message.model) for message in result.conversations[1].messages] == [
        ("user", "is pump 1 dry?", None),
        ("assistant", "It is.", "m-small"),
    ]
