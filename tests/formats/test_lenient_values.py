"""Values of foreign data: times, roles, numbers, texts made of blocks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.formats import values

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EPOCH = 1767323045


@pytest.mark.parametrize(
    "given_time",
    [
        "2026-01-02T03:04:05Z", "2026-01-02 03:04:05", "2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05.000000+00:00",
        EPOCH, float(EPOCH), EPOCH * 1000, EPOCH * 10**6, EPOCH * 10**9, str(EPOCH), f"{EPOCH}.000000",
    ],
)  # fmt: skip
def test_a_moment_is_read_from_iso_and_every_epoch_unit(given_time: Any) -> None:
    assert values.time(given_time) == MOMENT


@pytest.mark.parametrize("given_time", [None, ""])
def test_no_time_is_none(given_time: Any) -> None:
    assert values.time(given_time) is None


@pytest.mark.parametrize(
    "given_time",
    [float("nan"), float("inf"), -1, 1e300, "99999-01-01", "1901-Spring-74", "10:00", True, [], {}, "0001-01-01",
     "9999-12-31T23:59:59-12:00", "2026-02-30", 10**30],
)  # fmt: skip
def test_what_is_no_time_or_an_absurd_one_is_refused(given_time: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the type is the contract
        values.time(given_time)
    assert values.time_or_none(given_time) is None


@pytest.mark.parametrize(
    ("name", "role"),
    [("user", "user"), (" Human ", "user"), ("gpt", "assistant"), ("developer", "system"), ("observation", "tool"),
     ("agent", "agent"), ("users", None), ("", None), (None, None), (["user"], None)],
)  # fmt: skip
def test_roles_have_many_names(name: Any, role: str | None) -> None:
    assert values.role(name) == role


@pytest.mark.parametrize(
    ("number", "count", "seconds"),
    [(3, 3, 3.0), (3.0, 3, 3.0), (2.5, None, 2.5), (-1, None, None), (True, None, None), ("3", None, None),
     (10**30, None, None), (float("nan"), None, None), (None, None, None)],
)  # fmt: skip
def test_numbers_are_whole_finite_and_not_negative(number: Any, count: int | None, seconds: float | None) -> None:
    assert values.count(number) == count
    assert values.seconds(number) == seconds


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        ("", ""),
        ([{"type": "text", "text": "a"}, "b", {"type": "image"}, 7], "a\n\nb"),
        ([{"type": "image"}], None),
        ([], None),
        (None, None),
        (7, None),
    ],
)
def test_text_is_a_string_or_made_of_blocks(content: Any, text: str | None) -> None:
    assert values.text(content) == text


KEYS = st.sampled_from(["name", "id", "text", "content", "function", "type", "input"])
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)
)


@given(JSON)
def test_nothing_makes_the_readers_of_values_fail(value: Any) -> None:
    for read in (values.role, values.time_or_none, values.count, values.seconds, values.name, values.string,
                 values.blocks, values.text, values.tool_call, values.tool_result):  # fmt: skip
        read(value)
