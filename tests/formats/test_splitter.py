"""Large JSON documents are cut into elements, whatever the chunks and however broken."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.formats.json_stream import JsonElement, split, too_deep

POSTS = frozenset({"posts"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def pieces(data: bytes, size: int = 7) -> list[JsonElement]:
    return list(split((data[start : start + size] for start in range(0, len(data), size)), POSTS))


@given(st.lists(JSON, max_size=6), st.integers(1, 9), st.sampled_from([None, 1]))
def test_the_elements_of_a_list_come_back_whatever_the_chunks(values: list[object], size: int, indent: int) -> None:
    cut = pieces(json.dumps(values, indent=indent, ensure_ascii=False).encode(), size)
    assert [json.loads(piece.data) for piece in cut] == values
    assert [piece.pointer for piece in cut] == [f"/{index}" for index in range(len(values))]


@given(st.lists(JSON, max_size=4), JSON, st.integers(1, 9))
def test_the_list_under_a_known_key_is_cut_and_the_object_around_it_left_out(
    values: list[object], other: object, size: int
) -> None:
    cut = pieces(json.dumps({"ok": other, "posts": values, "n": other}).encode(), size)
    assert [json.loads(piece.data) for piece in cut] == values
    assert all(piece.pointer == f"/posts/{index}" for index, piece in enumerate(cut))


@given(st.binary(max_size=60), st.integers(1, 9))
def test_any_bytes_give_the_same_pieces_in_any_chunks(data: bytes, size: int) -> None:
    assert pieces(data, size) == pieces(data, 1000)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'[{"a":1}, {"b":tru}, {"c":3}]', [b'{"a":1}', b'{"b":tru}', b'{"c":3}']),
        (b'["]", "\\"]", "\\\\"]', [b'"]"', b'"\\"]"', b'"\\\\"']),
        (b'{"a":[1]}\n{"b":2}', [b'{"a":[1]}', b'{"b":2}']),
        (b"[]", []),
        (b"", []),
        (b"[1]\n[2]", [b"1", b"2"]),
        (b"x = [1]", [b"x =", b"1"]),
        (b'{"a":1}\nleft over [2]', [b'{"a":1}', b"left over", b"2"]),
    ],
)
def test_elements_end_where_their_brackets_balance(data: bytes, expected: list[bytes]) -> None:
    assert [piece.data for piece in pieces(data) if not piece.fault] == expected


def test_a_piece_knows_its_byte_offset_and_line() -> None:
    data = b'[\n {"a": 1},\n {"b": 2}\n]\n{"c": 3}'
    assert [(piece.pointer, piece.offset, piece.line) for piece in pieces(data)] == [
        ("/0", 3, 2), ("/1", 14, 3), (None, 25, 5)
    ]  # fmt: skip
    assert all(data[piece.offset :].startswith(piece.data) for piece in pieces(data))


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b'[{"a":1}, {"b"', "the file ends inside this element"),
        (b'[{"a":1}', "the file ends before its list is closed"),
        (b"[" + b"[" * 250 + b"]" * 250 + b"]", "nested deeper than 200 levels"),
    ],
)
def test_what_is_cut_off_or_too_deep_is_a_fault(data: bytes, fault: str) -> None:
    assert [piece.fault for piece in pieces(data) if piece.fault] == [fault]


def test_an_element_over_the_limit_is_passed_over_and_the_next_one_read() -> None:
    chunks = [b'[{"a":"', *[b"x" * (1 << 20)] * 33, b'"}, {"b":2}]']
    first, second = split(chunks)
    assert (first.fault, first.data) == ("longer than 32 MiB", b"")
    assert second.data == b'{"b":2}'


@pytest.mark.parametrize(("depth", "expected"), [(199, False), (200, False), (201, True), (100_000, True)])
def test_depth_is_measured_exactly(depth: int, expected: bool) -> None:
    assert too_deep(b"[" * depth + b"]" * depth) is expected
    assert not too_deep(b'"' + b"[" * depth + b'"')


@pytest.mark.parametrize("unit", [b"1,", b"[", b'{"posts":[', b'{"a":[],', b'"', b'\\"', b"\n,", b"}"])
def test_hostile_repetition_takes_linear_time(unit: bytes) -> None:
    def took(count: int) -> float:
        data = b"[" + unit * count
        started = time.process_time()
        for _ in split(data[start : start + (1 << 18)] for start in range(0, len(data), 1 << 18)):
            pass
        return time.process_time() - started

    small = max(took(40_000), 0.002)
    assert took(160_000) < small * 12  # four times the data; a quadratic scan would take sixteen times as long
