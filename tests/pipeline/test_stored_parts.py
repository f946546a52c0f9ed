"""Days of a talk that are audited into one store: added to what is there, or told of as lost."""

from __future__ import annotations

from typing import Any

import pytest

from undersong.models import Message
from undersong.pipeline.options import Options, silent
from undersong.pipeline.stages import ingest_and_scan
from undersong.scan import load_book
from undersong.stores.protocol import Store
from undersong.stores.sqlite import temporary_store

DAYS = (
    ({"id": "m1", "author": "ana", "text": "Did you pay?", "time": "2026-03-01T08:00:00Z"},),
    ({"id": "m2", "author": "bo", "text": "On Friday.", "time": "2026-03-02T08:00:00Z"},
     {"id": "m3", "author": "ana", "text": "It is Monday.", "time": "2026-03-02T09:00:00Z", "reply_to": "m2"}),
)  # fmt: skip
WHOLE = [("m1", "Did you pay?", "talk/bo"), ("m2", "On Friday.", "talk/ana"), ("m3", "It is Monday.", "talk/bo")]


def put(store: Store, *messages: dict[str, Any], add: bool = False) -> list[str]:
    """Ingest messages of one talk, and return what is said of it."""
    lines = [{"conversation": "talk", **message} for message in messages]
    corpus = ingest_and_scan(lines, store, load_book(), Options(add=add), silent)  # type: ignore[arg-type]
    return [problem.what for problem in corpus.problems]


def stored(store: Store) -> tuple[Message, ...]:
    return store.conversation("talk")[0].messages


def facts(store: Store) -> list[tuple[str, str, str | None]]:
    return [(each.id, each.text, each.target) for each in stored(store)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 1), (0, 1, 0)])
def test_days_are_added_in_the_order_of_time_whatever_comes_when_or_twice(order: tuple[int, ...]) -> None:
    with temporary_store() as store:
        for day in order:
            assert put(store, *DAYS[day], add=True) == []
        assert facts(store) == WHOLE
        assert [each.position for each in stored(store)] == [0, 1, 2]


def test_a_day_alone_takes_the_place_of_the_talk_and_says_what_is_lost() -> None:
    with temporary_store() as store:
        assert put(store, *DAYS[0], *DAYS[1]) == []
        assert put(store, *DAYS[0], *DAYS[1]) == []
        assert put(store, *DAYS[1]) == [
            "the store had 1 message of 1 conversation that are not in the input, and has them no more"
        ]
        assert [each.id for each in stored(store)] == ["m2", "m3"]


def test_an_id_of_the_source_is_a_newer_version_and_one_made_from_a_place_is_not() -> None:
    with temporary_store() as store:
        put(store, *DAYS[0], add=True)
        put(store, {**DAYS[0][0], "text": "Did you pay me?"}, add=True)
        assert [each.text for each in stored(store)] == ["Did you pay me?"]
    with temporary_store() as store:
        for text in ("One.", "Two.", "Two."):
            put(store, {"author": "ana", "text": text}, add=True)
        assert [(each.id, each.text) for each in stored(store)] == [("talk:0", "One."), ("talk:0~2", "Two.")]
