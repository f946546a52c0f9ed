"""Titles that several conversations share."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from undersong.models import Case, Message, SessionVerdict
from undersong.report.distinct_titles import with_distinct_titles


def titled(*titles: str | None, times: dict[int, datetime] | None = None) -> Case:
    sessions = tuple(
        SessionVerdict(conversation=f"c{n}", score=None, psychogenic_risk=None, mechanisms=(), title=title)
        for n, title in enumerate(titles)
    )
    cited = tuple(
        Message(id="m", conversation=f"c{n}", position=0, author="a", agent="a", role="user", text="x", time=time)
        for n, time in (times or {}).items()
    )
    return Case(version="0.1.0", parameters={}, sessions=sessions, cited=cited)


def names(case: Case) -> list[str | None]:
    return [session.title for session in with_distinct_titles(case).sessions]


def test_what_stands_alone_stays_as_it_is() -> None:
    case = titled("Fix it", "Mend it", None, None)
    assert with_distinct_titles(case) is case


def test_a_time_tells_apart_and_a_number_what_has_none() -> None:
    at = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
    case = titled("Fix it", "Fix it", "Fix it", "Fix it", times={0: at, 1: at.replace(hour=15)})
    assert names(case) == ["Fix it (2026-03-01 14:00)", "Fix it (2026-03-01 15:00)", "Fix it (1)", "Fix it (2)"]


def test_one_minute_twice_gets_a_number_and_a_number_that_is_a_title_already_is_skipped() -> None:
    at = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
    assert names(titled("Go", "Go", times={0: at, 1: at})) == ["Go (2026-03-01 14:00, 1)", "Go (2026-03-01 14:00, 2)"]
    assert names(titled("Go", "Go", "Go (1)")) == ["Go (2)", "Go (3)", "Go (1)"]


def test_done_twice_nothing_changes() -> None:
    once = with_distinct_titles(titled("Go", "Go"))
    assert with_distinct_titles(once) is once
    assert msgspec.structs.asdict(once)["sessions"][0].title == "Go (1)"


def test_of_long_titles_that_begin_alike_the_part_that_differs_is_shown() -> None:
    begin = "What is your opinion on the following question?"
    case = titled(f"{begin} Is boxing a fair sport for children?", f"{begin} Is boxing a fair sport for adults?", "Go")
    assert names(case) == [
        "What is your opinion on … children?",
        "What is your opinion on … adults?",
        "Go",
    ]
    once = with_distinct_titles(case)
    assert with_distinct_titles(once) is once


def test_a_long_title_that_stands_alone_is_cut_between_two_words() -> None:
    (title,) = names(titled("Please read the whole archive of the harbour office and say which of the ships were late"))
    assert title == "Please read the whole archive of the harbour office and say which of …"
