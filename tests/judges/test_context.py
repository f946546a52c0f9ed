"""Which earlier messages a question shows."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.dialogue import Served, make_message, question
from undersong.judges.context import EarlierMessages, Past, history
from undersong.judges.llm.prompts import shipped_prompts
from undersong.models import TRAITS, Message, Tier


def tree(*parents: int | None) -> list[Message]:
    """Messages in order of time; each names the place of the one it answers."""
    return [
        make_message(f"text {place}", place, reply_to=None if parent is None else f"m{parent}")
        for place, parent in enumerate(parents)
    ]


def test_without_replies_the_five_before_are_shown_and_fewer_only_at_the_start() -> None:
    talk = tree(*[None] * 9)
    assert EarlierMessages(talk).prior_places(8, "prior_messages") == [3, 4, 5, 6, 7]
    assert EarlierMessages(talk).prior_places(2, "prior_messages") == [0, 1]


def test_ancestors_come_before_what_is_merely_near() -> None:
    talk = tree(None, 0, 0, 1, 2, 2, 2, 2, 3)  # 8 answers 3, which answers 1, which answers 0
    assert EarlierMessages(talk).prior_places(8, "prior_messages") == [0, 1, 3, 6, 7]


def test_ancestors_alone_may_fill_the_room() -> None:
    talk = tree(None, 0, 1, 2, 3, 4, 0, 0, 5)
    assert EarlierMessages(talk).prior_places(8, "prior_messages") == [1, 2, 3, 4, 5]


def test_abandoned_branches_are_passed_over_unless_they_lead_to_the_message() -> None:
    talk = tree(None, 0, 0)
    talk[1] = msgspec.structs.replace(talk[1], branch="old")
    assert EarlierMessages(talk).prior_places(2, "prior_messages") == [0]
    talk[2] = msgspec.structs.replace(talk[2], reply_to="m1", branch="old")
    assert EarlierMessages(talk).prior_places(2, "prior_messages") == [0, 1]


def test_a_reply_to_something_later_or_unknown_is_no_ancestor() -> None:
    talk = tree(None, 2, None)
    assert EarlierMessages(talk).prior_places(1, "prior_messages") == [0]


def test_a_long_thread_keeps_its_beginning_and_its_end() -> None:
    limits = msgspec.structs.replace(shipped_prompts().limits, thread_bytes=100, thread_first=2)
    talk = [make_message("x" * 10, place) for place in range(30)]
    places = EarlierMessages(talk, limits).prior_places(29, "thread_and_history")
    assert places == [0, 1, *range(21, 29)]
    assert EarlierMessages(talk[:5], limits).prior_places(4, "thread_and_history") == [0, 1, 2, 3]


@pytest.mark.parametrize("width", ["none", "message"])
def test_shallow_reading_shows_nothing_else(width: str) -> None:
    assert EarlierMessages(tree(None, None)).prior_places(1, width) == []  # type: ignore[arg-type]


def turn(*roles: str) -> list[Message]:
    """Messages by role; the assistant is one agent."""
    return [make_message(f"text {place}", place, role, role=role) for place, role in enumerate(roles)]


def test_answers_of_tools_in_the_same_turn_are_shown_with_the_message() -> None:
    talk = turn("user", "tool", "user", "assistant", "tool", "assistant", "tool", "assistant")
    assert EarlierMessages(talk).tool_places(7, []) == [4, 6]
    assert EarlierMessages(talk).tool_places(7, [6]) == [4]
    assert EarlierMessages(talk).tool_places(2, []) == []
    assert EarlierMessages(talk).tool_places(3, []) == []  # what came before the request is another turn's


def test_of_many_answers_of_tools_the_last_ones_are_shown() -> None:
    talk = turn("user", *["tool"] * 9, "assistant")
    assert EarlierMessages(talk).tool_places(10, []) == list(range(10 - shipped_prompts().limits.tool_messages, 10))


@pytest.mark.parametrize(("tier", "depth"), [("focused", "standard"), ("deep", "thorough"), ("standard", "standard")])
def test_a_reading_records_which_prompt_asked(served: Served, tier: Tier, depth: str) -> None:
    (answered, failed) = served.judge().evaluate([question("hello", tier), question("fault=prose", tier, 1)])
    assert answered.reading is not None
    assert failed.reading is not None
    assert answered.reading.depth == failed.reading.depth == depth


def test_a_history_is_over_the_scores_that_there_are() -> None:
    column, absent = TRAITS.index("manipulation"), TRAITS.index("accuracy")
    readings = []
    for hour in range(11):
        scores: list[float | None] = [0.5] * len(TRAITS)
        scores[column] = None if hour in (0, 7, 8) else 0.2 if hour < 6 else 0.8
        scores[absent] = None
        readings.append((hour, tuple(scores)))
    past = history(Past(tuple(readings)), datetime(2026, 1, 1, tzinfo=UTC))
    assert past.evaluations == 11
    assert "accuracy" not in past.averages | past.trends
    assert (past.averages["manipulation"], past.trends["manipulation"]) == (0.425, "rising")
    assert (past.averages["virtue"], past.trends["virtue"]) == (0.5, "steady")


def visible(talk: list[Message], place: int) -> tuple[list[int], list[int]]:
    """Ancestors, nearest first, and all earlier messages that a question may show, looked at one by one."""
    ancestors, at = list[int](), place
    while talk[at].reply_to is not None:
        parents = [earlier for earlier in range(at) if talk[earlier].id == talk[at].reply_to]
        if not parents:
            break
        at = parents[-1]
        ancestors.append(at)
    branches = (None, talk[place].branch)
    return ancestors, [at for at in range(place) if at in ancestors or talk[at].branch in branches]


@given(st.data())
def test_what_is_shown_is_what_the_definition_says_however_the_talk_has_grown(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 20))
    talk = [
        make_message("x" * data.draw(st.integers(0, 12)), place)
        for place in range(size)
    ]  # fmt: skip
    for place in range(size):
        parent = data.draw(st.none() | st.integers(0, size))
        branch = data.draw(st.sampled_from((None, None, "p", "q")))
        talk[place] = msgspec.structs.replace(
            talk[place], reply_to=None if parent is None else f"m{parent}", branch=branch
        )
    limits = msgspec.structs.replace(shipped_prompts().limits, thread_bytes=50, thread_first=2, prior_messages=3)
    earlier = EarlierMessages(talk[: data.draw(st.integers(0, size))], limits).grown(talk)
    for place in range(size):
        ancestors, shown = visible(talk, place)
        nearest = [*ancestors, *(at for at in reversed(shown) if at not in ancestors)][:3]
        assert earlier.prior_places(place, "prior_messages") == sorted(nearest)
        places = earlier.prior_places(place, "thread_and_history")
        fitting = sum(len(talk[at].text) for at in places)
        assert places == shown[:2] + [at for at in shown[2:] if at >= (places[2] if len(places) > 2 else size)]
        left_out = [at for at in shown if at not in places]
        assert fitting <= 50
        assert not left_out or fitting + len(talk[left_out[-1]].text) > 50
