"""Records are decoded safely; what is wrong is named with its place, and the rest goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.errors import InputError, RecordError
from undersong.formats import json_stream, sources
from undersong.formats.json_stream import JsonRecord, decode, records
from undersong.formats.sources import OpenInput
from undersong.models import Problem


def read(tmp_path: Path, data: bytes, name: str = "in.json") -> list[JsonRecord | Problem]:
    path = tmp_path / name
    path.write_bytes(data)
    with OpenInput(path) as opened:
        return [each for source in opened.sources("in") for each in records(source, ("posts",))]


def values(items: list[JsonRecord | Problem]) -> list[object]:
    return [each.value for each in items if isinstance(each, JsonRecord)]


@pytest.mark.parametrize(
    ("data", "expected", "places"),
    [
        (b'{"a": 1}\n\n{"b": 2}\n', [{"a": 1}, {"b": 2}], [":1", ":3"]),
        (b'{"a": 1}', [{"a": 1}], ["#"]),
        (b'\xef\xbb\xbf{"a": 1}\r\n{"b": 2}\r\n', [{"a": 1}, {"b": 2}], [":1", ":2"]),
        (b'{\n "a": 1\n}\n', [{"a": 1}], ["#"]),
        (b'[{"a": 1},\n{"b": 2}]', [{"a": 1}, {"b": 2}], ["#/0", "#/1"]),
        (b'[\n{"a": 1},\n{"b": 2}\n]\n', [{"a": 1}, {"b": 2}], ["#/0", "#/1"]),
        (b'[{"a": 1}]\n[{"b": 2}]\n', [[{"a": 1}], [{"b": 2}]], [":1", ":2"]),
        (b'{"n": 2,\n "posts": [{"a": 1}, {"b": 2}]}', [{"a": 1}, {"b": 2}], ["#/posts/0", "#/posts/1"]),
    ],
)
def test_lines_and_documents_are_told_apart(
    tmp_path: Path, data: bytes, expected: list[object], places: list[str]
) -> None:
    items = read(tmp_path, data)
    assert values(items) == expected
    assert [
        str(each.ref).removeprefix(str(tmp_path / "in.json")) for each in items if isinstance(each, JsonRecord)
    ] == places


def test_a_single_line_is_a_line_where_the_name_says_so(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"posts": [{"a": 1}]}')
    with OpenInput(path) as opened:
        assert [str(each.ref)[-2:] for source in opened.sources("in") for each in records(source, ("posts",))] == [":1"]


def test_a_broken_line_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    items = read(tmp_path, b'{"a": 1}\n{"b": \n{"c": 3}\n\xff\xfe\n{"d": 4}\n')
    assert values(items) == [{"a": 1}, {"c": 3}, {"d": 4}]
    first, second = (each for each in items if isinstance(each, Problem))
    assert first.where.endswith("in.json:2")
    assert "not valid JSON" in first.what
    assert (second.where.rsplit(":")[-1], second.what) == ("4", "line is not UTF-8")


def test_a_first_line_that_is_broken_leaves_the_lines_lines(tmp_path: Path) -> None:
    items = read(tmp_path, b'{"a": 1, "text\n{"b": 2}\n{"c": 3}\n')
    assert values(items) == [{"b": 2}, {"c": 3}]


@pytest.mark.parametrize("rest", [b"", b'{"c": 3}\n', b'{"c": 3}\n{"d": 4}\n'])
def test_objects_over_several_lines_are_read_whatever_follows_them(tmp_path: Path, rest: bytes) -> None:
    data = b'{\n  "a": 1\n}\n{ "b":\n  2 }\n' + rest
    expected = [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}][: 2 + rest.count(b"\n")]
    for name in ("in.json", "in.jsonl"):
        items = read(tmp_path, data, name)
        assert (values(items), len(items)) == (expected, len(expected))


@pytest.mark.parametrize("first", [b'{"a": 1, "te', b'xt": "tail of a line"}', b"\x80", b"no JSON\nat all"])
def test_a_broken_beginning_of_lines_costs_no_other_line(tmp_path: Path, first: bytes) -> None:
    assert values(read(tmp_path, first + b'\n{"b": 2}\n{"c":\n{"d": 4}\n')) == [{"b": 2}, {"d": 4}]


def test_a_broken_element_is_reported_with_pointer_and_byte(tmp_path: Path) -> None:
    items = read(tmp_path, b'[{"a": 1}, {"b": tru}, {"c": 3}]')
    assert values(items) == [{"a": 1}, {"c": 3}]
    (problem,) = (each for each in items if isinstance(each, Problem))
    assert problem.where.endswith("in.json#/1")
    assert problem.what.startswith("element at byte 11 is not valid JSON")


@pytest.mark.parametrize(
    ("data", "value", "note"),
    [
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}, ""),
        (b'{"a": "\\ud83d!"}', {"a": "\ufffd!"}, "U+FFFD"),
        (b'["\\udc00"]', ["\ufffd"], "U+FFFD"),
        (b'{"a": NaN, "b": -Infinity}', {"a": None, "b": None}, "as null"),
        (b'{"a": 1e999}', {"a": None}, "as null"),
    ],
)
def test_what_other_programs_write_although_it_is_not_json_is_read_with_a_note(
    data: bytes, value: object, note: str
) -> None:
    assert decode(data)[0] == value
    assert note in decode(data)[1]


@pytest.mark.parametrize("data", [b"", b"{", b'"\xff"', b'{"a": "\n"}', b"1" * 5000, b"[" * 1_000_000, b"tru"])
def test_what_cannot_be_decoded_is_a_record_error(data: bytes) -> None:
    with pytest.raises(RecordError):
        decode(data)


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
@given(texts=st.lists(st.text(alphabet="ab\n\r é", max_size=40), max_size=12), mark=st.booleans(), end=st.booleans())
@settings(deadline=None, max_examples=30)
def test_lines_of_a_file_are_numbered_whatever_is_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, chunk: int, texts: list[str], mark: bool, end: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "input.jsonl"
    content = "\n".join(texts).encode() + (b"\n" if end else b"")
    path.write_bytes((b"\xef\xbb\xbf" if mark and chunk > 2 else b"") + content)
    with pytest.MonkeyPatch.context() as patch, OpenInput(path) as opened:
        patch.setattr(sources, "CHUNK", chunk)
        (source,) = opened.sources("input")
        numbered = list(json_stream.lines(source))
    expected = content.split(b"\n")
    assert numbered == list(enumerate(expected if expected[-1] else expected[:-1], 1))


def test_a_line_beyond_the_limit_is_passed_over_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "LIMIT", 50)
    monkeypatch.setattr(sources, "CHUNK", 20)
    path = tmp_path / "input.jsonl"
    path.write_bytes(b"short\n" + b"x" * 51 + b"\n" + b"y" * 50 + b"\nend")
    with OpenInput(path) as opened:
        (source,) = opened.sources("input")
        numbered = list(json_stream.lines(source))
    assert numbered == [(1, b"short"), (2, None), (3, b"y" * 50), (4, b"end")]


def test_a_file_that_is_cut_short_while_it_is_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"0123456789")
    with OpenInput(path) as opened:
        path.write_bytes(b"01234")
        (source,) = opened.sources("input")
        with pytest.raises(InputError, match="changed while it was read"):
            list(source.chunks())
        with pytest.raises(InputError, match="changed while it was read"):
            _ = opened.sha256
