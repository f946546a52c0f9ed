"""Every noun survives the way to JSON and back."""

from __future__ import annotations

import inspect
import operator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from undersong import models
from undersong.models import Evaluation, Finding, Message, Record, Row, decode, encode

NOUNS = [
    value
    for value in vars(models).values()
    if inspect.isclass(value) and issubclass(value, Record) and value is not Record
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=5,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)

st.register_type_strategy(str, TEXTS)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(int, st.integers(-(2**63), 2**63 - 1))
st.register_type_strategy(
    datetime,
    st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)).flatmap(
        lambda naive: st.integers(-14 * 60, 14 * 60).map(
            lambda minutes: naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
        )
    ),
)


def strategy(kind: type[Record]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: field(hint) for name, hint in hints.items() if name in kind.__struct_fields__})


def field(hint: Any) -> st.SearchStrategy[Any]:
    if hint is Any:
        return JSON
    if inspect.isclass(hint) and issubclass(hint, Record):
        return st.deferred(lambda: strategy(hint))
    arguments = getattr(hint, "__args__", ())
    origin = getattr(hint, "__origin__", None)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return st.lists(field(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(field, arguments))
    if origin is dict:
        return st.dictionaries(field(arguments[0]), field(arguments[1]), max_size=2)
    if arguments and origin is None:  # a union X | None
        return st.one_of([st.none() if each is type(None) else field(each) for each in arguments])
    return st.from_type(hint)


@pytest.mark.parametrize("kind", NOUNS, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_noun_comes_back_from_its_json_unchanged(kind: type[Record], data: st.DataObject) -> None:
    noun = data.draw(strategy(kind))
    assert decode(encode(noun), kind) == noun


@pytest.mark.parametrize("kind", NOUNS, ids=lambda kind: kind.__name__)
def test_a_noun_is_documented_and_frozen(kind: type[Record]) -> None:
    assert kind.__doc__
    assert kind.__struct_config__.frozen


def test_a_wrong_value_is_refused_with_its_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.tier"):
        decode(b'{"id": "m1", "tier": "depp"}', Row)


def test_a_missing_score_stays_missing() -> None:
    row = decode(b'{"id": "m1", "state": "refused", "traits": null}', Row)
    assert row.traits is None
    assert row.state == "refused"


def test_a_row_keeps_the_state_that_says_why_there_are_no_scores() -> None:
    message = Message(
        id="m1", conversation="c", position=0, author="kira", role="agent", text="hi", time=datetime.now(UTC)
    )
    scan, route = (
        models.Scan(message_id="m1"),
        models.Route(message_id="m1", tier="standard", tier_before="standard", depth="skip", width="none"),
    )
    assert Row.of(message, scan, route).state == "unread"
    failed = Evaluation(message_id="m1", state="failed", judge="j", judge_hash="h", message_hash="x", reason="timeout")
    row = Row.of(message, scan, route, failed)
    assert (row.state, row.traits, row.reason) == ("failed", None, "timeout")


def test_findings_differ_exactly_where_they_are_not_equal() -> None:
    one = Finding(
        finding_id="f1",
        pattern="darvo",
        title="DARVO",
        level="high",
        rule_hash="r",
        agent="a",
        target=None,
        message_ids=(),
    )
    in_another_run, stronger = msgspec.structs.replace(one, q=0.5), msgspec.structs.replace(one, strength=0.5)
    assert operator.eq(one, in_another_run)
    assert not operator.ne(one, in_another_run)
    assert operator.ne(one, stronger)
    assert not operator.eq(one, stronger)
    assert one != "f1"
